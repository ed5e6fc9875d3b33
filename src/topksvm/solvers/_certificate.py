"""The duality gap, proven: the only judge of convergence.

For a model with weights ``V`` and duals ``A`` with ``W = sum_i a_i x_i'``::

    P = 1/2 ||V||^2 + sum_i C_i phi(h_i)
    D = sum_i [margin <1, x_i> - C_i omega(x_i / C_i)] - 1/2 ||W||^2

``W`` is rebuilt from the duals, so rounding that has crept into the weights during training cannot
flatter the gap, and ``V`` is exactly what the user gets. The duals are made feasible first, and
both values are moved apart by bounds on the rounding of their evaluation (`_rounding.py`): what is
claimed holds in exact arithmetic.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm._interrupts import raise_if_abandoned
from topksvm._numba import borrow, inlined_kernel, kernel
from topksvm._threads import map_parts, n_threads, thread_limit
from topksvm.data import DenseRows, add_row, gather_rows, load_row, scores_of_all
from topksvm.losses import dual_value, make_feasible, value
from topksvm.solvers._rounding import (
    Bound,
    DualSums,
    Size,
    Slack,
    largest_norm,
    lower_bound,
    slack_of_margins,
    upper_bound,
)
from topksvm.solvers._steps import make_scratch

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Certificate:
    """What is proven about a model: its objective lies within `gap` of the optimum.

    It holds in exact arithmetic: rounding errors of its own evaluation are part of the gap.

    Attributes
    ----------
    primal : float
        The objective of the model; an upper bound, closer than any rounding error that matters.
    dual : float
        A lower bound on the optimum.
    rounding : float
        How much of the gap is room for rounding errors.

    Examples
    --------
    >>> from topksvm.solvers import Certificate
    >>> certificate = Certificate(primal=10.0, dual=9.5)
    >>> certificate.gap, round(certificate.relative_gap, 9)
    (0.5, 0.05)

    Every model has one:

    >>> import numpy as np
    >>> from topksvm import TopKLinearSVC
    >>> model = TopKLinearSVC(tol=1e-4).fit(np.eye(4), [0, 1, 2, 2])
    >>> model.certificate_.relative_gap <= 1e-4
    True
    """

    primal: float
    dual: float
    rounding: float = 0.0

    @property
    def gap(self) -> float:
        """``primal - dual``."""
        return self.primal - self.dual

    @property
    def relative_gap(self) -> float:
        """``gap / max(|primal|, |dual|)``, rounded up, and 0 if both are 0."""
        # The division is rounded, too, and the denominator may be too large by a bound.
        return self._relative(self.gap) * (1.0 + 2.0**-48)

    @property
    def relative_rounding(self) -> float:
        """The part of the relative gap that is room for rounding errors."""
        return self._relative(self.rounding)

    def _relative(self, part: float) -> float:
        size = max(abs(self.primal), abs(self.dual))
        return part / size if size else 0.0

    def is_within(self, tol: float) -> bool:
        """Return whether the relative gap is at most `tol`."""
        return self.relative_gap <= tol

    def is_limited_by_rounding(self, tol: float) -> bool:
        """Return whether the gap is above `tol` only for the room for rounding errors."""
        return self.relative_gap > tol >= self.relative_gap - self.relative_rounding


def make_certificate(primal: Bound, dual: Bound) -> Certificate:
    """Return the certificate of two bounds; complain if they cannot both be right."""
    certificate = Certificate(primal.value, dual.value, primal.rounding + dual.rounding)
    if not math.isfinite(certificate.gap):
        raise ValueError(
            f"The objective is too large for float64: primal {primal.value}, dual {dual.value}. "
            "Scale the features, or choose a smaller C, intercept scaling or sample weights."
        )
    if certificate.gap < 0.0:
        raise RuntimeError(
            f"The duality gap is negative: primal {primal.value!r} is below dual {dual.value!r}. "
            "This is a bug in topksvm; please report it with the data."
        )
    return certificate


TOLERATED = 1e-6
"""Share of the weight C of an example that rounding may have added to its duals, at most.

