"""A warm-started path over C against single fits; paths for several k together.

The paper's grid of nine C from 1e-5 to 1e3 along one path, against a fit for each, to a relative
gap of 1e-3 in float32 on one thread. Takes about a minute, with -k 1 about five. With --together:
paths for k = 1, 2, 3, 4, 5, 10, 20 that share blocks of rows and their Gram matrices, against one
path after the other, with X in memory and in a memory map that is read from the disk for each.
Takes about four minutes.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.datasets import silhouettes_or_mixture
from benchmarks.options import InputError, add_silhouettes
from benchmarks.passes import LOSS, compile_kernels
from benchmarks.timing import print_progress, threads, timed
from topksvm import path, solve
from topksvm.data import make_problem
from topksvm.solvers import PathTask, Result, Setup, Stopping, loss_for, solve_paths

Row = dict[str, Any]

OPTIONS: Row = {"tol": 1e-3, "max_iter": 20_000}
"""Passes for each point: enough to certify k = 1 with large C, where classes can be separated."""

GRID = np.logspace(-5.0, 3.0, 9)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("-k", type=int, nargs="+", help="5 by default, or all with --together")
    parser.add_argument(
        "--together", action="store_true", help="several k at once against one after the other"
    )
    add_silhouettes(parser)


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Measure one or the other."""
    X, y, _ = silhouettes_or_mixture(options.silhouettes)
    m = int(y.max()) + 1
    ks = options.k or ([1, 2, 3, 4, 5, 10, 20] if options.together else [5])
    if not all(1 <= k < m for k in ks):
        raise InputError(f"-k {ks} is not between 1 and {m - 1}, the classes less one")
    with warnings.catch_warnings(), threads(1):
        warnings.simplefilter("ignore", ConvergenceWarning)  # The gaps are in the tables.
        if not options.together:
            return {f"k = {k}": time_path(X, y, k) for k in ks}
        with tempfile.TemporaryDirectory() as folder:
            rows = [time_together(X, y, ks), time_together(X, y, ks, folder=Path(folder))]
    return {f"Seconds of paths over nine C for k = {', '.join(map(str, ks))}": rows}


def time_path(X: Any, y: Any, k: int, Cs: Any = GRID) -> list[Row]:
    """Return a row for each point of a path, and one for all of them."""
    print_progress(f"path: k = {k}")

    def fit(C: float) -> Result:
        return solve(X, y, LOSS, C, k=k, n_jobs=1, **OPTIONS)

    compile_kernels(X, y)
    path(X, y, LOSS, Cs[:2], k=k, n_jobs=1, **OPTIONS)
    seconds, points = timed(lambda: path(X, y, LOSS, Cs, k=k, n_jobs=1, **OPTIONS).results)
    single = [timed(lambda: fit(C)) for C in np.asarray(Cs).tolist()]  # noqa: B023
    rows = [
        {
            "C": f"{C:g}",
            "path: passes": point.n_iter,
            "path: gap": point.certificate.relative_gap,
            "single: passes": result.n_iter,
            "single: gap": result.certificate.relative_gap,
            "single: seconds": one,
        }
        for C, point, (one, result) in zip(Cs, points, single, strict=True)
    ]
    total = sum(one for one, _ in single)
    whole = {"C": "all", "path: seconds": seconds, "single: seconds": total}
    return [*rows, whole | {"path / single": seconds / total}]


def time_together(
    X: Any, y: Any, ks: Sequence[int], Cs: Any = GRID, folder: Path | None = None
) -> Row:
    """Return the seconds of the paths for all `ks` in three ways, and the largest relative gap.

    "together" and "one by one" run the same code, on all `ks` and on each; "topksvm.path" is called
    for each, whose passes gather rows for themselves. With a `folder`, X is a memory map on a file
    in it, which is not in the cache of the system when a measurement begins.
    """
    where = "memory" if folder is None else "disk"
    print_progress(f"path: X in {where}")
    rows = (lambda: X) if folder is None else _on_disk(X, folder)

    def together(ks: Sequence[int], Cs: Any) -> list[Result]:
        problem = make_problem(rows(), y, np.ones(len(y)), int(y.max()) + 1)
        tasks = [PathTask(loss_for(problem.m, LOSS, k, 0.0), np.asarray(Cs).tolist()) for k in ks]
        setup = Setup(stopping=Stopping(**OPTIONS))
        return [result for _, _, result in solve_paths(problem, tasks, setup)]

    def one_by_one(ks: Sequence[int], Cs: Any) -> list[Result]:
        return [result for k in ks for result in together([k], Cs)]

    def plain(ks: Sequence[int], Cs: Any) -> list[Result]:
        return [r for k in ks for r in path(rows(), y, LOSS, Cs, k=k, n_jobs=1, **OPTIONS).results]

    compile_kernels(X, y)
    found: dict[str, Any] = {"X in": where}
    gaps: list[float] = []
    ways = {"together": together, "one by one": one_by_one, "topksvm.path": plain}
    for name, way in ways.items():
        way(ks[:1], Cs[:2])
        found[name], results = timed(lambda: way(ks, Cs))  # noqa: B023
        gaps += [result.certificate.relative_gap for result in results]
    ratio = found["together"] / found["one by one"]
    return found | {"together / one by one": ratio, "largest gap": max(gaps)}


def _on_disk(X: Any, folder: Path) -> Callable[[], Any]:
    """Write X to a file; return what maps it anew, from the disk where the system allows it."""
    file = folder / "X.npy"
    np.save(file, X)

    def rows() -> Any:
        if hasattr(os, "posix_fadvise"):
            with file.open("rb") as stream:
                os.fsync(stream.fileno())  # What is not written yet stays in the cache.
                os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return np.load(file, mmap_mode="r")

    return rows
