"""One thread for each task: Dask runs as many tasks at a time as a worker has threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import Event, Lock, Thread
from typing import Any, ParamSpec, TypeVar

from threadpoolctl import threadpool_limits

from topksvm._threads import thread_limit

P = ParamSpec("P")
T = TypeVar("T")


class _BlasLimit:
    """One thread for matrix products while any task runs.

    The limit of most libraries belongs to the process. If each task set and restored it, the first
    to end would give all threads to those that still run. From its version 3.8 on, threadpoolctl
    lets only the thread that has set the limit restore it; so that is neither task's, but a thread
    that waits for the last of them.
    """

    def __init__(self) -> None:
        self.lock, self.n_tasks = Lock(), 0
        self.holder: Any = None

    def __enter__(self) -> None:
        with self.lock:
            if self.n_tasks == 0:
                is_set, self.may_end = Event(), Event()
                self.holder = Thread(target=_hold, args=(is_set, self.may_end), daemon=True)
                self.holder.start()
                is_set.wait()
            self.n_tasks += 1

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.n_tasks -= 1
            if self.n_tasks == 0:
                self.may_end.set()
                self.holder.join()


def _hold(is_set: Event, may_end: Event) -> None:
    try:
        with threadpool_limits(1, user_api="blas"):
            is_set.set()
            may_end.wait()
    finally:
        is_set.set()


_BLAS = _BlasLimit()


def on_one_thread(task: Callable[P, T]) -> Callable[P, T]:
    """Let a task use the one thread that Dask has given it, and no more."""

    @wraps(task)
    def limited(*args: P.args, **kwargs: P.kwargs) -> T:
        # The last is for libraries whose limit belongs to the thread; others have theirs by then.
        with thread_limit(1), _BLAS, threadpool_limits(1, user_api="blas"):
            return task(*args, **kwargs)

    return limited
