r"""TopPush with working sets: all scores by one product, then the dual on the few that matter.

The dual variables are a table ``G`` with a row per example and a column per class: ``alpha_i`` in
the column of the true class and ``-beta_ij`` elsewhere, so that ``W = G' X`` and the scores are ``X
W'``: the reduction is never written down. One *group* of classes shares the largest score of a
negative: all of them in the multiclass reduction, each alone one-vs-rest. At the optimum few
negatives have that score; the others have ``beta = 0`` and need no part in the ascent, which is
proven afterwards by a certificate on all.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm.baselines._top_push_restricted import Block, Restricted, ascend
from topksvm.solvers._certificate import Certificate
from topksvm.solvers._result import Check, Result, Status

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

PER_EXAMPLE = 4
"""Negatives that an example may add to the working set in a round, and that a class must have."""

FIRST_GAP, NEXT_GAP, LAST_GAP = 0.3, 0.2, 0.7
"""How far to solve on a working set: at first; as a share of the gap on all; as a share of tol."""


@dataclass(frozen=True)
class Problem:
    """Examples in float64, labels ``0 ... m - 1``, groups of classes, the weight of the losses."""

    X: Any
    labels: Indices
    groups: list[Indices]
    C: float

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return sum(group.size for group in self.groups)

    @property
    def own(self) -> tuple[Indices, Indices]:
        """The cells of the true classes in a table with a row per example."""
        return np.arange(self.labels.size), self.labels


@dataclass(frozen=True)
class Options:
    """When to stop, and on how many threads."""

    tol: float = 1e-3
    max_iter: int = 10_000
    n_threads: int = 1
    report: Callable[[int, float, float], None] | None = None


def make_groups(reduction: str, n_classes: int) -> list[Indices]:
    """Return the groups of classes that share a threshold."""
    classes = np.arange(n_classes)
    return [classes] if reduction == "multiclass" else list(classes[:, None])


def solve_top_push(problem: Problem, options: Options, warm: Floats | None = None) -> Result:
    """Return the weights with the largest margin at the top, and their certificate.

    Parameters
    ----------
    problem : Problem
        What to solve.
    options : Options
        How far.
    warm : ndarray of shape (n, m), optional
        The table of dual variables of a problem with the same labels and groups, any `C`.
    """
    began = time.perf_counter()
    table = np.zeros((problem.labels.size, problem.n_classes)) if warm is None else warm.copy()
    if warm is not None:
        _rescale(problem, table)
    scores = _scores(problem, _guess(problem) if warm is None else weights_of(problem, table))
    gaps = np.full(len(problem.groups), FIRST_GAP / NEXT_GAP)
    history: list[Check] = []
    n_iter, status = 0, Status.MAX_ITER
    while n_iter < options.max_iter:
        n_iter += _round(problem, options, table, scores, gaps, options.max_iter - n_iter)
        weights = weights_of(problem, table)
        scores = _scores(problem, weights)
        parts = [_certify(problem, group, table, weights, scores) for group in problem.groups]
        gaps = np.array([part.relative_gap for part in parts])
        whole = total(parts)
        seconds = time.perf_counter() - began
        history.append(Check(n_iter, seconds, whole.primal, whole.dual, whole.gap))
        if options.report is not None:
            options.report(n_iter, seconds, whole.relative_gap)
        if whole.relative_gap <= options.tol:
            status = Status.SOLVED
            break
    return Result(weights, whole, table, history, n_iter, status)


def certify(problem: Problem, weights: Floats, table: Floats) -> Certificate:
    """Return what the dual variables prove about the weights, from nothing, in float64."""
    scores, exact = _scores(problem, weights), weights_of(problem, table)
    return total(
        [_certify(problem, group, table, weights, scores, exact) for group in problem.groups]
    )


def total(parts: list[Certificate]) -> Certificate:
    """Return the certificate of independent problems together."""
    return Certificate(sum(part.primal for part in parts), sum(part.dual for part in parts))


def weights_of(problem: Problem, table: Floats) -> Floats:
    """Return ``W = G' X``."""
    return np.ascontiguousarray((problem.X.T @ table).T)


def _scores(problem: Problem, weights: Floats) -> Floats:
    return np.asarray(problem.X @ weights.T)


def _certify(
    problem: Problem,
    group: Indices,
    table: Floats,
    weights: Floats,
    scores: Floats,
    exact: Floats | None = None,
) -> Certificate:
    """Return the certificate of a group; `exact` are the weights of the table, if not `weights`."""
    mine = np.isin(problem.labels, group)
    rows = np.flatnonzero(mine)
    alpha, own = table[rows, problem.labels[rows]], scores[rows, problem.labels[rows]]
    losses = np.maximum(1.0 + _ceiling(problem, group, scores) - own, 0.0)
    squares = 0.5 * float(np.vdot(weights[group], weights[group]))
    if exact is not None:
        exact = exact[group]
    lost = squares if exact is None else 0.5 * float(np.vdot(exact, exact))
    primal = squares + problem.C * float(losses @ losses)
    dual = float(alpha.sum()) - float(alpha @ alpha) / (4.0 * problem.C) - lost
    certificate = Certificate(primal, dual)
    if certificate.relative_gap < -1e-9:
        raise RuntimeError(
            f"The duality gap is negative: primal {primal!r} is below dual {dual!r}. This is a bug "
            "in topksvm; please report it with the data."
        )
    return certificate


