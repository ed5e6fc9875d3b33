"""Stochastic dual coordinate ascent: full passes that discover, active passes that polish.

The losses met by a full pass give an estimate of the gap for free. Active passes then improve the
duals of the classes in play at a fraction of the price, for as long as they pay. When the estimate
says that the goal is reached, the certificate decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm._clock import Clock
from topksvm._interrupts import raise_if_stopped
from topksvm.data import Problem
from topksvm.solvers._active_phase import ActivePhase
from topksvm.solvers._certificate import (
    SCALES,
    Certificate,
    certify,
    rebuild_weights,
    sum_dual_values,
)
from topksvm.solvers._duals import Duals, empty_duals, remember
from topksvm.solvers._engine import Engine
from topksvm.solvers._extrapolation import Extrapolator
from topksvm.solvers._gap_correction import TINY, corrected
from topksvm.solvers._passes import Blocks
from topksvm.solvers._run import Estimate, Stopping

Floats = NDArray[np.floating[Any]]

EXTRA_CANDIDATES = 2
"""Classes in play for an example besides its support and the k with the largest scores. With 1 to 3
the silhouettes take the same time."""

FIRST_CORRECTION = 0.75
"""The gap of the average of the weights against the one that a full pass estimates, at first; later
it is known from the certificates."""

MOST_UNPROVEN, FIRST_UNPROVEN = 1.5, 100
"""A certificate is due when the passes have grown by half since the last, and by a hundred: the
estimate does not know that larger weights may be better, which proves some problems solved."""


@dataclass(frozen=True)
class SDCAOptions:
    """How to run the solver; see :func:`topksvm.solve`."""

    block_size: int | None = None
    active: bool = True
    max_active: int = 16
    seed: int = 0


def count_candidates(loss: Any, m: int, *, active: bool) -> int:
    """Return how many classes besides its support are in play for an example; 0 for all."""
    is_sparse = loss.traits.sparse_duals
    k = loss.k if loss.traits.uses_k else 1
    return min(k + EXTRA_CANDIDATES, m - 1) if active and is_sparse else 0


class SDCA:
    """The solver for rows in memory; see :class:`~topksvm.solvers.Solver`.

    It starts from `duals`, which become its own, if they are given; see :mod:`._start`.
    """

    def __init__(
        self, loss: Any, problem: Problem, options: SDCAOptions, duals: Duals | None = None
    ) -> None:
        self.loss, self.problem, self.options = loss, problem, options
        self.clock = Clock()
        self.n_passes = 0
        self.rng = np.random.default_rng(options.seed)
        self.max_active = options.max_active
        self.members = np.flatnonzero(problem.examples.C > 0.0)
        n_candidates = count_candidates(loss, problem.m, active=options.active)
        self.use_active = n_candidates > 0
        self.engine = Engine(loss, problem, n_candidates, options.block_size)
        self.extrapolator = Extrapolator(loss, problem) if loss.traits.has_feasible_step else None
        self.is_warm = duals is not None
        self.dual = 0.0
        self.relative_gap = np.inf
        self.gap = np.inf
        self.phase: Any = None
        self.gap_correction = FIRST_CORRECTION if self.use_active else 1.0
        self.last_certificate = 0  # The number of passes then.
        self.has_new_start = duals is not None
        self.is_near = False
        self.has_estimated = False  # Whether an estimate was made since the last full pass.
        self.has_failed = False  # Whether the last certificate was expected to be within tol.
        first = empty_duals(problem.n, 4 * problem.n + self.engine.room)
        self.state = self.engine.make_state(first if duals is None else duals)
        if duals is not None:
            self._adopt(duals)

    def _adopt(self, duals: Duals) -> None:
        exact = rebuild_weights(self.problem, duals)
        self.weights[...] = exact
        values = float(sum_dual_values(self.loss, self.problem.examples, duals)[0])
        self.dual = values - 0.5 * float(np.vdot(exact, exact))

    @property
    def weights(self) -> Floats:
        """The weights in the layout of the rows, without the zeros that fill up a cache line."""
        return self.state.weights[:, : self.problem.shape[1]]

    @property
    def duals(self) -> Duals:
        """The dual variables."""
        return self.state.duals

    @duals.setter
    def duals(self, duals: Duals) -> None:
        self.state = self.state._replace(duals=duals)

    def update(self, stopping: Stopping) -> Estimate:
        """Make active passes if they still pay, after a full pass otherwise.

        They end when the gap should be reached; where the certificate then says that it is not,
        there may be more of them.
        """
        if self.has_new_start:  # It may be a solution, as where a smaller C bound no dual.
            self.has_new_start = False
            return Estimate(self.relative_gap, should_certify=True)
        if self.needs_full_pass:
            self.full_pass(self.rng.permutation(self.members))
            self.end_full_pass()
        self.continue_phase(stopping)
        return self.estimate(stopping.tol)

    @property
    def needs_full_pass(self) -> bool:
        """Whether the next update is to begin with a full pass, which others may make before it.

        Otherwise there was one of which nothing came yet, or active passes that still pay.
        """
        if self.has_new_start:
            return False
        if self.phase is None:
            return True
        return self.has_estimated and not (self.is_near and self.phase.pays)

    def full_pass(
        self, order: NDArray[np.int64], blocks: Blocks | None = None, *, gather: bool = True
    ) -> None:
        """Step on all classes of the examples `order`, which may be a part of them.

        With `blocks` the rows are those gathered there, by this pass or by another.
        """
        with self.clock.timed("full"):
            before = float(self.state.sums[0])
            self.state = self.engine.full_pass(self.state, order, blocks, gather=gather)
            self.dual += float(self.state.sums[0]) - before
        raise_if_stopped()

    def end_full_pass(self) -> None:
        """Estimate the gap after all examples were visited."""
        losses, self.state.sums[...] = float(self.state.sums[1]), 0.0
        self.n_passes += 1
        primal = losses + 0.5 * float(np.vdot(self.state.weights, self.state.weights))
        self.gap = primal - self.dual
        self.relative_gap = self.gap / max(abs(primal), TINY)
        # What the very first pass chose, from weights next to zero, will not stay in play.
        is_early = self.n_passes <= 1 and not self.is_warm
        most = self.max_active if self.use_active and not is_early else 0
        self.phase = ActivePhase(most, self.weights)
        self.has_estimated = False

    def continue_phase(self, stopping: Stopping) -> None:
        """Make active passes while they pay, until the gap should be within tol."""
        phase = self._phase
        enough = stopping.tol / max(self.gap_correction * self.relative_gap, TINY)
        while phase.pays and not stopping.is_over(self.n_passes, self.clock.elapsed):
            # The direction of a pass that follows an extrapolation would be that of its correction.
            extrapolator = self.extrapolator if phase.n_passes % 2 else None
            before = None if extrapolator is None else remember(self.duals)
            gain, n_visits = self.active_pass(phase.mean_gain)
            # Before the extrapolation, which the next pass has to smooth.
            phase.add(self.weights, gain, n_visits)
            if extrapolator is not None and before is not None:
                with self.clock.timed("extrapolation"):
                    self.dual += extrapolator.extrapolate(before, self.duals, self.state.weights)
            if phase.expected_gap_factor <= enough:
                return

    @property
    def _phase(self) -> Any:
        assert self.phase is not None
        return self.phase

    def active_pass(self, mean_gain: float = 0.0) -> tuple[float, int]:
        """Step on the classes in play; return the gain in the dual and the number of steps."""
        seed = int(self.rng.integers(1, 1 << 62))
        with self.clock.timed("active"):
            self.state, n_visits = self.engine.active_pass(
                self.state, self.members, seed, mean_gain
            )
        gain, self.state.sums[...] = float(self.state.sums[0]), 0.0
        self.dual += gain
        raise_if_stopped()
        self.n_passes += 1
        return gain, n_visits

    def estimate(self, tol: float) -> Estimate:
        """Return the estimate of the gap, and whether it is time for a certificate."""
        expected = self.gap_correction * self._phase.expected_gap_factor * self.relative_gap
        self.is_near = expected <= tol
        self.has_estimated = True
        is_due = self.n_passes > MOST_UNPROVEN * self.last_certificate + FIRST_UNPROVEN
        return Estimate(self.relative_gap, self.is_near or is_due)

    def certify(self) -> tuple[Floats, Certificate]:
        """Certify the average of the weights over the last active passes, or else the weights.

        The dual objective converges before the primal one, which jumps about as the examples are
        visited: the average is a better model for it. The weights are those of the duals again.
        """
        average = None if self.phase is None else self.phase.average
        is_first = self.is_near and not self.has_failed
        self.has_failed = self.is_near
        certificate, model, self.weights[...] = certify(
            self.loss, self.problem, self.duals, average, SCALES[:1] if is_first else SCALES
        )
        self.dual = certificate.dual
        self.last_certificate = self.n_passes
        if self.is_near:
            expected = self._phase.expected_gap_factor * self.gap
            self.gap_correction = corrected(self.gap_correction, certificate.gap, expected)
        return self.problem.coefficients(model), certificate
