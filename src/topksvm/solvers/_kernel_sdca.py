"""Stochastic dual coordinate ascent for kernel machines.

The scores of all examples are kept up to date (see :mod:`topksvm.solvers._kernel_passes`), so what
each example adds to the duality gap is known after every pass, without a look at K. A pass visits
only the examples that matter: those left out hold a small part of the gap together. Rows of K of
examples that are settled are neither computed nor kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm._clock import Clock
from topksvm._interrupts import raise_if_abandoned, raise_if_stopped
from topksvm.data import TILE, KernelProblem, tolerance
from topksvm.solvers._certificate import (
    SCALES,
    Certificate,
    add_losses,
    make_certificate,
    make_duals_feasible,
    sum_dual_values,
)
from topksvm.solvers._duals import Duals, empty_duals, with_room
from topksvm.solvers._gap_correction import corrected
from topksvm.solvers._kernel_passes import expand, gram_block, measure_gaps
from topksvm.solvers._rounding import (
    Bound,
    DualSums,
    Size,
    gamma,
    lower_bound,
    slack_of_margins,
    upper_bound,
)
from topksvm.solvers._run import Estimate, Stopping
from topksvm.solvers._sdca import count_candidates
from topksvm.solvers._steps import State, make_candidates, make_changes, make_scratch

Floats = NDArray[np.floating[Any]]
Indices = NDArray[np.int64]

BLOCK = 64
"""Examples between two updates of the scores, which then take a product instead of sums."""

SETTLED = 0.01
"""Share of the average gap of an example below which the next pass leaves it out: all that are left
out hold a hundredth of the gap at most."""

CERTIFICATE_ENTRIES = 1 << 22
"""Entries of K that the certificate looks at together."""


class KernelSDCA:
    """The solver for kernel machines; see :class:`~topksvm.solvers.Solver`.

    The weights of its state are the scores of all examples.
    """

    def __init__(self, loss: Any, problem: KernelProblem, seed: int = 0) -> None:
        self.loss, self.problem = loss, problem
        self.clock = Clock()
        self.n_passes = 0
        gram, m = problem.gram, problem.m
        self.block = min(BLOCK, gram.most_rows)
        self.rng = np.random.default_rng(seed)
        self.members = np.flatnonzero(problem.examples.C > 0.0)
        self.gaps = np.ones(gram.n)  # All alike, so that the first pass visits all.
        self.wide_scratch = make_scratch(m, np.dtype(np.float64))
        self.room = self.block * m
        self.gap_correction = 1.0
        self.gap = np.inf
        self.is_near = False
        n_candidates = count_candidates(loss, m, active=True)
        nothing = np.empty(0, gram.dtype)
        self.state = State(
            rows=None,
            examples=problem.examples,
            weights=np.zeros((m, gram.n), gram.dtype),
            duals=empty_duals(gram.n, 4 * gram.n + self.room),
            candidates=make_candidates(gram.n, n_candidates if m > 2 * n_candidates else 0),
            changes=make_changes(self.block, m, gram.dtype),
            scratch=make_scratch(m, gram.dtype),
            x=nothing,
            scores=nothing,
            partial=nothing.reshape(0, 0),
            sums=np.zeros(2),
        )

    @property
    def duals(self) -> Duals:
        """The dual variables."""
        return self.state.duals

    def full_pass(self, stopping: Stopping) -> None:
        """Step on the examples that matter, in a random order, until the time is used up."""
        gram = self.problem.gram
        order = self.rng.permutation(self._unsettled())
        gram.begin_pass(order)
        for start in range(0, order.size, self.block):
            raise_if_stopped()
            index = order[start : start + self.block]
            with self.clock.timed("kernel"):
                slots = gram.slots(index)
            self.state = self.state._replace(duals=with_room(self.duals, self.room))
            with self.clock.timed("steps"):
                gram_block(self.loss, self.state, index, slots, gram.store)
            if self.clock.elapsed >= stopping.max_time:
                break
        self.n_passes += 1

    def _unsettled(self) -> Indices:
        gaps = self.gaps[self.members]
        unsettled = self.members[gaps > SETTLED * np.mean(np.maximum(gaps, 0.0))]
        return unsettled if unsettled.size else self.members

    def update(self, stopping: Stopping) -> Estimate:
        """Make a pass, and find out what each example adds to the gap."""
        self.full_pass(stopping)
        found = self.measure()
        self.gap = found.gap
        self.is_near = self.gap_correction * found.relative_gap <= stopping.tol
        return Estimate(found.relative_gap, self.is_near)

    def measure(self) -> Certificate:
        """Return primal and dual by the scores at hand, and find out who holds the gap."""
        with self.clock.timed("gaps"):
            square, losses, values = measure_gaps(self.loss, self.state, self.gaps)
        return Certificate(0.5 * square + losses, values - 0.5 * square)

    def certify(self) -> tuple[Floats, Certificate]:
        """Compute the scores anew from the duals, in float64, and certify the model.

        The model has the coefficients in the precision of X: its primal objective is judged by
        those, the dual objective by the dual variables as they are.
        """
        make_duals_feasible(self.loss, self.problem.examples, self.duals)
        count = np.count_nonzero(self.duals.count)
        exact = np.zeros((count, self.problem.m))
        expand(self.problem.examples, self.duals, exact)
        model = exact.astype(self.problem.gram.dtype, copy=False)
        certificate = self._certificate(exact, model.astype(np.float64, copy=False))
        if self.is_near:
            # Rounding may have flattered the estimate.
            self.gap_correction = corrected(self.gap_correction, certificate.gap, self.gap)
        return np.ascontiguousarray(model.T), certificate

    def _certificate(self, exact: Floats, model: Floats) -> Certificate:
        gram, examples = self.problem.gram, self.problem.examples
        support = np.flatnonzero(self.duals.count)
        size = Size(gram.n, self.problem.m, support.size)
        scale_of_exact, scale_of_model = self._scales(exact, support), self._scales(model, support)
        slack = slack_of_margins(size.d, size.m, float(scale_of_model.max(initial=0.0)))
        norm_of_exact, norm_of_model, losses = 0.0, 0.0, np.zeros(2)
        height = max(TILE, CERTIFICATE_ENTRIES // gram.n)
        for start in range(0, gram.n, height):
            raise_if_abandoned()
            stop = min(start + height, gram.n)
            K = gram.wide_rows(start, stop)[:, support]
            own = slice(*np.searchsorted(support, (start, stop)))
            scores = K @ exact
            self.state.weights[:, start:stop] = scores.T
            norm_of_exact += float(np.vdot(scores[support[own] - start], exact[own]))
            if model is not exact:
                scores = K @ model
            norm_of_model += float(np.vdot(scores[support[own] - start], model[own]))
            add_losses(
                self.loss, start, scores, examples, SCALES[:1], slack, losses, self.wide_scratch
            )
        self._check_norm(norm_of_exact, support, exact)
        # A squared norm is a sum of signed terms here: off by a share of the absolute ones.
        room = gamma(2 * size.d + size.m + 8)
        of_model = room * float(scale_of_model @ scale_of_model)
        of_exact = room * float(scale_of_exact @ scale_of_exact)
        primal = upper_bound(
            max(norm_of_model, 0.0) + of_model, float(losses[0]), float(losses[1]), size
        )
        sums = DualSums(*sum_dual_values(self.loss, examples, self.duals))
        dual = lower_bound(sums, max(norm_of_exact, 0.0) + of_exact, size)
        return make_certificate(
            Bound(primal.value, primal.rounding + 0.5 * of_model),
            Bound(dual.value, dual.rounding + 0.5 * of_exact),
        )

    def _scales(self, coefficients: Floats, support: Indices) -> Floats:
        """Return ``sum_l |a_lk| ||x_l||`` for each class ``k``, which bounds its scores.

        A score ``sum_l a_lk K_il`` has absolute terms of at most ``||x_i||`` times that.
        """
        norms = np.sqrt(np.maximum(self.problem.examples.norms[support], 0.0))
        return norms @ np.abs(coefficients)

    def _check_norm(self, square: float, support: Indices, exact: Floats) -> None:
        """Complain about ``||W||^2 < 0``, which only an indefinite K can give."""
        norms = self.problem.examples.norms[support]
        scale = float(norms @ np.einsum("ik,ik->i", exact, exact))
        if square < -tolerance(self.problem.gram.dtype) * scale:
            raise ValueError(
                f"The kernel is not positive semi-definite: the model has the squared norm "
                f"{square:.6g}. Choose a smaller gamma or C, or another kernel."
            )
