"""Shards on the workers of a Dask cluster: where they are, rounds as task graphs, lost workers.

A round is one graph: every shard solves, the contributions are added by a tree, one task makes the
model, every shard evaluates it. Tasks on a shard are tied to its worker. The client gets a few
numbers; what is as large as the weights travels between workers.

If a worker is lost, tasks that are tied to it would wait for ever. So the client looks now and then
which workers there are. A shard that is gone is rebuilt on another worker from its part of the data
and the last snapshot of its duals, or from zero. Then all shards say what their duals come to as
they are: that is a consistent start, whatever had been done of the round. A certificate needs no
more than that: it is about one model and one dual point, and holds whatever happens later.

A worker that has joined gets a shard of one that has too many, or half of the largest, with the
duals that belong to it: it is rebuilt there in the same way, and nothing of it is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm.distributed import _tasks
from topksvm.distributed._cocoa import WeightsLostError
from topksvm.distributed._data import DaskData
from topksvm.distributed._estimates import (
    bytes_of_round,
    bytes_of_shard,
    bytes_of_worker,
    duals_per_example,
)
from topksvm.distributed._model import RoundResult, make_model
from topksvm.distributed._placement import Change, next_change, place_lost
from topksvm.distributed._shard import Order, rows_of_duals, tree_sum
from topksvm.distributed._tasks import Call, ShardSetup
from topksvm.distributed._workers import ClientClosedError, Workers, WorkersLostError
from topksvm.solvers import SCALES, Duals

Floats = NDArray[np.floating[Any]]

MAX_REPAIRS = 20
"""Attempts at one round before it is given up."""

SNAPSHOT_ROUNDS = 5
"""Rounds between two snapshots of the duals."""

SNAPSHOT_BYTES = 1 << 28
"""The most that snapshots of all shards may take in the memory of the client."""


class DaskShards:
    """The shards of a fit on a cluster; see :class:`~topksvm.distributed._cocoa.Shards`.

    Models are known by numbers, their versions: that of the last round, and that which was
    evaluated last, whose weights may be larger.

    Parameters
    ----------
    client : Client
        Of the cluster.
    setup : ShardSetup
        What all shards have in common.
    data : DaskData
        The rows of the shards.
    homes : list of str
        The worker of each shard.
    """

    def __init__(self, client: Any, setup: ShardSetup, data: DaskData, homes: list[str]) -> None:
        self.workers = Workers(client, setup.token)
        self.setup, self.data, self.homes = setup, data, list(homes)
        self.m, first = setup.classes.size, data.surveys[0]
        self.is_sparse = first.is_sparse
        self.n_weights = (first.d + (setup.bias != 0.0)) * self.m
        self.can_extrapolate = setup.loss.traits.has_feasible_step
        self.version = self.evaluated = self.n_versions = self.n_calls = 0
        self.before = (0, 0)
        self.snapshots: list[Duals | None] = [None] * self.n_shards
        self.rounds_since_snapshot = 0
        self.duals_bytes = self.snapshot_bytes = self.n_lost = 0
        self.must_undo = self.needs_repair = False
        self.moved: set[int] = set()

    @property
    def n_shards(self) -> int:
        """The number of shards."""
        return len(self.homes)

    @property
    def worker_bytes(self) -> int:
        """What the worker with most to hold needs of its memory."""
        n_duals = duals_per_example(self.setup.loss, self.m)
        sizes = zip(self.data.sizes(), self.data.bytes_of_rows(), strict=True)
        shards = [bytes_of_shard(*size, self.n_weights, n_duals) for size in sizes]
        return bytes_of_worker(shards, self.homes)

    def bytes_of_round(self, order: Order) -> int:
        """Return how many bytes travel between workers in a round."""
        sizes = self.n_weights, self.setup.dtype, len(set(self.homes))
        return bytes_of_round(*sizes, extrapolates=order.reach > 0.0)

    def start(self) -> None:
        """Have the shards built, after which they alone hold the rows."""

        def build() -> None:
            if self.version == 0:  # Otherwise workers were lost, and all has been repaired.
                self._build(range(self.n_shards))

        self._repeat(build)
        self.data.blocks = None  # Dask may forget them, as the shards have them by now.

    def rebalance(self) -> None:
        """Give shards, or halves of them, to workers with free threads."""
        if self.duals_bytes > SNAPSHOT_BYTES:
            return
        # If a worker is lost now, the next round finds out.
        with suppress(WorkersLostError):
            while True:
                threads = self.workers.threads()
                most = self.data.most_shards(threads)
                change = next_change(self.homes, self.data.sizes(), threads, most)
                if change is None:
                    return
                self._carry_out(change)

    def _carry_out(self, change: Change) -> None:
        number = change.number
        if number not in self.moved:  # It may have been moved for another newcomer.
            self._recall(number)
        if not change.is_split:
            self.homes[number] = change.home
            return
        n, duals = self.data.split(number), self.snapshots[number]
        assert duals is not None
        self.moved.add(self.n_shards)
        self.homes.append(change.home)
        self.snapshots[number] = rows_of_duals(duals, 0, n)
        self.snapshots.append(rows_of_duals(duals, n, duals.start.size))

    def _recall(self, number: int) -> None:
        """Take a shard from its worker; it is to be built again, from its duals."""
        (duals,) = self._results([self._on_shard("snapshot", _tasks.snapshot, number)])
        self.snapshots[number] = duals
        self.snapshot_bytes += sum(array.nbytes for array in duals)
        self._results([self._on_shard("release", _tasks.release, number)])
        self.moved.add(number)
        self.needs_repair = True

    def round(self, order: Order) -> RoundResult:
        """Have all shards carry out the order; some of them may be rebuilt for it."""
        self.must_undo = order.undo
        result: RoundResult = self._repeat(lambda: self._round(order))
        self._keep_snapshots()
        result = replace(result, n_lost=self.n_lost, snapshot_bytes=self.snapshot_bytes)
        self.n_lost = self.snapshot_bytes = 0
        return result

    def reject(self) -> None:
        """Return to the model before the last round."""
        self.version, self.evaluated = self.before

    def enlarge(self, factor: float) -> RoundResult:
        """Evaluate the model with weights that are larger than those of the duals."""

        def attempt() -> RoundResult:
            new, scales = self._new_version(), SCALES[:1]
            args = new, self.version, factor, scales
            return self._evaluated(self._on_all("enlarge", _tasks.evaluate_larger, *args), new)

        return self._repeat(attempt)

    def weights(self) -> Floats:
        """Return the weights evaluated last as ``(m, d)``."""
        for number, home in enumerate(self.homes):
            if home not in self.workers.threads():
                continue
            with suppress(WorkersLostError):
                future = self._on_shard("fetch", _tasks.fetch, number, self.evaluated)
                weights: Floats = self.workers.result(future, [home])
                return np.ascontiguousarray(weights.T) if self.is_sparse else weights
        raise WeightsLostError("All workers that had the weights were lost.")

    def close(self) -> None:
        """Forget the shards, on all workers that can be reached."""
        # If not even the scheduler is left, or the client has been closed.
        with suppress(OSError, TimeoutError, ClientClosedError):
            alive = self.workers.threads()
            there = [number for number, home in enumerate(self.homes) if home in alive]
            self.workers.settle(
                [self._on_shard("release", _tasks.release, number) for number in there]
            )

    def _round(self, order: Order) -> RoundResult:
        order = replace(order, undo=self.must_undo)
        model = self._make_model(self._on_all("local-solve", _tasks.solve, self.version, order))
        new, old = self._new_version(), (self.version, self.evaluated)
        futures = self._on_all("certify", _tasks.evaluate, new, old, model, SCALES)
        result = self._evaluated(futures, new)
        self.before, self.version = old, new
        return replace(result, n_bytes=self.bytes_of_round(order))

    def _new_version(self) -> int:
        # Never one that was given before, as tasks of a round that has failed may still run.
        self.n_versions += 1
        return self.n_versions

    def _make_model(self, parts: list[Any]) -> Any:
        total = tree_sum(parts, lambda a, b: self.workers.submit("reduce", _tasks.add, a, b))
        return self.workers.submit("model", make_model, total, self.m, self.setup.dtype)

    def _evaluated(self, futures: list[Any], version: int) -> RoundResult:
        results = self._results(futures)
        self.evaluated = version
        found = reduce(add, (evaluation for _, evaluation in results))
        self.duals_bytes = found.duals_bytes
        return RoundResult(results[0][0], found)

    def _keep_snapshots(self) -> None:
        self.rounds_since_snapshot += 1
        if self.rounds_since_snapshot < SNAPSHOT_ROUNDS or self.duals_bytes > SNAPSHOT_BYTES:
            return
        # If a worker is lost now, the next round finds out.
        with suppress(WorkersLostError):
            self.snapshots = self._results(self._on_all("snapshot", _tasks.snapshot))
            self.rounds_since_snapshot = 0
            self.snapshot_bytes += self.duals_bytes

    def _repeat(self, attempt: Callable[[], Any]) -> Any:
        """Return what `attempt` returns, however many workers are lost meanwhile."""
        for _ in range(MAX_REPAIRS):
            try:
                if self.needs_repair:
                    self._repair()
                return attempt()
            except WorkersLostError:
                self.needs_repair = True
        raise RuntimeError(
            f"Workers were lost {MAX_REPAIRS} times in one round; see the logs of the workers. If "
            "they ran out of memory, use more of them. If X was scattered, its lost parts cannot "
            "be computed again: pass X as files or as a collection that reads them."
        )

    def _repair(self) -> None:
        """Build the shards that are not there, and make the weights those of the duals again."""
        alive = self.workers.wait()
        there = [number for number, home in enumerate(self.homes) if home in alive]
        found = [self._on_shard("find", _tasks.has_shard, number) for number in there]
        answers = self.workers.results(found, [self.homes[number] for number in there])
        kept = {n for n, is_here in zip(there, answers, strict=True) if is_here}
        gone = [number for number in range(self.n_shards) if number not in kept]
        self.n_lost += len(set(gone) - self.moved)
        place_lost(self.homes, [n for n in gone if self.homes[n] not in alive], alive)
        self._build(gone)
        undone = self._on_all("contribute", _tasks.contribute, self.must_undo)
        new, args = self._new_version(), (self._make_model(undone), SCALES[:1])
        self._results(self._on_all("restore", _tasks.evaluate, new, (self.evaluated,), *args))
        self.version = new
        self.must_undo = self.needs_repair = False
        self.moved.clear()

    def _build(self, numbers: Iterable[int]) -> None:
        built = []
        for number in numbers:
            blocks = self.data.read(number, self.homes[number])
            args = self.setup, self.data.groups[number], blocks, self.snapshots[number]
            built.append(self._on_shard("build", _tasks.build, number, *args))
        self._results(built)

    def _on_all(self, name: str, task: Any, *args: Any) -> list[Any]:
        return [self._on_shard(name, task, number, *args) for number in range(self.n_shards)]

    def _on_shard(self, name: str, task: Any, number: int, *args: Any) -> Any:
        self.n_calls += 1
        call = Call(self.setup.token, number, self.n_calls)
        return self.workers.submit(name, task, call, *args, workers=[self.homes[number]])

    def _results(self, futures: list[Any]) -> list[Any]:
        return self.workers.results(futures, self.homes)
