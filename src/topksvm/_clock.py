"""The time that a run takes, without that of the compiler.

The first fit of a process may compile kernels for many seconds. That is no training: it does not
count for ``max_time``, nor in a history.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from numba.core import event

__all__ = ["Clock"]


class _CompileTimer(event.Listener):
    """Counts the seconds in which Numba compiles; it holds one lock for all threads meanwhile."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.depth = 0  # Kernels are compiled while others are, which call them.
        self.start = 0.0

    def on_start(self, event: Any) -> None:  # noqa: ARG002
        if self.depth == 0:
            self.start = time.perf_counter()
        self.depth += 1

    def on_end(self, event: Any) -> None:  # noqa: ARG002
        self.depth -= 1
        if self.depth == 0:
            self.seconds += time.perf_counter() - self.start


@cache
def _compile_timer() -> _CompileTimer:
    timer = _CompileTimer()
    event.register("numba:compile", timer)
    return timer


def _now() -> float:
    """Return a time that stands still after a compilation for as long as that took."""
    return time.perf_counter() - _compile_timer().seconds


class Clock:
    """Seconds since it was made, without those in which the compiler ran or it was paused.

    Attributes
    ----------
    seconds : dict
        The seconds of each kind of work, see :meth:`timed`.

    Examples
    --------
    >>> from topksvm.solvers import Clock
    >>> clock = Clock()
    >>> with clock.timed("sums"):
    ...     total = sum(range(1000))
    >>> clock.seconds["sums"] <= clock.elapsed
    True
    """

    def __init__(self, elapsed: float = 0.0) -> None:
        self.start = _now() - elapsed
        self.paused_at = 0.0
        self.seconds: dict[str, float] = defaultdict(float)

    @property
    def elapsed(self) -> float:
        """Seconds so far."""
        return _now() - self.start

    @contextmanager
    def timed(self, what: str) -> Iterator[None]:
        """Add the time inside the ``with`` block to the seconds of `what`."""
        start = self.elapsed
        try:
            yield
        finally:
            self.seconds[what] += self.elapsed - start

    def set(self, elapsed: float) -> None:
        """Let the clock go on from `elapsed` seconds."""
        self.start = _now() - elapsed

    def pause(self) -> None:
        """Stop the clock."""
        self.paused_at = _now()

    def resume(self) -> None:
        """Let the clock go on."""
        self.start += _now() - self.paused_at
