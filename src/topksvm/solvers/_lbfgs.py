"""Smooth losses by L-BFGS on the primal, with the same certificate.

The gradient ``g_i`` of ``C_i phi`` at the current scores is a feasible dual point up to its sign,
so one evaluation of the objective gives the dual objective too: with ``x_i = C_i phi'(h_i)`` and
``W_A = sum_i a_i x_i' = W - grad P``, ``D = sum_i dual_value(x_i) - 1/2 ||W_A||^2``.

Where it pays, the minimiser works in the coordinates of :mod:`topksvm.solvers._metric`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm._clock import Clock
from topksvm._interrupts import raise_if_abandoned, raise_if_stopped
from topksvm._numba import borrow, kernel, summing_kernel
from topksvm._threads import map_parts
from topksvm.data import Problem
from topksvm.losses import dual_value, gradient, make_feasible
from topksvm.solvers._certificate import Certificate, make_certificate, size_of
from topksvm.solvers._metric import Metric, make_metric, sum_of_squares
from topksvm.solvers._products import make_products
from topksvm.solvers._quasi_newton import minimise
from topksvm.solvers._rounding import (
    DualSums,
    Slack,
    largest_norm,
    lower_bound,
    slack_of_margins,
    upper_bound,
)
from topksvm.solvers._run import Estimate, Stopping
from topksvm.solvers._steps import make_scratch

Floats = NDArray[np.floating[Any]]


TINY_SHARE = 1e-30


NO_SLACK = Slack(0.0, 0.0)
"""For evaluations that prove nothing."""

SMALL_BLOCK = 1 << 22
"""Multiplications in the scores of a block below which another thread does not pay."""

PARTS = 8
"""Parts of a block whose scores threads compute side by side."""

LEAST_PART = 256
"""Examples of a part at least: below that, products are slower."""


class Objective:
    """The primal objective with its gradient, and the dual objective at the same point.

    Parameters
    ----------
    loss : Loss
        A smooth one.
    problem : Problem
        Rows in memory, dense or sparse.

    Attributes
    ----------
    n_evaluations : int
        How often it was evaluated.

    Examples
    --------
    >>> import numpy as np
    >>> from topksvm.data import make_problem
    >>> from topksvm.losses import Softmax
    >>> from topksvm.solvers import Objective
    >>> problem = make_problem(np.eye(4), np.array([0, 1, 2, 2]), np.ones(4), 3)
    >>> objective = Objective(Softmax(), problem)
    >>> found, gradient = objective.evaluate(np.zeros((3, 4)))
    >>> print(f"{found.primal:.4f}, {4 * np.log(3):.4f}")
    4.3944, 4.3944
    >>> objective.prove(np.zeros((3, 4))).relative_gap < 1
    True
    """

    def __init__(self, loss: Any, problem: Problem) -> None:
        self.loss = loss
        self.problem = problem
        self.products = make_products(problem)
        self.n_evaluations = 0

    def evaluate(self, weights: Floats) -> tuple[Certificate, Floats]:
        """Return primal and dual objective, not proven, and the gradient at `weights`.

        Computed in the precision of `weights`; sums over examples are float64.

        Parameters
        ----------
        weights : ndarray of shape (m, d)
            Those of the classes.

        Returns
        -------
        found : Certificate
            The two objectives.
        gradient : ndarray of shape (m, d)
            That of the primal objective.
        """
        sums, loss_gradient = self._sweep(weights, NO_SLACK)
        primal = 0.5 * sum_of_squares(weights) + float(sums[0])
        dual = float(sums[1]) - 0.5 * sum_of_squares(loss_gradient)
        loss_gradient += weights
        return Certificate(primal, dual), loss_gradient

    def prove(self, weights: Floats) -> Certificate:
        """Return a certificate: float64, duals made feasible, with bounds on all rounding.

        Parameters
        ----------
        weights : ndarray of shape (m, d)
            Those of the classes.

        Returns
        -------
        Certificate
            What is proven about them.
        """
        wide, size = weights.astype(np.float64), size_of(self.problem)
        largest, square = largest_norm(wide, 1)
        slack = slack_of_margins(size.d, size.m, largest)
        sums, loss_gradient = self._sweep(wide, slack)
        losses, total, margins, magnitude, mass = sums.tolist()
        primal = upper_bound(square, losses, margins, size)
        dual_square = largest_norm(loss_gradient, 1)[1]
        dual = lower_bound(DualSums(total, magnitude, mass), dual_square, size)
        return make_certificate(primal, dual)

    def _sweep(self, weights: Floats, slack: Slack) -> tuple[Floats, Floats]:
        """Return the sums of :func:`differentiate`, and the gradient of the loss."""
        problem, products, dtype = self.problem, self.products, weights.dtype
        loss_gradient = self._in_layout(np.zeros(problem.shape, dtype))
        sums = np.zeros(5)
        is_zero = not weights.any()  # Where most runs start.
        prepared = None if is_zero else products.prepared(weights)
        block = products.block if dtype == problem.dtype else products.wide_block
        check = raise_if_stopped if slack is NO_SLACK else raise_if_abandoned
        for start in range(0, problem.n, block):
            check()
            stop = min(start + block, problem.n)
            scores = np.empty((stop - start, problem.m), dtype)
            sums += self._differentiate(prepared, start, scores, slack)
            # The scores have become the derivatives by them.
            back = products.add_back_from_zero if is_zero else products.add_back
            back(scores, start, stop, loss_gradient)
        self.n_evaluations += 1
        return sums, loss_gradient

    def _differentiate(
        self, weights: Floats | None, first: int, scores: Floats, slack: Slack
    ) -> Floats:
        """Fill in the scores of a block, then replace them by derivatives; return the sums."""
        problem = self.problem

        def work(i: int, j: int) -> Floats:
            part, sums = scores[i:j], np.zeros(5)
            if weights is None:
                part[...] = 0.0
            else:
                self.products.scores(weights, first + i, first + j, part)
            scratch = make_scratch(problem.m, scores.dtype)
            differentiate(self.loss, part, first + i, problem.examples, scratch, slack, sums)
            return sums

        rows = len(scores)
        is_small = rows * self.products.row_size < SMALL_BLOCK
        part = rows if is_small else max(LEAST_PART, -(-rows // PARTS))
        return sum(map_parts(work, rows, part), np.zeros(5))

    def curvature(self, direction: Floats) -> float:
        """Return that along `direction` of the primal objective for softmax at zero weights.

        That of the loss is ``p (1 - p)`` for each class, with ``p = 1 / m``.
        """
        prepared = self.products.prepared(direction)

        def work(start: int, stop: int) -> float:
            slopes = np.empty((stop - start, self.problem.m), direction.dtype)
            self.products.scores(prepared, start, stop, slopes)
            squares = np.einsum("ij,ij->i", slopes, slopes, dtype=np.float64)
            return float(self.problem.examples.C[start:stop] @ squares)

        part = max(LEAST_PART, -(-self.products.block // PARTS))
        total = sum(map_parts(work, self.problem.n, part))
        return sum_of_squares(direction) + total / self.problem.m

    def flat(self, weights: Floats) -> Floats:
        """Return the weights ``(m, d)`` as a vector, in the order that suits the rows."""
        return self._in_layout(weights).ravel()

    def unflat(self, vector: Floats) -> Floats:
        """Return the weights ``(m, d)`` for a vector, without a copy."""
        return self._in_layout(vector.reshape(self.problem.shape))

    def _in_layout(self, weights: Floats) -> Floats:
        return weights.T if self.problem.is_sparse else weights


@kernel
def differentiate(loss, scores, first, examples, scratch, slack, sums):
    """Replace the scores of examples from `first` on by the derivatives of ``C_i phi`` by them.

    Add to `sums`: the losses, the dual values at the derivatives, and for a proof, which has a
    slack, by how much that may have raised the losses, and the last two of :class:`DualSums`.

    For a proof the dual values follow their definition, at derivatives made feasible. Otherwise
    they follow from the equality ``phi(h) + omega(b) = <h, b>`` at ``b = phi'(h)``, which needs no
    logarithms but trusts the derivative.
    """
    scores, examples, scratch = borrow(scores), borrow(examples), borrow(scratch)
    last = scores.shape[1] - 1
    out = scratch.work.values
    for b in range(scores.shape[0]):
        i = first + b
        C, label = examples.C[i], examples.labels[i]
        if C == 0.0:
            scores[b, :] = 0.0
            continue
        norm = math.sqrt(examples.norms[i])
        error = slack.unit * (1.0 + slack.size * norm)
        base = np.float64(scores[b, label]) - error
        scores[b, label] = scores[b, last]
        row = scores[b, :last]
        loss_value = C * gradient(loss, row, base, out, scratch.work)
        total, linear = weigh(row, base, C, out)
        sums[0] += loss_value
        if slack.unit > 0.0:
            make_feasible(loss, out, last, C)
            total = copy_and_sum(out, row)
            worth = dual_value(loss, out, last, C)
            sums[1] += worth
            sums[2] += C * error
            sums[3] += abs(worth) + 2.0 * total
            sums[4] += norm * total
        else:
            sums[1] += loss_value - linear
        scores[b, last] = out[label] if label < last else -total
        scores[b, label] = -total


@kernel
def copy_and_sum(values, row):
    """Copy the first `values` to `row`; return their sum."""
    total = 0.0
    for j in range(row.size):
        row[j] = values[j]
        total += values[j]
    return total


@summing_kernel
def weigh(row, base, C, out):
    """Replace the derivatives of the loss in `out` by those of `C` times it, and the scores too.

    Return the sum of them, and of each times its score less `base`.
    """
    total, linear = 0.0, 0.0
    for j in range(row.size):
        # Numbers below the normal ones are no use and slow down the products.
        x = C * out[j] if out[j] > TINY_SHARE else 0.0
        linear += x * (np.float64(row[j]) - base)
        total += x
        out[j] = x
        row[j] = x
    return total, linear


class LBFGS:
    """The solver for smooth losses; see :class:`~topksvm.solvers.Solver`.

    Parameters
    ----------
    loss : loss
        A smooth one.
    problem : Problem
        Rows in memory.
    weights : ndarray of shape (m, d), optional
        Where to start; zero by default.
    """

    def __init__(self, loss: Any, problem: Problem, weights: Floats | None = None) -> None:
        self.clock = Clock()
        self.objective = Objective(loss, problem)
        self.problem = problem
        shape = (problem.m, problem.d)
        self.start = np.zeros(shape) if weights is None else weights.astype(np.float64)
        self.duals = None  # They follow from the weights.
        self.metric: Any = None
        self.first: tuple[Certificate, Floats] | None = None
        self.last: tuple[Certificate, Floats] | None = None
        self.best: tuple[float, Floats] | None = None
        self.best_dual = -np.inf
        self.points: Iterator[None] = self._points()

    @property
    def n_passes(self) -> int:
        """Evaluations of the objective."""
        return self.objective.n_evaluations

    def _points(self) -> Iterator[None]:
        self.metric = make_metric(self.problem)
        start = self._coordinates(self.start)
        yield from minimise(self._evaluate, start, self._first_step())

    def update(self, stopping: Stopping) -> Estimate:
        """Evaluate the objective at the next point."""
        try:
            next(self.points)
        except StopIteration:
            return Estimate(self._estimate.relative_gap, should_certify=True, is_stuck=True)
        assert self.last is not None
        found, weights = self.last
        if found.is_within(stopping.tol):  # What is proven is the bound of this point.
            self.best = found.primal, weights.copy(order="K")
        return Estimate(self._estimate.relative_gap, found.is_within(stopping.tol))

    @property
    def _estimate(self) -> Certificate:
        """The value of the last point, and the best dual bound, which holds whatever the point."""
        assert self.last is not None
        return Certificate(self.last[0].primal, self.best_dual)

    def certify(self) -> tuple[Floats, Certificate]:
        """Certify the best weights so far; without any there can be no result."""
        if self.best is None:
            raise KeyboardInterrupt
        weights = self.best[1]
        certificate = self.objective.prove(weights)
        return np.array(weights, order="C"), certificate

    def _first_step(self) -> float:
        """Return the length of the first step along the gradient.

        It is the best one if all classes are alike, as they are at weights of zero.
        """
        self.first = self.objective.evaluate(self.start.astype(self.problem.dtype))
        gradient = self.first[1]
        slope = gradient if self.metric is None else self.metric.gradient(gradient)
        direction = slope if self.metric is None else self.metric.weights(slope)
        if isinstance(self.metric, Metric):  # It knows, and spares a product.
            curvature = self.metric.curvature(direction, slope)
        else:
            curvature = self.objective.curvature(direction)
        return sum_of_squares(slope) / curvature if 0.0 < curvature < np.inf else 1.0

    def _coordinates(self, weights: Floats) -> Floats:
        if self.metric is None or not weights.any():
            return self.objective.flat(weights)
        return self.objective.flat(self.metric.coordinates(weights))

    def _weights(self, flat: Floats) -> Floats:
        coordinates = self.objective.unflat(flat.astype(self.problem.dtype, copy=False))
        return coordinates if self.metric is None else self.metric.weights(coordinates)

    def _evaluate(self, flat: Floats) -> tuple[float, Floats]:
        weights = self._weights(flat)
        found, grad = self.first or self.objective.evaluate(weights)
        self.first, self.last = None, (found, weights)
        self.best_dual = max(self.best_dual, found.dual)
        if self.best is None or found.primal <= self.best[0]:
            self.best = found.primal, weights.copy(order="K")
        if self.metric is not None:
            grad = self.metric.gradient(grad)
        return found.primal, self.objective.flat(grad)
