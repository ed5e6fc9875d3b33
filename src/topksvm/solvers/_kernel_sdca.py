"""Stochastic dual coordinate ascent for kernel machines.

The scores of all examples are kept up to date (see :mod:`topksvm.solvers._kernel_passes`), so what
each example adds to the duality gap is known after every pass, without a look at K. A pass visits
only the examples that matter: those left out hold a small part of the gap together. Rows of K of
examples that are settled are neither computed nor kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm._interrupts import raise_if_abandoned, raise_if_stopped, stoppable
from topksvm._threads import fit_threads
from topksvm.data import TILE, Examples, Gram, check_diagonal, tolerance
from topksvm.losses import LOSSES
from topksvm.solvers._certificate import (
    SCALES,
    Certificate,
    add_losses,
    make_certificate,
    make_duals_feasible,
    sum_dual_values,
)
from topksvm.solvers._duals import empty_duals, with_room
from topksvm.solvers._kernel_passes import expand, gram_block, measure_gaps
from topksvm.solvers._result import Result, Status
from topksvm.solvers._rounding import (
    Bound,
    DualSums,
    Size,
    gamma,
    lower_bound,
    slack_of_margins,
    upper_bound,
)
from topksvm.solvers._run import Report, Run
from topksvm.solvers._sdca import EXTRA_CANDIDATES, TINY
from topksvm.solvers._steps import make_candidates, make_changes, make_scratch

Floats = NDArray[np.floating[Any]]
Indices = NDArray[np.int64]

BLOCK = 64
"""Examples between two updates of the scores."""

SETTLED = 0.01
"""Share of the average gap of an example below which the next pass leaves it out."""

CERTIFICATE_ENTRIES = 1 << 22
"""Entries of K that the certificate looks at together."""


@dataclass(frozen=True)
class KernelProblem:
    """``min_W 1/2 ||W||^2 + sum_i C_i phi(F_i, y_i)`` with ``F = A K`` and `m` classes."""

    gram: Gram
    examples: Examples
    m: int


@dataclass(frozen=True)
class KernelOptions:
    """How to run the solver."""

    tol: float = 1e-3
    max_iter: int = 1000
    max_time: float = np.inf
    block_size: int = BLOCK
    seed: int = 0


def make_kernel_problem(
    gram: Gram, labels: NDArray[np.integer[Any]], C: Floats, m: int
) -> KernelProblem:
    """Return the problem for labels from 0 to ``m - 1``; complain about a negative diagonal."""
    norms = gram.diagonal()
    check_diagonal(norms)
    weights = np.array(C, dtype=np.float64)  # A copy: kernels are compiled for what is writable.
    return KernelProblem(gram, Examples(labels.astype(np.int32), weights, norms), m)


def check_dual_step(name: str) -> None:
    """Complain about a loss that a kernel machine cannot be trained with."""
    able = [other for other, loss in LOSSES.items() if hasattr(loss, "dual_step")]
    if name not in able:
        raise ValueError(
            f"A kernel machine needs a dual step, which loss = {name!r} does not have; choose one "
            f"of {', '.join(able)}, or TopKLinearSVC."
        )


def solve_kernel(
    loss: Any,
    gram: Gram,
    labels: NDArray[np.integer[Any]],
    C: Floats,
    m: int,
    *,
    options: KernelOptions,
    n_jobs: int | None,
    report: Report | None,
) -> Result:
    """Train a kernel machine; the `weights` of the result are ``a_i`` of the support, as columns.

    The support are the examples with dual variables, in order: ``np.flatnonzero(duals.count)``.
    """

    def work() -> Result:
        problem = make_kernel_problem(gram, labels, C, m)
        return KernelSDCA(loss, problem, options).run(report)

    with fit_threads(n_jobs):
        return stoppable(work)


class KernelSDCA(Run):
    """One run of the solver."""

    def __init__(self, loss: Any, problem: KernelProblem, options: KernelOptions) -> None:
        super().__init__(options.tol)
        self.loss, self.problem, self.options = loss, problem, options
        gram, m = problem.gram, problem.m
        self.block = min(options.block_size, gram.most_rows)
        self.rng = np.random.default_rng(options.seed)
        self.members = np.flatnonzero(problem.examples.C > 0.0)
        self.scores = np.zeros((m, gram.n), gram.dtype)
        self.gaps = np.ones(gram.n)  # All alike, so that the first pass visits all.
        self.scratch = make_scratch(m, gram.dtype)
        self.wide_scratch = make_scratch(m, np.dtype(np.float64))
        self.changes = make_changes(self.block, m, gram.dtype)
        wanted = getattr(loss, "k", 1) + EXTRA_CANDIDATES
        is_sparse = getattr(loss, "has_sparse_duals", False) and m > 2 * wanted
        self.candidates = make_candidates(gram.n, wanted if is_sparse else 0)
        self.room = self.block * m
        self.duals = empty_duals(gram.n, 4 * gram.n + self.room)

    def one_pass(self) -> None:
        """Step on the examples that matter, in a random order, until the time is used up."""
        self.is_certified = False
        gram = self.problem.gram
        order = self.rng.permutation(self._unsettled())
        gram.begin_pass(order)
        for start in range(0, order.size, self.block):
            raise_if_stopped()
            index = order[start : start + self.block]
            with self._timed("kernel"):
                slots = gram.slots(index)
            self.duals = with_room(self.duals, self.room)
            with self._timed("steps"):
                gram_block(
                    self.loss,
                    index,
                    slots,
                    gram.store,
                    self.scores,
                    self.problem.examples,
                    self.duals,
                    self.candidates,
                    self.changes,
                    self.scratch,
                )
            if self.elapsed >= self.options.max_time:
                break
        self.n_passes += 1

    def _unsettled(self) -> Indices:
        gaps = self.gaps[self.members]
        unsettled = self.members[gaps > SETTLED * np.mean(np.maximum(gaps, 0.0))]
        return unsettled if unsettled.size else self.members

    def measure(self) -> Certificate:
        """Return primal and dual by the scores at hand, and find out who holds the gap."""
        with self._timed("gaps"):
            square, losses, values = measure_gaps(
                self.loss,
                self.scores,
                self.problem.examples,
                self.duals,
                self.scratch,
                self.gaps,
            )
        return Certificate(0.5 * square + losses, values - 0.5 * square)

    def certify(self) -> Certificate:
        """Compute the scores anew from the duals, in float64, and certify the model.

        The model has the coefficients in the precision of X: its primal objective is judged by
        those, the dual objective by the dual variables as they are.
        """
        with self._timed("certificates"):
            make_duals_feasible(self.loss, self.problem.examples, self.duals)
            count = np.count_nonzero(self.duals.count)
            exact = np.zeros((count, self.problem.m))
            expand(self.problem.examples, self.duals, exact)
            model = exact.astype(self.problem.gram.dtype, copy=False)
            certificate = self._certificate(exact, model.astype(np.float64, copy=False))
        self.record(np.ascontiguousarray(model.T), certificate)
        return certificate

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
            self.scores[:, start:stop] = scores.T
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

    def _run(self, report: Report | None) -> Status:
        hope = 1.0
        while True:
            self.one_pass()
            estimate = self.measure()
            if report is not None:
                report(self.n_passes, self.elapsed, estimate.relative_gap)
            if hope * estimate.relative_gap <= self.tol:
                certificate = self.certify()
                status = self.verdict(certificate)
                if status is not None:
                    return status
                # Rounding has flattered the estimate: ask for as much more.
                hope = max(hope, min(4.0 * hope, 1.1 * certificate.gap / max(estimate.gap, TINY)))
            if self.n_passes >= self.options.max_iter:
                return Status.MAX_ITER
            if self.elapsed >= self.options.max_time:
                return Status.MAX_TIME
