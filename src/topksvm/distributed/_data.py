"""The data of a fit on a cluster: which parts belong to which shard, and how to get them there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from topksvm.distributed._blocks import (
    Piece,
    Survey,
    check_surveys,
    group_blocks,
    read_block,
    survey,
)
from topksvm.distributed._memory import ShardSize
from topksvm.distributed._parts import import_dask, parts_of_column, parts_of_rows
from topksvm.distributed._placement import number_of_shards, place

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
        self.groups: list[list[Piece]] = []
        self.n_jobs: int | None = None
        self.missing = 0

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
        sizes = [part.n for part in self.surveys]
        wanted = number_of_shards(threads, n_jobs)
        groups = group_blocks(sizes, wanted)
        self.groups = [[Piece(part, 0, sizes[part]) for part in group] for group in groups]
        # Fewer parts than threads make fewer shards, which no worker that joins is to make up for.
        self.n_jobs, self.missing = n_jobs, wanted - len(groups)
        who_has = self.client.who_has(self.blocks)
        holders = [who_has.get(block.key, ()) for block in self.blocks or ()]
        return place(groups, sizes, holders, threads)

    def most_shards(self, threads: Mapping[str, int]) -> int:
        """Return how many shards there should be, now that the workers are these."""
        return number_of_shards(threads, self.n_jobs) - self.missing

    def split(self, number: int) -> int:
        """Make two shards of one, the second of them the last of all; return rows of the first."""
        group = self.groups[number]
        ends = np.cumsum([piece.n for piece in group])
        half = int(ends[-1]) // 2
        across = int(np.searchsorted(ends, half, side="right"))
        first, cut, second = group[:across], group[across], group[across + 1 :]
        middle = cut.stop - (int(ends[across]) - half)
        if middle > cut.start:
            first = [*first, Piece(cut.part, cut.start, middle)]
        self.groups[number] = first
        self.groups.append([Piece(cut.part, middle, cut.stop), *second])
        return half

    def read(self, number: int, worker: str) -> list[Any]:
        """Return the blocks of a shard as futures, from the data again if they were let go."""
        numbers = [piece.part for piece in self.groups[number]]
        if self.blocks is not None:
            return [self.blocks[part] for part in numbers]
        return self._read(numbers, workers=[worker], allow_other_workers=False)

    def let_go(self) -> None:
        """Let Dask forget the blocks, which the shards have by now."""
        self.blocks = None

    def sizes(self) -> list[int]:
        """Return the number of rows of each shard."""
        return [sum(piece.n for piece in group) for group in self.groups]

    def shard_sizes(self) -> list[ShardSize]:
        """Return what the rows of each shard take in memory."""
        sizes = []
        for n, group in zip(self.sizes(), self.groups, strict=True):
            parts = [self.surveys[piece.part] for piece in group]
            # One part that is mapped stays where it is; several are joined in memory.
            is_outside = len(parts) == 1 and parts[0].is_mapped
            n_bytes = 0 if is_outside else sum(part.n_bytes for part in parts)
            sizes.append(ShardSize(n, n_bytes, len(parts)))
        return sizes


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
