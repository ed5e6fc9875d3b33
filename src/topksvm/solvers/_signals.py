"""Ctrl-C and SIGTERM as a wish that is granted at the next safe moment."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class StopWish:
    """Whether somebody wants the run to stop, and which signal said so."""

    def __init__(self) -> None:
        self.signal: int | None = None

    def hear(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """Take note; a second Ctrl-C does not wait any more."""
        if self.signal is not None:
            raise KeyboardInterrupt
        self.signal = number

    def grant(self) -> None:
        """Stop if somebody wants it: leave on SIGTERM, end the run on Ctrl-C."""
        number, self.signal = self.signal, None
        if number == signal.SIGTERM:
            raise SystemExit(128 + signal.SIGTERM)
        if number is not None:
            raise KeyboardInterrupt


@contextmanager
def listening() -> Iterator[StopWish]:
    """Yield a wish that hears Ctrl-C and SIGTERM; in another than the main thread it is deaf."""
    wish = StopWish()
    if threading.current_thread() is not threading.main_thread():
        yield wish
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, wish.hear) for number in numbers]
    try:
        yield wish
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
