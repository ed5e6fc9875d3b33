"""What runs on the workers. Shards live in the worker's process, beside Dask's own store.

Dask may copy, move or recompute what it stores, and a shard changes with every task; so it is kept
here, under the name of the fit, until the fit releases it. A task that does not find its shard,
since the worker is a new one, says so, and the driver has the shard rebuilt.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm.distributed import _model
from topksvm.distributed._blocks import Block, Piece, join
from topksvm.distributed._model import Model, start_model
from topksvm.distributed._one_thread import on_one_thread
from topksvm.distributed._shard import Contribution, Order, Shard
from topksvm.solvers._duals import Duals
from topksvm.solvers._problem import make_problem

Floats = NDArray[np.floating[Any]]

FORGOTTEN = 3600.0
"""Seconds after which a shard that nobody asks for belongs to a client that has died."""


class ShardLostError(RuntimeError):
    """The worker does not have the shard, or no longer."""


@dataclass
class Entry:
    """A shard with the models that it was told of, by number; one task at a time may use it.

    Models are kept here and not as results of tasks, as those of one round would depend on all
    rounds before, and Dask would repeat them all if the last one were lost.
    """

    shard: Shard
    models: dict[int, Model]
    lock: Any
    last_used: float

    def model(self, version: int) -> Model:
        """Return the model of that number."""
        if version not in self.models:
            raise ShardLostError(f"model {version}")
        return self.models[version]

    def keep(self, version: int, model: Model, others: Collection[int]) -> None:
        """Keep a model, and `others`, any of which may yet turn out to be the last."""
        kept = {number: old for number, old in self.models.items() if number in others}
        self.models = {**kept, version: model}


_SHARDS: dict[tuple[str, int], Entry] = {}


@dataclass(frozen=True)
class Setting:
    """What all shards of a fit have in common."""

    token: str
    loss: Any
    classes: NDArray[Any]
    C: Floats
    bias: float
    dtype: str
    n_shards: int
    seed: int


@dataclass(frozen=True)
class Evaluation:
    """The losses of a shard at a model, which is returned without its weights, and the time taken.

    `duals_bytes` is the size of a snapshot.
    """

    model: Model
    losses: Floats
    seconds: float
    duals_bytes: int


@on_one_thread
def build(
    setting: Setting,
    number: int,
    pieces: Sequence[Piece],
    blocks: Sequence[Block],
    duals: Duals | None,
) -> int:
    """Make a shard of pieces of the blocks and keep it here; return the number of examples."""
    cut = [block.rows(piece) for block, piece in zip(blocks, pieces, strict=True)]
    block = join(cut, setting.dtype)
    labels = np.searchsorted(setting.classes, block.y)
    C = block.weights * setting.C[labels]
    problem = make_problem(block.X, labels, C, setting.classes.size, setting.bias)
    shard = Shard(setting.loss, problem, setting.n_shards, setting.seed + number, duals)
    now = time.monotonic()
    for key, entry in list(_SHARDS.items()):
        if now - entry.last_used > FORGOTTEN:
            _SHARDS.pop(key, None)
    start = start_model(problem.shape, setting.dtype)
    _SHARDS[setting.token, number] = Entry(shard, {0: start}, Lock(), now)
    return problem.n


def has_shard(token: str, number: int) -> bool:
    """Return whether the shard is here."""
    return (token, number) in _SHARDS


def release(token: str, number: int) -> None:
    """Forget the shard."""
    _SHARDS.pop((token, number), None)


@contextmanager
def _using(token: str, number: int) -> Iterator[Entry]:
    try:
        entry = _SHARDS[token, number]
    except KeyError:
        raise ShardLostError(f"shard {number} of fit {token}") from None
    with entry.lock:
        entry.last_used = time.monotonic()
        yield entry


@on_one_thread
def solve(token: str, number: int, version: int, order: Order) -> Contribution:
    """Carry out the order on the shard, from the model of that number."""
    with _using(token, number) as entry:
        return entry.shard.solve(entry.model(version).weights, order)


@on_one_thread
def contribute(token: str, number: int, undo: bool) -> Contribution:
    """Say what the duals of the shard come to, after the last round is taken back if asked for."""
    with _using(token, number) as entry:
        if undo:
            entry.shard.undo()
        return entry.shard.contribution()


@on_one_thread
def evaluate(
    token: str, number: int, version: int, others: Collection[int], model: Model, scales: Floats
) -> Evaluation:
    """Move the duals as the model says, keep it, and return the losses at its weights."""
    with _using(token, number) as entry:
        start = time.perf_counter()
        entry.shard.go_on(model.share)
        entry.keep(version, model, others)
        return _evaluation(entry, model, scales, start)


def receive(token: str, number: int, version: int, others: Collection[int], model: Model) -> None:
    """Keep a model that is not to be evaluated."""
    with _using(token, number) as entry:
        entry.keep(version, model, others)


@on_one_thread
def evaluate_larger(
    token: str, number: int, version: int, old: int, factor: float, scales: Floats
) -> Evaluation:
    """Return the losses at `factor` times the weights of the model `old`, and keep them."""
    with _using(token, number) as entry:
        start = time.perf_counter()
        larger = entry.model(old).times(factor)
        entry.keep(version, larger, (old,))
        return _evaluation(entry, larger, scales, start)


def _evaluation(entry: Entry, model: Model, scales: Floats, start: float) -> Evaluation:
    losses = entry.shard.losses(model.weights, scales)
    duals = entry.shard.solver.duals
    size = 12 * (int(duals.count.sum()) + duals.count.size)
    facts = replace(model, weights=np.empty(0))
    return Evaluation(facts, losses, time.perf_counter() - start, size)


def fetch(token: str, number: int, version: int) -> Floats:
    """Return the weights of the model of that number."""
    with _using(token, number) as entry:
        return entry.model(version).weights


def snapshot(token: str, number: int) -> Duals:
    """Return a copy of the duals of the shard."""
    with _using(token, number) as entry:
        return entry.shard.snapshot()


@on_one_thread
def add(first: Contribution, second: Contribution) -> Contribution:
    """Add what two shards, or more, come to."""
    return first + second


@on_one_thread
def conclude(total: Contribution, dtype: str) -> Model:
    """Return the model for the sum of all contributions."""
    return _model.conclude(total, dtype)


def collect(results: list[Any]) -> list[Any]:
    """Bring small results together, for the client to fetch at once."""
    return results
