"""The pieces of a fit: full passes, active passes, the dual step alone."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks.timing import threads as limited_to, time_products, timed
from topksvm import solve
from topksvm._numba import kernel
from topksvm.losses import LOSSES, dual_step
from topksvm.projections import make_workspace
from topksvm.solvers import Result

LOSS = "topk_hinge_alpha"

PASSES = 10
"""Passes of a turn, full and active ones."""

UNREACHABLE = 1e-9
"""A gap that no fit of so few passes reaches."""

REST = 0.25
"""Seconds after which the threads of BLAS sleep, and no longer take time from what comes next."""


def compile_kernels(X: Any, y: Any) -> None:
    """Make full and active passes that do not count: what follows finds compiled kernels."""
    solve(X, y, LOSS, tol=UNREACHABLE, max_iter=PASSES)


def measure_passes(
    X: Any, y: Any, *, k: int = 5, C: float = 1.0, threads: int = 1, turns: int = 5
) -> dict[str, float]:
    """Return the seconds of a full pass, an active pass, and the products ``X W'`` and ``A' X``.

    The least of several turns. A turn continues a fit whose first passes, which are not typical,
    are not counted.
    """
    m = int(y.max()) + 1

    def fit(start: Result | None) -> tuple[Result, int]:
        updates = set()  # Each is a full pass, and active ones.
        result = solve(
            X,
            y,
            LOSS,
            C,
            k=k,
            tol=UNREACHABLE,
            max_iter=PASSES,
            n_jobs=threads,
            warm=start,
            callback=lambda progress: updates.add(progress.passes),
        )
        return result, len(updates - {0})

    start, _ = fit(None)
    best = np.full(3, np.inf)
    with limited_to(threads):
        for _ in range(turns):
            products = time_products(X, m, turns=3)
            time.sleep(REST)
            result, n_full = fit(start)
            n_active = result.n_iter - n_full
            full, active = result.seconds["full"], result.seconds.get("active", np.nan)
            best = np.fmin(best, [products, full / n_full, active / max(n_active, 1)])
    return dict(zip(("products", "full", "active"), best.tolist(), strict=True))


@kernel
def step_rows(loss, rows, C, work):
    """Take the dual step of every row of scores."""
    for i in range(rows.shape[0]):
        dual_step(loss, rows[i], 1.0, 1.0, C, work)


def measure_dual_step(
    m: int = 1000, k: int = 5, C: float = 1.0, turns: int = 20
) -> dict[str, float]:
    """Return the seconds of a dual step on float32 scores of `m` classes, and of sorting them."""
    rows = np.random.default_rng(0).standard_normal((500, m - 1), dtype=np.float32)
    work, loss = make_workspace(m, rows.dtype), LOSSES[LOSS](k)

    def step() -> None:
        step_rows(loss, rows, C, work)

    step()  # Compiles.
    best = np.min([[timed(step)[0], timed(lambda: np.sort(rows))[0]] for _ in range(turns)], axis=0)
    return dict(zip(("step", "sort"), (best / len(rows)).tolist(), strict=True))
