"""The duality gap, in float64: the only judge of convergence.

For a model with weights ``V`` and duals ``A`` with ``W = sum_i a_i x_i'``::

    P = 1/2 ||V||^2 + sum_i C_i phi(h_i)
    D = sum_i [margin <1, x_i> - C_i omega(x_i / C_i)] - 1/2 ||W||^2

``W`` is rebuilt from the duals, so rounding that has crept into the weights during training cannot
flatter the gap, and ``V`` is exactly what the user gets.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm._numba import borrow, inlined_kernel, kernel
from topksvm._threads import blas_limit, n_threads
from topksvm.losses._contract import dual_value, value
from topksvm.solvers._rows import DenseRows, add_row, gather_rows, load_row, scores_of_all
from topksvm.solvers._steps import make_scratch

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Certificate:
    """What is proven about a model: its objective lies within `gap` of the optimum.

    Attributes
    ----------
    primal, dual : float
        The objective of the model, and a lower bound on the optimum.

    Examples
    --------
    >>> from topksvm.solvers import Certificate
    >>> certificate = Certificate(primal=10.0, dual=9.5)
    >>> certificate.gap, certificate.relative_gap
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

    @property
    def gap(self) -> float:
        """``primal - dual``."""
        return self.primal - self.dual

    @property
    def relative_gap(self) -> float:
        """``gap / max(|primal|, |dual|)``, and 0 if both are 0."""
        size = max(abs(self.primal), abs(self.dual))
        return self.gap / size if size else 0.0


def rebuild_weights(problem: Any, duals: Any) -> Floats:
    """Return ``sum_i a_i x_i'`` in float64, in the layout of the rows."""
    weights = np.zeros(problem.shape)
    for rows, examples, part in problem.pieces(duals):
        sum_outer_products(rows, examples, part, weights)
    return weights


BLOCK_ENTRIES = 1 << 19
"""Entries of the rows, or of their scores, in a block that is held in float64."""

MOST_BLOCKS = 8
"""Blocks that are held at the same time, by a thread each."""

SCALES = 1.0 + np.array([0.0, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2])
"""Factors of the weights among which the best is certified.

Where the classes can be separated, weights close to the optimum violate the margins by a little,
which costs `C` times that little. Weights that are larger by a little do not.
"""


def certify(
    loss: Any,
    problem: Any,
    duals: Any,
    weights: Floats,
    exact: Floats | None,
    scales: Floats = SCALES,
) -> tuple[Certificate, Floats, Floats]:
    """Return a certificate, and the weights that it is for: the best of `scales` times `weights`.

    `exact` are the weights that belong to the duals. They are returned, too, and where they are not
    known yet, they are rebuilt in the same reading of the rows.
    """
    squares = 0.5 * float(np.vdot(wide := weights.astype(np.float64), wide))
    if exact is None:
        exact = np.zeros(problem.shape)
        losses = sums_of_losses(loss, problem, duals, wide, scales, rebuilt=exact)
    else:
        losses = sums_of_losses(loss, problem, duals, wide, scales)
    best = int(np.argmin(scales**2 * squares + losses))
    primal = squares + float(losses[0])
    if best > 0:
        larger = (scales[best] * wide).astype(weights.dtype)
        wide = larger.astype(np.float64)
        # Again, as the larger weights are rounded: exactly those that the user gets are judged.
        again = sums_of_losses(loss, problem, duals, wide, scales[:1])
        value = 0.5 * float(np.vdot(wide, wide)) + float(again[0])
        if value < primal:
            primal, weights = value, larger
    dual = sum_of_dual_values(loss, problem.examples, duals) - 0.5 * float(np.vdot(exact, exact))
    certificate = Certificate(primal, dual)
    if certificate.relative_gap < -1e-9:
        raise RuntimeError(
            f"The duality gap is negative: primal {primal!r} is below dual {dual!r}. This is a bug "
            "in topksvm; please report it with the data."
        )
    return certificate, weights, exact


