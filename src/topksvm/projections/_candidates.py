"""Find the few entries that can be positive, without sorting all of them.

Every projection here has the form ``x = clip(a - t, 0, u)``: entries at or below the threshold
``t`` end at zero and do not influence it. So the threshold of a *subset* of the entries bounds the
threshold of all of them from below, and a subset that holds every entry above its own threshold
gives the exact answer. A good subset to guess from costs one pass: the maxima of interleaved lanes.

The final solve sees its entries relative to a number close to the threshold (the *shift*).
Differences of neighbouring floating-point numbers are exact, so the constraints hold to the
rounding of the result, even where the input is a billion times larger than the radius.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topksvm._numba import kernel

MIN_LANES = 16
CHUNK = 64
PART = 8
SORT_LIMIT = 64


class Workspace(NamedTuple):
    """Scratch memory for one row; allocate one per thread.

    Attributes
    ----------
    lanes, entries, ranked : ndarray
        For projections.
    positions, values : ndarray
        What a dual step returns: which entries are not zero, and their values.

    Examples
    --------
    >>> import numpy as np
    >>> from topksvm.projections import make_workspace
    >>> work = make_workspace(100, np.dtype(np.float32))
    >>> work.lanes.dtype, work.entries.dtype
    (dtype('float32'), dtype('float64'))
    """

    lanes: NDArray[np.floating]
    entries: NDArray[np.float64]
    ranked: NDArray[np.float64]
    positions: NDArray[np.int64]
    values: NDArray[np.float64]


def make_workspace(size: int, dtype: np.dtype) -> Workspace:
    """Return scratch memory for rows of `size` entries of type `dtype`.

    Parameters
    ----------
    size : int
        The number of wrong classes, at least 1.
    dtype : dtype
        Of the scores.

    Returns
    -------
    Workspace
        For one thread; it says nothing until something is written on it.

    Examples
    --------
    >>> import numpy as np
    >>> from topksvm.projections import make_workspace
    >>> make_workspace(100, np.dtype(np.float64)).values.shape
    (100,)
    """
    room = max(size, MIN_LANES)
    return Workspace(
        np.empty(room, dtype),
        np.empty(room),
        np.empty(SORT_LIMIT),
        np.empty(size, np.int64),
        np.empty(size),
    )


@kernel
def gather_guess(a, k, lanes, entries):
    """Write entries likely to hold the `k` largest and the support to `entries`; return how many.

    These are the maxima of enough lanes to hold most of the `k` largest, or simply all entries.
    """
    n_lanes = MIN_LANES
    while 3 * n_lanes < 4 * k:
        n_lanes *= 2
    if a.size < 3 * n_lanes:
        gather_all(a, a.size, entries)
        return a.size
    lane_maxima(a, n_lanes, lanes)
    gather_all(lanes, n_lanes, entries)
    return n_lanes


@kernel
def lane_maxima(a, n_lanes, lanes):
    """Write ``max(a[j], a[j + n_lanes], a[j + 2 n_lanes], ...)`` to ``lanes[j]``."""
    if n_lanes == MIN_LANES:  # The usual case, compiled for a known width: lanes in registers.
        fold_lanes(a, MIN_LANES, lanes)
    else:
        fold_lanes(a, n_lanes, lanes)


@kernel
def fold_lanes(a, n_lanes, lanes):
    """Fold `a` row by row into `lanes`, so that the compiler can use vector instructions."""
    for j in range(n_lanes):
        lanes[j] = a[j]
    whole = a.size - a.size % n_lanes
    for start in range(n_lanes, whole, n_lanes):
        for j in range(n_lanes):
            value = a[start + j]
            lanes[j] = value if value > lanes[j] else lanes[j]
    for i in range(whole, a.size):
        j = i - whole
        lanes[j] = a[i] if a[i] > lanes[j] else lanes[j]


@kernel
def gather_all(a, n, entries):
    """Write ``a[:n]`` to `entries`."""
    for i in range(n):
        entries[i] = a[i]


@kernel
def gather_above(a, floor, shift, entries):
    """Write ``a[i] - shift`` for all ``a[i] > floor`` to `entries`; return how many there are.

    Chunks without such an entry, nearly all of them, are passed over by a vectorised count.
    """
    if a.size < 32 * CHUNK:
        return append_above(a, 0, a.size, floor, shift, entries, 0)
    n = 0
    whole = a.size - a.size % CHUNK
    for start in range(0, whole, CHUNK):
        if any_above(a, start, CHUNK, floor):
            for part in range(start, start + CHUNK, PART):
                if any_above(a, part, PART, floor):
                    n = append_above(a, part, part + PART, floor, shift, entries, n)
    return append_above(a, whole, a.size, floor, shift, entries, n)


@kernel
def any_above(a, start, length, floor):
    """Tell whether an entry of ``a[start : start + length]`` exceeds `floor`, without branches."""
    hit = np.uint8(0)
    for j in range(length):
        hit |= np.uint8(a[start + j] > floor)
    return hit != 0


@kernel
def append_above(a, start, stop, floor, shift, entries, n):
    """Append the entries of ``a[start:stop]`` above `floor` to ``entries[:n]``; return n."""
    for i in range(start, stop):
        entries[n] = a[i] - shift
        n += a[i] > floor
    return n


@kernel
def is_centred(t, u):
    """Tell whether a threshold relative to its shift is small enough to lose no digits of `u`."""
    return abs(t) <= 1024.0 * u


@kernel
def is_precise(top, t, u):
    """Tell whether a threshold for entries up to `top` gives results to nearly all their digits."""
    return max(abs(top), abs(t)) <= 16.0 * min(top - t, u)


@kernel
def round_below(t, cell):
    """Return a number of the precision of the array `cell` that is certainly less than `t`."""
    cell[0] = t
    return np.nextafter(cell[0], cell.dtype.type(-np.inf))


@kernel
def put_largest_first(c, n, k, ranked):
    """Reorder ``c[:n]`` so that its `k` largest entries come first; sort it if that is cheap.

    In either case the k-th largest comes to ``c[k - 1]``, and the one after it to ``c[k]``.
    """
    if n <= SORT_LIMIT:
        sort_descending(c, n, ranked)
        return
    select_largest(c, n, k)
    for j in range(k - 1):
        if c[j] < c[k - 1]:
            c[j], c[k - 1] = c[k - 1], c[j]
    for j in range(k + 1, n):
        if c[j] > c[k]:
            c[j], c[k] = c[k], c[j]


@kernel
def sort_descending(c, n, ranked):
    """Sort ``c[:n]``, ``n <= SORT_LIMIT``, by counting ranks: quadratic, but vectorised."""
    for i in range(n):
        ranked[i] = c[i]
    total = np.int64(0)
    for i in range(n):
        value = ranked[i]
        rank = np.int64(0)
        for j in range(n):
            rank += np.int64(1) if ranked[j] > value else np.int64(0)
        c[rank] = value
        total += rank
    if 2 * total != n * (n - 1):  # Equal entries had the same rank.
        for i in range(n):
            c[i] = ranked[i]
        insertion_sort_descending(c, n)


@kernel
def insertion_sort_descending(c, n):
    """Sort ``c[:n]``."""
    for i in range(1, n):
        value = c[i]
        j = i - 1
        while j >= 0 and c[j] < value:
            c[j + 1] = c[j]
            j -= 1
        c[j + 1] = value


@kernel
def select_largest(c, n, k):
    """Reorder ``c[:n]`` so that its `k` largest entries come first (Hoare's selection).

    Expected linear time: the pivots are chosen at pseudo-random positions, so that no order of the
    entries that occurs by itself is a bad one.
    """
    left, right = 0, n - 1
    state = n
    while left < right:
        state = (1103515245 * state + 12345) % 2147483648
        pivot = median_of_three(c[left], c[left + state % (right - left + 1)], c[right])
        i, j = left, right
        while i <= j:
            while c[i] > pivot:
                i += 1
            while c[j] < pivot:
                j -= 1
            if i <= j:
                c[i], c[j] = c[j], c[i]
                i += 1
                j -= 1
        if k - 1 <= j:
            right = j
        elif k - 1 >= i:
            left = i
        else:
            return


@kernel
def median_of_three(x, y, z):
    """Return the middle one of three numbers."""
    return max(min(x, y), min(max(x, y), z))


@kernel
def smallest(c, start, stop):
    """Return the smallest of ``c[start:stop]``."""
    low = c[start]
    for j in range(start + 1, stop):
        low = c[j] if c[j] < low else low
    return low


@kernel
def largest(c, start, stop):
    """Return the largest of ``c[start:stop]``."""
    top = c[start]
    for j in range(start + 1, stop):
        top = c[j] if c[j] > top else top
    return top


@kernel
def positions_above(a, floor, positions):
    """Write the positions of the entries above `floor` to `positions`; return how many."""
    n = 0
    for i in range(a.size):
        positions[n] = i
        n += a[i] > floor
    return n
