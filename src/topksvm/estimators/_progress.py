"""Counting finished pieces of work in several threads, for the bar and for the callback."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Any

from topksvm._clock import Clock
from topksvm._progress import CountBar


@dataclass(frozen=True)
class SearchProgress:
    """What the callback of a search gets: fits done, fits in total, and the seconds so far."""

    done: int
    total: int
    seconds: float


class Progress:
    """Counts finished pieces of work, from any thread; shows them if `is_on`."""

    def __init__(
        self,
        what: str,
        total: int,
        *,
        is_on: bool,
        callback: Callable[[SearchProgress], Any] | None = None,
    ) -> None:
        self.total = total
        self.done = 0
        self.bar = CountBar(what, total) if is_on else None
        self.callback = callback
        self.clock = Clock()
        self.lock = Lock()

    def add(self, more: int) -> None:
        """Expect `more` pieces of work."""
        with self.lock:
            self.total += more

    def step(self) -> None:
        """Count one piece of work as done."""
        with self.lock:
            self.done += 1
            progress = SearchProgress(self.done, self.total, self.clock.elapsed)
            if self.bar is not None:
                self.bar(progress)
            if self.callback is not None:
                self.callback(progress)

    def close(self) -> None:
        """End the bar."""
        if self.bar is not None:
            self.bar.close()
