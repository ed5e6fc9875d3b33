"""What runs on the workers. Shards live in the worker's process, beside Dask's own store.

Dask may copy, move or recompute what it stores, and a shard changes with every task; so it is kept
here, under the name of the fit, until the fit releases it. A task that does not find its shard,
since the worker is a new one, says so, and the client has the shard rebuilt.

When a worker is lost, Dask computes again what it thinks is wanted of that worker's results, and
runs tasks for it that have run before. One that changes a shard must not: it is refused by its
number, which grows with every call.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm.data import make_problem
from topksvm.distributed._blocks import Block, Piece, join
from topksvm.distributed._model import Model, start_model
from topksvm.distributed._one_thread import on_one_thread
from topksvm.distributed._shard import Contribution, Evaluation, Order, Shard
from topksvm.solvers import Duals

Floats = NDArray[np.floating[Any]]

FORGOTTEN = 3600.0
"""Seconds after which a shard that nobody changes belongs to a client that has died."""


class ShardLostError(RuntimeError):
    """The worker does not have the shard, or no longer."""


@dataclass(frozen=True)
class ShardSetup:
    """What all shards of a fit have in common; `C` is by class."""

    token: str
    loss: Any
    classes: NDArray[Any]
    C: Floats
    bias: float
    dtype: str
    n_shards: int
    seed: int


@dataclass(frozen=True)
class Call:
    """Which shard of which fit a task is for, and the number of the call."""

    token: str
    shard: int
    number: int

    @property
    def key(self) -> tuple[str, int]:
        """The name of the shard."""
        return self.token, self.shard


@dataclass
class Entry:
    """A shard with the models that it was told of, by number; one task at a time may use it.

    Models are kept here and not as results of tasks, as those of one round would depend on all
    rounds before, and Dask would repeat them all if the last one were lost.
    """

    shard: Shard
    models: dict[int, Model]
    lock: Any

    def model(self, version: int) -> Model:
        """Return the model of that number."""
        if version not in self.models:
            raise ShardLostError(f"model {version}")
        return self.models[version]

    def evaluate(
        self, version: int, others: Collection[int], model: Model, scales: Floats
    ) -> tuple[Model, Evaluation]:
        """Keep a model, and `others`, any of which may yet turn out to be the last; evaluate it."""
        kept = {number: old for number, old in self.models.items() if number in others}
        self.models = {**kept, version: model}
        return model.without_weights(), self.shard.evaluate(model.weights, scales)


_SHARDS: dict[tuple[str, int], Entry] = {}

_LATEST: dict[tuple[str, int], tuple[int, float]] = {}
"""Number and time of the last call that has changed a shard, which it may well outlive."""


def _forget() -> None:
    """Drop what clients have left here that have died."""
    oldest = time.monotonic() - FORGOTTEN
    for key, (_, last_call) in list(_LATEST.items()):
        if last_call < oldest:
            _SHARDS.pop(key, None)
            _LATEST.pop(key, None)


def _refuse_repeated(call: Call) -> None:
    """Note that the call changes its shard; refuse it if a later one has done so."""
    latest, _ = _LATEST.get(call.key, (0, 0.0))
    if call.number <= latest:
        raise ShardLostError(f"{call} comes after call {latest}")
    _LATEST[call.key] = call.number, time.monotonic()


@contextmanager
def _using(call: Call, *, changes: bool = True) -> Iterator[Entry]:
    entry = _SHARDS.get(call.key)
    if entry is None:
        raise ShardLostError(f"shard {call.shard} of fit {call.token}")
    with entry.lock:
        if changes:
            _refuse_repeated(call)
        yield entry


@on_one_thread
def build(
    call: Call,
    setup: ShardSetup,
    pieces: Sequence[Piece],
    blocks: Sequence[Block],
    duals: Duals | None,
) -> int:
    """Make a shard of pieces of the blocks and keep it here; return the number of examples."""
    _forget()
    _refuse_repeated(call)
    cut = [block.rows(piece) for block, piece in zip(blocks, pieces, strict=True)]
    block = join(cut, setup.dtype)
    labels = np.searchsorted(setup.classes, block.y)
    C = block.weights * setup.C[labels]
    problem = make_problem(block.X, labels, C, setup.classes.size, setup.bias)
    shard = Shard(setup.loss, problem, setup.n_shards, setup.seed + call.shard, duals)
    start = start_model(problem.shape, setup.dtype)
    _SHARDS[call.key] = Entry(shard, {0: start}, Lock())
    return problem.n


def has_shard(call: Call) -> bool:
    """Return whether the shard is here."""
    return call.key in _SHARDS


def release(call: Call) -> None:
    """Forget the shard."""
    _refuse_repeated(call)
    _SHARDS.pop(call.key, None)


@on_one_thread
def solve(call: Call, version: int, order: Order) -> Contribution:
    """Carry out the order on the shard, from the model of that number."""
    with _using(call) as entry:
        return entry.shard.solve(entry.model(version).weights, order)


@on_one_thread
def contribute(call: Call, undo: bool) -> Contribution:
    """Say what the duals of the shard come to, after the last round is taken back if asked for."""
    with _using(call) as entry:
        if undo:
            entry.shard.undo()
        return entry.shard.contribution()


@on_one_thread
def evaluate(
    call: Call, version: int, others: Collection[int], model: Model, scales: Floats
) -> tuple[Model, Evaluation]:
    """Move the duals as the model says, keep it, and return what was found at its weights."""
    with _using(call) as entry:
        entry.shard.extrapolate(model.share)
        return entry.evaluate(version, others, model, scales)


@on_one_thread
def evaluate_larger(
    call: Call, version: int, old: int, factor: float, scales: Floats
) -> tuple[Model, Evaluation]:
    """Do so at `factor` times the weights of the model `old`, which is kept as well."""
    with _using(call) as entry:
        return entry.evaluate(version, (old,), entry.model(old).times(factor), scales)


def fetch(call: Call, version: int) -> Floats:
    """Return the weights of the model of that number."""
    with _using(call, changes=False) as entry:
        return entry.model(version).weights


def snapshot(call: Call) -> Duals:
    """Return a copy of the duals of the shard."""
    with _using(call, changes=False) as entry:
        return entry.shard.snapshot()


@on_one_thread
def add(first: Contribution, second: Contribution) -> Contribution:
    """Add what two shards, or more, come to."""
    return first + second
