"""What CoCoA+ wants of the shards, wherever they are, and shards in this process that do it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from topksvm.distributed._model import (
    Evaluated,
    Model,
    RoundResult,
    bytes_of_round,
    conclude,
    start_model,
)
from topksvm.distributed._shard import Order, Shard, tree_sum
from topksvm.solvers import SCALES

Floats = NDArray[np.floating[Any]]


class WeightsLostError(RuntimeError):
    """The weights that were certified cannot be had any more."""


class Team(Protocol):
    """Shards, wherever they are."""

    can_extrapolate: bool

    @property
    def n_shards(self) -> int:
        """The number of shards."""

    def welcome(self) -> None:
        """Let workers that have joined take part, which may change the number of shards."""

    def round(self, order: Order) -> RoundResult:
        """Have all shards carry out the order, and certify where that has led."""

    def reject(self) -> None:
        """Return to the model before the last round, which the next order will undo."""

    def enlarge(self, factor: float) -> RoundResult:
        """Certify the model with weights that are larger than those of the duals.

        It is what :meth:`weights` returns until the next round, which starts from the model.
        """

    def weights(self) -> Floats:
        """Return the weights that were certified last as ``(m, d)``; may raise WeightsLostError."""


class LocalTeam:
    """Shards in this process that take turns: what a cluster computes, without one."""

    def __init__(self, shards: Sequence[Shard], *, can_extrapolate: bool = True) -> None:
        self.shards = list(shards)
        self.n_shards = len(self.shards)
        self.can_extrapolate = can_extrapolate
        self.problem = self.shards[0].solver.problem
        self.model = self.judged = start_model(self.problem.shape, self.problem.dtype)
        self.before = self.model, self.judged

    def welcome(self) -> None:
        """Nobody joins a team in one process."""

    def round(self, order: Order) -> RoundResult:
        """See the protocol."""
        parts = [shard.solve(self.model.weights, order) for shard in self.shards]
        model = conclude(tree_sum(parts, add), self.problem.dtype)
        for shard in self.shards:
            shard.extrapolate(model.share)
        size, dtype = model.weights.size, model.weights.dtype
        n_bytes = bytes_of_round(size, dtype, self.n_shards, order)
        found = self._result(model, SCALES, n_bytes)
        self.before = self.model, self.judged
        self.model = self.judged = model
        return found

    def reject(self) -> None:
        """See the protocol."""
        self.model, self.judged = self.before

    def enlarge(self, factor: float) -> RoundResult:
        """See the protocol."""
        larger = self.model.times(factor)
        found = self._result(larger, SCALES[:1])
        self.judged = larger
        return found

    def weights(self) -> Floats:
        """See the protocol."""
        return self.problem.coefficients(self.judged.weights)

    def _result(self, model: Model, scales: Floats, n_bytes: int = 0) -> RoundResult:
        start = time.perf_counter()
        parts = [
            Evaluated(shard.losses(model.weights, scales), shard.dual_sums(), shard.lost)
            for shard in self.shards
        ]
        seconds = (time.perf_counter() - start) / self.n_shards
        return model.result(reduce(Evaluated.plus, parts), seconds, n_bytes)