Steps leave some units in the last place, jumps of the extrapolation up to 1e-12. What is farther
outside of the domain was not put there by rounding.
"""


def make_duals_feasible(loss: Any, examples: Any, duals: Any) -> float:
    """Bring the duals, which must be feasible but for rounding, into the domain, in place.

    Return the largest share that one lost.
    """
    lost, excess = lower_duals(loss, examples, duals)
    if not excess <= TOLERATED:
        raise RuntimeError(
            f"The dual variables are infeasible: those of an example by {100 * excess:.3g} % of "
            "its weight C. No bound follows from them. This is a bug in topksvm; please report it "
            "with the data."
        )
    return float(lost)


def rebuild_weights(problem: Any, duals: Any) -> Floats:
    """Return ``sum_i a_i x_i'`` in float64, in the layout of the rows."""
    weights = np.zeros(problem.shape)
    for rows, examples, part in problem.pieces(duals):
        raise_if_abandoned()
        sum_outer_products(rows, examples, part, weights)
    return weights


BLOCK_ENTRIES = 1 << 19
"""Entries of the rows, or of their scores, in a block that is held in float64."""

MOST_BLOCKS = 8
"""Blocks that are held at the same time, by a thread each."""

SCALES = 1.0 + np.array([0.0, 1e-12, 1e-9, 1e-6, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2])
"""Factors of the weights among which the best is certified.

Where the classes can be separated, weights close to the optimum violate the margins by a little,
which costs `C` times that little. Weights that are larger by a little do not. The first factors are
for margins that are violated by rounding only.
"""


def certify(
    loss: Any,
    problem: Any,
    duals: Any,
    average: Floats | None = None,
    scales: Floats = SCALES,
) -> tuple[Certificate, Floats, Floats]:
    """Return a certificate, the weights that it is for, and the weights of the duals.

    It is for the best of `scales` times the `average`, in the precision of the rows, or times the
    weights of the duals. The duals are made feasible in place.
    """
    make_duals_feasible(loss, problem.examples, duals)
    exact = rebuild_weights(problem, duals) if average is None else np.zeros(problem.shape)
    weights = np.array(exact if average is None else average, problem.dtype)
    rebuilt = None if average is None else exact  # In the same reading of the rows.
    primal, best = judge(loss, problem, duals, weights, scales, rebuilt)
    if best > 0:
        # Again, as the larger weights are rounded: exactly those that the user gets are judged.
        larger = (scales[best] * weights.astype(np.float64)).astype(weights.dtype)
        again, _ = judge(loss, problem, duals, larger, scales[:1])
        if again.value < primal.value:
            primal, weights = again, larger
    sums = DualSums(*sum_dual_values(loss, problem.examples, duals))
    dual = lower_bound(sums, largest_norm(exact, 1)[1], size_of(problem))
    return make_certificate(primal, dual), weights, exact


def size_of(problem: Any) -> Size:
    """Return the lengths of the sums over the problem."""
    return Size(problem.n, problem.m, problem.d)


def judge(
    loss: Any,
    problem: Any,
    duals: Any,
    weights: Floats,
    scales: Floats,
    rebuilt: Floats | None = None,
) -> tuple[Bound, int]:
    """Return a bound on the primal objective, and which of `scales` times the weights is best."""
    wide = weights.astype(np.float64)
    largest, square = largest_norm(wide, 0 if problem.is_sparse else 1)
    slack = slack_of_margins(problem.d, problem.m, largest)
    losses = sums_of_losses(loss, problem, duals, wide, scales, slack, rebuilt)
    best = int(np.argmin(scales**2 * 0.5 * square + losses[:-1]))
    return upper_bound(square, float(losses[0]), float(losses[-1]), size_of(problem)), best


def sums_of_losses(
    loss: Any,
    problem: Any,
    duals: Any,
    weights: Floats,
    scales: Floats,
    slack: Slack,
    rebuilt: Floats | None = None,
) -> Floats:
    """Return the weighted sum of the losses for each of `scales` times the weights.

    They are upper bounds, by at most the last number returned. Add ``sum_i a_i x_i'`` to `rebuilt`,
    if it is there.
    """
    totals = np.zeros(scales.size + 1)
    for rows, examples, part in problem.pieces(duals):
        raise_if_abandoned()
        if rebuilt is not None:
            sum_outer_products(rows, examples, part, rebuilt)
        if isinstance(rows, DenseRows):
            totals += _losses_dense(loss, rows, examples, weights, scales, slack)
        else:
            scratch = make_scratch(weights.shape[1], weights.dtype)
            add_losses_sparse(loss, rows, examples, weights, scales, slack, totals, scratch)
    return totals


