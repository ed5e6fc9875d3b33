"""Which shard has which rows, and which worker has it: at the start, and as workers come and go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Change:
    """A shard, or the second half of it, goes to another worker."""

    number: int
    home: str
    is_split: bool


def number_of_shards(threads: Mapping[str, int], n_jobs: int | None) -> int:
    """Return how many shards the cluster has room for: a thread each, at most `n_jobs`."""
    n_slots = sum(threads.values())
    if n_jobs is None:
        return n_slots
    return min(n_jobs, n_slots) if n_jobs > 0 else max(1, n_slots + 1 + n_jobs)


def group_blocks(sizes: Sequence[int], n_groups: int) -> list[list[int]]:
    """Return groups of neighbouring blocks with about equally many rows, none of them empty.

    The groups depend on the data and on how many are wanted, not on where the blocks are, so that
    the result of a fit does not depend on that either.
    """
    filled = [number for number, size in enumerate(sizes) if size]
    n_groups = min(n_groups, len(filled))
    rows = np.array([sizes[number] for number in filled])
    wanted = np.floor((np.cumsum(rows) - 0.5 * rows) / rows.sum() * n_groups).astype(int)
    groups: list[list[int]] = [[] for _ in range(n_groups)]
    now = 0
    for place, number in enumerate(filled):
        # No group may stay empty: each takes one at least, and leaves one for each after it.
        if groups[now] and now < n_groups - 1:
            must = len(filled) - place <= n_groups - 1 - now
            now += bool(must or wanted[place] > now)
        groups[now].append(number)
    return groups


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


def place_lost(homes: list[str], lost: Iterable[int], threads: Mapping[str, int]) -> None:
    """Give the lost shards to workers that have least to do, in place."""
    lost = list(lost)
    load = Counter(home for number, home in enumerate(homes) if number not in lost)
    for number in lost:
        homes[number] = min(threads, key=lambda worker: (load[worker] / threads[worker], worker))
        load[homes[number]] += 1


def next_change(
    homes: Sequence[str], sizes: Sequence[int], threads: Mapping[str, int], most: int
) -> Change | None:
    """Return what to give to a worker with a free thread: a shard of one that has too many.

    If there is none, half of the largest shard, unless there are `most` shards already.
    """
    load = Counter(homes)
    free = {worker: n - load[worker] for worker, n in threads.items() if n > load[worker]}
    if not free or not set(homes) <= set(threads):  # What is lost comes first.
        return None
    home = max(sorted(free), key=lambda worker: free[worker])
    for number, worker in enumerate(homes):
        if load[worker] > threads[worker]:
            return Change(number, home, is_split=False)
    largest = max(range(len(homes)), key=lambda number: sizes[number])
    if len(homes) < most and sizes[largest] > 1:
        return Change(largest, home, is_split=True)
    return None
