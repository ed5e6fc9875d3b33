"""Sparse dual variables: a log of the non-zeros, compacted when it is full.

Each step appends the new variables of its example and forgets the old ones, so kernels never move
memory; between passes the log is rewritten when half of it is garbage. The memory is in proportion
to the number of non-zeros.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topksvm._numba import kernel

LEAST_ROOM = 1 << 14
"""Room for new entries in a log, however few examples there are."""


class Duals(NamedTuple):
    """The variables ``x_i > 0`` of example ``i``: ``count[i]`` of them from ``start[i]`` on."""

    start: NDArray[np.int64]
    count: NDArray[np.int32]  # type: ignore[assignment]
    classes: NDArray[np.int32]
    values: NDArray[np.float64]
    used: NDArray[np.int64]


def empty_duals(n: int, room: int) -> Duals:
    """Return duals that are all zero, with room for `room` entries in the log."""
    return Duals(
        np.zeros(n, np.int64),
        np.zeros(n, np.int32),
        np.empty(room, np.int32),
        np.empty(room),
        np.zeros(1, np.int64),
    )


def with_room(duals: Duals, room: int) -> Duals:
    """Return `duals` with room for at least `room` more entries, in a new log if need be."""
    if duals.used[0] + room <= duals.classes.size:
        return duals
    live, n = int(duals.count.sum()), duals.start.size
    # Half as much again as is in use, or one for each example if that is more: a copy looks at
    # every example, and should stay a small part of the work.
    fresh = empty_duals(n, live + room + max(live // 2, n, LEAST_ROOM))
    copy_live(duals, fresh)
    return fresh


def snapshot(duals: Duals) -> Duals:
    """Return a copy of the entries in use."""
    copy = empty_duals(duals.start.size, int(duals.count.sum()))
    copy_live(duals, copy)
    return copy


def remember(duals: Duals) -> Duals:
    """Return the duals as they are now, at the price of their places in the log.

    What is in the log stays as it is: steps append to it, and a log that is full is replaced.
    """
    return duals._replace(start=duals.start.copy(), count=duals.count.copy())


@kernel
def copy_live(source, target):
    """Copy the entries in use to the log of `target`."""
    used = 0
    for i in range(source.start.size):
        target.start[i] = used
        target.count[i] = source.count[i]
        for p in range(source.start[i], source.start[i] + source.count[i]):
            target.classes[used] = source.classes[p]
            target.values[used] = source.values[p]
            used += 1
    target.used[0] = used
