r"""TopPush by accelerated projected gradient on the dual, with two matrix products per step.

The dual variables are a table ``G`` with a row per example and a column per class: ``alpha_i`` in
the column of the true class and ``-beta_ij`` elsewhere, so that ``W = G' X`` and the scores are ``X
W'``: the reduction is never written down. The classes of a *group* share the largest score of a
negative: there is one group in the multiclass reduction, and one for each class one-vs-rest.
Numbers per group are arrays, of length 1 or m, so both reductions are the same code.

N. Li, R. Jin, Z.-H. Zhou, "Top Rank Optimization in Linear Time", NIPS 2014. B. O'Donoghue, E.
Candes, "Adaptive Restart for Accelerated Gradient Schemes", Foundations of Computational
Mathematics 15, 2015.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm._clock import Clock
from topksvm.baselines._equal_sums import equal_sums_multiplier
from topksvm.solvers import Callback, Certificate, Check, Progress

Floats = NDArray[np.floating[Any]]
Indices = NDArray[np.intp]

CHECK = 20
"""Steps between two certificates."""

FIRST_STEPS = 10
"""Steps that are made whatever the change."""


@dataclass(frozen=True)
class Problem:
    """Examples, labels ``0 ... m - 1``, the reduction, the weight of the losses.

    One-vs-rest `C` may have a value for each class, as each is a problem of its own.
    """

    X: Any
    labels: Indices
    m: int
    reduction: str
    C: float | Floats

    @property
    def own(self) -> tuple[Indices, Indices]:
        """The cells of the true classes in a table with a row per example."""
        return np.arange(self.labels.size), self.labels

    @property
    def weight_of_losses(self) -> float | Floats:
        """The weight of the loss of each example, or of all."""
        return self.C[self.labels] if isinstance(self.C, np.ndarray) else self.C

    @property
    def is_joint(self) -> bool:
        """Whether all classes are one group."""
        return self.reduction == "multiclass"

    def by_group(self, by_class: Floats) -> Floats:
        """Return the sums over the classes of each group."""
        return by_class.sum(keepdims=True) if self.is_joint else by_class

    def scores(self, weights: Floats) -> Floats:
        """Return ``X W'``."""
        return np.asarray(self.X @ weights.T)

    def weights(self, table: Floats) -> Floats:
        """Return ``W = G' X``."""
        return np.ascontiguousarray((self.X.T @ table).T)

    def values(self, weights: Floats, alpha: Floats) -> Floats:
        """Return the negative dual objective of each group."""
        squares = 0.5 * np.einsum("ij,ij->i", weights, weights, dtype=np.float64)
        gains = alpha * (1.0 - alpha / (4.0 * self.weight_of_losses))
        return self.by_group(squares - np.bincount(self.labels, gains, minlength=self.m))


@dataclass(frozen=True)
class Options:
    """When to stop: at a relative gap of `tol`, or a relative change of the dual of `change`."""

    tol: float = 1e-3
    max_iter: int = 10_000
    change: float = 0.0
    callback: Callback | None = None


class Stop(Enum):
    """Why the ascent stopped; only the first means that the problem is solved."""

    SOLVED = "the gap is within tol"
    SMALL_CHANGE = "a step changed the dual objective by less than change_tol"
    MAX_ITER = "max_iter steps were made"


@dataclass(frozen=True)
class TopPushResult:
    """The weights ``(m, d)``, what is proven about them, and the table of dual variables."""

    weights: Floats
    certificate: Certificate
    duals: Floats
    history: list[Check]
    n_iter: int
    status: Stop


def solve_top_push(problem: Problem, options: Options, warm: Floats | None = None) -> TopPushResult:
    """Return the weights with the largest margin at the top, and their certificate.

    Parameters
    ----------
    problem : Problem
        What to solve.
    options : Options
        How far.
    warm : ndarray of shape (n, m), optional
        The table of dual variables of a problem with the same labels and reduction, any `C`.
    """
    clock = Clock()
    ascent = Ascent(problem, warm)
    history: list[Check] = []
    status, last = Stop.MAX_ITER, 0.0
    for step in range(1, options.max_iter + 1):
        last, dual = ascent.value, ascent.step()
        is_still = step >= FIRST_STEPS and abs(dual - last) < options.change * abs(last)
        if step % CHECK and step < options.max_iter and not is_still:
            continue
        certificate = certify(problem, ascent.weights, ascent.table)
        seconds = clock.elapsed
        check = Check(step, seconds, certificate.primal, certificate.dual, certificate.gap)
        history.append(check)
        if options.callback is not None:
            options.callback(Progress(step, seconds, certificate.relative_gap))
        if certificate.relative_gap <= options.tol or is_still:
            is_solved = certificate.relative_gap <= options.tol
            status = Stop.SOLVED if is_solved else Stop.SMALL_CHANGE
            break
    return TopPushResult(ascent.weights, certificate, ascent.table, history, step, status)


