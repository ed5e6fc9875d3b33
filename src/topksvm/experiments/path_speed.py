"""How much a path over C saves against one fit after the other, on one thread."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from topksvm.solvers import Result, path, solve

__all__ = ["PathSpeed", "time_path"]

MAX_ITER = 20_000
"""Passes for each point: enough to certify k = 1 with large C, where classes can be separated."""


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
    grid = np.logspace(-5.0, 3.0, 9) if Cs is None else np.asarray(Cs, dtype=float)
    options: dict[str, Any] = {"k": k, "tol": tol, "max_iter": MAX_ITER, "n_jobs": 1}

    def fit(C: float) -> tuple[float, Result]:
        start = time.perf_counter()
        result = solve(X, y, "topk_hinge_alpha", C, **options)
        return time.perf_counter() - start, result

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # The gaps are in the table.
        fit(float(grid[0]))  # Compiles.
        start = time.perf_counter()
        points = path(X, y, "topk_hinge_alpha", grid, **options).results
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
