"""Ctrl-C that takes effect where it does no harm, without a signal handler.

Python raises ``KeyboardInterrupt`` in the main thread between any two instructions: in the middle
of an update, or while a lock is given back. So long work runs in a thread of its own, and the main
thread waits for it: there an interrupt only asks the work to stop, at its next safe place. A first
Ctrl-C lets it finish what makes the result usable; with a second one it stops anyway.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar

__all__ = [
    "Stop",
    "StopRequested",
    "current_stop",
    "is_stop_requested",
    "raise_if_abandoned",
    "raise_if_stopped",
    "raise_if_stopped_again",
    "stoppable",
]

T = TypeVar("T")


class StopRequested(KeyboardInterrupt):
    """The work is to stop, and this is a safe place; outside it is a ``KeyboardInterrupt``."""


class Stop:
    """Whether work is to stop.

    Attributes
    ----------
    requests : int
        How often Ctrl-C was pressed.
    is_leaving : bool
        Whether nobody waits for a result, as after ``SystemExit`` in the main thread.
    """

    def __init__(self) -> None:
        self.requests = 0
        self.is_leaving = False

    def request(self) -> None:
        """Ask the work to stop."""
        self.requests += 1

    def leave(self) -> None:
        """Ask the work to stop without a result."""
        self.is_leaving = True
        self.requests += 1


_STOP: ContextVar[Stop | None] = ContextVar("topksvm_stop", default=None)


def current_stop() -> Stop | None:
    """Return what the work that runs here is to look at, None if it cannot be stopped."""
    return _STOP.get()


def is_stop_requested() -> bool:
    """Return whether the work that runs here is to stop."""
    stop = _STOP.get()
    return stop is not None and stop.requests > 0


def raise_if_stopped() -> None:
    """Raise :class:`StopRequested` if the work is to stop; the state must be sound here."""
    if is_stop_requested():
        raise StopRequested


def raise_if_abandoned() -> None:
    """Raise ``KeyboardInterrupt`` if the work is to stop although there will be no result."""
    stop = _STOP.get()
    if stop is not None and (stop.is_leaving or stop.requests > 1):
        raise KeyboardInterrupt


def raise_if_stopped_again() -> None:
    """Raise ``KeyboardInterrupt`` if the work was asked to stop more than once.

    For what must end before the state can be saved, which matters where there will be no result.
    """
    stop = _STOP.get()
    if stop is not None and stop.requests > 1:
        raise KeyboardInterrupt


def stoppable(work: Callable[[], T]) -> T:
    """Return ``work()``, which Ctrl-C stops at its next safe place.

    In another than the main thread there are no interrupts, and inside stoppable work they belong
    to the outer call: there `work` is called as it is.
    """
    if _STOP.get() is not None or threading.current_thread() is not threading.main_thread():
        return work()
    stop, outcome = Stop(), _Outcome()
    thread = threading.Thread(
        target=copy_context().run,
        args=(_run, work, stop, outcome),
        name="topksvm-work",
        daemon=True,
    )
    leaving = _wait(thread, stop, outcome)
    if leaving is not None:
        raise leaving
    if outcome.error is not None:
        raise outcome.error
    return outcome.result


LONGEST_SLEEP = 1.0
"""Seconds after which the main thread looks by itself whether the work has ended."""


class _Outcome:
    """What became of the work. The lock is held until it has ended.

    (``Thread.join`` does not do: if it is interrupted, Python takes the thread for ended.)
    """

    def __init__(self) -> None:
        self.result: Any = None
        self.error: BaseException | None = None
        self.has_ended = False
        self.lock = threading.Lock()
        self.lock.acquire()


def _run(work: Callable[[], Any], stop: Stop, outcome: _Outcome) -> None:
    _STOP.set(stop)
    try:
        outcome.result = work()
    except BaseException as error:  # It is raised again in the main thread.
        outcome.error = error
    finally:
        outcome.has_ended = True
        outcome.lock.release()


def _wait(thread: threading.Thread, stop: Stop, outcome: _Outcome) -> BaseException | None:
    """Run the thread to its end; return an exception with which the main thread is to be left."""
    leaving: BaseException | None = None
    try:
        thread.start()
    except BaseException:
        stop.leave()  # It may have started all the same.
        raise
    while not outcome.has_ended:
        try:
            _sleep_until_ended(stop, outcome)
        except KeyboardInterrupt:  # One in the very moment in which another was noted.
            stop.request()
        except BaseException as error:  # From a signal handler of the program.
            stop.leave()
            leaving = error
    return leaving


def _sleep_until_ended(stop: Stop, outcome: _Outcome) -> None:
    while not outcome.has_ended:
        try:
            outcome.lock.acquire(timeout=LONGEST_SLEEP)
        except KeyboardInterrupt:
            stop.request()
