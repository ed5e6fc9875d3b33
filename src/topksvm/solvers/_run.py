"""What every run of dual coordinate ascent has in common: clock, history, and how it ends."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
        self.start_time = time.perf_counter()

    @contextmanager
    def _timed(self, what: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[what] += time.perf_counter() - start

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.start_time

    def pause(self) -> None:
        """Stop the clock."""
        self.paused_at = time.perf_counter()

    def resume(self) -> None:
        """Let the clock go on."""
        self.start_time += time.perf_counter() - self.paused_at

    @abstractmethod
    def certify(self) -> Certificate:
        """Certify the present model and record it."""

    @abstractmethod
    def _run(self, report: Report | None) -> Status:
        """Run until the gap is within tol or the budget is used up; say which."""

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
        """Run until the gap is within tol, or the budget is used up, or Ctrl-C."""
        status = Status.INTERRUPTED
        with suppress(KeyboardInterrupt):
            status = self._run(report)
        return self.finish(status)

    def finish(self, status: Status) -> Result:
        """Return the result of a run that has stopped."""
        if not self.is_certified:
            self.certify()
        model, certificate = self.certified
        if certificate.relative_gap <= self.tol:
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
