"""The exact step of stochastic dual coordinate ascent on one example.

A step maximises the dual over the variables of one example, restricted to the classes *in play*:
those with a non-zero dual variable, and the few with the largest scores (the *candidates*). If all
scores are at hand, that is not a restriction: one entry more, the largest score left out, stands
for all the others. If it stays at zero they would too, and the step is the step on all classes;
if it does not, which is rare, the step is taken again with all of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topksvm._numba import inlined_kernel, kernel
from topksvm.data import Examples
from topksvm.losses import dual_step, dual_value, value
from topksvm.projections import (
    Workspace,
    gather_guess,
    make_workspace,
    positions_above,
    put_largest_first,
    round_below,
)
from topksvm.solvers._duals import Duals

GROUP = 16
"""Examples whose scores are brought together at once: a cache line of float32."""


class Candidates(NamedTuple):
    """What the active passes know of each example.

    Attributes
    ----------
    classes : ndarray of shape (n, wanted)
        The classes with the largest scores, found by the last full pass.
    idle : ndarray of shape (n,)
        Whether its last step changed nothing, so that active passes leave it out.
    visit_rate, visit_credit : ndarray of shape (n,)
        How often to visit it, relative to the others, and the part of a visit that is due to it.
    """

    classes: NDArray[np.int32]
    idle: NDArray[np.bool_]
    visit_rate: NDArray[np.float64]
    visit_credit: NDArray[np.float64]


class Changes(NamedTuple):
    """Changes of the duals ``a_i`` by the steps of a block; `owners` are places in the block."""

    classes: NDArray[np.int32]
    owners: NDArray[np.int32]
    values: NDArray[np.floating]
    order: NDArray[np.int32]
    first: NDArray[np.int32]


class Scratch(NamedTuple):
    """Memory that the steps of one thread write on."""

    group: NDArray[np.floating]
    chosen: NDArray[np.int32]
    own: NDArray[np.int32]
    is_chosen: NDArray[np.bool_]
    row: NDArray[np.floating]
    old: NDArray[np.float64]
    work: Workspace


class State(NamedTuple):
    """All that a pass reads and writes.

    Attributes
    ----------
    rows, examples : Rows, Examples
        The rows of X that are at hand, and what belongs to them.
    weights : ndarray
        In the layout of the rows.
    duals : Duals
        The dual variables of the examples.
    candidates : Candidates
        What active passes need to know of the examples.
    changes : Changes
        The changes of a block of steps, of which the weights do not know yet.
    scratch : Scratch
        Memory of this thread.
    x : ndarray of shape (d,)
        The row at hand, in the precision of the weights.
    scores : ndarray
        Room for the scores of a block.
    partial : ndarray of shape (threads, m)
        Room for the scores that each thread has computed for a step.
    sums : ndarray of shape (2,)
        The gain of the dual and the losses met, which grow with each step.
    """

    rows: Any
    examples: Examples
    weights: NDArray[np.floating]
    duals: Duals
    candidates: Candidates
    changes: Changes
    scratch: Scratch
    x: NDArray[np.floating]
    scores: NDArray[np.floating]
    partial: NDArray[np.floating]
    sums: NDArray[np.float64]


def make_scratch(m: int, dtype: np.dtype) -> Scratch:
    """Return scratch memory for `m` classes and scores of type `dtype`."""
    return Scratch(
        np.empty((GROUP, m), dtype),
        np.empty(m, np.int32),
        np.empty(m + 1, np.int32),
        np.zeros(m, np.bool_),
        np.empty(m + 1, dtype),
        np.empty(m),
        make_workspace(m + 1, dtype),
    )


def make_candidates(n: int, wanted: int) -> Candidates:
    """Return room for `wanted` candidates for each of `n` examples; 0: all classes are in play."""
    return Candidates(
        np.zeros((n, wanted), np.int32), np.zeros(n, np.bool_), np.ones(n), np.zeros(n)
    )


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
def find_floor(state, i, scores, wanted):
    """Return a number that at least `wanted` scores exceed, and with luck the whole new support."""
    duals, work = state.duals, state.scratch.work
    start, count = duals.start[i], duals.count[i]
    if count >= wanted:
        # The last step brought the support to one level; it cannot have moved far since.
        low = scores[duals.classes[start]]
        for j in range(1, count):
            low = min(low, scores[duals.classes[start + j]])
        return round_below(low, work.lanes)
    n = gather_guess(scores, wanted, work.lanes, work.entries)
    put_largest_first(work.entries, n, wanted, work.ranked)
    return round_below(work.entries[wanted - 1], work.lanes)


@inlined_kernel
def note_candidates(state, i, n, scores):
    """Keep the classes with the largest scores among the `n` found for the active passes."""
    candidates, work = state.candidates, state.scratch.work
    wanted = candidates.classes.shape[1]
    positions, c = work.positions, work.entries
    for j in range(n):
        c[j] = scores[positions[j]]
    put_largest_first(c, n, wanted, work.ranked)
    least, kept = c[wanted - 1], 0
    for j in range(n):
        if kept < wanted and scores[positions[j]] >= least:
            candidates.classes[i, kept] = positions[j]
            kept += 1
    candidates.idle[i] = False


@inlined_kernel
def choose_support(state, i):
    """Start the list of classes in play of example `i` with its support; return how many."""
    duals, scratch = state.duals, state.scratch
    start, count = duals.start[i], duals.count[i]
    for j in range(count):
        scratch.chosen[j] = duals.classes[start + j]
        scratch.old[j] = duals.values[start + j]
        scratch.is_chosen[scratch.chosen[j]] = True
    return count


@inlined_kernel
def forget_support(state, count):
    """Undo the marks of `choose_support`."""
    scratch = state.scratch
    for j in range(count):
        scratch.is_chosen[scratch.chosen[j]] = False


@inlined_kernel
def choose_in_play(state, i):
    """List the classes in play of example `i`, its support first; return how many."""
    scratch = state.scratch
    count = choose_support(state, i)
    n = count
    candidates = state.candidates
    for j in range(candidates.classes.shape[1]):
        k = candidates.classes[i, j]
        scratch.chosen[n] = k
        scratch.old[n] = 0.0
        n += not scratch.is_chosen[k]
    forget_support(state, count)
    return n


@inlined_kernel
def choose_above(state, i, n_above):
    """List the support of example `i` and the `n_above` classes found; return how many."""
    scratch = state.scratch
    count = choose_support(state, i)
    n = count
    for j in range(n_above):
        k = scratch.work.positions[j]
        scratch.chosen[n] = k
        scratch.old[n] = 0.0
        n += not scratch.is_chosen[k]
    forget_support(state, count)
    return n


@inlined_kernel
def choose_all(state, i, m, label):
    """List all wrong classes of example `i`, its support first; return how many."""
    scratch = state.scratch
    count = choose_support(state, i)
    n = count
    for k in range(m):
        if k != label and not scratch.is_chosen[k]:
            scratch.chosen[n] = k
            scratch.old[n] = 0.0
            n += 1
    forget_support(state, count)
    return n


@inlined_kernel
def full_step(loss, state, i, owner, scores, end):
    """Step on all classes from their `scores`, of which that of the true class is overwritten.

    Return the gain of the dual, the loss before the step, and where the changes end.
    """
    duals, candidates, scratch = state.duals, state.candidates, state.scratch
    row, m, label = scratch.row, scores.size, state.examples.labels[i]
    base = np.float64(scores[label])
    scores[label] = -np.inf
    # The losses with candidates are hinges: without a score in the margin they are zero. Without a
    # dual variable besides, the step stays where it is, and so will those of active passes.
    if duals.count[i] == 0 and candidates.classes.shape[1] > 0 and are_below(scores, base - 1.0):
        candidates.idle[i] = True
        return 0.0, 0.0, end
    n, others = find_in_play(state, i, scores)
    if 2 * n >= m or n == 0:
        n, others = choose_all(state, i, m, label), 0
    while True:
        for j in range(n):
            row[j] = scores[scratch.chosen[j]]
        loss_value = value(loss, row[:n], base, scratch.work)
        if loss_value == 0.0 and duals.count[i] == 0:
            candidates.idle[i] = True
            return 0.0, 0.0, end
        gain, new_end = take_step(loss, state, i, owner, row[: n + others], n, base, end)
        if new_end >= 0:
            return gain, loss_value, new_end
        n, others = choose_all(state, i, m, label), 0


@kernel
def are_below(scores, bound):
    """Return whether no score is above `bound`; NaN is."""
    for j in range(scores.size):  # noqa: SIM110 -- Numba has no generators here.
        if not scores[j] <= bound:
            return False
    return True


@inlined_kernel
def find_in_play(state, i, scores):
    """List the classes in play of example `i` anew from its scores; return how many, and 1.

    The 1 is the entry after them, ``scratch.row[n]``, which bounds the scores of all others. If
    no candidates are wanted, or there are NaNs, both are 0.
    """
    wanted = state.candidates.classes.shape[1]
    if wanted == 0:
        return 0, 0
    floor = find_floor(state, i, scores, wanted)
    n = positions_above(scores, floor, state.scratch.work.positions)
    if n < wanted:
        return 0, 0
    note_candidates(state, i, n, scores)
    n = choose_above(state, i, n)
    state.scratch.row[n] = floor
    return n, 1


@inlined_kernel
def take_step(loss, state, i, owner, row, n, base, end):
    """Replace the duals of example `i` by the best ones; return the gain and where changes end.

    `row` holds the scores of the `n` classes in ``scratch.chosen``, and perhaps one more that
    stands for the others: if its variable is not zero, nothing is done and the end is -1.
    The changes of ``a_i`` are appended to those of the state, the new duals to the log.
    """
    examples, duals, changes = state.examples, state.duals, state.changes
    scratch, work = state.scratch, state.scratch.work
    C, norm = examples.C[i], examples.norms[i]
    old, count = scratch.old, duals.count[i]
    positions, values = work.positions, work.values
    own = 0.0
    for j in range(count):
        row[j] += norm * old[j]
        own += old[j]
    base -= norm * own
    kept = dual_step(loss, row, base, norm, C, work)
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
