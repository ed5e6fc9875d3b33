"""One thread for each task: Dask runs as many tasks at a time as a worker has threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import Lock
from typing import Any, ParamSpec, TypeVar

from threadpoolctl import threadpool_limits

from topksvm._threads import thread_limit

P = ParamSpec("P")
T = TypeVar("T")


class _BlasLimit:
    """One thread for matrix products while any task runs.

    The limit belongs to the process. If each task set and restored it, the first to end would
    give all threads to those that still run.
    """

    def __init__(self) -> None:
        self.lock, self.n_tasks = Lock(), 0
        self.limits: Any = None

    def __enter__(self) -> None:
        with self.lock:
            if self.n_tasks == 0:
                self.limits = threadpool_limits(1, user_api="blas")
            self.n_tasks += 1

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.n_tasks -= 1
            if self.n_tasks == 0:
                self.limits.restore_original_limits()


_BLAS = _BlasLimit()


def on_one_thread(task: Callable[P, T]) -> Callable[P, T]:
    """Let a task use the one thread that Dask has given it, and no more."""

    @wraps(task)
    def limited(*args: P.args, **kwargs: P.kwargs) -> T:
        with thread_limit(1), _BLAS:
            return task(*args, **kwargs)

    return limited
