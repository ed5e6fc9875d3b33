"""Shards on the workers of a Dask cluster: where they are, rounds as task graphs, lost workers.

A round is one graph: every shard solves, the contributions are added by a tree, one task makes the
model, every shard evaluates it. Tasks on a shard are tied to its worker. The client gets a few
numbers; what is as large as the weights travels between workers.

If a worker is lost, tasks that are tied to it would wait for ever. So the driver looks now and then
which workers there are. A shard that is gone is rebuilt on another worker from its part of the data
and the last snapshot of its duals, or from zero. Then all shards say what their duals come to as
they are: that is a consistent start, whatever had been done of the round. A certificate needs no
more than that: it is about one model and one dual point, and holds whatever happens later.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm.distributed import _tasks
from topksvm.distributed._cocoa import WeightsLostError
from topksvm.distributed._data import DaskData
from topksvm.distributed._model import Standing, bytes_of_round, conclude
from topksvm.distributed._parts import import_dask
from topksvm.distributed._shard import Order, can_go_on, tree_sum
from topksvm.distributed._tasks import Setting, ShardLostError
from topksvm.solvers._certificate import SCALES
from topksvm.solvers._duals import Duals

Floats = NDArray[np.floating[Any]]

POLL = 0.5
"""Seconds between two looks at which workers there are."""

PATIENCE = 60.0
"""Seconds to wait for a worker if there is none."""

MAX_REPAIRS = 20
"""Attempts at one round before it is given up."""

SNAPSHOT_ROUNDS = 5
"""Rounds between two snapshots of the duals."""

SNAPSHOT_BYTES = 1 << 28
"""The most that snapshots of all shards may take in the memory of the client."""


class WorkersLostError(RuntimeError):
    """What was asked of the workers cannot be had any more."""


class DaskTeam:
    """The shards of a fit on a cluster; see :class:`topksvm.distributed._cocoa.Team`.

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
        self.client, self.setting, self.data, self.homes = client, setting, data, list(homes)
        self.n_shards, self.is_sparse = len(homes), data.surveys[0].is_sparse
        self.can_go_on = can_go_on(setting.loss)
        self.size = (data.surveys[0].d + (setting.bias != 0.0)) * setting.classes.size
        self.n_submitted = 0
        self.version = self.judged = self.previous = self.n_versions = 0
        self.snapshots: list[Duals | None] = [None] * self.n_shards
        self.rounds_since_snapshot = 0
        self.duals_bytes = 0
        self.n_lost = 0

    def start(self) -> None:
        """Have the shards built, after which they alone hold the rows."""
        self._repeat(self._build_all)
        self.data.let_go()

    def _build_all(self) -> None:
        # If workers have been lost meanwhile, all that is missing has been repaired.
        if self.version == 0:
            self._build(range(self.n_shards))

    def round(self, order: Order) -> Standing:
        """See the protocol."""
        self.n_lost = 0
        standing: Standing = self._repeat(lambda: self._round(order))
        self._keep_snapshots()
        return replace(standing, n_lost=self.n_lost)

    def reject(self) -> None:
        """See the protocol."""
        self.version = self.judged = self.previous

    def enlarge(self, factor: float) -> Standing:
        """See the protocol."""

        def attempt() -> Standing:
            new = self._new_version()
            parts = self._on_all(
                "enlarge", _tasks.evaluate_larger, new, self.version, factor, SCALES[:1]
            )
            return self._judge(parts, new)

        return self._repeat(attempt)

    def weights(self) -> Floats:
        """See the protocol."""
        for number, home in enumerate(self.homes):
            if home not in self.client.nthreads():
                continue
            with suppress(WorkersLostError):
                weights = self._result(self._on_shard("fetch", _tasks.fetch, number, self.judged))
                return np.ascontiguousarray(weights.T) if self.is_sparse else weights
        raise WeightsLostError("All workers that had the weights were lost.")

    def close(self) -> None:
        """Forget the shards, on all workers that can be reached."""
        with suppress(OSError, TimeoutError):  # If not even the scheduler is left.
            alive = self.client.nthreads()
            there = [number for number, home in enumerate(self.homes) if home in alive]
            futures = [self._on_shard("release", _tasks.release, number) for number in there]
            import_dask().distributed.wait(futures, timeout=PATIENCE)

    def _round(self, order: Order) -> Standing:
        model = self._conclude(self._on_all("local-solve", _tasks.solve, self.version, order))
        n_workers = len(set(self.homes))
        n_bytes = bytes_of_round(self.size, self.setting.dtype, n_workers, order)
        new = self._new_version()
        parts = self._on_all("evaluate", _tasks.evaluate, new, model, SCALES)
        standing = self._judge(parts, new, n_bytes)
        self.previous, self.version = self.version, new
        return standing

    def _new_version(self) -> int:
        # Never one that was given before, as tasks of a round that has failed may still run.
        self.n_versions += 1
        return self.n_versions

    def _conclude(self, parts: list[Any]) -> Any:
        total = tree_sum(parts, lambda a, b: self._submit("reduce", _tasks.add, a, b))
        return self._submit("conclude", conclude, total, self.setting.dtype)

    def _judge(self, futures: list[Any], version: int, n_bytes: int = 0) -> Standing:
        parts = self._results(futures)
        self.judged = version
        self.duals_bytes = sum(part.duals_bytes for part in parts)
        losses = np.sum([part.losses for part in parts], axis=0)
        seconds = max(part.seconds for part in parts)
        standing: Standing = parts[0].model.standing(losses, seconds, n_bytes)
        return standing

    def _keep_snapshots(self) -> None:
        self.rounds_since_snapshot += 1
        if self.rounds_since_snapshot < SNAPSHOT_ROUNDS or self.duals_bytes > SNAPSHOT_BYTES:
            return
        # If a worker is lost now, the next round finds out.
        with suppress(WorkersLostError):
            self.snapshots = self._results(self._on_all("snapshot", _tasks.snapshot))
            self.rounds_since_snapshot = 0

    def _repeat(self, attempt: Callable[[], Any]) -> Any:
        """Return what `attempt` returns, however many workers are lost meanwhile."""
        needs_repair = False
        for _ in range(MAX_REPAIRS):
            try:
                if needs_repair:
                    self._repair()
                return attempt()
            except WorkersLostError:
                needs_repair = True
        raise RuntimeError(
            f"Workers were lost {MAX_REPAIRS} times in one round; see the logs of the workers. If "
            "they ran out of memory, use more of them. If X was scattered, its lost parts cannot "
            "be computed again: pass X as files or as a collection that reads them."
        )

    def _repair(self) -> None:
        """Rebuild the shards that are gone, and make the weights those of the duals again."""
        alive = self._workers()
        there = [number for number, home in enumerate(self.homes) if home in alive]
        found = [self._on_shard("find", _tasks.has_shard, number) for number in there]
        kept = {n for n, is_here in zip(there, self._results(found), strict=True) if is_here}
        gone = [number for number in range(self.n_shards) if number not in kept]
        self.n_lost += len(gone)
        load = Counter(dict.fromkeys(alive, 0))
        load.update(self.homes[number] for number in kept)
        for number in gone:
            self.homes[number] = min(
                load, key=lambda worker: (load[worker] / alive[worker], worker)
            )
            load[self.homes[number]] += 1
        self._build(gone)
        model = self._conclude(self._on_all("contribute", _tasks.contribute))
        new = self._new_version()
        self._results(self._on_all("receive", _tasks.receive, new, model))
        self.version = new

    def _build(self, numbers: Sequence[int]) -> None:
        built = [
            self._on_worker(
                "build",
                _tasks.build,
                number,
                self.setting,
                number,
                self.data.read(number, self.homes[number]),
                self.snapshots[number],
            )
            for number in numbers
        ]
        self._results(built)

    def _workers(self) -> dict[str, int]:
        """Return the workers with their threads; wait for one if there is none."""
        deadline = time.monotonic() + PATIENCE
        while not (alive := self.client.nthreads()):
            if time.monotonic() > deadline:
                raise RuntimeError(
                    f"The cluster has had no worker for {PATIENCE:.0f} s; start workers and fit "
                    "again."
                )
            time.sleep(POLL)
        return dict(alive)

    def _on_all(self, name: str, task: Any, *args: Any) -> list[Any]:
        return [self._on_shard(name, task, number, *args) for number in range(self.n_shards)]

    def _on_shard(self, name: str, task: Any, number: int, *args: Any) -> Any:
        return self._on_worker(name, task, number, self.setting.token, number, *args)

    def _on_worker(self, name: str, task: Any, number: int, *args: Any) -> Any:
        return self._submit(name, task, *args, workers=[self.homes[number]])

    def _submit(self, name: str, task: Any, *args: Any, **options: Any) -> Any:
        # Numbered, as a task that changes a shard must never be taken for one that is done.
        self.n_submitted += 1
        key = f"topksvm-{name}-{self.n_submitted}-{self.setting.token}"
        return self.client.submit(task, *args, key=key, pure=False, **options)

    def _results(self, futures: list[Any]) -> list[Any]:
        """Return the results of all; they should be small."""
        return self._result(self._submit("collect", _tasks.collect, futures)) if futures else []

    def _result(self, future: Any) -> Any:
        """Return the result, unless it can never be had, since a worker is gone."""
        distributed = import_dask().distributed
        while True:
            try:
                return future.result(timeout=POLL)
            except TimeoutError:
                if future.status == "error":
                    raise
                if not set(self.homes) <= set(self.client.nthreads()):
                    raise WorkersLostError from None
            except (ShardLostError, distributed.KilledWorker, CancelledError) as error:
                raise WorkersLostError from error
