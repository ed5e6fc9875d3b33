"""A part of the examples with their duals: what one worker of CoCoA+ holds and does.

With `K` shards, weights ``W = sum_i a_i x_i'`` of all duals and ``sigma = K``, the subproblem of
shard ``p`` (Ma et al., ICML 2015) is to maximise over its own duals, which change its own part of
``W`` by ``W_p``::

    sum_{i in p} [<1, x_i> - C_i omega(x_i / C_i)] - <W, W_p> - sigma/2 ||W_p||^2

``sigma`` makes room for what the others do meanwhile: the changes of all shards may be added, and
the dual of the whole problem rises by at least the sum of the gains. With less that is not
certain, but where the shards have little in common it is so, and saves rounds.

In ``b_i = sigma a_i`` and ``V = W + sigma W_p`` it is ``1/sigma`` times an ordinary problem::

    sum_{i in p} [<1, b_i> - sigma C_i omega(b_i / (sigma C_i))] - 1/2 ||V||^2

So the solver runs as it is, on rows as they are, with ``sigma C_i`` in place of ``C_i``, and starts
from weights that belong to the duals of all shards.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from topksvm.data import Problem
from topksvm.solvers import (
    SDCA,
    Duals,
    DualSums,
    SDCAOptions,
    Stopping,
    find_direction,
    largest_norm,
    make_duals_feasible,
    make_line,
    move,
    rebuild_weights,
    slack_of_margins,
    snapshot,
    start_from_duals,
    sum_dual_values,
    sums_of_losses,
)

Floats = NDArray[np.floating[Any]]
T = TypeVar("T")


@dataclass(frozen=True)
class Order:
    """What the shards are to do in a round: at most so many passes over their examples, or seconds.

    The first pass is a full one; the others are active ones for as long as they pay, or full ones
    where all classes are always in play. With `reach` above 0 the shards also say how far each
    example could be extrapolated in the direction of the last two rounds, at most `reach` times.

    `sigma` is by default the number of shards. With `undo` the last round, which must have had a
    reach, is taken back first.
    """

    passes: int = 4
    seconds: float = np.inf
    reach: float = 0.0
    sigma: float | None = None
    undo: bool = False


@dataclass(frozen=True)
class Contribution:
    """What the duals of a shard, or of several, add to the whole.

    Attributes
    ----------
    weights : ndarray
        ``sum_i a_i x_i'`` over the examples, rebuilt in float64, in the layout of the rows.
    sums : DualSums
        The loss part of the dual objective, and what bounds its rounding.
    n : int
        The number of examples.
    passes : int
        Passes over the examples this round, of the shard that made most.
    seconds : float
        Time spent on them, by the shard that took longest.
    gain : float
        By how much the shards have improved their own problems.
    direction : ndarray, optional
        ``sum_i e_i x_i'`` for the changes ``e_i`` by which the duals could be extrapolated.
    slope, curvature : float
        The first two derivatives of the loss part of the dual in that direction.
    """

    weights: Floats
    sums: DualSums
    n: int
    passes: int = 0
    seconds: float = 0.0
    gain: float = 0.0
    direction: Floats | None = None
    slope: float = 0.0
    curvature: float = 0.0

    def __sizeof__(self) -> int:
        """Return what Dask takes for the size: that of the arrays."""
        return self.weights.nbytes * (1 if self.direction is None else 2)

    def __add__(self, other: Contribution) -> Contribution:
        both = self.direction is not None and other.direction is not None
        return Contribution(
            self.weights + other.weights,
            self.sums.plus(other.sums),
            self.n + other.n,
            max(self.passes, other.passes),
            max(self.seconds, other.seconds),
            self.gain + other.gain,
            self.direction + other.direction if both else None,  # type: ignore[operator]
            self.slope + other.slope,
            self.curvature + other.curvature,
        )


@dataclass(frozen=True)
class Evaluation:
    """What a shard, or several, have found at the weights of a model.

    Attributes
    ----------
    losses : ndarray
        Their sums at the scales of the weights, and how much larger they may be for rounding.
    sums : DualSums
        Those of the duals.
    lost : float
        The largest share that a dual has lost to become feasible after it was moved.
    duals_bytes : int
        The size of a snapshot of the duals.
    seconds : float
        The time taken, by the shard that took longest.
    """

    losses: Floats
    sums: DualSums
    lost: float
    duals_bytes: int
    seconds: float

    def __add__(self, other: Evaluation) -> Evaluation:
        return Evaluation(
            self.losses + other.losses,
            self.sums.plus(other.sums),
            max(self.lost, other.lost),
            self.duals_bytes + other.duals_bytes,
            max(self.seconds, other.seconds),
        )


def improve(solver: SDCA, passes: int, seconds: float) -> None:
    """Make a full pass, if any, and others after it."""
    solver.max_active = passes - 1
    limit = solver.clock.elapsed + seconds
    for done in range(passes):
        if done > 0 and (solver.use_active or solver.clock.elapsed >= limit):
            break
        solver.full_pass(solver.rng.permutation(solver.members))
        solver.end_full_pass()
    if solver.use_active and passes > 1:
        solver.continue_phase(Stopping(0.0, sys.maxsize, limit))


class Shard:
    """Some of the examples of a problem whose other examples are elsewhere.

    Parameters
    ----------
    loss : loss
        See :mod:`topksvm.losses`.
    problem : Problem
        The rows and their weights ``C_i``; there may be none.
    n_shards : int
        How many shards with examples there are: ``sigma`` if an order does not name another.
    seed : int
        The order in which examples are visited.
    duals : Duals, optional
        Where to start, as :meth:`snapshot` returned it; all zero by default.
    """

    def __init__(
        self, loss: Any, problem: Problem, n_shards: int, seed: int = 0, duals: Duals | None = None
    ) -> None:
        self.n_shards = self.sigma = float(n_shards)
        self.C = problem.examples.C
        examples = problem.examples._replace(C=self.sigma * self.C)
        scaled = replace(problem, examples=examples)
        start = None
        if duals is not None:
            start = start_from_duals(duals._replace(values=self.sigma * duals.values), loss, scaled)
        self.solver = SDCA(loss, scaled, SDCAOptions(seed=seed), start)
        self.before: Duals | None = None
        self.last_start: Duals | None = None
        self.steps = np.empty(problem.n)
        self.lost = 0.0

    def solve(self, weights: Floats, order: Order) -> Contribution:
        """Improve the duals, given the `weights` of all shards, and say what they come to."""
        solver, start, done = self.solver, time.perf_counter(), self.solver.n_passes
        if order.undo:
            self.undo()
        self._set_sigma(self.n_shards if order.sigma is None else order.sigma)
        self._remember(order)
        before = solver.dual
        solver.weights[...] = weights
        improve(solver, order.passes, order.seconds)
        sums = self.contribution()
        if order.reach > 0.0:
            sums = self._with_direction(sums, order.reach)
        return replace(
            sums,
            passes=solver.n_passes - done,
            seconds=time.perf_counter() - start,
            gain=(solver.dual - before) / self.sigma,
        )

    def undo(self) -> None:
        """Return to the duals before the last round that had a reach, unless they are gone."""
        # A shard that was rebuilt meanwhile has nothing to take back.
        if self.last_start is not None:
            self.solver.duals = snapshot(self.last_start)
            self.last_start = None

    def _set_sigma(self, sigma: float) -> None:
        """Express the problem and the duals in another ``sigma``."""
        factor, self.sigma = sigma / self.sigma, sigma
        if factor == 1.0:
            return
        self.solver.problem.examples.C[...] = sigma * self.C
        for duals in (self.solver.duals, self.last_start):
            if duals is not None:
                duals.values[: duals.used[0]] *= factor

    def _remember(self, order: Order) -> None:
        # Two rounds, so that the direction is not only that of the correction of the last jump.
        start = snapshot(self.solver.duals) if order.reach > 0.0 else None
        self.before = start if self.last_start is None else self.last_start
        self.last_start = start

    def contribution(self) -> Contribution:
        """Say what the duals come to as they are; exact, so that no rounding adds up."""
        problem, duals = self.solver.problem, self.solver.duals
        make_duals_feasible(self.solver.loss, problem.examples, duals)
        weights = rebuild_weights(problem, duals) / self.sigma
        return Contribution(weights, self.dual_sums(), problem.n)

    def dual_sums(self) -> DualSums:
        """Return the sums over the duals as they are."""
        examples, duals = self.solver.problem.examples, self.solver.duals
        return DualSums(*sum_dual_values(self.solver.loss, examples, duals)).over(self.sigma)

    def _with_direction(self, sums: Contribution, reach: float) -> Contribution:
        solver, problem = self.solver, self.solver.problem
        rows, examples, duals = problem.rows, problem.examples, solver.duals
        line = make_line(problem, np.zeros(solver.weights.shape))
        find_direction(solver.loss, rows, examples, self.before, duals, float(reach), line)
        self.steps = line.steps
        slope, curvature = (line.sums / self.sigma).tolist()
        direction = line.direction
        direction /= self.sigma
        return replace(sums, direction=direction, slope=slope, curvature=curvature)

    def extrapolate(self, share: float) -> None:
        """Move the duals by `share` of the direction that the last contribution spoke of."""
        solver = self.solver
        if self.before is not None and share > 0.0:
            dense = np.zeros(solver.problem.m)
            move(self.before, solver.duals, self.steps, float(share), dense)
            self.lost = make_duals_feasible(solver.loss, solver.problem.examples, solver.duals)
        else:
            self.lost = 0.0
        self.before = None

    def evaluate(self, weights: Floats, scales: Floats) -> Evaluation:
        """Return the weighted sums of the losses at `scales` times the weights, and of the duals.

        They are upper bounds, by at most the last number; see :func:`sums_of_losses`.
        """
        start, solver = time.perf_counter(), self.solver
        problem, duals, wide = solver.problem, solver.duals, weights.astype(np.float64)
        largest, _ = largest_norm(wide, 0 if problem.is_sparse else 1)
        slack = slack_of_margins(problem.d, problem.m, largest)
        losses = sums_of_losses(solver.loss, problem, duals, wide, scales, slack) / self.sigma
        n_bytes = 12 * (int(duals.count.sum()) + duals.count.size)
        seconds = time.perf_counter() - start
        return Evaluation(losses, self.dual_sums(), self.lost, n_bytes, seconds)

    def snapshot(self) -> Duals:
        """Return a copy of the duals."""
        copy = snapshot(self.solver.duals)
        return copy._replace(values=copy.values / self.sigma)


def rows_of_duals(duals: Duals, start: int, stop: int) -> Duals:
    """Return a copy of the duals of the examples from `start` to `stop`."""
    some = slice(start, stop)
    return snapshot(duals._replace(start=duals.start[some], count=duals.count[some]))


def tree_sum(parts: Sequence[T], add: Callable[[T, T], T]) -> T:
    """Return the sum by neighbours, which `K` workers need ``log2 K`` steps for."""
    while len(parts) > 1:
        pairs = [add(parts[i], parts[i + 1]) for i in range(0, len(parts) - 1, 2)]
        parts = pairs + list(parts[2 * len(pairs) :])
    return parts[0]
