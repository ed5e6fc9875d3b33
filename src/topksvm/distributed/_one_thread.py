"""One thread for each task: Dask runs as many tasks at a time as a worker has threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from topksvm._threads import fit_threads

P = ParamSpec("P")
T = TypeVar("T")


def on_one_thread(task: Callable[P, T]) -> Callable[P, T]:
    """Let a task use the one thread that Dask has given it, and no more."""

    @wraps(task)
    def limited(*args: P.args, **kwargs: P.kwargs) -> T:
        with fit_threads(1):
            return task(*args, **kwargs)

    return limited