def sums_of_losses(
    loss: Any,
    problem: Any,
    duals: Any,
    weights: Floats,
    scales: Floats,
    rebuilt: Floats | None = None,
) -> Floats:
    """Return the weighted sum of the losses for each of `scales` times the weights.

    Add ``sum_i a_i x_i'`` to `rebuilt`, if it is there.
    """
    totals = np.zeros(scales.size)
    for rows, examples, part in problem.pieces(duals):
        if rebuilt is not None:
            sum_outer_products(rows, examples, part, rebuilt)
        if isinstance(rows, DenseRows):
            totals += _losses_dense(loss, rows, examples, weights, scales)
        else:
            scratch = make_scratch(weights.shape[1], weights.dtype)
            add_losses_sparse(loss, rows, examples, weights, scales, totals, scratch)
    return totals


def _losses_dense(
    loss: Any, rows: DenseRows, examples: Any, weights: Floats, scales: Floats
) -> Floats:
    """Return the sums of the losses of all rows, block by block, several at a time.

    The blocks do not depend on the number of threads, so neither do the sums.
    """
    n = examples.labels.size
    block = max(1, min(n, BLOCK_ENTRIES // max(weights.shape)))

    def losses_from(start: int) -> Floats:
        stop, totals = min(start + block, n), np.zeros(scales.size)
        x = np.empty((stop - start, weights.shape[1]))
        gather_rows(rows, start, stop, x)
        scratch = make_scratch(weights.shape[0], weights.dtype)
        add_losses(loss, start, x @ weights.T, examples, scales, totals, scratch)
        return totals

    starts = range(0, n, block)
    threads = min(certificate_threads(), len(starts))
    if threads <= 1:
        return np.sum([losses_from(start) for start in starts] or [np.zeros(scales.size)], axis=0)
    # Threads of BLAS would go on looking for work while the next pass wants the processors.
    with blas_limit(1), ThreadPoolExecutor(threads) as pool:
        return np.sum(list(pool.map(losses_from, starts)), axis=0)


def certificate_threads() -> int:
    """Return the number of threads that certify, each with a block of widened rows."""
    return min(n_threads(), MOST_BLOCKS)


@kernel
def add_losses(loss, first, scores, examples, scales, totals, scratch):
    """Add the weighted losses of the examples from `first` on at each scale of their `scores`."""
    scores, examples, scratch = borrow(scores), borrow(examples), borrow(scratch)
    scales, totals = borrow(scales), borrow(totals)
    for b in range(scores.shape[0]):
        add_loss(loss, first + b, scores[b], examples, scales, totals, scratch)


@inlined_kernel
def add_loss(loss, i, scores, examples, scales, totals, scratch):
    """Add the weighted loss of example `i`; its scores are overwritten."""
    C, last, label = examples.C[i], scores.size - 1, examples.labels[i]
    if C == 0.0:
        return
    base = scores[label]
    scores[label] = scores[last]
    row = scratch.row[:last]
    for s in range(scales.size):
        for j in range(last):
            row[j] = scales[s] * scores[j]
        loss_value = value(loss, row, scales[s] * base, scratch.lanes, scratch.c, scratch.ranked)
        totals[s] += C * loss_value


@kernel
def add_losses_sparse(loss, rows, examples, weights, scales, totals, scratch):
    """Add the weighted losses of all examples, sparse rows, at each scale of the weights."""
    rows, examples, scratch = borrow(rows), borrow(examples), borrow(scratch)
    weights, scales, totals = borrow(weights), borrow(scales), borrow(totals)
    scores = np.empty(weights.shape[1])
    for i in range(examples.labels.size):
        if examples.C[i] != 0.0:
            scores_of_all(rows, weights, i, scores, scores)
            add_loss(loss, i, scores, examples, scales, totals, scratch)


@kernel
def sum_of_dual_values(loss, examples, duals):
    """Return the loss part of the dual objective."""
    examples, duals = borrow(examples), borrow(duals)
    total = 0.0
    for i in range(examples.labels.size):
        count = duals.count[i]
        if count > 0:
            values = duals.values[duals.start[i] : duals.start[i] + count]
            total += dual_value(loss, values, count, examples.C[i])
    return total


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
