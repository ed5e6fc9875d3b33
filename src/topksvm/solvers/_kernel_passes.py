"""Passes of dual coordinate ascent for kernel machines.

A kernel machine has no weights to score an example with, but the scores of all examples,
``F_ki = sum_j a_jk K_ij``, can be kept up to date: a change of the dual variables of example ``j``
adds a multiple of row ``j`` of K to the rows of F. So a step costs no product at all, and the
losses of all examples are known at any time.
"""

from __future__ import annotations

import numpy as np

from topksvm._numba import borrow, kernel, summing_kernel
from topksvm.losses import dual_value, value
from topksvm.solvers._passes import add_changes, sort_by_class, transpose_columns
from topksvm.solvers._steps import GROUP, full_step


@kernel
def gram_block(loss, state, index, slots, gram):
    """Step on the examples `index` in order and bring the scores of all examples up to date.

    ``gram[slots[b]]`` is the row of K of example ``index[b]``, and ``state.weights`` is F. The
    scores are brought up to date once for the whole block; inside it, those of an example are
    corrected for the steps since: ``F_i + sum_{j < i} K_ij Delta_j``. The iterates are those
    of one by one.
    """
    state, gram = borrow(state), borrow(gram)
    scores, changes, group = state.weights, state.changes, state.scratch.group
    end = np.int64(0)
    for left in range(0, index.size, GROUP):
        right = min(left + GROUP, index.size)
        gather_columns(scores, index, left, right, group)
        for b in range(left, right):
            row = group[b - left]
            correct(row, gram, slots[b], index, changes, end)
            _, _, end = full_step(loss, state, index[b], b, row, end)
    for p in range(end):
        changes.owners[p] = slots[changes.owners[p]]
    sort_by_class(changes, end)
    add_changes(scores, gram, changes, 0, scores.shape[0])


@kernel
def gather_columns(scores, index, left, right, group):
    """Write the columns ``index[left:right]`` of `scores` to the rows of `group`."""
    for k in range(scores.shape[0]):
        for b in range(left, right):
            group[b - left, k] = scores[k, index[b]]


@summing_kernel
def correct(row, gram, slot, index, changes, end):
    """Correct the scores of an example, whose row of K is ``gram[slot]``, for all changes."""
    for p in range(end):
        row[changes.classes[p]] += gram[slot, index[changes.owners[p]]] * changes.values[p]


@kernel
def measure_gaps(loss, state, gaps):
    """Write what each example adds to the duality gap to `gaps`; return the sums of its parts.

    ``P - D = sum_i [C_i phi(F_i) - dual_value(x_i) + <a_i, F_i>]``, of which no term is negative
    (Fenchel and Young), and zero means that a step would change nothing. The sums are
    ``||W||^2 = sum_i <a_i, F_i>``, that of the losses and that of the dual values.
    """
    state, gaps = borrow(state), borrow(gaps)
    scores, examples, duals, scratch = state.weights, state.examples, state.duals, state.scratch
    n, last = gaps.size, scores.shape[0] - 1
    square, losses, values = 0.0, 0.0, 0.0
    for left in range(0, n, GROUP):
        right = min(left + GROUP, n)
        transpose_columns(scores, left, right, scratch.group)
        for i in range(left, right):
            gaps[i] = 0.0
            if examples.C[i] == 0.0:
                continue
            row, label = scratch.group[i - left], examples.labels[i]
            base = np.float64(row[label])
            product = own_product(i, row, base, duals)
            row[label] = row[last]
            risk = examples.C[i] * value(loss, row[:last], base, scratch.work)
            start, count = duals.start[i], duals.count[i]
            worth = dual_value(loss, duals.values[start : start + count], count, examples.C[i])
            gaps[i] = risk - worth + product
            square += product
            losses += risk
            values += worth
    return square, losses, values


@kernel
def own_product(i, row, base, duals):
    """Return ``<a_i, F_i>``."""
    total = 0.0
    for p in range(duals.start[i], duals.start[i] + duals.count[i]):
        total += duals.values[p] * (base - row[duals.classes[p]])
    return total


@kernel
def expand(examples, duals, coefficients):
    """Add ``a_i`` of the examples with dual variables, in order, to the rows of `coefficients`."""
    row = 0
    for i in range(examples.labels.size):
        if duals.count[i] == 0:
            continue
        for p in range(duals.start[i], duals.start[i] + duals.count[i]):
            coefficients[row, duals.classes[p]] -= duals.values[p]
            coefficients[row, examples.labels[i]] += duals.values[p]
        row += 1
