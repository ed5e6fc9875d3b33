"""The run loop: clock, history, progress, Ctrl-C, checkpoints and status of every solver.

A solver improves a state (`update`) and proves how good it is (`certify`). When to do which, and
when to stop, is decided here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from topksvm._clock import Clock
from topksvm._interrupts import (
    StopRequested,
    current_stop,
    raise_if_stopped,
)
from topksvm.solvers._certificate import Certificate
from topksvm.solvers._result import Check, Result, Status
from topksvm.solvers._resume import Checkpoints

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Stopping:
    """When a solver may stop.

    Parameters
    ----------
    tol : float, default=1e-3
        The relative duality gap that is good enough.
    max_iter : int, default=1000
        The most passes over the examples, or evaluations of the objective.
    max_time : float, default=inf
        The most seconds, without those of the compiler.

    Examples
    --------
    >>> from topksvm.solvers import Stopping
    >>> Stopping(tol=1e-2).max_iter
    1000
    """

    tol: float = 1e-3
    max_iter: int = 1000
    max_time: float = np.inf

    def is_over(self, passes: int, seconds: float) -> Status | None:
        """Return which budget is used up, None if neither is."""
        if passes >= self.max_iter:
            return Status.MAX_ITER
        return Status.MAX_TIME if seconds >= self.max_time else None


@dataclass(frozen=True)
class Progress:
    """What a callback is told.

    Attributes
    ----------
    passes : int
        Passes over the examples so far, or evaluations of the objective.
    seconds : float
        The time so far.
    relative_gap : float
        An estimate of the relative duality gap.

    Examples
    --------
    >>> import numpy as np, topksvm
    >>> gaps = []
    >>> result = topksvm.solve(np.eye(4), np.array([0, 1, 2, 2]), callback=lambda progress:
    ...     gaps.append(progress.relative_gap))
    >>> len(gaps) > 0
    True
    """

    passes: int
    seconds: float
    relative_gap: float


Callback = Callable[[Progress], None]


@dataclass(frozen=True)
class Estimate:
    """What an update has led to, by the solver's own reckoning.

    Attributes
    ----------
    relative_gap : float
        The gap, about.
    should_certify : bool
        Whether it is time for a proof.
    proven : Certificate, optional
        A proof that the update has made on its way.
    details : dict
        What else the history should say about it.
    is_stuck : bool
        Whether further updates would find nothing better.

    Examples
    --------
    >>> from topksvm.solvers import Estimate
    >>> Estimate(relative_gap=0.02).should_certify
    False
    """

    relative_gap: float
    should_certify: bool = False
    proven: Certificate | None = None
    details: dict[str, Any] = field(default_factory=dict)
    is_stuck: bool = False


class Solver(Protocol):
    """What the run loop needs of a solver, which holds the state of one run.

    Examples
    --------
    The guide for contributors has a solver in one file.

    >>> from topksvm.solvers import Solver
    >>> sorted(name for name in vars(Solver) if not name.startswith("_"))
    ['certify', 'clock', 'duals', 'n_passes', 'update']
    """

    @property
    def clock(self) -> Clock:
        """Its time, without that of the compiler."""

    @property
    def n_passes(self) -> int:
        """Passes over the examples so far, or evaluations of the objective."""

    @property
    def duals(self) -> Any:
        """The dual variables, None for a solver without them."""

    def update(self, stopping: Stopping) -> Estimate | None:
        """Improve the state; return None where that is only a part of what can be judged.

        The state must be sound when this returns, and when it raises ``StopRequested``.
        """

    def certify(self) -> tuple[Floats, Certificate]:
        """Return the model ``(m, d)`` and its certificate."""


class Run:
    """One run of a solver.

    Parameters
    ----------
    solver : Solver
        Before its first update, or restored from a checkpoint.
    stopping : Stopping
        When to stop.
    callback : callable, optional
        Called with the :class:`Progress` after each update. An exception in it ends the run: a
        ``KeyboardInterrupt`` with the model so far, any other is passed on.
    checkpoints : Checkpoints, optional
        Where to keep the state.

    Examples
    --------
    The guide for contributors has :ref:`a solver in one file <add-a-solver>`.

    >>> from topksvm.solvers import Run, Stopping
    >>> run = Run(solver=None, stopping=Stopping(tol=1e-2))
    >>> run.history
    []
    """

    def __init__(
        self,
        solver: Any,
        stopping: Stopping,
        callback: Callback | None = None,
        checkpoints: Checkpoints | None = None,
    ) -> None:
        self.solver, self.stopping = solver, stopping
        self.callback, self.checkpoints = callback, checkpoints
        self.history: list[Check] = []
        self.certified: tuple[Floats, Certificate] | None = None
        self.recorded: Certificate | None = None
        if checkpoints is not None:
            self.history = checkpoints.restore(solver)

    def complete(self) -> Result:
        """Run until the gap is within tol, or the budget is used up, or Ctrl-C."""
        status = None
        try:
            while status is None:
                raise_if_stopped()
                status = self.advance()
        except StopRequested:
            if self.checkpoints is not None:
                self.checkpoints.save(self.solver, self.history)
            stop = current_stop()
            if stop is not None and stop.is_leaving:
                raise
            status = Status.INTERRUPTED
        return self.finish(status)

    def advance(self) -> Status | None:
        """Update, and certify if it is time to; return why to stop, None to go on."""
        solver = self.solver
        self.certified = None
        estimate = solver.update(self.stopping)
        status = None if estimate is None else self._judge(estimate)
        status = status or self.stopping.is_over(solver.n_passes, solver.clock.elapsed)
        # After the certificate, which is a part of what an undisturbed run does here.
        if estimate is not None:
            self._report(estimate)
        if status is None and self.checkpoints is not None:
            self.checkpoints.save_if_due(solver, self.history)
        return status

    def _judge(self, estimate: Estimate) -> Status | None:
        """Certify if it is time to; return why to stop whatever the budget."""
        if estimate.proven is not None:
            self._record(estimate.proven, estimate.details)
        status = self.verdict(self.certify()) if estimate.should_certify else None
        if status is None and estimate.is_stuck:
            return Status.STALLED
        return status

    def certify(self) -> Certificate:
        """Certify the present model."""
        with self.solver.clock.timed("certificates"):
            self.certified = self.solver.certify()
        certificate = self.certified[1]
        if certificate is not self.recorded:
            self._record(certificate, {})
        return certificate

    def verdict(self, certificate: Certificate) -> Status | None:
        """Return why a run with this certificate may stop, None if it should go on."""
        if certificate.is_within(self.stopping.tol):
            return Status.SOLVED
        if certificate.is_limited_by_rounding(self.stopping.tol):
            return Status.STALLED
        return None

    def finish(self, status: Status) -> Result:
        """Return the result of a run that has stopped."""
        if self.certified is None:
            self.certify()
        assert self.certified is not None
        model, certificate = self.certified
        if certificate.is_within(self.stopping.tol):
            status = Status.SOLVED
        solver = self.solver
        return Result(
            model,
            certificate,
            solver.duals,
            self.history,
            solver.n_passes,
            status,
            dict(solver.clock.seconds),
        )

    def _record(self, certificate: Certificate, details: dict[str, Any]) -> None:
        self.recorded = certificate
        self.history.append(
            Check(
                self.solver.n_passes,
                self.solver.clock.elapsed,
                certificate.primal,
                certificate.dual,
                certificate.gap,
                details,
            )
        )

    def _report(self, estimate: Estimate) -> None:
        if self.callback is None:
            return
        solver = self.solver
        try:
            self.callback(Progress(solver.n_passes, solver.clock.elapsed, estimate.relative_gap))
        except KeyboardInterrupt:  # Here the state is sound, so it ends the run as Ctrl-C does.
            raise StopRequested from None
