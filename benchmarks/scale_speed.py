"""How time and memory grow with the size of the problem, in memory and by the piece."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from topksvm._threads import n_threads, thread_limit
from topksvm.data._problem import make_problem
from topksvm.data._sources import open_source
from topksvm.estimators._streamed import WINDOW_BYTES
from topksvm.losses import LOSSES
from topksvm.solvers._result import Result
from topksvm.solvers._sdca import SDCA, SDCAOptions
from topksvm.solvers._streaming import StreamedSDCA, make_streamed_problem

Shape = tuple[int, int, int]
Labels = NDArray[np.int64]

K = 5
GROUP = 5
CHUNK = 4096
SHAPES = {"places205": (2_448_873, 4096, 205), "imagenet2012": (1_281_167, 4096, 1000)}
"""The two large data sets of the paper: rows, features, classes."""


@dataclass(frozen=True)
class Epoch:
    """Seconds of a pass over all rows, and the most memory that the process had, in bytes."""

    shape: Shape
    seconds: float
    products: float
    peak: int


@dataclass(frozen=True)
class Run:
    """A run to a given gap; `products` is the time of ``X W'`` and ``A' X`` for all rows."""

    kind: str
    shape: Shape
    seconds: float
    passes: int
    pass_seconds: float
    products: float
    relative_gap: float
    peak: int


def make_file(path: Path, shape: Shape, dtype: Any = np.float16, seed: int = 0) -> Labels:
    """Write features like those of a network, after ReLU, of ambiguous classes; return labels.

    Classes come in groups of five with a common centre. The rows are written by the chunk.
    """
    n, d, m = shape
    rng = np.random.default_rng(seed)
    groups = rng.standard_normal((-(-m // GROUP), d), dtype=np.float32)
    centres = groups[np.arange(m) // GROUP] + 0.5 * rng.standard_normal((m, d), dtype=np.float32)
    y = rng.integers(0, m, n)
    out = np.lib.format.open_memmap(path, "w+", dtype, (n, d))
    scale = np.float32(2.0 / np.sqrt(d))
    for start in range(0, n, CHUNK):
        part = y[start : start + CHUNK]
        rows = 0.3 * centres[part]
        rows += rng.standard_normal(rows.shape, dtype=np.float32)
        np.maximum(rows, 0.0, out=rows)
        out[start : start + len(part)] = rows * scale
    out.flush()
    return y


def time_products(shape: Shape, rows: int = 8192) -> float:
    """Return the seconds of ``X W'`` and ``A' X`` for all rows, from some of them, float32."""
    n, d, m = shape
    rng = np.random.default_rng(0)
    rows = min(n, rows)
    X = rng.standard_normal((rows, d), dtype=np.float32)
    W = rng.standard_normal((m, d), dtype=np.float32)
    best = np.inf
    for _ in range(4):
        start = time.perf_counter()
        scores = X @ W.T
        scores.T @ X
        best = min(best, time.perf_counter() - start)
    return best * n / rows


def in_own_process(function: Any, *arguments: Any) -> Any:
    """Return the result of the function, run in a fresh process: its peak memory is its own."""
    with get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def peak_memory() -> int:
    """Return the most memory that this process has had, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():
        # What getrusage says begins with the memory of the process that started this one.
        (peak,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(peak.split()[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def time_epoch(shape: Shape, threads: int) -> Epoch:
    """Time full passes over rows in memory, after some that settle the support."""
    n, d, m = shape
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((m, d), dtype=np.float32)
    y = rng.integers(0, m, n)
    X = np.empty((n, d), np.float32)
    for start in range(0, n, CHUNK):
        part = slice(start, start + CHUNK)
        X[part] = 0.5 * centres[y[part]]
        X[part] += rng.standard_normal(X[part].shape, dtype=np.float32)
    X /= np.float32(np.sqrt(d))
    with thread_limit(threads), threadpool_limits(threads, user_api="blas"):
        problem = make_problem(X, y, np.full(n, 1.0), m)
        run = SDCA(LOSSES["topk_hinge_alpha"](K), problem, SDCAOptions())
        run.full_pass()
        times = []
        for _ in range(3):
            start_time = time.perf_counter()
            run.full_pass()
            times.append(time.perf_counter() - start_time)
        products = time_products(shape)
    return Epoch(shape, min(times), products, peak_memory())


def growth(epochs: Sequence[Epoch], axis: int, value: str) -> float:
    """Return the exponent with which seconds or memory grow along an axis of the shape."""
    sizes = np.log([epoch.shape[axis] for epoch in epochs])
    values = np.log([float(getattr(epoch, value)) for epoch in epochs])
    return float(np.polyfit(sizes, values, 1)[0])


def run_to_gap(
    path: Path,
    y: Labels,
    m: int,
    kind: str,
    C: float,
    tol: float,
    max_time: float,
    report: Any = None,
) -> Run:
    """Train on a ``.npy`` file, in memory (`kind` "memory") or by the piece ("streamed")."""
    X = np.load(path, mmap_mode="r")
    shape = (*X.shape, m)
    loss = LOSSES["topk_hinge_alpha"](K)
    options = SDCAOptions(tol, 1000, max_time)
    weights = np.full(len(y), C)
    threads = n_threads()

    def make_run(X: Any, y: Labels, options: SDCAOptions) -> SDCA:
        if kind == "memory":
            problem = make_problem(np.asarray(X, np.float32), y, weights[: len(y)], m)
            return SDCA(loss, problem, options)
        rows = WINDOW_BYTES // (4 * X.shape[1])
        source = open_source(X)
        return StreamedSDCA(
            loss, make_streamed_problem(source, y, weights[: len(y)], m, 0.0, rows), options
        )

    with thread_limit(threads), threadpool_limits(threads, user_api="blas"):
        # Some rows first, so that kernels are loaded.
        make_run(np.array(X[:CHUNK]), y[:CHUNK], SDCAOptions(tol, 2)).run(None)
        start = time.perf_counter()
        result: Result = make_run(X, y, options).run(report)
        seconds = time.perf_counter() - start
        peak = peak_memory()
        products = time_products(shape)
    spent = result.seconds
    in_passes = spent["full"] + spent.get("active", 0.0) + spent.get("extrapolation", 0.0)
    return Run(
        kind,
        shape,
        seconds,
        result.n_iter,
        in_passes / result.n_iter,
        products,
        result.certificate.relative_gap,
        peak,
    )
