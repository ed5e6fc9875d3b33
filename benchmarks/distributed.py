"""What shards cost: rounds and bytes to a gap against their number; Dask against one process.

To a relative gap of 1e-3 with k = 5: rounds of communication and bytes for 1 to 32 shards, on
workers that are threads of this process, whose time says nothing; then two worker processes against
the solver in this process with two threads. Needs topksvm[dask].
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.datasets import silhouettes_or_mixture
from benchmarks.options import InputError, add_silhouettes
from benchmarks.passes import LOSS, compile_kernels
from benchmarks.timing import print_progress, timed
from topksvm import solve
from topksvm.distributed import DaskTopKLinearSVC

Row = dict[str, Any]

SHARDS = (1, 2, 4, 8, 16, 32)

WORKERS = 2
"""Worker processes, and threads of the solver that they are compared with."""

MAX_ITER = 3000
"""Passes after which a run ends; its gap is in the table."""

LOCAL_PASSES = 4
"""Passes of a shard in a round."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--quick", action="store_true", help="up to 4 shards")
    add_silhouettes(parser)


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Measure all of it."""
    try:
        import dask.distributed  # noqa: F401
    except ImportError as error:
        raise InputError("this needs Dask: pip install 'topksvm[dask]'") from error
    X, y, C = silhouettes_or_mixture(options.silhouettes)
    rows = count_rounds(X, y, C, shards=SHARDS[:3] if options.quick else SHARDS)
    rows += compare(X, y, C)
    return {f"n, d, m = {(*X.shape, int(y.max()) + 1)}, k = 5, C = {C:g}": rows}


def count_rounds(X: Any, y: Any, C: float, k: int = 5, *, shards: Sequence[int]) -> list[Row]:
    """Return rounds, passes and bytes by the number of shards."""
    rows = []
    for n_shards in shards:
        print_progress(f"distributed: {n_shards} shards")
        _, model = train(X, y, C, k, n_shards, processes=False)
        rows.append({"method": "threads", "shards": n_shards} | _costs(model))
    return rows


def compare(X: Any, y: Any, C: float, k: int = 5) -> list[Row]:
    """Return the seconds of the solver in this process, and of worker processes."""
    print_progress(f"distributed: {WORKERS} threads, then {WORKERS} worker processes")

    compile_kernels(X, y)
    fit = partial(solve, X, y, LOSS, C, k=k, n_jobs=WORKERS, max_iter=MAX_ITER)
    seconds, result = timed(fit)
    alone = {
        "method": "one process",
        "shards": 1,
        "passes": result.n_iter,
        "gap": result.certificate.relative_gap,
        "seconds": seconds,
    }
    seconds, model = train(X, y, C, k, WORKERS, processes=True)
    idle = sum(line["communication"] for line in model.history_)
    more = {"seconds": seconds, "of them idle": idle}
    return [alone, {"method": "processes", "shards": WORKERS} | _costs(model) | more]


def train(
    X: Any, y: Any, C: float, k: int, n_workers: int, *, processes: bool
) -> tuple[float, Any]:
    """Return the seconds of a fit on random shards, from the data on the workers, and the model."""
    from dask.distributed import Client, LocalCluster

    cluster = LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        processes=processes,
        dashboard_address=":0",
        memory_limit=None,
    )
    with warnings.catch_warnings(), cluster, Client(cluster) as client:
        warnings.simplefilter("ignore", ConvergenceWarning)  # The gaps are in the table.
        parts = np.array_split(np.random.default_rng(0).permutation(len(y)), n_workers)
        rows = client.scatter([X[part] for part in parts])
        labels = client.scatter([y[part] for part in parts])
        model = DaskTopKLinearSVC(k, C=C, fit_intercept=False, random_state=0)
        model.set_params(local_passes=LOCAL_PASSES, max_iter=10).fit(rows, labels)  # Compiles.
        return timed(lambda: model.set_params(max_iter=MAX_ITER).fit(rows, labels))


def _costs(model: Any) -> Row:
    return {
        "rounds": len(model.history_),
        "passes": model.n_iter_,
        "MB": sum(line["n_bytes"] for line in model.history_) / 1e6,
        "gap": model.certificate_.relative_gap,
    }
