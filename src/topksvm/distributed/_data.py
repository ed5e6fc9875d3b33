"""The data of a fit on a cluster: which parts belong to which shard, and how to get them there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from topksvm.distributed._blocks import Piece, Survey, check_surveys, read_block, survey
from topksvm.distributed._parts import import_dask, parts_of
from topksvm.distributed._placement import group_blocks, number_of_shards, place


class DaskData:
    """Delayed parts of X, y and sample weights; computed on workers, where they stay."""

    def __init__(
        self, client: Any, token: str, X: Any, y: Any, sample_weight: Any, dtype: str | None
    ) -> None:
        self.client, self.token, self.dtype = client, token, dtype
        self.parts = parts_of(X, y, sample_weight)
        self.n_read = 0
        self.blocks: list[Any] | None = self._read(range(len(self.parts)))
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

    def sizes(self) -> list[int]:
        """Return the number of rows of each shard."""
        return [sum(piece.n for piece in group) for group in self.groups]

    def bytes_of_rows(self) -> list[int]:
        """Return what the rows of each shard take in memory, at most.

        One part that is mapped stays where it is; several are there twice while they are joined.
        """
        parts = [[self.surveys[piece.part] for piece in group] for group in self.groups]
        return [
            2 * sum(part.n_bytes for part in some)
            if len(some) > 1
            else some[0].n_bytes * (not some[0].is_mapped)
            for some in parts
        ]
