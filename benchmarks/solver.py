"""Passes against matrix products, and the time to a gap against peers.

A pass of the solver against the two matrix products of its shape; the dual step alone; the time to
a relative gap of 1e-3 on one thread against sequential SDCA (the algorithm as the paper prints it,
and one that updates only the classes that have changed) and, for k = 1, LIBLINEAR's Crammer-Singer
at the loosest of its tolerances with an objective as good. Takes some minutes.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.svm import LinearSVC

from benchmarks.datasets import make_mixture, silhouettes_or_mixture
from benchmarks.objectives import Objective
from benchmarks.options import add_silhouettes
from benchmarks.passes import LOSS, measure_dual_step, measure_passes
from benchmarks.sequential import ONE_BY_ONE, solve_as_printed
from benchmarks.timing import print_progress, threads, timed
from topksvm import solve
from topksvm.solvers import Certificate, Result

Row = dict[str, Any]

REPEATS = 3
"""Runs to a gap, of which the fastest counts."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--quick", action="store_true", help="small shapes, and k = 1, 10")
    add_silhouettes(parser)


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Measure all of it."""
    X, y, C = silhouettes_or_mixture(options.silhouettes)
    shapes = [(4100, 784, 101)] if options.quick else [(4100, 784, 101), (8000, 2048, 1000)]
    passes = list(time_passes(shapes))
    print_progress("solver: the dual step")
    steps = [
        {"C": strength, "microseconds": 1e6 * measure_dual_step(C=strength)["step"]}
        for strength in (0.01, 1.0, 100.0)
    ]
    with threads(1):
        rows = list(time_to_gap(X, y, C, ks=(1, 10) if options.quick else (1, 5, 10)))
    ours = {row["k"]: row["seconds"] for row in reversed(rows) if "float32" in row["method"]}
    return {
        "Seconds of a pass, float32, k = 5, and of the products X W' and A' X": passes,
        "The dual step alone, m = 1000, k = 5, float32": steps,
        f"To a relative gap of 1e-3, one thread, C = {C:g}": [
            row | {"times ours": row["seconds"] / ours[row["k"]]} for row in rows
        ],
    }


def time_passes(shapes: Sequence[tuple[int, int, int]], turns: int = 5) -> Iterator[Row]:
    """Yield the seconds of passes for two C, on one thread and on two."""
    for shape in shapes:
        X, y = make_mixture(*shape)
        for C in (1.0, 10.0):
            for count in (1, 2):
                print_progress(f"solver: passes, n, d, m = {shape}, C = {C:g}, {count} threads")
                best = measure_passes(X, y, C=C, threads=count, turns=turns)
                yield {"n, d, m": str(shape), "C": C, "threads": count, **best} | {
                    "full / products": best["full"] / best["products"],
                    "active / full": best["active"] / best["full"],
                }


def time_to_gap(
    X: Any, y: Any, C: float, ks: tuple[int, ...] = (1, 5, 10), tol: float = 1e-3
) -> Iterator[Row]:
    """Yield the times of our solver, sequential SDCA and, for k = 1, LIBLINEAR."""
    wide = X.astype(np.float64)
    for k in ks:
        print_progress(f"solver: time to a gap, k = {k}")

        how: Row = {"k": k, "n_jobs": 1}
        fits = {
            "topksvm float32": partial(solve, X, y, LOSS, C, tol=tol, **how),
            "topksvm float64": partial(solve, wide, y, LOSS, C, tol=tol, **how),
            "sequential SDCA float64": partial(solve_as_printed, wide, y, C, k, tol),
            "  with sparse updates": partial(solve, wide, y, LOSS, C, tol=tol, **how, **ONE_BY_ONE),
        }
        yield from (_row(method, k, fit) for method, fit in fits.items())
        if k == 1:
            dual = solve(wide, y, LOSS, C, tol=1e-5, **how).certificate.dual
            yield from _liblinear(wide, y, C, dual, tol)


def _row(method: str, k: int, fit: Callable[[], Result]) -> Row:
    fit()  # Compiles.
    runs = [timed(fit) for _ in range(REPEATS)]
    certificate = runs[-1][1].certificate
    return {
        "method": method,
        "k": k,
        "seconds": min(seconds for seconds, _ in runs),
        "objective": certificate.primal,
        "relative gap": certificate.relative_gap,
    }


def _liblinear(X: Any, y: Any, C: float, dual: float, tol: float) -> Iterator[Row]:
    """Yield LIBLINEAR's row, if it has one; `dual` is a bound on the optimum."""
    for tolerance in (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 1e-4):
        model = LinearSVC(
            multi_class="crammer_singer", C=C, fit_intercept=False, tol=tolerance, max_iter=100_000
        )
        seconds = min(timed(lambda: model.fit(X, y))[0] for _ in range(REPEATS))  # noqa: B023
        primal = Objective("hinge", 1).value(model.coef_, X, y, C)
        gap = Certificate(primal, dual).relative_gap
        if gap <= tol:
            yield {
                "method": f"LIBLINEAR, tol = {tolerance:g}",
                "k": 1,
                "seconds": seconds,
                "objective": primal,
                "relative gap": gap,
            }
            return
