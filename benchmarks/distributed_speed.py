"""What shards cost: rounds and bytes to a gap against their number, and the overhead of Dask."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from topksvm.data._problem import make_problem
from topksvm.distributed import DaskTopKLinearSVC
from topksvm.distributed._cocoa import CoCoA
from topksvm.distributed._local_team import LocalTeam
from topksvm.distributed._parts import import_dask
from topksvm.distributed._shard import Shard
from topksvm.losses import LOSSES
from topksvm.solvers import Result, solve
from topksvm.solvers._sdca import SDCAOptions

__all__ = ["SHARDS", "DistributedSpeed", "measure_distributed"]

Array = NDArray[Any]

SHARDS = (1, 2, 4, 8, 16, 32)
"""Numbers of shards to measure."""

MAX_ITER = 3000
"""Passes after which a run is given up; its gap is in the table."""


@dataclass(frozen=True)
class DistributedSpeed:
    """One way to train, to a gap: what it took.

    Attributes
    ----------
    method : str
        ``"simulation"``: shards that take turns in one process, whose time says nothing;
        ``"in process"``: the solver with as many threads; ``"dask"``: as many worker processes.
    n_shards : int
        Shards, threads, or worker processes.
    rounds, passes, n_bytes : int
        Certificates, passes over the examples, and bytes between workers, in all.
    seconds : float
        From the data in memory to the certified model; compilation is not included.
    communication : float
        Seconds of them in which no shard computed.
    relative_gap : float
        What was reached.
    """

    method: str
    n_shards: int
    rounds: int
    passes: int
    n_bytes: int
    seconds: float
    communication: float
    relative_gap: float


def measure_distributed(
    X: Array,
    y: Array,
    C: float,
    k: int = 5,
    *,
    shards: Iterable[int] = SHARDS,
    n_workers: int = 2,
    tol: float = 1e-3,
) -> list[DistributedSpeed]:
    """Train on so many shards; then in this process and on a Dask cluster, and compare the times.

    With `n_workers` worker processes of one thread each on this machine, and none of both with 0.
    No intercept, random shards.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # The gaps are in the table.
        rows = [_simulate(X, y, C, k, K, tol) for K in shards]
        if n_workers:
            rows.append(_in_process(X, y, C, k, n_workers, tol))
            rows.append(_on_dask(X, y, C, k, n_workers, tol))
    return rows


def _simulate(X: Array, y: Array, C: float, k: int, K: int, tol: float) -> DistributedSpeed:
    m, n = int(y.max()) + 1, len(y)
    parts = np.array_split(np.random.default_rng(0).permutation(n), K)
    loss = LOSSES["topk_hinge_alpha"](k)
    team = LocalTeam(
        [
            Shard(loss, make_problem(X[part], y[part], np.full(len(part), C), m), K, seed)
            for seed, part in enumerate(parts)
        ]
    )
    start = time.perf_counter()
    result = CoCoA(team, SDCAOptions(tol, MAX_ITER)).run()
    return _row("simulation", K, time.perf_counter() - start, _lines(result), result)


def _in_process(X: Array, y: Array, C: float, k: int, n_jobs: int, tol: float) -> DistributedSpeed:
    options: dict[str, Any] = {"k": k, "n_jobs": n_jobs, "tol": tol}
    solve(X, y, "topk_hinge_alpha", C, max_iter=1, **options)  # Compiles.
    start = time.perf_counter()
    result = solve(X, y, "topk_hinge_alpha", C, max_iter=MAX_ITER, **options)
    return _row("in process", n_jobs, time.perf_counter() - start, _lines(result), result)


def _on_dask(X: Array, y: Array, C: float, k: int, n_workers: int, tol: float) -> DistributedSpeed:
    dask: Any = import_dask()
    cluster = dask.distributed.LocalCluster(
        n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=":0"
    )
    with cluster, dask.distributed.Client(cluster) as client:
        parts = np.array_split(np.random.default_rng(0).permutation(len(y)), n_workers)
        rows = client.scatter([X[part] for part in parts])
        labels = client.scatter([y[part] for part in parts])
        model = DaskTopKLinearSVC(k, C=C, tol=tol, fit_intercept=False, random_state=0)
        model.set_params(max_iter=10).fit(rows, labels)  # Compiles.
        start = time.perf_counter()
        model.set_params(max_iter=MAX_ITER).fit(rows, labels)
        seconds = time.perf_counter() - start
    return _row("dask", n_workers, seconds, model.history_, model)


def _lines(result: Result) -> list[dict[str, Any]]:
    return [vars(check) for check in result.history]


def _row(
    method: str, K: int, seconds: float, lines: list[dict[str, Any]], result: Any
) -> DistributedSpeed:
    is_sharded = "round" in lines[-1]
    certificate = result.certificate if isinstance(result, Result) else result.certificate_
    return DistributedSpeed(
        method,
        K,
        len(lines),
        lines[-1]["epoch"],
        sum(map(itemgetter("n_bytes"), lines)) if is_sharded else 0,
        seconds,
        sum(map(itemgetter("communication"), lines)) if is_sharded else 0.0,
        certificate.relative_gap,
    )
