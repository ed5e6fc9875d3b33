"""TopPush on few of the negatives, by accelerated projected gradients.

The dual has a block for every class, as examples that stand for different classes have nothing in
common in the reduction: with ``z`` the positives of the class and the negatives, those with a
minus, ``w_c = sum_i x_i z_i``, and only the sum of all variables ties the classes together.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from topksvm.baselines._equal_sums import project_equal_sums

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

CHECK_EVERY = 10
"""Steps between two looks at the gap, which costs about as much as a step without its products."""


class Block:
    """The variables of one class: the operator ``x -> Z Z' x``."""

    def __init__(self, X: Any, positives: Indices, negatives: Indices) -> None:
        self.signs = np.repeat([1.0, -1.0], [positives.size, negatives.size])
        rows = X[np.concatenate([positives, negatives])]
        # Two products with the rows cost less than one with a large Gram matrix.
        self.rows: Any = rows if self.signs.size > 2 * X.shape[1] else None
        self.gram = self._gram(rows) if self.rows is None else None

    def _gram(self, rows: Any) -> Floats:
        gram = rows @ rows.T
        gram = gram.toarray() if sp.issparse(gram) else gram
        gram *= self.signs
        gram *= self.signs[:, None]
        return gram

    def products(self, x: Floats) -> Floats:
        """Return ``Z Z' x``, the scores of the examples times their signs."""
        if self.gram is not None:
            return self.gram @ x
        return self.signs * (self.rows @ (self.rows.T @ (self.signs * x)))

    def largest_eigenvalue(self, n_iter: int = 10) -> float:
        """Return about the largest eigenvalue, from below; steps that are too long are noticed."""
        x, value = np.ones(self.signs.size), 0.0
        for _ in range(n_iter):
            y = self.products(x)
            size = float(np.linalg.norm(y))
            if size == 0.0:
                break
            value = size / float(np.linalg.norm(x))
            x = y / size
        return value


class Restricted:
    """The dual ``<1, alpha> - <alpha, alpha> / (4 C) - 1/2 ||w||^2`` of some classes.

    Parameters
    ----------
    blocks : list of Block
        The classes.
    C : float
        The weight of the losses.
    """

    def __init__(self, blocks: list[Block], C: float) -> None:
        self.blocks, self.C = blocks, C
        self.signs = np.concatenate([block.signs for block in blocks])
        sizes = [block.signs.size for block in blocks]
        self.bounds = np.concatenate([[0], np.cumsum(sizes)])
        self.positive = self.signs > 0.0
        self.linear = self.positive.astype(np.float64)
        self.ridge = self.linear / (2.0 * C)
        # Steps of each class by its own curvature. The floor is for rows of zeros.
        curvature = np.repeat([block.largest_eigenvalue() for block in blocks], sizes)
        self.metric = np.maximum(curvature + self.ridge, 1e-6 / C)

    def products(self, x: Floats) -> Floats:
        """Return the scores of all examples times their signs."""
        result = np.empty(x.size)
        for block, start, stop in zip(self.blocks, self.bounds, self.bounds[1:], strict=False):
            result[start:stop] = block.products(x[start:stop])
        return result

    def relative_gap(self, x: Floats, products: Floats) -> float:
        """Return the relative duality gap if there were no other negatives."""
        squares = 0.5 * float(x @ products)
        ceiling = float(np.max(-products[~self.positive]))
        losses = np.maximum(1.0 + ceiling - products[self.positive], 0.0)
        primal = squares + self.C * float(losses @ losses)
        dual = float(x @ self.linear) - 0.5 * float(x @ (self.ridge * x)) - squares
        return (primal - dual) / max(primal, abs(dual)) if primal > 0.0 else 0.0


class Point(NamedTuple):
    """Dual variables and what they give."""

    x: Floats
    products: Floats


def ascend(problem: Restricted, x: Floats, tol: float, max_iter: int) -> tuple[Floats, int]:
    """Return dual variables with a relative gap of `tol` from `x` on, and the number of steps.

    Nesterov's method with the step length found by trial, and a new start of the momentum when it
    points the wrong way: B. O'Donoghue, E. Candès, "Adaptive Restart for Accelerated Gradient
    Schemes", 2015.
    """
    now = last = Point(x, problem.products(x))
    momentum, curvature = 1.0, 1.0
    for step in range(max_iter):
        if step % CHECK_EVERY == 0 and problem.relative_gap(*now) <= tol:
            return now.x, step
        following = 0.5 + np.sqrt(0.25 + momentum * momentum)
        ahead = _beyond(now, last, (momentum - 1.0) / following)
        new, curvature = _step(problem, ahead, 0.95 * curvature)
        wrong_way = float((ahead.x - new.x) @ (problem.metric * (new.x - now.x))) > 0.0
        momentum, last, now = (1.0, new, new) if wrong_way else (following, now, new)
    return now.x, max_iter


def _beyond(now: Point, last: Point, factor: float) -> Point:
    return Point(
        now.x + factor * (now.x - last.x),
        now.products + factor * (now.products - last.products),
    )


def _step(problem: Restricted, ahead: Point, curvature: float) -> tuple[Point, float]:
    """Return the projected gradient step from `ahead`, and the curvature that it was taken with."""
    gradient = ahead.products + problem.ridge * ahead.x - problem.linear
    while True:
        metric = curvature * problem.metric
        x = project_equal_sums(ahead.x - gradient / metric, problem.signs, metric)
        new = Point(x, problem.products(x))
        change = x - ahead.x
        found = float(change @ (new.products - ahead.products + problem.ridge * change))
        # The second part: rounding, when there is next to no change any more.
        if found <= float(change @ (metric * change)) * (1.0 + 1e-9) or curvature > 1e6:
            return new, curvature
        curvature *= 1.5