class Ascent:
    """The table of dual variables, its momentum, and the curvature met so far."""

    def __init__(self, problem: Problem, warm: Floats | None) -> None:
        self.problem = problem
        shape = problem.labels.size, problem.m
        self.table = np.zeros(shape, problem.X.dtype) if warm is None else _rescaled(problem, warm)
        self.weights = problem.weights(self.table)
        self.last = self.table, self.weights
        groups = 1 if problem.is_joint else problem.m
        self.momentum = np.ones(groups)
        squares = problem.X.multiply(problem.X) if hasattr(problem.X, "tocsr") else problem.X**2
        row_norms = np.asarray(squares.sum(axis=1), dtype=np.float64)
        # The curvature along one variable; the whole has more, and backtracking finds it.
        self.curvature = np.full(groups, float(row_norms.max())) + 0.5 / problem.C
        self.multipliers = np.zeros(groups)
        self.value = 0.0

    def step(self) -> float:
        """Go from beyond the table along the gradient, back onto the feasible set.

        Returns the negative dual objective.
        """
        problem, own = self.problem, self.problem.own
        before, weights_before = self.last
        new = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * self.momentum**2))
        beyond = self._typed((self.momentum - 1.0) / new)
        start = self.table + beyond * (self.table - before)
        # Weights are linear in the table, so those of the point beyond come without a product.
        start_weights = self.weights + beyond.reshape(-1, 1) * (self.weights - weights_before)
        gradient = problem.scores(start_weights)
        gradient[own] += start[own] / (2.0 * problem.weight_of_losses) - 1.0
        value = problem.values(start_weights, start[own].astype(np.float64))
        while True:
            table = self._project(start - gradient / self._typed(self.curvature))
            weights = problem.weights(table)
            change = table - start
            squares = self._sums(change, change)
            bound = value + self._sums(gradient, change) + 0.5 * self.curvature * squares
            found = problem.values(weights, table[own].astype(np.float64))
            # Below rounding the test says nothing any more.
            slack = 1e-6 * np.abs(value) if table.dtype == np.float32 else 1e-13 * np.abs(value)
            is_steep = found > bound + slack
            if not is_steep.any():
                break
            self.curvature[is_steep] *= 2.0
        # Where the step turns back, momentum has carried it too far: start anew.
        turns = self._sums(start - table, table - self.table) > 0.0
        self.momentum = np.where(turns, 1.0, new)
        self.last = self.table, self.weights
        self.table, self.weights = table, weights
        self.value = float(found.sum())
        return self.value

    def _typed(self, by_group: Floats) -> Floats:
        return by_group.astype(self.table.dtype)

    def _sums(self, a: Floats, b: Floats) -> Floats:
        return self.problem.by_group(np.einsum("ij,ij->j", a, b, dtype=np.float64))

    def _project(self, point: Floats) -> Floats:
        """Return the nearest table with alpha, beta >= 0 and equal sums in each group."""
        problem, own = self.problem, self.problem.own
        positives = point[own]
        others = point.copy()
        others[own] = np.inf  # Beyond every multiplier, so that they have no part in it.
        if problem.is_joint:
            self.multipliers[0] = equal_sums_multiplier(
                positives, others.ravel(), self.multipliers[0]
            )
        else:
            columns = np.ascontiguousarray(others.T)
            for c in range(problem.m):
                self.multipliers[c] = equal_sums_multiplier(
                    positives[problem.labels == c], columns[c], self.multipliers[c]
                )
        table = np.minimum(point - self._typed(self.multipliers), 0.0)
        shifts = self.multipliers if problem.is_joint else self.multipliers[problem.labels]
        table[own] = np.maximum(positives - self._typed(shifts), 0.0)
        return table


def certify(problem: Problem, weights: Floats, table: Floats) -> Certificate:
    """Return what the dual variables prove about the weights, anew, in float64.

    Rounding may have left the sums of a group a little apart; scaling the larger side makes the
    variables feasible, so that the bound is one.
    """
    wide = weights.astype(np.float64)
    X = problem.X.astype(np.float64)
    scores, own = np.asarray(X @ wide.T), problem.own
    best = scores.copy()
    best[own] = -np.inf
    ceiling = best.max() if problem.is_joint else best.max(axis=0)[problem.labels]
    losses = np.maximum(1.0 + ceiling - scores[own], 0.0)
    primal = 0.5 * float(np.vdot(wide, wide)) + float(np.sum(problem.weight_of_losses * losses**2))
    feasible = _with_equal_sums(problem, table.astype(np.float64))
    exact = np.ascontiguousarray((X.T @ feasible).T)
    certificate = Certificate(primal, -float(problem.values(exact, feasible[own]).sum()))
    if certificate.relative_gap < -1e-9:
        raise RuntimeError(
            f"The duality gap is negative: primal {primal!r} is below dual {certificate.dual!r}. "
            "This is a bug in topksvm; please report it with the data."
        )
    return certificate


def _with_equal_sums(problem: Problem, table: Floats) -> Floats:
    own = problem.own
    alpha = problem.by_group(_sum_by_class(problem, table[own]))
    beta = alpha - problem.by_group(table.sum(axis=0))
    least = np.minimum(alpha, beta)
    factor = np.divide(least, alpha, out=np.zeros_like(alpha), where=alpha > 0.0)
    positives = table[own] * (factor if problem.is_joint else factor[problem.labels])
    feasible = table * np.divide(least, beta, out=np.zeros_like(beta), where=beta > 0.0)
    feasible[own] = positives
    return feasible


def _sum_by_class(problem: Problem, values: Floats) -> Floats:
    return np.bincount(problem.labels, values, minlength=problem.m).astype(np.float64)


def _rescaled(problem: Problem, table: Floats) -> Floats:
    """Return the table times the factor of each group that gives the best dual."""
    weights, alpha = problem.weights(table), table[problem.own].astype(np.float64)
    squares = np.einsum("ij,ij->i", weights, weights, dtype=np.float64)
    bends = _sum_by_class(problem, alpha**2) / (2.0 * problem.C)
    slope = problem.by_group(_sum_by_class(problem, alpha))
    bend = problem.by_group(squares + bends)
    factor = np.divide(slope, bend, out=np.zeros_like(slope), where=bend > 0.0)
    return table * factor.astype(table.dtype)
