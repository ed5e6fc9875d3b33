"""Passes of stochastic dual coordinate ascent over the examples.

Three kinds, all made of the same exact step on one example:

- *sequential*: one example after the other, all classes: the algorithm that the paper prints, but
  for an update of those classes alone that have changed;
- *block*: the same iterates, with the scores of a block of examples from one matrix product. Inside
  the block, ``s_i = (X_B W')_i + sum_{j < i} <x_i, x_j> Delta_j`` corrects them for the steps taken
  since, and the weights are brought up to date after it;
- *active*: each example's step is restricted to the classes that are in play since the last full
  pass. It is coordinate ascent on fewer variables, so the dual never falls, at a price that no
  longer depends on the number of classes. Examples whose steps gain much are visited more often
  (Glasmachers and Dogan 2013, Accelerated coordinate descent with adaptive coordinate frequencies).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topksvm._numba import borrow, inlined_kernel, kernel, prefetch, summing_kernel
from topksvm._team import barrier, broadcast, read, share_of
from topksvm.data import add_row, load_row, scores_at, scores_of_all
from topksvm.solvers._steps import GROUP, choose_in_play, full_step, take_step

CLASSES = 16
"""Classes whose weights stay with one thread, so that products have the shapes that they like."""

FEATURES = 16
"""Weights in a cache line, in single precision."""

FEW_VISITS = 600
"""Visits of an active pass that take longer than it takes to start one."""

RATE_STEP = 0.1
"""How fast the visit rate of an example follows its gains: 0.05 to 0.3 take the same time on the
silhouettes and on digits."""

LARGEST_GAIN = 2.0
"""Mean gains that a gain counts for at most, so that one lucky step does not decide."""

LOWEST_RATE, HIGHEST_RATE = 0.05, 20.0
"""Bounds of a visit rate: nobody is forgotten, nobody takes all visits (Glasmachers and Dogan)."""


class Blocks(NamedTuple):
    """Room for the rows of several blocks of `size`, and for the products of the rows of each."""

    size: int
    x: NDArray[np.floating]
    grams: NDArray[np.floating]


@kernel
def block_pass(loss, state, blocks, index, begin, gather, team, place):
    """Step on the dense rows `index` from `begin` on in order, in blocks; return where it ended.

    The rows of a block are copied to ``blocks.x``, which has slots for several, and multiplied with
    one another in ``blocks.grams``; without `gather` they are there already. Ends early when the
    log of the duals may be full after another block.

    Each member of the team looks after the weights of some classes. While the leader steps, the
    next one gathers the block that follows.
    """
    state, blocks, team = borrow(state), borrow(blocks), borrow(team)
    weights, block, m = state.weights, blocks.size, state.weights.shape[0]
    low, high = share_of(place, team.size, m, CLASSES)
    for start in range(begin, index.size, block):
        if state.duals.used[0] + block * m > state.duals.classes.size:
            return start
        n = min(block, index.size - start)
        if gather and (team.size == 1 or start == begin):
            if place == 0:
                gather_block(state.rows, index, start, blocks)
            if not barrier(team):
                return start
        slot = start // block % blocks.grams.shape[0]
        part = blocks.x[slot * block : slot * block + n]
        gram = blocks.grams[slot, : n * n].reshape(n, n)
        # One column for each example.
        products = state.scores[: m * n].reshape(m, n)
        np.dot(weights[low:high], part.T, products[low:high])
        if not barrier(team):
            return start
        if place == 0:
            end = steps_of_block(loss, state, index[start : start + n], products, gram)
            sort_by_class(state.changes, end)
        elif place == 1 and gather and start + block < index.size:
            gather_block(state.rows, index, start + block, blocks)
        if not barrier(team):
            return start
        add_changes(weights, part, state.changes, low, high)
    return index.size


@kernel
def gather_block(rows, index, start, blocks):
    """Copy the dense rows of the block that begins at `start`, and multiply them."""
    block = blocks.size
    n = min(block, index.size - start)
    slot = start // block % blocks.grams.shape[0]
    part = blocks.x[slot * block : slot * block + n]
    for b in range(n):
        load_row(rows, index[start + b], part[b])
    np.dot(part, part.T, blocks.grams[slot, : n * n].reshape(n, n))


@inlined_kernel
def steps_of_block(loss, state, index, products, gram):
    """Step on the examples `index`, given a column of scores for each; return where changes end."""
    changes, group, sums = state.changes, state.scratch.group, state.sums
    m, n = products.shape[0], index.size
    end = np.int64(0)  # A plain 0 would be compiled for as a special case.
    for left in range(0, n, GROUP):
        right = min(left + GROUP, n)
        transpose_columns(products, left, right, group)
        first = end
        for b in range(left, right):
            i = index[b]
            row = group[b - left]
            apply_changes(row, gram[b], changes, first, end)
            gain, loss_value, end = full_step(loss, state, i, b, row[:m], end)
            sums[0] += gain
            sums[1] += state.examples.C[i] * loss_value
        for p in range(first, end):
            owner = changes.owners[p]
            add_to_columns(products, changes.classes[p], gram[owner], changes.values[p], right)
    return end


@kernel
def transpose_columns(products, left, right, group):
    """Write the columns from `left` to `right` to the rows of `group`."""
    if right - left == GROUP:
        for k in range(products.shape[0]):
            for b in range(GROUP):
                group[b, k] = products[k, left + b]
    else:
        for k in range(products.shape[0]):
            for b in range(right - left):
                group[b, k] = products[k, left + b]


@summing_kernel
def apply_changes(row, products, changes, first, end):
    """Correct the scores of an example for the latest changes, by its products with the rows."""
    for p in range(first, end):
        row[changes.classes[p]] += products[changes.owners[p]] * changes.values[p]


@summing_kernel
def add_to_columns(scores, k, products, value, right):
    """Correct the scores for class `k` of the examples from `right` on for a change."""
    for b in range(right, scores.shape[1]):
        scores[k, b] += value * products[b]


@kernel
def add_changes(weights, x, changes, low, high):
    """Bring the weights of the classes from `low` to `high` up to date with the changes of a block.

    Class by class, four changes at a time: each weight is read and written once for four of them.
    """
    order, owners, values = changes.order, changes.owners, changes.values
    nothing = values.dtype.type(0)
    for k in range(low, high):
        p, stop = changes.first[k], changes.first[k + 1]
        while p + 1 < stop:
            a, b = order[p], order[p + 1]
            c = order[p + 2] if p + 2 < stop else a
            e = order[p + 3] if p + 3 < stop else a
            vc = values[c] if p + 2 < stop else nothing
            ve = values[e] if p + 3 < stop else nothing
            factors = values[a], values[b], vc, ve
            add_four(weights, k, x, (owners[a], owners[b], owners[c], owners[e]), factors)
            p += 4
        if p < stop:
            a = order[p]
            add_one(weights, k, x, owners[a], values[a])


@summing_kernel
def add_four(weights, k, x, places, factors):
    """Add the rows of `x` at four `places`, times `factors`, to the weights of class `k`."""
    a, b, c, e = places
    va, vb, vc, ve = factors
    for j in range(x.shape[1]):
        weights[k, j] += va * x[a, j] + vb * x[b, j] + vc * x[c, j] + ve * x[e, j]


@summing_kernel
def add_one(weights, k, x, a, va):
    """Add a multiple of a row of `x` to the weights of class `k`."""
    for j in range(x.shape[1]):
        weights[k, j] += va * x[a, j]


@kernel
def sort_by_class(changes, end):
    """Write the order of the changes by class to ``changes.order``, stable, in linear time."""
    first, classes, order = changes.first, changes.classes, changes.order
    first[:] = 0
    for p in range(end):
        first[classes[p]] += 1
    total = 0
    for k in range(first.size):
        total += first[k]
        first[k] = total
    for p in range(end - 1, -1, -1):
        k = classes[p]
        first[k] -= 1
        order[first[k]] = p


@kernel
def sequential_pass(loss, state, index):
    """Step on the examples `index` one by one on all classes; return how many were done."""
    state = borrow(state)
    duals, changes = state.duals, state.changes
    for done in range(index.size):
        if duals.used[0] + state.scores.size > duals.classes.size:
            return done
        i = index[done]
        for p in range(sequential_step(loss, state, i)):
            add_row(state.rows, state.weights, i, state.x, changes.classes[p], changes.values[p])
    return index.size


@inlined_kernel
def sequential_step(loss, state, i):
    """Step on all classes of example `i`; return how many changes of the duals there are."""
    load_row(state.rows, i, state.x)
    scores_of_all(state.rows, state.weights, i, state.x, state.scores)
    gain, loss_value, end = full_step(loss, state, i, 0, state.scores, np.int64(0))
    state.sums[0] += gain
    state.sums[1] += state.examples.C[i] * loss_value
    return end


@kernel
def choose_visits(members, candidates, seed, order):
    """Write the examples to visit to `order`, as often as their rates say; return how many.

    There are about as many visits as examples that are not idle, or `FEW_VISITS` if those are
    fewer, in a random order. What is left of a visit is credit for the next time.
    """
    idle, rate, credit = candidates.idle, candidates.visit_rate, candidates.visit_credit
    total, awake = 0.0, 0
    for i in members:
        if not idle[i]:
            total += rate[i]
            awake += 1
    wanted = max(awake, min(FEW_VISITS, members.size))
    n = 0
    for i in members:
        if not idle[i]:
            credit[i] += wanted * rate[i] / total
            while credit[i] >= 1.0:
                credit[i] -= 1.0
                order[n] = i
                n += 1
    shuffle(order, n, seed)
    return n


@kernel
def shuffle(order, n, seed):
    """Bring the first `n` numbers into a random order; any `seed` but 0 will do.

    The random numbers are those of an xorshift generator (Marsaglia 2003).
    """
    bits = np.uint64(seed)
    for j in range(n - 1, 0, -1):
        bits ^= bits << np.uint64(13)
        bits ^= bits >> np.uint64(7)
        bits ^= bits << np.uint64(17)
        other = np.int64(((bits >> np.uint64(32)) * np.uint64(j + 1)) >> np.uint64(32))
        order[j], order[other] = order[other], order[j]


@kernel
def active_pass(loss, state, index, mean_gain, team, place):
    """Step on the examples `index` one by one on the classes in play; return how many were done.

    Examples that gain more than `mean_gain` will be visited more often, the others less, and those
    without a change not before the next full pass, unless it is 0.

    Each member of the team looks after the weights of some classes: their scores go to its row of
    ``state.partial``. (If it were some features of all classes, processors that read ahead would
    take from one another what the other is about to write.)
    """
    state, team = borrow(state), borrow(team)
    rows, weights, x, changes = state.rows, state.weights, state.x, state.changes
    duals, candidates, scratch = state.duals, state.candidates, state.scratch
    low, high = share_of(place, team.size, scratch.is_chosen.size, CLASSES)
    start = np.int64(0)
    for done in range(index.size):
        i = index[done]
        # Each member for itself: it takes less time than to meet.
        n = list_in_play(state, i)
        if duals.used[0] + n > duals.classes.size:
            return done
        load_row(rows, i, x)
        n_own = keep_own(n + 1, low, high, scratch)
        scores_at(rows, weights, i, x, scratch.own, n_own, state.partial[place])
        if not barrier(team):
            return done
        if place == 0:
            collect_scores(n + 1, state.partial, team, scratch)
            row, base = scratch.row[:n], np.float64(scratch.row[n])
            gain, end = take_step(loss, state, i, done, row, n, base, start)
            broadcast(team, end)
            if mean_gain > 0.0:
                candidates.idle[i] = end == 0
                rate = candidates.visit_rate[i]
                candidates.visit_rate[i] = adapted_rate(rate, gain, mean_gain)
            state.sums[0] += gain
        elif done + 1 < index.size and index[done + 1] != i:  # Its duals are being written.
            n = list_in_play(state, index[done + 1])
            prefetch_weights(weights, keep_own(n + 1, low, high, scratch), scratch)
        if not barrier(team):
            return done
        for p in range(read(team)):
            if low <= changes.classes[p] < high:
                add_row(rows, weights, i, x, changes.classes[p], changes.values[p])
    return index.size


@inlined_kernel
def list_in_play(state, i):
    """List the classes in play of example `i`, then the true one; return how many are in play."""
    n = choose_in_play(state, i)
    state.scratch.chosen[n] = state.examples.labels[i]
    return n


@inlined_kernel
def keep_own(n, low, high, scratch):
    """List those of the first `n` classes that are from `low` to `high`; return how many."""
    n_own = 0
    for j in range(n):
        k = scratch.chosen[j]
        scratch.own[n_own] = k
        n_own += low <= k < high
    return n_own


@inlined_kernel
def collect_scores(n, partial, team, scratch):
    """Bring the scores of the first `n` classes together from all members."""
    row, chosen, m = scratch.row, scratch.chosen, scratch.is_chosen.size
    for place in range(team.size):
        low, high = share_of(place, team.size, m, CLASSES)
        n_own = 0
        for j in range(n):
            if low <= chosen[j] < high:
                row[j] = partial[place, n_own]
                n_own += 1


@kernel
def prefetch_weights(weights, n, scratch):
    """Ask for the weights of the first `n` classes in ``scratch.own``."""
    width = weights.shape[1]
    for j in range(n):
        first = scratch.own[j] * width
        for position in range(first, first + width, FEATURES):
            prefetch(weights, position)


@inlined_kernel
def adapted_rate(rate, gain, mean_gain):
    """Return the visit rate of an example after a step, higher if it gained more than the mean."""
    factor = 1.0 + RATE_STEP * (min(gain / mean_gain, LARGEST_GAIN) - 1.0)
    return min(max(factor * rate, LOWEST_RATE), HIGHEST_RATE)
