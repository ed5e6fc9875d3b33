"""What every run of a solver has in common: clock, history, and how it ends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm._clock import Clock
from topksvm._interrupts import StopRequested, current_stop
from topksvm.solvers._certificate import Certificate
from topksvm.solvers._duals import Duals
from topksvm.solvers._result import Check, Result, Status

Floats = NDArray[np.floating[Any]]
Report = Callable[[int, float, float], None]


class Run(ABC):
    """One run of a solver until the gap is within `tol`; subclasses say what a pass is."""

    duals: Duals

    def __init__(self, tol: float) -> None:
        self.tol = tol
        self.seconds: dict[str, float] = defaultdict(float)
        self.history: list[Check] = []
        self.n_passes = 0
        self.is_certified = False
        self.clock = Clock()

    @contextmanager
    def _timed(self, what: str) -> Iterator[None]:
        start = self.elapsed
        try:
            yield
        finally:
            self.seconds[what] += self.elapsed - start

    @property
    def elapsed(self) -> float:
        """Seconds since the start, without those of the compiler."""
        return self.clock.elapsed

    @abstractmethod
    def certify(self) -> Certificate:
        """Certify the present model and record it."""

    @abstractmethod
    def _run(self, report: Report | None) -> Status:
        """Run until the gap is within tol or the budget is used up; say which."""

    def verdict(self, certificate: Certificate) -> Status | None:
        """Return why a run with this certificate may stop, None if it should go on."""
        if certificate.is_within(self.tol):
            return Status.SOLVED
        if certificate.is_limited_by_rounding(self.tol):
            return Status.STALLED
        return None

    def record(self, model: Floats, certificate: Certificate) -> None:
        """Keep `model` with its certificate, and a line of history."""
        self.certified = model, certificate
        self.is_certified = True
        self.history.append(
            Check(
                self.n_passes,
                self.elapsed,
                certificate.primal,
                certificate.dual,
                certificate.gap,
            )
        )

    def run(self, report: Report | None = None) -> Result:
        """Run until the gap is within tol, or the budget is used up, or Ctrl-C.

        `report` may raise ``KeyboardInterrupt`` to the same effect.
        """
        try:
            status = self._run(None if report is None else _interruptible(report))
        except StopRequested:
            stop = current_stop()
            if stop is not None and stop.is_leaving:
                raise
            status = Status.INTERRUPTED
        return self.finish(status)

    def finish(self, status: Status) -> Result:
        """Return the result of a run that has stopped."""
        if not self.is_certified:
            self.certify()
        model, certificate = self.certified
        if certificate.is_within(self.tol):
            status = Status.SOLVED
        return Result(
            model,
            certificate,
            self.duals,
            self.history,
            self.n_passes,
            status,
            dict(self.seconds),
        )


def _interruptible(report: Report) -> Report:
    """Take an interrupt that `report` raises, which is called at safe places, as one of the run."""

    def interruptible(passes: int, seconds: float, gap: float) -> None:
        try:
            report(passes, seconds, gap)
        except KeyboardInterrupt:
            raise StopRequested from None

    return interruptible
