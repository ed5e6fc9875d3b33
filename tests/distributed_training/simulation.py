"""Shards of a small problem in this process, and their duals put together again."""

from __future__ import annotations

from functools import reduce
from operator import add

import numpy as np

from topksvm.data import make_problem
from topksvm.distributed._cocoa import CoCoA
from topksvm.distributed._estimates import bytes_of_round
from topksvm.distributed._model import RoundResult, make_model, start_model
from topksvm.distributed._shard import Shard, tree_sum
from topksvm.solvers import SCALES, Run, Stopping, make_loss


def split(n, K, *, seed=0):
    """Return the rows of `K` shards of unequal sizes; those beyond `n` are empty."""
    return np.array_split(np.random.default_rng(seed).permutation(n), K)


def dual_of(result):
    """Return the lower bound that a round has found."""
    return result.certificates()[0].dual


class LocalShards:
    """Shards in this process that take turns: what a cluster computes, without one."""

    def __init__(self, shards, *, can_extrapolate=True):
        self.shards = list(shards)
        self.n_shards = len(self.shards)
        self.can_extrapolate = can_extrapolate
        self.problem = self.shards[0].solver.problem
        self.model = self.certified = start_model(self.problem.shape, self.problem.dtype)
        self.before = self.model, self.certified

    def rebalance(self):
        """Nobody joins."""

    def round(self, order):
        parts = [shard.solve(self.model.weights, order) for shard in self.shards]
        model = make_model(tree_sum(parts, add), self.problem.m, self.problem.dtype)
        for shard in self.shards:
            shard.extrapolate(model.share)
        sizes = model.weights.size, model.weights.dtype, self.n_shards
        n_bytes = bytes_of_round(*sizes, extrapolates=order.reach > 0.0)
        result = self._evaluate(model, SCALES, n_bytes)
        self.before = self.model, self.certified
        self.model = self.certified = model
        return result

    def reject(self):
        self.model, self.certified = self.before

    def enlarge(self, factor):
        self.certified = self.model.times(factor)
        return self._evaluate(self.certified, SCALES[:1])

    def weights(self):
        return self.problem.coefficients(self.certified.weights)

    def _evaluate(self, model, scales, n_bytes=0):
        parts = [shard.evaluate(model.weights, scales) for shard in self.shards]
        return RoundResult(model.without_weights(), reduce(add, parts), n_bytes)


class Simulation:
    """A run of CoCoA+ on the problem of an :class:`Objective`."""

    def __init__(self, objective, parts, *, passes=4, extrapolate=True, **stopping):
        self.objective, self.parts = objective, parts
        loss = make_loss(objective.name, objective.k, objective.smoothing)
        n_shards = max(1, sum(len(part) > 0 for part in parts))
        X, y, radii = objective.X, objective.y, objective.radii
        problems = [
            make_problem(X[part], y[part], radii[part], objective.m, objective.bias)
            for part in parts
        ]
        self.locals = [Shard(loss, problem, n_shards, i) for i, problem in enumerate(problems)]
        can_extrapolate = extrapolate and loss.traits.has_feasible_step
        self.shards = LocalShards(self.locals, can_extrapolate=can_extrapolate)
        self.cocoa = CoCoA(self.shards, passes, passes)
        self.stopping = Stopping(**stopping)

    def run(self):
        return Run(self.cocoa, self.stopping).complete()

    def duals(self):
        """Return the duals of all shards as one ``(n, m)`` table."""
        table = np.zeros((len(self.objective.y), self.objective.m))
        for shard, part in zip(self.locals, self.parts, strict=True):
            duals = shard.snapshot()
            for i, start, count in zip(part, duals.start, duals.count, strict=True):
                table[i, duals.classes[start : start + count]] = duals.values[start : start + count]
        return table
