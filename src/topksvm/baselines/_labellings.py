"""The labelling that violates its margin most, for precision and recall among the predicted.

A binary problem has entries with scores ``s``, of which ``n_pos`` are positive. A labelling that
predicts ``a`` positives and ``b`` negatives to be positive violates its margin by::

    loss(a, a + b) + unit (sum of scores of the b negatives - sum of those of the missed positives)

For given ``a`` and ``b`` the worst one misses the lowest positives and predicts the highest
negatives, so sums of sorted scores give the worst for all ``a`` at once. What is left is the best
``b`` for each ``a``: it is given, or the violation is concave in it (Joachims 2005, section 4.2).

There may be millions of negatives, but each labelling that matters predicts all of a *core* and
some of a *tail* of the next highest: only the tail has to be sorted, and only entries above a
bound are looked at twice.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topksvm._numba import kernel

Floats = NDArray[np.floating[Any]]
Indices = NDArray[np.intp]

PERCENT = 100.0
"""Losses are in percent, as those of SVM^perf."""
SAMPLE = 1 << 16
"""Entries from which the scores of all are estimated, where there are many more."""
BLOCK = 32
"""Entries that are compared with a bound at a time."""


class Measure(NamedTuple):
    """What is wanted of the predicted positives, and how many there may be.

    Attributes
    ----------
    recall : bool
        Whether the loss is ``1 - a / n_pos``; else it is ``1 - a / (a + b)``.
    size : int
        The number of predicted positives.
    exactly : bool
        Whether labellings predict exactly so many; else at most (recall) or at least (precision).
    """

    recall: bool
    size: int
    exactly: bool


class Labelling(NamedTuple):
    """A labelling of all entries, as its difference to the truth.

    Attributes
    ----------
    violation : float
        ``loss + <w, Psi(labelling)> - <w, Psi(truth)>`` for the scores that it was found with.
    loss : float
        In percent.
    missed, false : ndarray
        The positive entries that it predicts to be negative, and the other way round; ascending.
    """

    violation: float
    loss: float
    missed: Indices
    false: Indices


class Truth:
    """Which of the entries are positive.

    Parameters
    ----------
    positives : ndarray
        The positive entries.
    n_entries : int
        The number of all.
    """

    def __init__(self, positives: Indices, n_entries: int) -> None:
        self.positives = positives
        self.n_negatives = n_entries - positives.size
        self.is_negative = np.ones(n_entries, dtype=bool)
        self.is_negative[positives] = False
        # Each entry has the label +-50 / n_entries in SVM^perf, so that its C means the same.
        self.unit = PERCENT / n_entries
        rng = np.random.default_rng(0)
        self.sample = rng.integers(n_entries, size=SAMPLE if n_entries > 4 * SAMPLE else 0)

    def margin(self, labelling: Labelling, scores: Floats) -> float:
        """Return ``<w, Psi(truth)> - <w, Psi(labelling)>`` for the scores of some ``w``."""
        return self.unit * (_sum(scores[labelling.missed]) - _sum(scores[labelling.false]))


class _Negatives(NamedTuple):
    """The negatives that a worst labelling may predict, and some more.

    Attributes
    ----------
    entries, scores : ndarray
        All that were looked at, in the order of the entries.
    core : int
        How many of the highest are in every labelling that matters.
    core_sum : float
        The sum of their scores.
    tail : ndarray
        The next scores, descending: those that some labelling may predict as well.
    """

    entries: Indices
    scores: Floats
    core: int
    core_sum: float
    tail: Floats

    def sums(self) -> Floats:
        """Return the sums of the highest `core`, `core + 1`, ... scores."""
        return self.core_sum + sums_of_first(self.tail)

    def highest(self, count: int) -> Indices:
        """Return the entries of the `count` highest, at least the core, in their order."""
        if count == self.scores.size:
            return self.entries
        if count == 0:
            return self.entries[:0]
        place = count - self.core - 1
        last = self.tail[place] if place >= 0 else np.partition(-self.scores, count - 1)[count - 1]
        last = last if place >= 0 else -last
        chosen = self.scores > last
        ties = np.flatnonzero(self.scores == last)
        chosen[ties[: count - np.count_nonzero(chosen)]] = True
        return self.entries[chosen]


def most_violated(scores: Floats, truth: Truth, measure: Measure) -> Labelling:
    """Return the labelling with the largest violation of all that the measure allows."""
    positive_scores = scores[truth.positives]
    ascending = np.argsort(positive_scores)
    lost = sums_of_first(positive_scores[ascending])
    negatives = _relevant_negatives(scores, truth, measure, positive_scores)
    hits, false = _counts(negatives, truth, measure)
    missed = truth.positives.size - hits
    wanted = truth.positives.size if measure.recall else np.maximum(hits + false, 1)
    losses = PERCENT * (1.0 - hits / wanted)
    gained = negatives.sums()[false - negatives.core]
    violations = losses + truth.unit * (gained - lost[missed])
    worst = int(np.argmax(violations))
    return Labelling(
        float(violations[worst]),
        float(losses[worst]),
        truth.positives[np.sort(ascending[: missed[worst]])],
        negatives.highest(int(false[worst])),
    )


def sums_of_first(values: Floats) -> Floats:
    """Return the sums of the first 0, 1, 2, ... values."""
    sums = np.zeros(values.size + 1)
    np.cumsum(values, out=sums[1:])
    return sums


def _sum(values: Floats) -> float:
    return float(values.sum(dtype=np.float64))


def _relevant_negatives(
    scores: Floats, truth: Truth, measure: Measure, positive_scores: Floats
) -> _Negatives:
    size, n_pos = min(measure.size, truth.n_negatives), truth.positives.size
    if measure.exactly or measure.recall:
        # The more positives are predicted, the fewer negatives.
        found = _above_highest(scores, truth, size, -np.inf if measure.exactly else 0.0)
        most = min(size, found.size)
        return _ranked(scores, found, min(most, max(0, measure.size - n_pos)), most)
    above = int(np.count_nonzero(scores > 0.0) - np.count_nonzero(positive_scores > 0.0))
    # One more negative adds this at most to the loss, so lower ones do harm.
    found = _negatives_above(scores, truth, -_largest_effect(above, n_pos, size) / truth.unit)
    if found.size < size:
        found = _above_highest(scores, truth, size, -np.inf)
    return _ranked(scores, found, above, found.size)


def _largest_effect(false: int, n_pos: int, size: int) -> float:
    """Return a bound on ``100 a / ((a + b) (a + b + 1))``, the effect of a negative on the loss.

    Here ``a`` is at most `n_pos`, ``b`` at least `false`, and ``a + b`` at least `size`.
    """
    if false >= n_pos:  # It rises with a.
        return PERCENT * n_pos / ((n_pos + false) * (n_pos + false + 1.0))
    least = max(size, false, 1)
    return PERCENT * min(1.0 / (4 * false + 1), min(n_pos, least) / (least * (least + 1.0)))


def _above_highest(scores: Floats, truth: Truth, count: int, floor: float) -> Indices:
    """Return the negatives above `floor`, or at least the `count` highest of them."""
    guess = floor
    if truth.sample.size:
        # So many of the sample are higher, and a few more lest there be too few negatives.
        share = (count + truth.positives.size) / scores.size * truth.sample.size
        rank = int(share + 4.0 * np.sqrt(share)) + 4
        if rank < truth.sample.size:
            guess = max(floor, float(-np.partition(-scores[truth.sample], rank)[rank]))
    found = _negatives_above(scores, truth, guess)
    if found.size >= count or guess == floor:
        return found
    return _negatives_above(scores, truth, floor)


def _negatives_above(scores: Floats, truth: Truth, bound: float) -> Indices:
    found: Indices = gather_above(scores, truth.is_negative, scores.dtype.type(bound), BLOCK)
    return found


def _ranked(scores: Floats, entries: Indices, core: int, most: int) -> _Negatives:
    """Return the negatives with the tail from rank `core` to rank `most`."""
    values = scores[entries]
    falling = -values
    if most < falling.size:
        falling.partition(most)
    falling = falling[:most]
    if 0 < core < most:
        falling.partition(core)
    return _Negatives(entries, values, core, -_sum(falling[:core]), -np.sort(falling[core:]))


def _counts(negatives: _Negatives, truth: Truth, measure: Measure) -> tuple[Any, Any]:
    """Return numbers of positives, and for each the worst number of negatives to predict."""
    hits = np.arange(truth.positives.size + 1)
    if measure.exactly:
        fits = (hits <= measure.size) & (measure.size - hits <= truth.n_negatives)
        return hits[fits], measure.size - hits[fits]
    if measure.recall:
        hits = hits[hits <= measure.size]
        return hits, np.minimum(measure.size - hits, negatives.core + negatives.tail.size)
    hits = hits[measure.size - hits <= truth.n_negatives]
    least = np.maximum(measure.size - hits, negatives.core)
    return hits, _worst_counts(hits, least, negatives.core, truth.unit * negatives.tail)


def _worst_counts(hits: Indices, least: Indices, core: int, gains: Floats) -> Indices:
    """Return for each number of hits the worst number of false positives, by bisection.

    The violation is concave in it: it rises as long as one more negative has a positive effect.
    """
    low, high = least.copy(), np.maximum(least, core + gains.size)
    values = np.append(gains, -np.inf)
    while (low < high).any():
        # Where low == high already, the effect is not looked at.
        middle = np.minimum((low + high) // 2, core + gains.size)
        size = (hits + middle).astype(np.float64)
        effect = PERCENT * hits / np.maximum(size * (size + 1.0), 1.0) + values[middle - core]
        rises = (effect > 0) & (low < high)
        high = np.where(rises | (low == high), high, middle)
        low = np.where(rises, middle + 1, low)
    return low


@kernel
def gather_above(scores, is_negative, bound, block):
    """Return the negative entries with scores above `bound`."""
    found = np.empty(scores.size, dtype=np.intp)
    count = 0
    for begin in range(0, scores.size, block):
        part = scores[begin : begin + block]
        # Most blocks have none, which vector instructions see at once.
        hits = 0
        for place in range(part.size):
            hits += part[place] > bound
        if hits == 0:
            continue
        for place in range(part.size):
            # Without a branch, as which entries are above is hard to predict.
            found[count] = begin + place
            count += (part[place] > bound) & is_negative[begin + place]
    return found[:count].copy()
