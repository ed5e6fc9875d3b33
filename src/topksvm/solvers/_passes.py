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

import numpy as np

from topksvm._numba import borrow, inlined_kernel, kernel, prefetch, summing_kernel
from topksvm._team import hear, meet, say, share_of
from topksvm.data import add_row, load_row, scores_at, scores_of_all
from topksvm.solvers._steps import GROUP, choose_in_play, full_step, take_step

CLASSES = 16
"""Classes whose weights stay with one thread, so that products have the shapes that they like."""

FEATURES = 16
"""Weights in a cache line, in single precision."""

FEW_VISITS = 600
"""Visits of an active pass that take longer than it takes to start one."""

RATE = 0.1
"""How fast the pace of an example follows its gains."""

SURPRISE = 2.0
"""The most times that a gain may count as the usual one."""

SLOWEST, FASTEST = 0.05, 20.0
"""Bounds of the pace of an example."""


@kernel
def block_pass(
    loss, rows, index, begin, block, gather, x, grams, weights, scores, examples, duals, candidates,
    changes, scratch, sums, team, place,
):  # fmt: skip
    """Step on the dense rows `index` from `begin` on in order, in blocks; return where it ended.

    The rows of a block are copied to `x`, which has slots for several, and multiplied with one
    another in `grams`; without `gather` they are there already. ``sums`` accumulates the gain of
    the dual and the losses met. Ends early when the log of the duals may be full after another
    block.

    Each member of the team looks after the weights of some classes. While the leader steps, the
    next one gathers the block that follows.
    """
    rows, x, grams, weights = borrow(rows), borrow(x), borrow(grams), borrow(weights)
    scores, examples, duals = borrow(scores), borrow(examples), borrow(duals)
    candidates, changes, scratch = borrow(candidates), borrow(changes), borrow(scratch)
    team = borrow(team)
    m = weights.shape[0]
    low, high = share_of(place, team.size, m, CLASSES)
    for start in range(begin, index.size, block):
        if duals.used[0] + block * m > duals.classes.size:
            return start
        n = min(block, index.size - start)
        if gather and (team.size == 1 or start == begin):
            if place == 0:
                gather_block(rows, index, start, block, x, grams)
            if not meet(team):
                return start
        slot = start // block % grams.shape[0]
        part = x[slot * block : slot * block + n]
        gram = grams[slot, : n * n].reshape(n, n)
        # One column for each example.
        products = scores[: m * n].reshape(m, n)
        np.dot(weights[low:high], part.T, products[low:high])
        if not meet(team):
            return start
        if place == 0:
            end = steps_of_block(
                loss, index[start : start + n], products, gram, examples, duals, candidates,
                changes, scratch, sums,
            )  # fmt: skip
            sort_by_class(changes, end)
        elif place == 1 and gather and start + block < index.size:
            gather_block(rows, index, start + block, block, x, grams)
        if not meet(team):
            return start
        add_changes(weights, part, changes, low, high)
    return index.size


@kernel
def gather_block(rows, index, start, block, x, grams):
    """Copy the dense rows of the block that begins at `start`, and multiply them."""
    n = min(block, index.size - start)
    slot = start // block % grams.shape[0]
    part = x[slot * block : slot * block + n]
    for b in range(n):
        load_row(rows, index[start + b], part[b])
    np.dot(part, part.T, grams[slot, : n * n].reshape(n, n))


@inlined_kernel
def steps_of_block(
    loss, index, products, gram, examples, duals, candidates, changes, scratch, sums
):
    """Step on the examples `index`, given a column of scores for each; return where changes end."""
    m, n, group = products.shape[0], index.size, scratch.group
    end = np.int64(0)  # A plain 0 would be compiled for as a special case.
    for left in range(0, n, GROUP):
        right = min(left + GROUP, n)
        transpose_columns(products, left, right, group)
        first = end
        for b in range(left, right):
            i = index[b]
            row = group[b - left]
            apply_changes(row, gram[b], changes, first, end)
            gain, loss_value, end = full_step(
                loss, i, b, row[:m], examples, duals, candidates, changes, end, scratch
            )
            sums[0] += gain
            sums[1] += examples.C[i] * loss_value
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
            add_four(
                weights, k, x,
                owners[a], owners[b], owners[c], owners[e],
                values[a], values[b], vc, ve,
            )  # fmt: skip
            p += 4
        if p < stop:
            a = order[p]
            add_one(weights, k, x, owners[a], values[a])


