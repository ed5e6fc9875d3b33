"""Threads in one place: how many, and how rows are divided among them.

Kernels release the GIL, so ordinary Python threads run them side by side. The pool lives only as
long as the call: nothing is left behind that a fork could break.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, TypeVar

from joblib import cpu_count
from threadpoolctl import ThreadpoolController

__all__ = ["blas_limit", "map_row_ranges", "n_threads", "thread_limit"]

T = TypeVar("T")

_LIMIT: ContextVar[int | None] = ContextVar("topksvm_thread_limit", default=None)

_SMALL_WORK = 1 << 17
"""Entries below which starting threads costs more than it saves."""


def n_threads() -> int:
    """Return the number of threads to use.

    In this order: the innermost :func:`thread_limit`, the environment variable
    ``TOPKSVM_NUM_THREADS``, the processors that this process may use.
    """
    limit = _LIMIT.get()
    if limit is not None:
        return limit
    setting = os.environ.get("TOPKSVM_NUM_THREADS")
    if not setting:
        return int(cpu_count())
    if not setting.isdecimal() or int(setting) < 1:
        raise ValueError(
            f"The environment variable TOPKSVM_NUM_THREADS is {setting!r}; it must be a whole "
            "number of at least 1. Unset it to use all processors."
        )
    return int(setting)


@contextmanager
def thread_limit(limit: int) -> Iterator[None]:
    """Use at most `limit` threads, at least 1, inside the ``with`` block."""
    if limit < 1:
        raise ValueError(f"The limit on threads is {limit}; it must be at least 1.")
    token = _LIMIT.set(limit)
    try:
        yield
    finally:
        _LIMIT.reset(token)


def blas_limit(limit: int) -> Any:
    """Return a context in which matrix products use at most `limit` threads."""
    return _controller().limit(limits=limit, user_api="blas")


@cache
def _controller() -> ThreadpoolController:
    # Looking for libraries takes milliseconds, more than a small fit; NumPy's is loaded by now.
    return ThreadpoolController()


def map_row_ranges(func: Callable[[int, int], T], n_rows: int, row_size: int) -> list[T]:
    """Call ``func(start, stop)`` on contiguous ranges that cover `n_rows` rows, in parallel.

    The results are in row order. Each row is handled by itself, so the number of threads never
    changes what is computed.
    """
    n_ranges = min(n_threads(), n_rows) if n_rows * row_size >= _SMALL_WORK else 1
    bounds = [n_rows * i // n_ranges for i in range(n_ranges + 1)]
    if n_ranges == 1:
        return [func(0, n_rows)]
    with ThreadPoolExecutor(n_ranges) as pool:
        return list(pool.map(func, bounds[:-1], bounds[1:]))
