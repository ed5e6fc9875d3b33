"""A guard against getting slower that needs no clock of its own: ratios within one run.

One pass is measured against the two matrix products of its shape, the dual step against `np.sort`
of the same row, taking turns, the least of several counts. The bounds are generous: they are to
catch a mistake, not a busy machine.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

FULL_BOUND = 3.0
ACTIVE_BOUND = 1.0
STEP_BOUND = 4.0


@dataclass(frozen=True)
class Ratio:
    """A measured ratio and the most that it may be."""

    what: str
    value: float
    bound: float

    @property
    def is_kept(self) -> bool:
        """Whether it is within the bound; something that is no number is not."""
        return self.value <= self.bound


def measure(*, quick: bool = False) -> list[Ratio]:
    """Return all ratios, on one thread."""
    from benchmarks.solver_speed import measure_passes

    shape = (2000, 512, 1000) if quick else (8000, 2048, 1000)
    speed = measure_passes(shape, k=5, C=1.0, threads=1, repeats=3)
    name = "n = {}, d = {}, m = {}, float32".format(*shape)
    return [
        Ratio(f"a full pass / X W' and A' X, {name}", speed.full / speed.products, FULL_BOUND),
        Ratio(f"an active pass / a full pass, {name}", speed.active / speed.full, ACTIVE_BOUND),
        Ratio("a dual step / np.sort, m = 1000, float32", measure_step(), STEP_BOUND),
    ]


def measure_step(m: int = 1000, turns: int = 5) -> float:
    """Return the time of a dual step for k = 5 over that of sorting its scores."""
    from benchmarks.solver_speed import time_dual_step

    rows = np.random.default_rng(0).standard_normal((500, m - 1), dtype=np.float32)
    step = sort = np.inf
    for _ in range(turns):
        step = min(step, time_dual_step(m, repeats=3))
        start = time.perf_counter()
        np.sort(rows, axis=1)
        sort = min(sort, (time.perf_counter() - start) / len(rows))
    return step / sort


def judge(ratios: list[Ratio]) -> int:
    """Print the ratios; return the exit code, 1 if a bound is broken."""
    for ratio in ratios:
        verdict = "ok" if ratio.is_kept else "BROKEN"
        print(f"{verdict:6}  {ratio.value:6.2f}, at most {ratio.bound:g}:  {ratio.what}")
    return 0 if all(ratio.is_kept for ratio in ratios) else 1
