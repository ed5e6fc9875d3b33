"""One line on a terminal that says how far a long computation is, and how long it may take yet."""

from __future__ import annotations

import sys
import time
from threading import Lock


class Progress:
    """Count finished pieces of work, from any thread, and print time used and time left.

    On a terminal the line is overwritten; otherwise there is a line per tenth of the work.
    """

    def __init__(self, what: str, total: int, *, is_on: bool) -> None:
        self.what, self.total, self.is_on = what, total, is_on
        self.done = 0
        self.start = time.perf_counter()
        self.lock = Lock()

    def add(self, more: int) -> None:
        """Expect `more` pieces of work."""
        with self.lock:
            self.total += more

    def step(self) -> None:
        """Count one piece of work as done."""
        with self.lock:
            self.done += 1
            if self.is_on:
                self._print()

    def _print(self) -> None:
        elapsed = time.perf_counter() - self.start
        left = elapsed / self.done * (self.total - self.done)
        line = f"{self.what}: {self.done}/{self.total}, {elapsed:.0f} s, about {left:.0f} s left"
        is_last = self.done == self.total
        if sys.stderr.isatty():
            print(f"\r{line:<70}", end="\n" if is_last else "", file=sys.stderr, flush=True)
        elif is_last or self.done % max(1, self.total // 10) == 0:
            print(line, file=sys.stderr, flush=True)