@summing_kernel
def add_four(weights, k, x, a, b, c, e, va, vb, vc, ve):
    """Add four multiples of rows of `x` to the weights of class `k`."""
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
def sequential_pass(
    loss, rows, weights, index, examples, duals, candidates, changes, scratch, x, scores, sums
):
    """Step on the examples `index` one by one on all classes; return how many were done."""
    rows, weights, examples, duals = borrow(rows), borrow(weights), borrow(examples), borrow(duals)
    candidates, changes, scratch = borrow(candidates), borrow(changes), borrow(scratch)
    x, scores = borrow(x), borrow(scores)
    for done in range(index.size):
        if duals.used[0] + scores.size > duals.classes.size:
            return done
        i = index[done]
        end = sequential_step(
            loss, rows, weights, i, examples, duals, candidates, changes, scratch, x, scores, sums
        )
        for p in range(end):
            add_row(rows, weights, i, x, changes.classes[p], changes.values[p])
    return index.size


@inlined_kernel
def sequential_step(
    loss, rows, weights, i, examples, duals, candidates, changes, scratch, x, scores, sums
):
    """Step on all classes of example `i`, which is brought to `x`; return how many have changed."""
    load_row(rows, i, x)
    scores_of_all(rows, weights, i, x, scores)
    gain, loss_value, end = full_step(
        loss, i, 0, scores, examples, duals, candidates, changes, np.int64(0), scratch
    )
    sums[0] += gain
    sums[1] += examples.C[i] * loss_value
    return end


@kernel
def choose_visits(members, idle, pace, due, seed, order):
    """Write the examples to visit to `order`, as often as their paces say; return how many.

    There are about as many visits as examples that are not idle, or `FEW_VISITS` if those are
    fewer, in a random order. What is left of a visit is due next time.
    """
    total, awake = 0.0, 0
    for i in members:
        if not idle[i]:
            total += pace[i]
            awake += 1
    wanted = max(awake, min(FEW_VISITS, members.size))
    n = 0
    for i in members:
        if not idle[i]:
            due[i] += wanted * pace[i] / total
            while due[i] >= 1.0:
                due[i] -= 1.0
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
def active_pass(
    loss, rows, weights, index, examples, duals, candidates, changes, scratch, x, partial, pace,
    usual, sums, team, place,
):  # fmt: skip
    """Step on the examples `index` one by one on the classes in play; return how many were done.

    Examples that gain more than is `usual` are hurried, the others slowed down, and those without
    a change left alone until the next full pass, unless it is 0.

    Each member of the team looks after the weights of some classes: their scores go to its row of
    `partial`. (If it were some features of all classes, processors that read ahead would take from
    one another what the other is about to write.)
    """
    rows, weights, examples, duals = borrow(rows), borrow(weights), borrow(examples), borrow(duals)
    candidates, changes, scratch = borrow(candidates), borrow(changes), borrow(scratch)
    x, partial, team = borrow(x), borrow(partial), borrow(team)
    low, high = share_of(place, team.size, scratch.is_chosen.size, CLASSES)
    start = np.int64(0)
    for done in range(index.size):
        i = index[done]
        # Each member for itself: it takes less time than to meet.
        n = list_in_play(i, examples, duals, candidates, scratch)
        if duals.used[0] + n > duals.classes.size:
            return done
        load_row(rows, i, x)
        n_own = keep_own(n + 1, low, high, scratch)
        scores_at(rows, weights, i, x, scratch.own, n_own, partial[place])
        if not meet(team):
            return done
        if place == 0:
            collect_scores(n + 1, partial, team, scratch)
            row, base = scratch.row[:n], np.float64(scratch.row[n])
            gain, end = take_step(
                loss, i, done, row, n, base, examples, duals, changes, start, scratch
            )
            say(team, end)
            if usual > 0.0:
                candidates.idle[i] = end == 0
                pace[i] = new_pace(pace[i], gain, usual)
            sums[0] += gain
        elif done + 1 < index.size and index[done + 1] != i:  # Its duals are being written.
            n = list_in_play(index[done + 1], examples, duals, candidates, scratch)
            prefetch_weights(weights, keep_own(n + 1, low, high, scratch), scratch)
        if not meet(team):
            return done
        for p in range(hear(team)):
            if low <= changes.classes[p] < high:
                add_row(rows, weights, i, x, changes.classes[p], changes.values[p])
    return index.size


@inlined_kernel
def list_in_play(i, examples, duals, candidates, scratch):
    """List the classes in play of example `i`, then the true one; return how many are in play."""
    n = choose_in_play(i, duals, candidates, scratch)
    scratch.chosen[n] = examples.labels[i]
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
def new_pace(pace, gain, usual):
    """Return the pace of an example after a step, faster if it gained more than is usual."""
    hurry = 1.0 + RATE * (min(gain / usual, SURPRISE) - 1.0)
    return min(max(hurry * pace, SLOWEST), FASTEST)
