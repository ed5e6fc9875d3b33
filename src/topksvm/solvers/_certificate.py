"""The duality gap, in float64: the only judge of convergence.

For a model with weights ``V`` and duals ``A`` with ``W = sum_i a_i x_i'``::

    P = 1/2 ||V||^2 + sum_i C_i phi(h_i)
    D = sum_i [margin <1, x_i> - C_i omega(x_i / C_i)] - 1/2 ||W||^2

``W`` is rebuilt from the duals, so rounding that has crept into the weights during training cannot
flatter the gap, and ``V`` is exactly what the user gets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm._numba import kernel
from topksvm.losses._contract import dual_value, value
from topksvm.solvers._rows import DenseRows, add_row, gather_rows, scores_of_all

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Certificate:
    """What is proven about a model: its objective lies within `gap` of the optimum.

    Attributes
    ----------
    primal, dual : float
        The objective of the model, and a lower bound on the optimum.
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


def rebuild_weights(rows: Any, examples: Any, duals: Any, shape: tuple[int, int]) -> Floats:
    """Return ``sum_i a_i x_i'`` in float64, in the layout of the rows."""
    weights = np.zeros(shape)
    sum_outer_products(rows, examples, duals, weights)
    return weights


def certify(
    loss: Any, rows: Any, examples: Any, duals: Any, weights: Floats, exact: Floats, scratch: Any
) -> Certificate:
    """Return the certificate of `weights`, given the weights `exact` that belong to the duals."""
    wide = weights.astype(np.float64, copy=False)
    losses = _sum_of_losses(loss, rows, examples, wide, scratch)
    primal = 0.5 * float(np.vdot(wide, wide)) + losses
    dual = sum_of_dual_values(loss, examples, duals) - 0.5 * float(np.vdot(exact, exact))
    certificate = Certificate(primal, dual)
    if certificate.relative_gap < -1e-9:
        raise RuntimeError(
            f"The duality gap is negative: primal {primal!r} is below dual {dual!r}. This is a bug "
            "in topksvm; please report it with the data."
        )
    return certificate


def _sum_of_losses(loss: Any, rows: Any, examples: Any, weights: Floats, scratch: Any) -> float:
    n = examples.labels.size
    if not isinstance(rows, DenseRows):
        return float(sum_of_losses_sparse(loss, rows, examples, weights, scratch))
    block = max(1, min(n, (1 << 22) // max(weights.shape)))
    x = np.empty((block, weights.shape[1]))
    total = 0.0
    for start in range(0, n, block):
        stop = min(start + block, n)
        gather_rows(rows, start, stop, x)
        scores = x[: stop - start] @ weights.T
        total += sum_of_losses(loss, start, scores, examples, scratch)
    return total


@kernel
def sum_of_losses(loss, first, scores, examples, scratch):
    """Return the weighted sum of the losses of the examples from `first` on from their scores."""
    total = 0.0
    last = scores.shape[1] - 1
    for b in range(scores.shape[0]):
        i = first + b
        if examples.C[i] == 0.0:
            continue
        label = examples.labels[i]
        base = scores[b, label]
        scores[b, label] = scores[b, last]
        total += examples.C[i] * value(
            loss, scores[b, :last], base, scratch.lanes, scratch.c, scratch.ranked
        )
    return total


@kernel
def sum_of_losses_sparse(loss, rows, examples, weights, scratch):
    """Return the weighted sum of the losses of all examples."""
    total = 0.0
    last = weights.shape[1] - 1
    scores = np.empty(last + 1)
    for i in range(examples.labels.size):
        if examples.C[i] == 0.0:
            continue
        scores_of_all(rows, weights, i, scores)
        label = examples.labels[i]
        base = scores[label]
        scores[label] = scores[last]
        total += examples.C[i] * value(
            loss, scores[:last], base, scratch.lanes, scratch.c, scratch.ranked
        )
    return total


@kernel
def sum_of_dual_values(loss, examples, duals):
    """Return the loss part of the dual objective."""
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
    for i in range(examples.labels.size):
        total = 0.0
        for p in range(duals.start[i], duals.start[i] + duals.count[i]):
            add_row(rows, weights, i, duals.classes[p], -duals.values[p])
            total += duals.values[p]
        if total != 0.0:
            add_row(rows, weights, i, examples.labels[i], total)