def _ceiling(problem: Problem, group: Indices, scores: Floats) -> float:
    """Return the largest score of a negative of the group."""
    columns = scores[:, group]
    return float(np.max(columns, where=problem.labels[:, None] != group, initial=-np.inf))


def _guess(problem: Problem) -> Floats:
    """Return weights whose best scores are a first working set: the directions to the classes.

    From the mean of all examples to that of the class, of length 1: otherwise the few classes that
    are large, or far out, would have all the best scores.
    """
    n, m = problem.labels.size, problem.n_classes
    table = np.full((n, m), -1.0 / n)
    table[problem.own] += 1.0 / np.bincount(problem.labels, minlength=m)[problem.labels]
    weights = weights_of(problem, table)
    lengths = np.linalg.norm(weights, axis=1, keepdims=True)
    return weights / np.where(lengths > 0.0, lengths, 1.0)


def _rescale(problem: Problem, table: Floats) -> None:
    """Multiply the variables of each group by the factor that gives the best dual."""
    weights = weights_of(problem, table)
    for group in problem.groups:
        alpha = table[problem.own][np.isin(problem.labels, group)]
        bend = alpha @ alpha / (2.0 * problem.C) + np.vdot(weights[group], weights[group])
        if bend > 0.0:
            table[:, group] *= alpha.sum() / bend


def _round(
    problem: Problem,
    options: Options,
    table: Floats,
    scores: Floats,
    gaps: Floats,
    max_iter: int,
) -> int:
    """Solve every group that needs it on its working set; return the largest number of steps."""
    chosen = _working_sets(problem, table, scores)
    goals = np.maximum(NEXT_GAP * gaps, LAST_GAP * options.tol)
    pending = [g for g in range(gaps.size) if gaps[g] > LAST_GAP * options.tol]

    with ThreadPoolExecutor(options.n_threads) as pool:

        def solve(g: int, run: Any) -> int:
            return _solve_group(
                problem, problem.groups[g], chosen, table, float(goals[g]), max_iter, run
            )

        if len(problem.groups) == 1:
            return solve(0, pool.map)
        return max(pool.map(lambda g: solve(g, map), pending))


def _solve_group(
    problem: Problem,
    group: Indices,
    chosen: NDArray[np.bool_],
    table: Floats,
    tol: float,
    max_iter: int,
    run: Any,
) -> int:
    """Solve a group on its working set, in the table; `run` makes its blocks, as ``map`` does."""
    members = [(np.flatnonzero(problem.labels == c), np.flatnonzero(chosen[:, c])) for c in group]
    restricted = Restricted(list(run(lambda rows: Block(problem.X, *rows), members)), problem.C)
    cells = np.concatenate([np.concatenate(rows) for rows in members])
    columns = np.repeat(group, [sum(map(len, rows)) for rows in members])
    x, n_iter = ascend(restricted, restricted.signs * table[cells, columns], tol, max_iter)
    table[:, group] = 0.0
    table[cells, columns] = restricted.signs * x
    return n_iter


def _working_sets(problem: Problem, table: Floats, scores: Floats) -> NDArray[np.bool_]:
    """Return which negatives take part: the support, the best of examples and of classes."""
    above = np.empty_like(scores)
    for group in problem.groups:
        active = table[:, group] < 0.0
        # The support has the largest score on its working set, up to the gap.
        tight = scores[:, group][active]
        above[:, group] = scores[:, group] - (tight.mean() if tight.size else 0.0)
    above[problem.own] = -np.inf
    chosen = (table < 0.0) | _best_of_rows(above)
    if table.any():
        n_support = np.count_nonzero(table < 0.0)
        floor = np.partition(above, -n_support, axis=None)[-n_support]
        chosen &= (above > 0.0) | (table < 0.0)
        chosen |= above >= max(floor, -np.finfo(np.float64).max)
    chosen |= _best_of_rows(above.T).T & (above > -np.inf)
    chosen[problem.own] = False
    return chosen


def _best_of_rows(values: Floats) -> NDArray[np.bool_]:
    """Mark the few largest entries of each row."""
    most = min(PER_EXAMPLE, values.shape[1])
    marks = np.zeros(values.shape, np.bool_)
    best = np.argpartition(values, -most, axis=1)[:, -most:]
    np.put_along_axis(marks, best, True, axis=1)
    return marks
