"""What a fit takes of a worker's memory, from the sizes alone, before anything is built."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

WEIGHTS_ARRAYS = 12
"""Arrays of the size of the weights, in float64, that a shard has at a time, at most."""

EXAMPLE_BYTES = 200
"""Labels, weights, norms, candidates and places in the log of the duals of an example."""

DUAL_BYTES = 64
"""For each dual variable: the log, with room for half as many again, and up to four copies."""

EXTRA_DUALS = 16
"""Variables of an example that are not zero beyond `k`, for a hinge."""


@dataclass(frozen=True)
class ShardSize:
    """Rows of a shard, the bytes they take, and the parts that they come in."""

    n: int
    n_bytes: int
    n_parts: int


def duals_per_example(loss: Any, m: int) -> int:
    """Return about how many variables of an example are not zero."""
    if not getattr(loss, "has_sparse_duals", False):
        return m
    return min(m, int(loss.k) + EXTRA_DUALS)


def bytes_of_shard(size: ShardSize, n_weights: int, n_duals: int) -> int:
    """Return about what a shard takes: rows, duals and weights.

    Rows that come in several parts are there twice while they are joined.
    """
    rows = size.n_bytes * (2 if size.n_parts > 1 else 1)
    return rows + size.n * (EXAMPLE_BYTES + DUAL_BYTES * n_duals) + 8 * WEIGHTS_ARRAYS * n_weights


def bytes_of_worker(
    sizes: Sequence[ShardSize], homes: Sequence[str], n_weights: int, n_duals: int
) -> int:
    """Return about what the worker that has most to hold takes."""
    total: Counter[str] = Counter()
    for size, home in zip(sizes, homes, strict=True):
        total[home] += bytes_of_shard(size, n_weights, n_duals)
    return max(total.values())


def check_memory(n_bytes: int, limit: int | None) -> None:
    """Complain if a worker would take more than the limit."""
    if limit is not None and n_bytes > limit:
        raise ValueError(
            f"A worker would need about {n_bytes / 1e6:.1f} MB for its rows, duals and weights, "
            f"but memory_limit = {limit} allows {limit / 1e6:.1f} MB. Use more workers or fewer "
            "threads on each, parts that are .npy files, or a larger limit."
        )