def _losses_dense(
    loss: Any, rows: DenseRows, examples: Any, weights: Floats, scales: Floats, slack: Slack
) -> Floats:
    """Return the sums of the losses of all rows, block by block, several at a time.

    The blocks do not depend on the number of threads, so neither do the sums.
    """
    n = examples.labels.size
    block = max(1, min(n, BLOCK_ENTRIES // max(weights.shape)))

    def losses_of(start: int, stop: int) -> Floats:
        raise_if_abandoned()
        totals = np.zeros(scales.size + 1)
        x = np.empty((stop - start, weights.shape[1]))
        gather_rows(rows, start, stop, x)
        scratch = make_scratch(weights.shape[0], weights.dtype)
        add_losses(loss, start, x @ weights.T, examples, scales, slack, totals, scratch)
        return totals

    with thread_limit(certificate_threads()):
        return sum(map_parts(losses_of, n, block), np.zeros(scales.size + 1))


def certificate_threads() -> int:
    """Return the number of threads that certify, each with a block of widened rows."""
    return min(n_threads(), MOST_BLOCKS)


@kernel
def add_losses(loss, first, scores, examples, scales, slack, totals, scratch):
    """Add the weighted losses of the examples from `first` on at each scale of their `scores`."""
    scores, examples, scratch = borrow(scores), borrow(examples), borrow(scratch)
    scales, totals = borrow(scales), borrow(totals)
    for b in range(scores.shape[0]):
        add_loss(loss, first + b, scores[b], examples, scales, slack, totals, scratch)


@inlined_kernel
def add_loss(loss, i, scores, examples, scales, slack, totals, scratch):
    """Add the weighted loss of example `i`; its scores are overwritten."""
    C, last, label = examples.C[i], scores.size - 1, examples.labels[i]
    if C == 0.0:
        return
    error = slack.unit * (1.0 + slack.size * math.sqrt(examples.norms[i]))
    base = scores[label]
    scores[label] = scores[last]
    row = scratch.row[:last]
    for s in range(scales.size):
        for j in range(last):
            row[j] = scales[s] * scores[j]
        raised = scales[s] * base - error
        loss_value = value(loss, row, raised, scratch.work)
        totals[s] += C * loss_value
        if s == 0 and loss_value > 0.0:
            totals[scales.size] += C * error


@kernel
def add_losses_sparse(loss, rows, examples, weights, scales, slack, totals, scratch):
    """Add the weighted losses of all examples, sparse rows, at each scale of the weights."""
    rows, examples, scratch = borrow(rows), borrow(examples), borrow(scratch)
    weights, scales, totals = borrow(weights), borrow(scales), borrow(totals)
    scores = np.empty(weights.shape[1])
    for i in range(examples.labels.size):
        if examples.C[i] != 0.0:
            scores_of_all(rows, weights, i, scores, scores)
            add_loss(loss, i, scores, examples, scales, slack, totals, scratch)


@kernel
def lower_duals(loss, examples, duals):
    """Bring the duals of all examples into the domain.

    Return the largest share that one lost, and the most that an example lost, in units of its C.
    """
    examples, duals = borrow(examples), borrow(duals)
    lost, excess = 0.0, 0.0
    for i in range(examples.labels.size):
        count = duals.count[i]
        if count > 0:
            values = duals.values[duals.start[i] : duals.start[i] + count]
            before = values.sum()
            lost = max(lost, make_feasible(loss, values, count, examples.C[i]))
            excess = max(excess, (before - values.sum()) / examples.C[i])
    return lost, excess


@kernel
def sum_dual_values(loss, examples, duals):
    """Return the :class:`DualSums` of all examples."""
    examples, duals = borrow(examples), borrow(duals)
    total, magnitude, mass = 0.0, 0.0, 0.0
    for i in range(examples.labels.size):
        count = duals.count[i]
        if count == 0:
            continue
        values = duals.values[duals.start[i] : duals.start[i] + count]
        worth, own = dual_value(loss, values, count, examples.C[i]), 0.0
        for j in range(count):
            own += values[j]
        total += worth
        magnitude += abs(worth) + 2.0 * own
        mass += own * math.sqrt(examples.norms[i])
    return total, magnitude, mass


@kernel
def sum_outer_products(rows, examples, duals, weights):
    """Add ``sum_i a_i x_i'`` to `weights`."""
    rows, examples = borrow(rows), borrow(examples)
    duals, weights = borrow(duals), borrow(weights)
    d = weights.shape[1]
    x = np.zeros(d, weights.dtype)
    for i in range(examples.labels.size):
        if duals.count[i] == 0:
            continue
        load_row(rows, i, x)
        total = 0.0
        for p in range(duals.start[i], duals.start[i] + duals.count[i]):
            add_row(rows, weights, i, x, duals.classes[p], -duals.values[p])
            total += duals.values[p]
        add_row(rows, weights, i, x, examples.labels[i], total)
