"""What paths over C save, on one thread.

A path against one fit after the other; and the paths for several k that are walked together, with
blocks of rows and their Gram matrices in common, against one path after the other.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from topksvm._threads import fit_threads
from topksvm.data._problem import make_problem
from topksvm.solvers import Result, path, solve
from topksvm.solvers._path import loss_for
from topksvm.solvers._sdca import SDCAOptions
from topksvm.solvers._together import Walk, trace_together

__all__ = ["KS", "PathSpeed", "TogetherSpeed", "time_path", "time_together"]

LOSS = "topk_hinge_alpha"

MAX_ITER = 20_000
"""Passes for each point: enough to certify k = 1 with large C, where classes can be separated."""

KS = (1, 2, 3, 4, 5, 10, 20)
"""The k of the paths that are walked together."""


@dataclass(frozen=True)
class PathSpeed:
    """Seconds and gaps of a path and of single fits for the same values of C."""

    k: int
    Cs: list[float]
    warm_seconds: float
    cold_seconds: list[float]
    warm_gaps: list[float]
    cold_gaps: list[float]
    warm_passes: list[int]
    cold_passes: list[int]

    @property
    def ratio(self) -> float:
        """The time of the path as a share of that of the single fits."""
        return self.warm_seconds / sum(self.cold_seconds)


def time_path(
    X: NDArray[Any], y: NDArray[Any], k: int, Cs: Any = None, tol: float = 1e-3
) -> PathSpeed:
    """Measure a path over `Cs`, by default the paper's grid, and a fit for each of them."""
    grid = _grid(Cs)
    options: dict[str, Any] = {"k": k, "tol": tol, "max_iter": MAX_ITER, "n_jobs": 1}

    def fit(C: float) -> tuple[float, Result]:
        start = time.perf_counter()
        result = solve(X, y, LOSS, C, **options)
        return time.perf_counter() - start, result

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # The gaps are in the table.
        fit(float(grid[0]))  # Compiles.
        start = time.perf_counter()
        points = path(X, y, LOSS, grid, **options).results
        warm_seconds = time.perf_counter() - start
        cold = [fit(C) for C in grid.tolist()]
    return PathSpeed(
        k,
        grid.tolist(),
        warm_seconds,
        [seconds for seconds, _ in cold],
        [result.certificate.relative_gap for result in points],
        [result.certificate.relative_gap for _, result in cold],
        [result.n_iter for result in points],
        [result.n_iter for _, result in cold],
    )


@dataclass(frozen=True)
class TogetherSpeed:
    """Seconds for the paths of several k, in three ways, and the largest relative gap of all.

    `together` and `one_by_one` run the same code, on all `ks` and on each; `plain` is
    :func:`topksvm.path` for each, whose passes gather rows for themselves.
    """

    where: str
    ks: list[int]
    Cs: list[float]
    together: float
    one_by_one: float
    plain: float
    max_gap: float

    @property
    def ratio(self) -> float:
        """The time together as a share of that of one after the other."""
        return self.together / self.one_by_one


def time_together(
    X: NDArray[Any],
    y: NDArray[Any],
    ks: Sequence[int] = KS,
    Cs: Any = None,
    tol: float = 1e-3,
    folder: Path | None = None,
) -> TogetherSpeed:
    """Measure the paths over `Cs`, by default the paper's grid, for all `ks`.

    With a `folder`, X is a memory map on a file in it, which is not in the cache of the system
    when a measurement begins.
    """
    grid = _grid(Cs)
    rows = _in_memory(X) if folder is None else _on_disk(X, folder)

    def together(ks: Sequence[int], Cs: NDArray[Any]) -> list[Result]:
        problem = make_problem(rows(), y, np.ones(len(y)), int(y.max()) + 1)
        walks = [Walk(loss_for(problem, LOSS, k, 0.0), Cs.tolist()) for k in ks]
        options = SDCAOptions(tol, MAX_ITER)
        return [result for _, _, result in trace_together(problem, walks, options)]

    def plain(k: int, Cs: NDArray[Any]) -> list[Result]:
        return path(rows(), y, LOSS, Cs, k=k, tol=tol, max_iter=MAX_ITER, n_jobs=1).results

    with warnings.catch_warnings(), fit_threads(1):
        warnings.simplefilter("ignore", ConvergenceWarning)  # The gap is in the result.
        together(ks[:1], grid[:2]), plain(ks[0], grid[:2])  # Compiles.
        runs = [_timed(together, ks, grid)]
        runs += [_timed(together, [k], grid) for k in ks]
        runs += [_timed(plain, k, grid) for k in ks]
    seconds = [seconds for seconds, _ in runs]
    return TogetherSpeed(
        "memory" if folder is None else "disk",
        list(ks),
        grid.tolist(),
        seconds[0],
        sum(seconds[1 : 1 + len(ks)]),
        sum(seconds[1 + len(ks) :]),
        max(gap for _, gap in runs),
    )


def _grid(Cs: Any) -> NDArray[np.float64]:
    return np.logspace(-5.0, 3.0, 9) if Cs is None else np.asarray(Cs, dtype=np.float64)


def _timed(run: Callable[..., list[Result]], *args: Any) -> tuple[float, float]:
    """Return the seconds of a run and its largest gap."""
    start = time.perf_counter()
    results = run(*args)
    seconds = time.perf_counter() - start
    return seconds, max(result.certificate.relative_gap for result in results)


def _in_memory(X: NDArray[Any]) -> Callable[[], NDArray[Any]]:
    return lambda: X


def _on_disk(X: NDArray[Any], folder: Path) -> Callable[[], NDArray[Any]]:
    """Write X to a file; return what maps it anew, from the disk where the system allows it."""
    file = folder / "X.npy"
    np.save(file, X)

    def rows() -> NDArray[Any]:
        if hasattr(os, "posix_fadvise"):
            with file.open("rb") as stream:
                os.fsync(stream.fileno())  # What is not written yet stays in the cache.
                os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        mapped: NDArray[Any] = np.load(file, mmap_mode="r")
        return mapped

    return rows
