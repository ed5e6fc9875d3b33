"""Threads in one place: how many, and how rows are divided among them.

Kernels release the GIL, so ordinary Python threads run them side by side. The pool lives only as
long as the call: nothing is left behind that a fork could break.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import cache
from itertools import pairwise
from threading import Event, Lock, Thread
from typing import Any, TypeVar

from joblib import cpu_count
from threadpoolctl import ThreadpoolController

__all__ = [
    "fit_threads",
    "map_parts",
    "map_ranges",
    "map_row_ranges",
    "map_tasks",
    "n_threads",
    "one_blas_thread",
    "resolve_threads",
    "thread_limit",
]

S = TypeVar("S")
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


def resolve_threads(n_jobs: int | None) -> int:
    """Return the number of threads for `n_jobs`, with the meaning that joblib gave it.

    None is all that :func:`n_threads` allows, and so is -1; -2 is all but one, and so on.
    """
    if n_jobs is None:
        return n_threads()
    if n_jobs == 0:
        raise ValueError(
            "n_jobs = 0; it must be a number of threads, or -1 for all processors, -2 for all but "
            "one, and so on."
        )
    return n_jobs if n_jobs > 0 else max(1, n_threads() + 1 + n_jobs)


class _OneBlasThread:
    """One thread for matrix products while any fit runs.

    Our threads call BLAS side by side, with products whose shapes do not depend on how many of them
    there are, so neither do the results; threads of BLAS's own would only be in the way.

    The limit of most libraries belongs to the process. If each fit set and restored it, the first
    to end would give all threads to those that still run, and the last would restore what it had
    found. So the first sets it and the last restores it. From its version 3.8 on, threadpoolctl
    lets only the thread that has set a limit restore it: that is a thread which waits for the last.
    """

    def __init__(self) -> None:
        self.lock, self.n_users = Lock(), 0
        self.holder: Any = None

    def __enter__(self) -> None:
        with self.lock:
            if self.n_users == 0:
                is_set, self.may_end = Event(), Event()
                self.holder = Thread(
                    target=_hold, args=(is_set, self.may_end), name="topksvm-blas", daemon=True
                )
                self.holder.start()
                is_set.wait()
            self.n_users += 1

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.n_users -= 1
            if self.n_users == 0:
                self.may_end.set()
                self.holder.join()


def _hold(is_set: Event, may_end: Event) -> None:
    try:
        with _controller().limit(limits=1, user_api="blas"):
            is_set.set()
            may_end.wait()
    finally:
        is_set.set()


_ONE_BLAS_THREAD = _OneBlasThread()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let matrix products use one thread each inside the ``with`` block."""
    # The second is for libraries whose limit belongs to the thread; others have theirs by then.
    with _ONE_BLAS_THREAD, _controller().limit(limits=1, user_api="blas"):
        yield


@contextmanager
def fit_threads(n_jobs: int | None) -> Iterator[None]:
    """Let a fit use the threads of `n_jobs`, which share its matrix products."""
    with thread_limit(resolve_threads(n_jobs)), one_blas_thread():
        yield


@cache
def _controller() -> ThreadpoolController:
    # Looking for libraries takes milliseconds, more than a small fit; NumPy's is loaded by now.
    return ThreadpoolController()


def map_parts(func: Callable[[int, int], T], size: int, part: int) -> list[T]:
    """Call ``func(start, stop)`` on ranges of `part` that cover `size`, several at a time.

    The ranges do not depend on the number of threads. The results are in order.
    """
    return map_ranges(func, [(i, min(i + part, size)) for i in range(0, size, part)])


def map_ranges(func: Callable[[int, int], T], ranges: Sequence[tuple[int, int]]) -> list[T]:
    """Call ``func(start, stop)`` on the `ranges`, several at a time; results are in order."""
    return map_tasks(lambda bounds: func(*bounds), ranges, n_threads())


def map_tasks(func: Callable[[S], T], tasks: Sequence[S], threads: int) -> list[T]:
    """Call ``func(task)`` on at most so many `threads`; return the results in order.

    Limits on threads, and the wish to stop, are the same inside.
    """
    threads = min(threads, len(tasks))
    if threads <= 1:
        return [func(task) for task in tasks]
    with ThreadPoolExecutor(threads) as pool:
        futures = [pool.submit(copy_context().run, func, task) for task in tasks]
        return [future.result() for future in futures]


def map_row_ranges(func: Callable[[int, int], T], n_rows: int, row_size: int) -> list[T]:
    """Call ``func(start, stop)`` on contiguous ranges that cover `n_rows` rows, in parallel.

    The results are in row order. Each row is handled by itself, so the number of threads never
    changes what is computed.
    """
    n_ranges = min(n_threads(), n_rows) if n_rows * row_size >= _SMALL_WORK else 1
    bounds = [n_rows * i // n_ranges for i in range(n_ranges + 1)]
    if n_ranges == 1:
        return [func(0, n_rows)]
    return map_ranges(func, list(pairwise(bounds)))
