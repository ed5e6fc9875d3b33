"""The paper's scaling experiment: time of the projections against the dimension.

As in figure "Scaling of the projection onto the top-k simplex": 1000 points from N(0, 1), total CPU
time on one thread, the knapsack projection against the top-k simplex. Sorting the same rows, which
most projections in use start with, is measured beside them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topksvm._numba import warm_up
from topksvm._threads import thread_limit
from topksvm.projections import project_knapsack, project_topk_simplex

__all__ = ["KS", "Measurement", "measure_scaling"]

KS = (1, 5, 10)

_BATCH_ENTRIES = 1 << 20
"""Points are drawn and measured in batches of at most so many entries (8 MB)."""

Rows = NDArray[np.float64]


@dataclass(frozen=True)
class Measurement:
    """CPU time in seconds for all points of one dimension, by method."""

    dimension: int
    points: int
    seconds: dict[str, float]

    def ratio(self, method: str, to: str) -> float:
        """Return the time of `method` divided by that of `to`."""
        return self.seconds[method] / self.seconds[to]


def _methods() -> dict[str, Callable[[Rows, Rows], object]]:
    def sort(rows: Rows, out: Rows) -> None:
        np.copyto(out, rows)
        out.sort(axis=1)

    def topk(k: int) -> Callable[[Rows, Rows], object]:
        return lambda rows, out: project_topk_simplex(rows, k, out=out)

    methods: dict[str, Callable[[Rows, Rows], object]] = {
        "sort": sort,
        "knapsack": lambda rows, out: project_knapsack(rows, out=out),
    }
    return methods | {f"top-{k} simplex": topk(k) for k in KS}


def measure_scaling(
    dimensions: Iterable[int], points: int = 1000, *, repeats: int = 5, seed: int = 0
) -> Iterable[Measurement]:
    """Yield a measurement for each dimension.

    The methods take turns on each batch, and the best of `repeats` turns counts, so that what else
    runs on the machine disturbs all of them alike. Compilation is not included.
    """
    warm_up()
    methods = _methods()
    rng = np.random.default_rng(seed)
    for dimension in dimensions:
        seconds = dict.fromkeys(methods, 0.0)
        batch = min(points, max(1, _BATCH_ENTRIES // dimension))
        out = np.empty((batch, dimension))
        for start in range(0, points, batch):
            rows = rng.standard_normal((min(batch, points - start), dimension))
            for name, best in _best_times(methods, rows, out[: len(rows)], repeats).items():
                seconds[name] += best
        yield Measurement(dimension, points, seconds)


def _best_times(
    methods: dict[str, Callable[[Rows, Rows], object]], rows: Rows, out: Rows, repeats: int
) -> dict[str, float]:
    best = dict.fromkeys(methods, np.inf)
    with thread_limit(1):
        for _ in range(repeats):
            for name, method in methods.items():
                start = time.process_time()
                method(rows, out)
                best[name] = min(best[name], time.process_time() - start)
    return best
