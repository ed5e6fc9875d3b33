"""Smooth losses by L-BFGS on the primal, with the same certificate.

The gradient ``g_i`` of ``C_i phi`` at the current scores is a feasible dual point up to its sign,
so one evaluation of the objective gives the dual objective too: with ``x_i = C_i phi'(h_i)`` and
``W_A = sum_i a_i x_i' = W - grad P``, ``D = sum_i dual_value(x_i) - 1/2 ||W_A||^2``.

Where it pays, the minimiser works in the coordinates of :mod:`topksvm.solvers._metric`.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm._numba import borrow, kernel, summing_kernel
from topksvm._threads import map_row_ranges
from topksvm.losses._contract import dual_value, gradient
from topksvm.solvers._certificate import Certificate
from topksvm.solvers._metric import Metric, make_metric, sum_of_squares
from topksvm.solvers._problem import Problem
from topksvm.solvers._products import make_products
from topksvm.solvers._quasi_newton import minimise
from topksvm.solvers._result import Check, Result, Status
from topksvm.solvers._steps import make_scratch

Floats = NDArray[np.floating[Any]]


TINY_SHARE = 1e-30


class _Stop(Exception):  # noqa: N818
    """Leave the minimiser, which has no other way out."""


class Objective:
    """The primal objective with its gradient, and the dual objective at the same point."""

    def __init__(self, loss: Any, problem: Problem) -> None:
        self.loss = loss
        self.problem = problem
        self.products = make_products(problem)
        self.n_evaluations = 0

    def evaluate(self, weights: Floats, *, is_proof: bool = False) -> tuple[Certificate, Floats]:
        """Return primal and dual objective and the gradient at `weights` ``(m, d)``.

        Computed in the precision of `weights`; sums over examples are float64. For a proof, the
        dual objective follows its definition.
        """
        problem, products, dtype = self.problem, self.products, weights.dtype
        losses, duals = 0.0, 0.0
        loss_gradient = self._in_layout(np.zeros(problem.shape, dtype))
        is_zero = not weights.any()  # Where most runs start.
        block = products.block if dtype == problem.dtype else products.wide_block
        for start in range(0, problem.n, block):
            stop = min(start + block, problem.n)
            if is_zero:
                scores = np.zeros((stop - start, problem.m), dtype)
            else:
                scores = products.scores(weights, start, stop)
            part = self._losses(start, stop, scores, is_proof)
            losses += part[0]
            duals += part[1]
            # The scores have become the derivatives by them.
            back = products.add_back_from_zero if is_zero else products.add_back
            back(scores, start, stop, loss_gradient)
        self.n_evaluations += 1
        primal = 0.5 * sum_of_squares(weights) + losses
        dual = duals - 0.5 * sum_of_squares(loss_gradient)
        loss_gradient += weights
        return Certificate(primal, dual), loss_gradient

    def curvature(self, direction: Floats) -> float:
        """Return that along `direction` of the primal objective for softmax at zero weights.

        That of the loss is ``p (1 - p)`` for each class, with ``p = 1 / m``.
        """
        total, block = 0.0, self.products.block
        for start in range(0, self.problem.n, block):
            stop = min(start + block, self.problem.n)
            slopes = self.products.scores(direction, start, stop)
            squares = np.einsum("ij,ij->i", slopes, slopes, dtype=np.float64)
            total += float(self.problem.examples.C[start:stop] @ squares)
        return sum_of_squares(direction) + total / self.problem.m

    def flat(self, weights: Floats) -> Floats:
        """Return the weights ``(m, d)`` as a vector, in the order that suits the rows."""
        return self._in_layout(weights).ravel()

    def unflat(self, vector: Floats) -> Floats:
        """Return the weights ``(m, d)`` for a vector, without a copy."""
        return self._in_layout(vector.reshape(self.problem.shape))

    def _in_layout(self, weights: Floats) -> Floats:
        return weights.T if self.problem.is_sparse else weights

    def _losses(self, start: int, stop: int, scores: Floats, is_proof: bool) -> tuple[float, float]:
        def work(i: int, j: int) -> tuple[float, float]:
            scratch = make_scratch(self.problem.m, scores.dtype)
            losses, duals = differentiate(
                self.loss, scores[i:j], start + i, self.problem.examples, scratch, is_proof
            )
            return float(losses), float(duals)

        parts = map_row_ranges(work, stop - start, 8 * self.problem.m)
        return sum(p[0] for p in parts), sum(p[1] for p in parts)


@kernel
def differentiate(loss, scores, first, examples, scratch, is_proof):
    """Replace the scores of examples from `first` on by the derivatives of ``C_i phi`` by them.

    Return the sum of the losses and of the dual values at the derivatives. The latter from their
    definition if it is for a proof, else by the equality ``phi(h) + omega(b) = <h, b>`` at
    ``b = phi'(h)``, which needs no logarithms but trusts the derivative.
    """
    scores, examples, scratch = borrow(scores), borrow(examples), borrow(scratch)
    losses, duals = 0.0, 0.0
    last = scores.shape[1] - 1
    out = scratch.values
    for b in range(scores.shape[0]):
        i = first + b
        C, label = examples.C[i], examples.labels[i]
        if C == 0.0:
            scores[b, :] = 0.0
            continue
        base = np.float64(scores[b, label])
        scores[b, label] = scores[b, last]
        row = scores[b, :last]
        loss_value = C * gradient(loss, row, base, out, scratch.lanes, scratch.c, scratch.ranked)
        total, linear = weigh(row, base, C, out)
        losses += loss_value
        duals += dual_value(loss, out, last, C) if is_proof else loss_value - linear
        scores[b, last] = out[label] if label < last else -total
        scores[b, label] = -total
    return losses, duals


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
    """One run of the solver."""

    def __init__(
        self,
        loss: Any,
        problem: Problem,
        *,
        tol: float,
        max_iter: int,
        max_time: float,
        weights: Floats | None = None,
    ) -> None:
        self.objective = Objective(loss, problem)
        self.problem = problem
        self.tol, self.max_iter, self.max_time = tol, max_iter, max_time
        shape = (problem.m, problem.d)
        self.start = np.zeros(shape) if weights is None else weights.astype(np.float64)
        self.metric = make_metric(problem)
        self.first: tuple[Certificate, Floats] | None = None
        self.history: list[Check] = []
        self.best: tuple[Certificate, Floats] | None = None
        self.best_dual = -np.inf
        self.start_time = time.perf_counter()
        self.report: Any = None
        self.status = Status.STALLED

    def run(self, report: Any = None) -> Result:
        """Run until the gap is within tol, or the budget is used up, or Ctrl-C."""
        self.report = report
        try:
            minimise(self._evaluate, self._coordinates(self.start), self._first_step())
        except _Stop:
            pass
        except KeyboardInterrupt:
            self.status = Status.INTERRUPTED
        return self._result()

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
        self.first = None
        # The best dual bound seen so far is a bound on the optimum, whatever the point.
        self.best_dual = max(self.best_dual, found.dual)
        certificate = Certificate(found.primal, self.best_dual)
        if self.best is None or certificate.primal <= self.best[0].primal:
            self.best = certificate, weights.copy(order="K")
        if self.report is not None:
            elapsed = time.perf_counter() - self.start_time
            self.report(self.objective.n_evaluations, elapsed, certificate.relative_gap)
        self._stop_if_done(found, weights)  # What is proven in the end is the bound of this point.
        if self.metric is not None:
            grad = self.metric.gradient(grad)
        return certificate.primal, self.objective.flat(grad)

    def _stop_if_done(self, certificate: Certificate, weights: Floats) -> None:
        if certificate.relative_gap <= self.tol and self._confirm(weights):
            self.status = Status.SOLVED
            raise _Stop
        if self.objective.n_evaluations >= self.max_iter:
            self.status = Status.MAX_ITER
            raise _Stop
        if time.perf_counter() - self.start_time >= self.max_time:
            self.status = Status.MAX_TIME
            raise _Stop

    def _confirm(self, weights: Floats) -> bool:
        """Certify `weights` in float64, and keep the certificate."""
        found, _ = self.objective.evaluate(weights.astype(np.float64), is_proof=True)
        self.best = found, weights.copy(order="K")
        self.history.append(
            Check(
                self.objective.n_evaluations,
                time.perf_counter() - self.start_time,
                found.primal,
                found.dual,
                found.gap,
            )
        )
        return found.relative_gap <= self.tol

    def _result(self) -> Result:
        if self.best is None:
            self.best = Certificate(np.inf, -np.inf), self.start.astype(self.problem.dtype)
        if self.status is not Status.SOLVED:
            self._confirm(self.best[1])
        certificate, weights = self.best
        return Result(
            np.ascontiguousarray(weights),
            certificate,
            None,
            self.history,
            self.objective.n_evaluations,
            self.status,
            {"total": time.perf_counter() - self.start_time},
        )
