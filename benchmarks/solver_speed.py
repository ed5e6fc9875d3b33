"""How fast the solver is: passes against matrix products, and time to a given gap against peers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from benchmarks.sequential import PrintedSDCA, SequentialSDCA
from topksvm._numba import kernel
from topksvm._threads import thread_limit
from topksvm.data._problem import Problem, make_problem
from topksvm.losses import LOSSES
from topksvm.losses._contract import dual_step
from topksvm.solvers._certificate import Certificate
from topksvm.solvers._duals import empty_duals
from topksvm.solvers._sdca import SDCA, SDCAOptions
from topksvm.solvers._steps import make_scratch

__all__ = [
    "PassSpeed",
    "TimeToGap",
    "make_mixture",
    "measure_passes",
    "time_dual_step",
    "time_to_gap",
]

Floats = NDArray[np.floating[Any]]
Labels = NDArray[np.integer[Any]]
T = TypeVar("T")


REST = 0.25
"""Seconds after which the threads of BLAS sleep."""

WAKE = 0.1
"""Seconds of work before a pass is timed."""

REPEATS = 3
"""Runs to a gap, of which the fastest counts."""


@dataclass(frozen=True)
class PassSpeed:
    """Seconds of one pass and of the two matrix products of the same shape, one run."""

    shape: tuple[int, int, int]
    C: float
    threads: int
    products: float
    full: float
    active: float


@dataclass(frozen=True)
class TimeToGap:
    """Seconds of a method to its goal, and the objective that it reached."""

    method: str
    k: int
    seconds: float
    primal: float
    relative_gap: float


def make_mixture(n: int, d: int, m: int, dtype: Any, seed: int = 0) -> tuple[Floats, Labels]:
    """Return unit rows around `m` random centres, and their labels."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((m, d), dtype=np.float32)
    y = rng.integers(0, m, n)
    X = 0.5 * centres[y] + rng.standard_normal((n, d), dtype=np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X.astype(dtype, copy=False), y


def measure_passes(
    shape: tuple[int, int, int], *, k: int = 5, C: float = 1.0, threads: int = 1, repeats: int = 5
) -> PassSpeed:
    """Measure a full and an active pass and the products ``X W'`` and ``A' X``, taking turns."""
    n, d, m = shape
    X, y = make_mixture(n, d, m, np.float32)
    rng = np.random.default_rng(1)
    weights = rng.standard_normal((m, d), dtype=np.float32)
    duals = rng.standard_normal((n, m), dtype=np.float32)
    with thread_limit(threads), threadpool_limits(threads, user_api="blas"):
        problem = make_problem(X, y, np.full(n, C), m)
        solver = SDCA(LOSSES["topk_hinge_alpha"](k), problem, SDCAOptions())
        for _ in range(3):  # The first passes are not typical, and compile.
            solver.full_pass()
            solver.active_pass()
        best = {"products": np.inf, "full": np.inf, "active": np.inf}
        turns: dict[str, Callable[[], Any]] = {
            "products": lambda: (X @ weights.T, duals.T @ X),
            "full": solver.full_pass,
            "active": solver.active_pass,
        }
        for _ in range(repeats):
            for name, turn in turns.items():
                # The threads of BLAS look for more work for a while after a product, and would take
                # time from what comes next; and a processor that has slept needs to wake up.
                time.sleep(REST)
                awake = time.perf_counter() + WAKE
                while time.perf_counter() < awake:
                    turn()
                best[name] = min(best[name], _seconds(turn))
    return PassSpeed(shape, C, threads, best["products"], best["full"], best["active"])


def _seconds(turn: Callable[[], Any]) -> float:
    start = time.perf_counter()
    turn()
    return time.perf_counter() - start


@kernel
def step_rows(loss, rows, C, scratch):
    """Take the dual step of every row of scores."""
    for i in range(rows.shape[0]):
        dual_step(
            loss,
            rows[i],
            1.0,
            1.0,
            C,
            scratch.positions,
            scratch.values,
            scratch.lanes,
            scratch.c,
            scratch.ranked,
        )


def time_dual_step(m: int = 1000, k: int = 5, C: float = 1.0, repeats: int = 20) -> float:
    """Return the seconds of one dual step on float32 scores of `m` classes."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((500, m - 1), dtype=np.float32)
    scratch = make_scratch(m, rows.dtype)
    loss = LOSSES["topk_hinge_alpha"](k)
    step_rows(loss, rows, C, scratch)
    best = np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        step_rows(loss, rows, C, scratch)
        best = min(best, time.perf_counter() - start)
    return best / len(rows)


def time_to_gap(
    X: Floats, y: Labels, C: float, ks: tuple[int, ...] = (1, 5, 10), tol: float = 1e-3
) -> Iterator[TimeToGap]:
    """Yield the times of our solver, sequential SDCA and, for k = 1, LIBLINEAR; one thread.

    Sequential SDCA twice: as the paper prints it, and with updates of the changed classes alone.
    """
    m = int(y.max()) + 1
    with thread_limit(1), threadpool_limits(1, user_api="blas"):
        for k in ks:
            loss = LOSSES["topk_hinge_alpha"](k)
            for dtype in (np.float32, np.float64):
                problem = make_problem(X.astype(dtype), y, np.full(len(y), C), m)
                yield _timed(f"topksvm {np.dtype(dtype).name}", k, SDCA, loss, problem, tol)
            yield _timed("sequential SDCA float64", k, PrintedSDCA, loss, problem, tol)
            yield _timed("  with sparse updates", k, SequentialSDCA, loss, problem, tol)
            if k == 1:
                yield from _liblinear(X, y, C, problem, tol)


def _timed(
    method: str, k: int, kind: type[SDCA], loss: Any, problem: Problem, tol: float
) -> TimeToGap:
    kind(loss, problem, SDCAOptions(max_iter=8)).run()  # Compiles.
    seconds, certificate = _fastest(lambda: kind(loss, problem, SDCAOptions(tol)).run().certificate)
    return TimeToGap(method, k, seconds, certificate.primal, certificate.relative_gap)


def _fastest(run: Callable[[], T]) -> tuple[float, T]:
    """Return the seconds of the fastest of some runs, and what the last one returned."""
    best = np.inf
    for _ in range(REPEATS):
        start = time.perf_counter()
        result = run()
        best = min(best, time.perf_counter() - start)
    return best, result


def _liblinear(X: Floats, y: Labels, C: float, problem: Problem, tol: float) -> Iterator[TimeToGap]:
    """Yield LIBLINEAR's Crammer-Singer at the loosest of its tolerances that reaches our goal."""
    judge = SDCA(LOSSES["topk_hinge_alpha"](1), problem, SDCAOptions(1e-5))
    dual = judge.run().certificate.dual
    wide = X.astype(np.float64)
    for tolerance in (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 1e-4):
        model = LinearSVC(
            multi_class="crammer_singer", C=C, fit_intercept=False, tol=tolerance, max_iter=100_000
        )
        seconds, _ = _fastest(lambda: model.fit(wide, y))  # noqa: B023 -- It runs at once.
        judge.duals = empty_duals(problem.n, 1)
        primal = judge.certify(model.coef_).primal
        gap = Certificate(primal, dual).relative_gap
        if gap <= tol:
            yield TimeToGap(f"LIBLINEAR, tol = {tolerance:g}", 1, seconds, primal, gap)
            return
