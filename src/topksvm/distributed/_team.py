"""Shards on the workers of a Dask cluster: where they are, rounds as task graphs, lost workers.

A round is one graph: every shard solves, the contributions are added by a tree, one task makes the
model, every shard evaluates it. Tasks on a shard are tied to its worker. The client gets a few
numbers; what is as large as the weights travels between workers.

If a worker is lost, tasks that are tied to it would wait for ever. So the driver looks now and then
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
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from topksvm.distributed import _tasks
from topksvm.distributed._data import DaskData
from topksvm.distributed._local_team import WeightsLostError
from topksvm.distributed._model import Evaluated, RoundResult, bytes_of_round
from topksvm.distributed._placement import Change, next_change, place_lost
from topksvm.distributed._shard import Order, can_extrapolate, rows_of_duals, tree_sum
from topksvm.distributed._tasks import Call, Setting
from topksvm.distributed._workers import ClientClosedError, Workers, WorkersLostError
from topksvm.solvers import SCALES, Duals

Floats = NDArray[np.floating[Any]]

MAX_REPAIRS = 20
"""Attempts at one round before it is given up."""

SNAPSHOT_ROUNDS = 5
"""Rounds between two snapshots of the duals."""

SNAPSHOT_BYTES = 1 << 28
"""The most that snapshots of all shards may take in the memory of the client."""


class DaskTeam:
    """The shards of a fit on a cluster; see :class:`topksvm.distributed._local_team.Team`.

    Parameters
    ----------
    client : Client
        Of the cluster.
    setting : Setting
        What all shards have in common.
    data : DaskData
        The rows of the shards.
    homes : list of str
        The worker of each shard.
    """

    def __init__(
        self,
        client: Any,
        setting: Setting,
        data: DaskData,
        homes: list[str],
    ) -> None:
        self.workers = Workers(client, setting.token)
        self.setting, self.data, self.homes = setting, data, list(homes)
        self.is_sparse = data.surveys[0].is_sparse
        self.can_extrapolate = can_extrapolate(setting.loss)
        self.size = (data.surveys[0].d + (setting.bias != 0.0)) * setting.classes.size
        self.version = self.judged = self.n_versions = self.n_calls = 0
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

    def start(self) -> None:
        """Have the shards built, after which they alone hold the rows."""
        self._repeat(self._build_all)
        self.data.let_go()

    def _build_all(self) -> None:
        # If workers have been lost meanwhile, all that is missing has been repaired.
        if self.version == 0:
            self._build(range(self.n_shards))

    def welcome(self) -> None:
        """See the protocol."""
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
        number, duals = change.number, self._recall(change.number)
        if not change.is_split:
            self.homes[number] = change.home
            return
        n = self.data.split(number)
        self.moved.add(self.n_shards)
        self.homes.append(change.home)
        self.snapshots[number] = rows_of_duals(duals, 0, n)
        self.snapshots.append(rows_of_duals(duals, n, duals.start.size))

    def _recall(self, number: int) -> Duals:
        """Return the duals of a shard, which is to be built again, from them."""
        duals: Any = self.snapshots[number]
        if number not in self.moved:  # It may have been recalled for another newcomer.
            duals = self._result(self._on_shard("snapshot", _tasks.snapshot, number))
            self.snapshots[number] = duals
            self.snapshot_bytes += sum(array.nbytes for array in duals)
            self._result(self._on_shard("release", _tasks.release, number))
            self.moved.add(number)
            self.needs_repair = True
        return cast(Duals, duals)

    def round(self, order: Order) -> RoundResult:
        """See the protocol."""
        self.must_undo = order.undo
        found: RoundResult = self._repeat(lambda: self._round(order))
        self._keep_snapshots()
        found = replace(found, n_lost=self.n_lost, snapshot_bytes=self.snapshot_bytes)
        self.n_lost = self.snapshot_bytes = 0
        return found

    def reject(self) -> None:
        """See the protocol."""
        self.version, self.judged = self.before

    def enlarge(self, factor: float) -> RoundResult:
        """See the protocol."""

        def attempt() -> RoundResult:
            new = self._new_version()
            parts = self._on_all(
                "enlarge", _tasks.evaluate_larger, new, self.version, factor, SCALES[:1]
            )
            return self._judge(parts, new)

        return self._repeat(attempt)

    def weights(self) -> Floats:
        """See the protocol."""
        for number, home in enumerate(self.homes):
            if home not in self.workers.threads():
                continue
            with suppress(WorkersLostError):
                future = self._on_shard("fetch", _tasks.fetch, number, self.judged)
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
        model = self._conclude(self._on_all("local-solve", _tasks.solve, self.version, order))
        n_workers = len(set(self.homes))
        n_bytes = bytes_of_round(self.size, self.setting.dtype, n_workers, order)
        new, old = self._new_version(), (self.version, self.judged)
        parts = self._on_all("certify", _tasks.evaluate, new, old, model, SCALES)
        found = self._judge(parts, new, n_bytes)
        self.before, self.version = old, new
        return found

    def _new_version(self) -> int:
        # Never one that was given before, as tasks of a round that has failed may still run.
        self.n_versions += 1
        return self.n_versions

    def _conclude(self, parts: list[Any]) -> Any:
        total = tree_sum(parts, lambda a, b: self.workers.submit("reduce", _tasks.add, a, b))
        return self.workers.submit("model", _tasks.conclude, total, self.setting.dtype)

    def _judge(self, futures: list[Any], version: int, n_bytes: int = 0) -> RoundResult:
        parts = self._results(futures)
        self.judged = version
        self.duals_bytes = sum(part.duals_bytes for part in parts)
        total = reduce(Evaluated.plus, (part.found for part in parts))
        seconds = max(part.seconds for part in parts)
        found: RoundResult = parts[0].model.result(total, seconds, n_bytes)
        return found

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
        model = self._conclude(undone)
        new = self._new_version()
        self._results(self._on_all("receive", _tasks.receive, new, (self.judged,), model))
        self.version = new
        self.must_undo = self.needs_repair = False
        self.moved.clear()

    def _build(self, numbers: Iterable[int]) -> None:
        built = [
            self._on_shard(
                "build",
                _tasks.build,
                number,
                self.setting,
                self.data.groups[number],
                self.data.read(number, self.homes[number]),
                self.snapshots[number],
            )
            for number in numbers
        ]
        self._results(built)

    def _on_all(self, name: str, task: Any, *args: Any) -> list[Any]:
        return [self._on_shard(name, task, number, *args) for number in range(self.n_shards)]

    def _on_shard(self, name: str, task: Any, number: int, *args: Any) -> Any:
        self.n_calls += 1
        call = Call(self.setting.token, number, self.n_calls)
        return self.workers.submit(name, task, call, *args, workers=[self.homes[number]])

    def _results(self, futures: list[Any]) -> list[Any]:
        return self.workers.results(futures, self.homes)

    def _result(self, future: Any) -> Any:
        return self.workers.result(future, self.homes)
