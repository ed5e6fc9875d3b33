"""What runs on the workers. Shards live in the worker's process, beside Dask's own store.

Dask may copy, move or recompute what it stores, and a shard changes with every task; so it is kept
here, under the name of the fit, until the fit releases it. A task that does not find its shard,
since the worker is a new one, says so, and the driver has the shard rebuilt.

When a worker is lost, Dask computes again what it thinks is wanted of that worker's results, and
runs tasks for it that have run before. One that changes a shard must not: it is refused by its
number, which grows with every call.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topksvm.data import make_problem
from topksvm.distributed import _model
from topksvm.distributed._blocks import Block, Piece, join
from topksvm.distributed._model import Evaluated, Model, start_model
from topksvm.distributed._one_thread import on_one_thread
from topksvm.distributed._shard import Contribution, Order, Shard
from topksvm.solvers import Duals

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


class Call(NamedTuple):
    """Which shard of which fit a task is for, and the number of the call."""

    token: str
    shard: int
    number: int

    @property
    def key(self) -> tuple[str, int]:
        """The name of the shard."""
        return self.token, self.shard


_SHARDS: dict[tuple[str, int], Entry] = {}

_LATEST: dict[tuple[str, int], tuple[int, float]] = {}
"""Number and time of the last call that has changed a shard, which it may well outlive."""


def _forget() -> None:
    """Drop what clients have left here that have died."""
    oldest = time.monotonic() - FORGOTTEN
    for key, entry in list(_SHARDS.items()):
        if entry.last_used < oldest:
            _SHARDS.pop(key, None)
    for key, (_, last_used) in list(_LATEST.items()):
        if last_used < oldest:
            _LATEST.pop(key, None)


def _note(call: Call) -> None:
    """Note that the call changes its shard; refuse it if a later one has done so."""
    latest, _ = _LATEST.get(call.key, (0, 0.0))
    if call.number <= latest:
        raise ShardLostError(f"{call} comes after call {latest}")
    _LATEST[call.key] = call.number, time.monotonic()


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
    found: Evaluated
    seconds: float
    duals_bytes: int


@on_one_thread
def build(
    call: Call,
    setting: Setting,
    pieces: Sequence[Piece],
    blocks: Sequence[Block],
    duals: Duals | None,
) -> int:
    """Make a shard of pieces of the blocks and keep it here; return the number of examples."""
    _forget()
    _note(call)
    cut = [block.rows(piece) for block, piece in zip(blocks, pieces, strict=True)]
    block = join(cut, setting.dtype)
    labels = np.searchsorted(setting.classes, block.y)
    C = block.weights * setting.C[labels]
    problem = make_problem(block.X, labels, C, setting.classes.size, setting.bias)
    shard = Shard(setting.loss, problem, setting.n_shards, setting.seed + call.shard, duals)
    start = start_model(problem.shape, setting.dtype)
    _SHARDS[call.key] = Entry(shard, {0: start}, Lock(), time.monotonic())
    return problem.n


def has_shard(call: Call) -> bool:
    """Return whether the shard is here."""
    return call.key in _SHARDS


def release(call: Call) -> None:
    """Forget the shard."""
    _note(call)
    _SHARDS.pop(call.key, None)


@contextmanager
def _using(call: Call) -> Iterator[Entry]:
    try:
        entry = _SHARDS[call.key]
    except KeyError:
        raise ShardLostError(f"shard {call.shard} of fit {call.token}") from None
    with entry.lock:
        entry.last_used = time.monotonic()
        yield entry


@contextmanager
def _changing(call: Call) -> Iterator[Entry]:
    with _using(call) as entry:
        _note(call)
        yield entry


@on_one_thread
def solve(call: Call, version: int, order: Order) -> Contribution:
    """Carry out the order on the shard, from the model of that number."""
    with _changing(call) as entry:
        return entry.shard.solve(entry.model(version).weights, order)


@on_one_thread
def contribute(call: Call, undo: bool) -> Contribution:
    """Say what the duals of the shard come to, after the last round is taken back if asked for."""
    with _changing(call) as entry:
        if undo:
            entry.shard.undo()
        return entry.shard.contribution()


@on_one_thread
def evaluate(
    call: Call, version: int, others: Collection[int], model: Model, scales: Floats
) -> Evaluation:
    """Move the duals as the model says, keep it, and return the losses at its weights."""
    with _changing(call) as entry:
        start = time.perf_counter()
        entry.shard.extrapolate(model.share)
        entry.keep(version, model, others)
        return _evaluation(entry, model, scales, start)


def receive(call: Call, version: int, others: Collection[int], model: Model) -> None:
    """Keep a model that is not to be evaluated."""
    with _changing(call) as entry:
        entry.keep(version, model, others)


@on_one_thread
def evaluate_larger(
    call: Call, version: int, old: int, factor: float, scales: Floats
) -> Evaluation:
    """Return the losses at `factor` times the weights of the model `old`, and keep them."""
    with _changing(call) as entry:
        start = time.perf_counter()
        larger = entry.model(old).times(factor)
        entry.keep(version, larger, (old,))
        return _evaluation(entry, larger, scales, start)


def _evaluation(entry: Entry, model: Model, scales: Floats, start: float) -> Evaluation:
    shard = entry.shard
    found = Evaluated(shard.losses(model.weights, scales), shard.dual_sums(), shard.lost)
    duals = shard.solver.duals
    size = 12 * (int(duals.count.sum()) + duals.count.size)
    facts = replace(model, weights=np.empty(0))
    return Evaluation(facts, found, time.perf_counter() - start, size)


def fetch(call: Call, version: int) -> Floats:
    """Return the weights of the model of that number."""
    with _using(call) as entry:
        return entry.model(version).weights


def snapshot(call: Call) -> Duals:
    """Return a copy of the duals of the shard."""
    with _using(call) as entry:
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
