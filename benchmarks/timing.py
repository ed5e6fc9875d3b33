"""The clock, the number of threads, and the matrix products that passes are compared with."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

T = TypeVar("T")

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "TOPKSVM_NUM_THREADS",
)


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """Return the seconds of a piece of work, and its result."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def fastest(work: Callable[[], Any], turns: int) -> float:
    """Return the seconds of the fastest of several turns."""
    return min(timed(work)[0] for _ in range(turns))


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Let BLAS, topksvm, and the processes that are started inside use so many threads."""
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(count)))
    try:
        with threadpool_limits(count, user_api="blas"):
            yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def time_products(X: Any, m: int, turns: int = 5, rows: int = 8192) -> float:
    """Return the seconds of ``X W'`` and ``A' X`` for all rows: what a pass has to do at least.

    They are measured on the first `rows`, in float32, after one turn that does not count.
    """
    n, d = X.shape
    X = X[:rows].astype(np.float32)
    rng = np.random.default_rng(0)
    W = rng.standard_normal((m, d), dtype=np.float32)
    A = rng.standard_normal((X.shape[0], m), dtype=np.float32)

    if sp.issparse(X):
        forth, back, W = X, sp.csr_matrix(X.T), np.ascontiguousarray(W.T)
        products = lambda: (forth @ W, back @ A)  # noqa: E731
    else:
        products = lambda: (X @ W.T, A.T @ X)  # noqa: E731
    products()
    return fastest(products, turns) * n / X.shape[0]


def print_progress(text: str) -> None:
    """Print a line to the error stream, so that the output holds results only."""
    print(text, file=sys.stderr, flush=True)
