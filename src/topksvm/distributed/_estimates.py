"""What a fit takes of memory and network, from the sizes alone, before anything is built.

The constants of memory are counts of arrays, which a test compares with what is allocated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

WEIGHTS_ARRAYS = 12
"""Arrays of the size of the weights, in float64, that a shard has at a time, at most."""

EXAMPLE_BYTES = 200
"""Labels, weights, norms, candidates and places in the log of the duals of an example."""

DUAL_BYTES = 64
"""For each dual variable: the log, with room for half as many again, and up to four copies."""

EXTRA_DUALS = 16
"""Variables of an example that are not zero beyond `k`, for a hinge."""

LATENCY = 0.03
"""Seconds that a round in which nothing is computed or sent takes at least: 0.03 to 0.08, measured
with two worker processes."""

BANDWIDTH = 1e9
"""Bytes per second between workers: 10 Gbit/s, with something lost."""

SPEED = 5e9
"""Multiplications per second in a pass on one thread."""

MAX_PASSES = 4
"""Passes of a shard in a round, at most: with 11 there are as many rounds, with 2 some 2 % more."""

SINGLE_PASSES = 11
"""Passes between two certificates if there is one shard; more would not pay, and are not made."""


def duals_per_example(loss: Any, m: int) -> int:
    """Return about how many variables of an example are not zero."""
    k = int(loss.k) if loss.traits.uses_k else 1
    return min(m, k + EXTRA_DUALS) if loss.traits.sparse_duals else m


def bytes_of_shard(n: int, n_bytes: int, n_weights: int, n_duals: int) -> int:
    """Return about what a shard of `n` rows, which take so many bytes, takes in all."""
    return n_bytes + n * (EXAMPLE_BYTES + DUAL_BYTES * n_duals) + 8 * WEIGHTS_ARRAYS * n_weights


def bytes_of_worker(shards: Sequence[int], homes: Sequence[str]) -> int:
    """Return about what the worker that has most to hold takes, given the bytes of each shard."""
    total: Counter[str] = Counter()
    for n_bytes, home in zip(shards, homes, strict=True):
        total[home] += n_bytes
    return max(total.values())


def check_memory(n_bytes: int, limit: int | None) -> None:
    """Complain if a worker would take more than the limit."""
    if limit is not None and n_bytes > limit:
        raise ValueError(
            f"A worker would need about {n_bytes / 1e6:.1f} MB for its rows, duals and weights, "
            f"but memory_limit = {limit} allows {limit / 1e6:.1f} MB. Use more workers or fewer "
            "threads on each, parts that are .npy files, or a larger limit."
        )


def bytes_of_round(n_weights: int, dtype: Any, n_workers: int, *, extrapolates: bool) -> int:
    """Return what travels: float64 sums up the tree, and the weights to all workers."""
    up = 8 * (2 if extrapolates else 1)
    return (n_workers - 1) * n_weights * (up + np.dtype(dtype).itemsize)


def choose_passes(n_rows: int, d: int, m: int, k: int, n_bytes: int) -> int:
    """Return the passes of a shard in a round for which computing takes as long as communicating.

    One full pass and one active pass do most of what a shard can do in a round: the ``sigma`` that
    many shards need decides how many rounds there are. Further ones are active passes, which look
    at about ``k + 8`` of the `m` classes, for as long as the network would take anyway.

    From the sizes alone, with the constants above, and not by the clock: a fit can be repeated.
    """
    communication = LATENCY + n_bytes / BANDWIDTH
    active_pass = n_rows * d * min(m, k + 8) / SPEED
    return int(np.clip(1 + communication / max(active_pass, 1e-9), 2, MAX_PASSES))
