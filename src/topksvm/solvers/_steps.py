"""The exact step of stochastic dual coordinate ascent on one example.

A step maximises the dual over the variables of one example, restricted to the classes *in play*:
those with a non-zero dual variable, and the few with the largest scores (the *candidates*). If all
scores are at hand, that is not a restriction: one entry more, the largest score left out, stands
for all the others. If it stays at zero they would too, and the step is the step on all classes;
if it does not, which is rare, the step is taken again with all of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topksvm._numba import inlined_kernel, kernel
from topksvm.losses import dual_step, dual_value, value
from topksvm.projections import (
    gather_guess,
    make_workspace,
    positions_above,
    put_largest_first,
    round_below,
)

GROUP = 16
"""Examples whose scores are brought together at once: a cache line of float32."""


class Candidates(NamedTuple):
    """The classes with the largest scores of each example, found by the last full pass."""

    classes: NDArray[np.int32]
    idle: NDArray[np.bool_]


class Changes(NamedTuple):
    """Changes of the duals ``a_i`` by the steps of a block; `owners` are places in the block."""

    classes: NDArray[np.int32]
    owners: NDArray[np.int32]
    values: NDArray[np.floating]
    order: NDArray[np.int32]
    first: NDArray[np.int32]


class Scratch(NamedTuple):
    """Memory that the steps write on."""

    group: NDArray[np.floating]
    chosen: NDArray[np.int32]
    own: NDArray[np.int32]
    is_chosen: NDArray[np.bool_]
    row: NDArray[np.floating]
    old: NDArray[np.float64]
    positions: NDArray[np.int64]
    values: NDArray[np.float64]
    lanes: NDArray[np.floating]
    c: NDArray[np.float64]
    ranked: NDArray[np.float64]


def make_scratch(m: int, dtype: np.dtype) -> Scratch:
    """Return scratch memory for `m` classes and scores of type `dtype`."""
    return Scratch(
        np.empty((GROUP, m), dtype),
        np.empty(m, np.int32),
        np.empty(m + 1, np.int32),
        np.zeros(m, np.bool_),
        np.empty(m + 1, dtype),
        np.empty(m),
        np.empty(m + 1, np.int64),
        np.empty(m + 1),
        *make_workspace(m + 1, dtype),
    )


def make_candidates(n: int, wanted: int) -> Candidates:
    """Return room for `wanted` candidates for each of `n` examples; 0: all classes are in play."""
    return Candidates(np.zeros((n, wanted), np.int32), np.zeros(n, np.bool_))


def make_changes(block: int, m: int, dtype: np.dtype) -> Changes:
    """Return room for the changes of a block."""
    return Changes(
        np.empty(block * m, np.int32),
        np.empty(block * m, np.int32),
        np.empty(block * m, dtype),
        np.empty(block * m, np.int32),
        np.empty(m + 1, np.int32),
    )


@inlined_kernel
def find_floor(i, scores, wanted, duals, scratch):
    """Return a number that at least `wanted` scores exceed, and with luck the whole new support."""
    start, count = duals.start[i], duals.count[i]
    if count >= wanted:
        # The last step brought the support to one level; it cannot have moved far since.
        low = scores[duals.classes[start]]
        for j in range(1, count):
            low = min(low, scores[duals.classes[start + j]])
        return round_below(low, scratch.lanes)
    n = gather_guess(scores, wanted, scratch.lanes, scratch.c)
    put_largest_first(scratch.c, n, wanted, scratch.ranked)
    return round_below(scratch.c[wanted - 1], scratch.lanes)


@inlined_kernel
def note_candidates(i, n, scores, candidates, scratch):
    """Keep the classes with the largest scores among the `n` found for the active passes."""
    wanted = candidates.classes.shape[1]
    positions, c = scratch.positions, scratch.c
    for j in range(n):
        c[j] = scores[positions[j]]
    put_largest_first(c, n, wanted, scratch.ranked)
    least, kept = c[wanted - 1], 0
    for j in range(n):
        if kept < wanted and scores[positions[j]] >= least:
            candidates.classes[i, kept] = positions[j]
            kept += 1
    candidates.idle[i] = False


@inlined_kernel
def choose_support(i, duals, scratch):
    """Start the list of classes in play of example `i` with its support; return how many."""
    start, count = duals.start[i], duals.count[i]
    for j in range(count):
        scratch.chosen[j] = duals.classes[start + j]
        scratch.old[j] = duals.values[start + j]
        scratch.is_chosen[scratch.chosen[j]] = True
    return count


@inlined_kernel
def forget_support(count, scratch):
    """Undo the marks of `choose_support`."""
    for j in range(count):
        scratch.is_chosen[scratch.chosen[j]] = False


@inlined_kernel
def choose_in_play(i, duals, candidates, scratch):
    """List the classes in play of example `i`, its support first; return how many."""
    count = choose_support(i, duals, scratch)
    n = count
    for j in range(candidates.classes.shape[1]):
        k = candidates.classes[i, j]
        scratch.chosen[n] = k
        scratch.old[n] = 0.0
        n += not scratch.is_chosen[k]
    forget_support(count, scratch)
    return n


@inlined_kernel
def choose_above(i, n_above, duals, scratch):
    """List the support of example `i` and the `n_above` classes found; return how many."""
    count = choose_support(i, duals, scratch)
    n = count
    for j in range(n_above):
        k = scratch.positions[j]
        scratch.chosen[n] = k
        scratch.old[n] = 0.0
        n += not scratch.is_chosen[k]
    forget_support(count, scratch)
    return n


@inlined_kernel
def choose_all(i, m, label, duals, scratch):
    """List all wrong classes of example `i`, its support first; return how many."""
    count = choose_support(i, duals, scratch)
    n = count
    for k in range(m):
        if k != label and not scratch.is_chosen[k]:
            scratch.chosen[n] = k
            scratch.old[n] = 0.0
            n += 1
    forget_support(count, scratch)
    return n


@inlined_kernel
def full_step(loss, i, owner, scores, examples, duals, candidates, changes, end, scratch):
    """Step on all classes from their `scores`, of which that of the true class is overwritten.

    Return the gain of the dual, the loss before the step, and where the changes end.
    """
    row, m, label = scratch.row, scores.size, examples.labels[i]
    base = np.float64(scores[label])
    scores[label] = -np.inf
    # The losses with candidates are hinges: without a score in the margin they are zero. Without a
    # dual variable besides, the step stays where it is, and so will those of active passes.
    if duals.count[i] == 0 and candidates.classes.shape[1] > 0 and are_below(scores, base - 1.0):
        candidates.idle[i] = True
        return 0.0, 0.0, end
    n, others = find_in_play(i, scores, duals, candidates, scratch)
    if 2 * n >= m or n == 0:
        n, others = choose_all(i, m, label, duals, scratch), 0
    while True:
        for j in range(n):
            row[j] = scores[scratch.chosen[j]]
        loss_value = value(loss, row[:n], base, scratch.lanes, scratch.c, scratch.ranked)
        if loss_value == 0.0 and duals.count[i] == 0:
            candidates.idle[i] = True
            return 0.0, 0.0, end
        gain, new_end = take_step(
            loss, i, owner, row[: n + others], n, base, examples, duals, changes, end, scratch
        )
        if new_end >= 0:
            return gain, loss_value, new_end
        n, others = choose_all(i, m, label, duals, scratch), 0


@kernel
def are_below(scores, bound):
    """Return whether no score is above `bound`; NaN is."""
    for j in range(scores.size):  # noqa: SIM110 -- Numba has no generators here.
        if not scores[j] <= bound:
            return False
    return True


@inlined_kernel
def find_in_play(i, scores, duals, candidates, scratch):
    """List the classes in play of example `i` anew from its scores; return how many, and 1.

    The 1 is the entry after them, ``scratch.row[n]``, which bounds the scores of all others. If
    no candidates are wanted, or there are NaNs, both are 0.
    """
    wanted = candidates.classes.shape[1]
    if wanted == 0:
        return 0, 0
    floor = find_floor(i, scores, wanted, duals, scratch)
    n = positions_above(scores, floor, scratch.positions)
    if n < wanted:
        return 0, 0
    note_candidates(i, n, scores, candidates, scratch)
    n = choose_above(i, n, duals, scratch)
    scratch.row[n] = floor
    return n, 1


@inlined_kernel
def take_step(loss, i, owner, row, n, base, examples, duals, changes, end, scratch):
    """Replace the duals of example `i` by the best ones; return the gain and where changes end.

    `row` holds the scores of the `n` classes in ``scratch.chosen``, and perhaps one more that
    stands for the others: if its variable is not zero, nothing is done and the end is -1.
    The changes of ``a_i`` are appended to `changes`, the new duals to the log.
    """
    C, norm = examples.C[i], examples.norms[i]
    old, count = scratch.old, duals.count[i]
    positions, values = scratch.positions, scratch.values
    own = 0.0
    for j in range(count):
        row[j] += norm * old[j]
        own += old[j]
    base -= norm * own
    kept = dual_step(
        loss, row, base, norm, C, positions, values, scratch.lanes, scratch.c, scratch.ranked
    )
    if kept > 0 and positions[kept - 1] == n:
        return 0.0, -1
    gain = dual_value(loss, values, kept, C) - dual_value(loss, old, count, C)
    used, found = duals.used[0], 0
    total, linear, squares = 0.0, 0.0, 0.0
    # Positions ascend. Everything is written, and stays if it counts: branches would be guesses.
    for j in range(n):
        is_kept = found < kept and positions[found] == j
        new = values[found] if is_kept else 0.0
        change = new - old[j]
        duals.classes[used + found] = scratch.chosen[j]
        duals.values[used + found] = new
        found += is_kept
        changes.classes[end] = scratch.chosen[j]
        changes.owners[end] = owner
        changes.values[end] = -change
        end += change != 0.0
        total += change
        linear += change * (row[j] - base)
        squares += change * (new + old[j])
    if total != 0.0:
        changes.classes[end] = examples.labels[i]
        changes.owners[end] = owner
        changes.values[end] = total
        end += 1
    gain += linear - 0.5 * norm * (squares + total * (total + 2.0 * own))
    duals.start[i], duals.count[i] = used, kept
    duals.used[0] = used + kept
    return gain, end
