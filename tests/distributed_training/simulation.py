"""Shards of a small problem in this process, and their duals put together again."""

from __future__ import annotations

import numpy as np

from topksvm.data._problem import make_problem
from topksvm.distributed._cocoa import CoCoA
from topksvm.distributed._local_team import LocalTeam
from topksvm.distributed._shard import Shard, can_go_on
from topksvm.solvers._sdca import SDCAOptions
from topksvm.solvers._solve import make_loss


def split(n, K, *, seed=0):
    """Return the rows of `K` shards of unequal sizes; those beyond `n` are empty."""
    return np.array_split(np.random.default_rng(seed).permutation(n), K)


class Simulation:
    """A run of CoCoA+ on the problem of an :class:`Objective`."""

    def __init__(self, objective, parts, *, passes=4, goes_on=True, **options):
        self.objective, self.parts = objective, parts
        loss = make_loss(objective.name, objective.k, objective.smoothing)
        n_shards = max(1, sum(len(part) > 0 for part in parts))
        self.shards = [
            Shard(
                loss,
                make_problem(
                    objective.X[part],
                    objective.y[part],
                    objective.radii[part],
                    objective.m,
                    objective.bias,
                ),
                n_shards,
                seed,
            )
            for seed, part in enumerate(parts)
        ]
        self.team = LocalTeam(self.shards, can_go_on=goes_on and can_go_on(loss))
        self.cocoa = CoCoA(self.team, SDCAOptions(**options), passes)

    def run(self):
        return self.cocoa.run()

    def duals(self):
        """Return the duals of all shards as one ``(n, m)`` table."""
        table = np.zeros((len(self.objective.y), self.objective.m))
        for shard, part in zip(self.shards, self.parts, strict=True):
            duals = shard.snapshot()
            for i, start, count in zip(part, duals.start, duals.count, strict=True):
                table[i, duals.classes[start : start + count]] = duals.values[start : start + count]
        return table
