"""Passes of stochastic dual coordinate ascent over the examples.

Three kinds, all made of the same exact step on one example:

- *sequential*: one example after the other, all classes: the algorithm as the paper prints it;
- *block*: the same iterates, with the scores of a block of examples from one matrix product. Inside
  the block, ``s_i = (X_B W')_i + sum_{j < i} <x_i, x_j> Delta_j`` corrects them for the steps taken
  since, and the weights are brought up to date after it;
- *active*: each example's step is restricted to the classes that were in play at the last full
  pass. It is coordinate ascent on fewer variables, so the dual never falls, at a price that no
  longer depends on the number of classes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topksvm._numba import kernel
from topksvm.losses._contract import dual_step, dual_value, value
from topksvm.losses._hinge import positions_above
from topksvm.projections._candidates import (
    gather_guess,
    make_workspace,
    put_largest_first,
    round_below,
)
from topksvm.solvers._rows import add_row, axpy, scores_at, scores_of_all

TILE_ENTRIES = 1 << 18


class Examples(NamedTuple):
    """What the steps need to know of the examples besides their rows."""

    labels: NDArray[np.int32]
    C: NDArray[np.float64]
    norms: NDArray[np.float64]


class Candidates(NamedTuple):
    """The classes in play for each example, found by the last full pass."""

    classes: NDArray[np.int32]
    count: NDArray[np.int32]  # type: ignore[assignment]
    idle: NDArray[np.bool_]
    wanted: int


class Changes(NamedTuple):
    """Changes of ``a_i`` by the steps of a block; those of step ``b`` end at ``end[b]``."""

    classes: NDArray[np.int32]
    values: NDArray[np.float64]
    end: NDArray[np.int64]


class Scratch(NamedTuple):
    """Memory that the steps write on."""

    identity: NDArray[np.int32]
    chosen: NDArray[np.int32]
    row: NDArray[np.floating]
    dense: NDArray[np.float64]
    touched: NDArray[np.int32]
    positions: NDArray[np.int64]
    values: NDArray[np.float64]
    lanes: NDArray[np.floating]
    c: NDArray[np.float64]
    ranked: NDArray[np.float64]


def make_scratch(m: int, dtype: np.dtype) -> Scratch:
    """Return scratch memory for `m` classes and scores of type `dtype`."""
    return Scratch(
        np.arange(m, dtype=np.int32),
        np.empty(m, np.int32),
        np.empty(m, dtype),
        np.zeros(m),
        np.empty(m, np.int32),
        np.empty(m, np.int64),
        np.empty(m),
        *make_workspace(m, dtype),
    )


def make_candidates(n: int, wanted: int) -> Candidates:
    """Return an empty set of at least `wanted` candidates for each of `n` examples."""
    return Candidates(
        np.empty((n, 2 * wanted), np.int32),
        np.zeros(n, np.int32),
        np.zeros(n, np.bool_),
        wanted,
    )


def make_changes(block: int, m: int) -> Changes:
    """Return room for the changes of a block."""
    return Changes(np.empty(block * m, np.int32), np.empty(block * m), np.empty(block, np.int64))


@kernel
def objective(loss, row, base, norm, C, positions, values, n):
    """Return what the duals ``values[:n]`` of one example contribute to the dual objective."""
    linear, total, squares = 0.0, 0.0, 0.0
    for j in range(n):
        linear += values[j] * (row[positions[j]] - base)
        total += values[j]
        squares += values[j] * values[j]
    return dual_value(loss, values, n, C) + linear - 0.5 * norm * (squares + total * total)


@kernel
def take_step(loss, i, row, classes, base, examples, duals, changes, n_changes, scratch):
    """Replace the duals of example `i` by the best ones; return the gain and the changes so far.

    `row` holds the scores without the example's own part, in the order of `classes`, and
    `scratch.positions` and `scratch.values` the duals so far. The changes of ``a_i`` are appended
    to `changes`, the new duals to the log.
    """
    C, norm, label = examples.C[i], examples.norms[i], examples.labels[i]
    positions, values = scratch.positions, scratch.values
    dense, touched = scratch.dense, scratch.touched
    count = duals.count[i]
    gain = 0.0
    if count > 0:
        gain = -objective(loss, row, base, norm, C, positions, values, count)
    difference = 0.0
    for j in range(count):
        touched[j] = classes[positions[j]]
        dense[touched[j]] = -values[j]
        difference -= values[j]
    n = dual_step(
        loss,
        row,
        base,
        norm,
        C,
        positions,
        values,
        scratch.lanes,
        scratch.c,
        scratch.ranked,
    )
    if n > 0:
        gain += objective(loss, row, base, norm, C, positions, values, n)
    n_touched = count
    used = duals.used[0]
    for j in range(n):
        k = classes[positions[j]]
        if dense[k] == 0.0:
            touched[n_touched] = k
            n_touched += 1
        dense[k] += values[j]
        difference += values[j]
        duals.classes[used + j] = k
        duals.values[used + j] = values[j]
    duals.start[i], duals.count[i] = used, n
    duals.used[0] = used + n
    for j in range(n_touched):
        k = touched[j]
        if dense[k] != 0.0:
            changes.classes[n_changes] = k
            changes.values[n_changes] = -dense[k]
            n_changes += 1
            dense[k] = 0.0
    if difference != 0.0:
        changes.classes[n_changes] = label
        changes.values[n_changes] = difference
        n_changes += 1
    return gain, n_changes


@kernel
def step_on_all_classes(loss, i, scores, examples, duals, candidates, changes, n_changes, scratch):
    """Step on all classes from their `scores`, which are overwritten.

    Return the gain of the dual, the loss before the step, and the changes so far.
    """
    m = scores.size
    label, norm = examples.labels[i], examples.norms[i]
    base = scores[label]
    # The last class takes the place of the true one, so that the wrong ones are together.
    classes, row = scratch.identity, scores[: m - 1]
    scores[label] = scores[m - 1]
    classes[label] = m - 1
    loss_value = value(loss, row, base, scratch.lanes, scratch.c, scratch.ranked)
    find_candidates(i, row, classes, candidates, scratch)
    start = duals.start[i]
    for j in range(duals.count[i]):
        k, x = duals.classes[start + j], duals.values[start + j]
        position = label if k == m - 1 else k
        scratch.positions[j], scratch.values[j] = position, x
        row[position] += norm * x
        base -= norm * x
    gain, n_changes = take_step(
        loss, i, row, classes, base, examples, duals, changes, n_changes, scratch
    )
    classes[label] = label
    return gain, loss_value, n_changes


@kernel
def find_candidates(i, row, classes, candidates, scratch):
    """Note the classes with the largest scores of example `i`."""
    width, wanted = candidates.classes.shape[1], candidates.wanted
    if wanted == 0:
        return
    n = gather_guess(row, wanted, scratch.lanes, scratch.c)
    put_largest_first(scratch.c, n, wanted, scratch.ranked)
    floor = round_below(scratch.c[wanted - 1], scratch.lanes)
    n = min(positions_above(row, floor, scratch.positions), width)
    for j in range(n):
        candidates.classes[i, j] = classes[scratch.positions[j]]
    candidates.count[i] = n
    candidates.idle[i] = False


@kernel
def block_pass(loss, scores, gram, index, examples, duals, candidates, changes, scratch, sums):
    """Step on the examples `index` in order, given their scores and Gram matrix at the start.

    ``sums`` accumulates the gain of the dual and the losses met.
    """
    n_changes = 0
    for b in range(index.size):
        i = index[b]
        row = scores[b]
        start = 0
        for j in range(b):
            product = gram[b, j]
            for p in range(start, changes.end[j]):
                row[changes.classes[p]] += product * changes.values[p]
            start = changes.end[j]
        gain, loss_value, n_changes = step_on_all_classes(
            loss, i, row, examples, duals, candidates, changes, n_changes, scratch
        )
        changes.end[b] = n_changes
        sums[0] += gain
        sums[1] += examples.C[i] * loss_value


@kernel
def add_changes(weights, x, changes, n):
    """Bring the weights up to date with the changes of a block of `n` dense rows `x`.

    In tiles of features, narrow enough for the tile of the weights to stay in the cache.
    """
    m, d = weights.shape
    tile = max(64, TILE_ENTRIES // m)
    for left in range(0, d, tile):
        right = min(left + tile, d)
        start = 0
        for b in range(n):
            row = x[b, left:right]
            for p in range(start, changes.end[b]):
                axpy(changes.values[p], row, weights[changes.classes[p], left:right])
            start = changes.end[b]


@kernel
def sequential_pass(
    loss, rows, weights, index, examples, duals, candidates, changes, scratch, sums
):
    """Step on the examples `index` one by one on all classes."""
    row = scratch.row
    for i in index:
        scores_of_all(rows, weights, i, row)
        gain, loss_value, n_changes = step_on_all_classes(
            loss, i, row, examples, duals, candidates, changes, 0, scratch
        )
        for p in range(n_changes):
            add_row(rows, weights, i, changes.classes[p], changes.values[p])
        sums[0] += gain
        sums[1] += examples.C[i] * loss_value


@kernel
def active_pass(
    loss, rows, weights, index, examples, duals, candidates, changes, scratch, least, sums
):
    """Step on the examples `index` one by one on the classes in play; see the module.

    Examples whose step gains less than `least` are left alone until the next full pass.
    """
    row, chosen = scratch.row, scratch.chosen
    for i in index:
        if candidates.idle[i]:
            continue
        n = choose_classes(i, duals, candidates, scratch)
        chosen[n] = examples.labels[i]
        scores_at(rows, weights, i, chosen, n + 1, row)
        base, norm, start = row[n] + 0.0, examples.norms[i], duals.start[i]
        for j in range(duals.count[i]):
            x = duals.values[start + j]
            scratch.positions[j], scratch.values[j] = j, x
            row[j] += norm * x
            base -= norm * x
        gain, n_changes = take_step(
            loss, i, row[:n], chosen, base, examples, duals, changes, 0, scratch
        )
        for p in range(n_changes):
            add_row(rows, weights, i, changes.classes[p], changes.values[p])
        candidates.idle[i] = gain < least
        sums[0] += gain


@kernel
def choose_classes(i, duals, candidates, scratch):
    """Write the classes in play of example `i`, its support first; return how many."""
    chosen, dense = scratch.chosen, scratch.dense
    start, count = duals.start[i], duals.count[i]
    for j in range(count):
        chosen[j] = duals.classes[start + j]
        dense[chosen[j]] = 1.0
    n = count
    for j in range(candidates.count[i]):
        k = candidates.classes[i, j]
        if dense[k] == 0.0:
            chosen[n] = k
            n += 1
    for j in range(count):
        dense[chosen[j]] = 0.0
    return n
