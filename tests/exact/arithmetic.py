"""The objective and the dual objective of a problem in exact arithmetic."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from flint import arb, fmpq, fmpq_mat

from exact.values import (
    ENTROPIES,
    ONE,
    ZERO,
    Interval,
    entropy,
    entropy_duals,
    hinge,
    make_feasible,
    project,
    rational_ends,
    smoothed_hinge,
    xlogx,
)


def rational(value: float) -> fmpq:
    """Return a float as it is."""
    return fmpq(*float(value).as_integer_ratio())


def rational_matrix(array) -> fmpq_mat:
    """Return a matrix of floats as it is."""
    rows, columns = array.shape
    return fmpq_mat(rows, columns, [rational(v) for v in array.ravel().tolist()])


class ExactProblem:
    """``min_W 1/2 ||W||^2 + sum_i C_i phi(h_i)``, all numbers rational.

    Weights are matrices of shape (m, d), with a column for the bias if there is one; duals are
    lists of the m - 1 variables of each example, in the order of its wrong classes.
    """

    def __init__(self, X, y, loss, C, *, k=1, smoothing=0.0, n_classes=None, bias=0.0):
        X = X.toarray() if sp.issparse(X) else np.asarray(X)
        if bias:
            X = np.column_stack([X.astype(np.float64), np.full(len(X), float(bias))])
        self.rows = rational_matrix(X)
        self.y = [int(label) for label in y]
        self.m = n_classes or max(self.y) + 1
        self.loss, self.k, self.gamma = loss, k if loss != "softmax" else 1, rational(smoothing)
        self.C = [rational(v) for v in np.broadcast_to(np.asarray(C, float), len(X))]
        self.margin = ZERO if loss in ENTROPIES else ONE

    def wrong(self, i: int) -> list[int]:
        """Return the wrong classes of an example."""
        return [j for j in range(self.m) if j != self.y[i]]

    def margins(self, W: fmpq_mat) -> list[list[fmpq]]:
        """Return ``h_i`` of all examples."""
        scores = self.rows * W.transpose()
        return [
            [scores[i, j] - scores[i, label] + self.margin for j in self.wrong(i)]
            for i, label in enumerate(self.y)
        ]

    def primal(self, W: fmpq_mat) -> Interval:
        """Return the objective at `W`; the two ends are equal for the hinges."""
        ridge = sum((v * v for v in W.entries()), ZERO) / 2
        terms = [(c, h) for c, h in zip(self.C, self.margins(W), strict=True) if c]
        if self.loss in ENTROPIES:
            total = sum((arb(c) * entropy(h, self.k) for c, h in terms), arb(ridge))
            return rational_ends(total)
        value = ridge + sum((c * self._hinge(h) for c, h in terms), ZERO)
        return Interval(value, value)

    def _hinge(self, h):
        if self.gamma:
            return smoothed_hinge(self.loss, h, self.k, self.gamma)
        return hinge(self.loss, h, self.k)

    def weights(self, duals: list[list[fmpq]]) -> fmpq_mat:
        """Return ``W = sum_i a_i x_i^T``."""
        a = fmpq_mat(self.m, len(self.y))
        for i, x in enumerate(duals):
            for j, v in zip(self.wrong(i), x, strict=True):
                a[j, i] = -v
            a[self.y[i], i] = sum(x, ZERO)
        return a * self.rows

    def dual(self, duals: list[list[fmpq]]) -> Interval:
        """Return the dual objective at feasible duals."""
        value = -sum((v * v for v in self.weights(duals).entries()), ZERO) / 2
        if self.loss in ENTROPIES:
            terms = (self._conjugate(c, x) for c, x in zip(self.C, duals, strict=True) if c)
            return rational_ends(arb(value) - sum(terms, arb(0)))
        for c, x in zip(self.C, duals, strict=True):
            value += sum(x, ZERO)
            if self.gamma and c:
                value -= self.gamma * sum((v * v for v in x), ZERO) / (2 * c)
        return Interval(value, value)

    def _conjugate(self, c, x):
        """Return ``C (sum b log b + (1 - S) log(1 - S))`` at ``b = x / C``."""
        b = [v / c for v in x]
        return arb(c) * sum((xlogx(arb(v)) for v in [*b, ONE - sum(b, ZERO)]), arb(0))

    def duals(self, stored) -> tuple[list[list[fmpq]], float]:
        """Return the duals of a result, made feasible, and by how much of C they were not."""
        duals, worst = [], 0.0
        for i, c in enumerate(self.C):
            x = _dense(stored, i, self.wrong(i))
            near = make_feasible(self.loss, x, self.k, c)
            if near is not x:
                move = max(abs(a - b) for a, b in zip(x, near, strict=True))
                worst = max(worst, _ratio(move, c))
            duals.append(near)
        return duals, worst

    def gradient_duals(self, W: fmpq_mat) -> list[list[fmpq]]:
        """Return the feasible duals ``C_i grad phi`` at `W`; the loss must be smooth."""
        found = []
        for c, h in zip(self.C, self.margins(W), strict=True):
            if self.loss in ENTROPIES:
                b = entropy_duals(h, self.k)
            else:
                b = [v / self.gamma for v in project(self.loss, h, self.k, self.gamma)]
            found.append([c * v for v in b])
        return found


def _dense(stored, i, wrong):
    begin = int(stored.start[i])
    end = begin + int(stored.count[i])
    at = dict(
        zip(stored.classes[begin:end].tolist(), stored.values[begin:end].tolist(), strict=True)
    )
    x = [rational(at.pop(j, 0.0)) for j in wrong]
    if at:
        raise AssertionError(f"example {i} has duals of classes that are not wrong: {at}")
    return x


def _ratio(part, whole):
    return float(fmpq_float(part / whole)) if whole else (float("inf") if part else 0.0)


def fmpq_float(value: fmpq) -> float:
    """Return the nearest float, or nearly."""
    return float(arb(value))
