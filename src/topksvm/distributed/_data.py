"""The data of a fit on a cluster: which parts belong to which shard, and how to get them there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from topksvm.distributed._blocks import Survey, check_surveys, group_blocks, read_block, survey
from topksvm.distributed._parts import import_dask, parts_of_column, parts_of_rows

LATENCY = 0.03
"""Seconds that a round of tasks takes in which nothing is computed and nothing sent."""

BANDWIDTH = 1e9
"""Bytes per second between workers: 10 Gbit/s, with something lost."""

SPEED = 5e9
"""Multiplications per second in a pass on one thread."""

MAX_PASSES = 4
"""Passes of a shard in a round, at most; beyond that it solves its own problem, not the whole."""

ALONE = 11
"""Passes between two certificates if there is one shard, as on one machine."""


class DaskData:
    """Delayed parts of X, y and sample weights; computed on workers, where they stay."""

    def __init__(
        self, client: Any, token: str, X: Any, y: Any, sample_weight: Any, dtype: str | None
    ) -> None:
        self.client, self.token, self.dtype = client, token, dtype
        rows = parts_of_rows(X)
        labels = parts_of_column(y, X, len(rows), "y")
        weights: list[Any] = [None] * len(rows)
        if sample_weight is not None:
            weights = parts_of_column(sample_weight, X, len(rows), "sample_weight")
        self.parts = list(zip(rows, labels, weights, strict=True))
        self.n_read = 0
        self.blocks: list[Any] | None = self._read(range(len(rows)))
        self.surveys: list[Survey] = client.gather(
            [
                client.submit(survey, block, key=f"topksvm-survey-{number}-{token}")
                for number, block in enumerate(self.blocks)
            ]
        )
        check_surveys(self.surveys)
        self.groups: list[list[int]] = []

    def _read(self, numbers: Sequence[int], **options: Any) -> list[Any]:
        self.n_read += 1
        read = import_dask().delayed(read_block, pure=False)
        tasks = [
            read(
                number,
                *self.parts[number],
                self.dtype,
                dask_key_name=f"topksvm-rows-{number}-{self.n_read}-{self.token}",
            )
            for number in numbers
        ]
        return list(self.client.compute(tasks, **options))

    def place(self, n_jobs: int | None) -> list[str]:
        """Form a shard for each thread of the cluster, or `n_jobs`; return their workers."""
        threads = dict(self.client.nthreads())
        n_slots = sum(threads.values())
        if n_jobs is not None:
            n_slots = min(n_jobs, n_slots) if n_jobs > 0 else max(1, n_slots + 1 + n_jobs)
        sizes = [part.n for part in self.surveys]
        self.groups = group_blocks(sizes, n_slots)
        who_has = self.client.who_has(self.blocks)
        holders = [who_has.get(block.key, ()) for block in self.blocks or ()]
        return place(self.groups, sizes, holders, threads)

    def read(self, number: int, worker: str) -> list[Any]:
        """Return the blocks of a shard as futures, from the data again if they were let go."""
        group = self.groups[number]
        if self.blocks is not None:
            return [self.blocks[part] for part in group]
        return self._read(group, workers=[worker], allow_other_workers=False)

    def let_go(self) -> None:
        """Let Dask forget the blocks, which the shards have by now."""
        self.blocks = None

    def rows_of_largest_shard(self) -> int:
        """Return the number of rows of the largest shard."""
        return max(sum(self.surveys[part].n for part in group) for group in self.groups)


def place(
    groups: Sequence[Sequence[int]],
    sizes: Sequence[int],
    holders: Sequence[Sequence[str]],
    threads: Mapping[str, int],
) -> list[str]:
    """Return a worker for each group: one that has most of its rows, if a thread of it is free."""
    free = dict(threads)
    homes = []
    for group in groups:
        rows: Counter[str] = Counter()
        for part in group:
            rows.update(dict.fromkeys(holders[part], sizes[part]))
        there = [worker for worker in sorted(free) if free[worker] > 0]
        homes.append(max(there, key=lambda worker: (rows[worker], free[worker])))
        free[homes[-1]] -= 1
    return homes


def choose_passes(n_rows: int, d: int, m: int, k: int, n_bytes: int) -> int:
    """Return the passes of a shard in a round for which computing takes as long as communicating.

    One full pass and one active pass do most of what a shard can do in a round: the caution that
    many shards need decides how many rounds there are. Further ones are active passes, which look
    at about ``k + 8`` of the `m` classes, for as long as the network would take anyway.

    From the sizes alone, with the constants above, and not by the clock: a fit can be repeated.
    """
    communication = LATENCY + n_bytes / BANDWIDTH
    active_pass = n_rows * d * min(m, k + 8) / SPEED
    return int(np.clip(1 + communication / max(active_pass, 1e-9), 2, MAX_PASSES))
