"""The labelling that violates its margin most, for precision and recall among the predicted.

A binary problem has entries with scores ``s``, of which ``n_pos`` are positive. A labelling that
predicts ``a`` positives and ``b`` negatives to be positive violates its margin by::

    loss(a, a + b) + unit (sum of scores of the b negatives - sum of those of the missed positives)

For given ``a`` and ``b`` the worst one misses the lowest positives and predicts the highest
negatives, so sums of sorted scores give the worst for all ``a`` at once. What is left is the best
``b`` for each ``a``: it is given, or the violation is concave in it (Joachims 2005, section 4.2).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

PERCENT = 100.0
"""Losses are in percent, as those of SVM^perf."""


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
        The positive entries that it predicts to be negative, and the other way round.
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

    def margin(self, labelling: Labelling, scores: Floats) -> float:
        """Return ``<w, Psi(truth)> - <w, Psi(labelling)>`` for the scores of some ``w``."""
        return self.unit * float(scores[labelling.missed].sum() - scores[labelling.false].sum())


def most_violated(scores: Floats, truth: Truth, measure: Measure) -> Labelling:
    """Return the labelling with the largest violation of all that the measure allows."""
    positive_scores = scores[truth.positives]
    ascending = np.argsort(positive_scores)
    lost = sums_of_first(positive_scores[ascending])
    negatives = _relevant_negatives(scores, truth, measure)
    gained = sums_of_first(scores[negatives])
    hits, false = _counts(scores[negatives], truth, measure)
    missed = truth.positives.size - hits
    wanted = truth.positives.size if measure.recall else np.maximum(hits + false, 1)
    losses = PERCENT * (1.0 - hits / wanted)
    violations = losses + truth.unit * (gained[false] - lost[missed])
    worst = int(np.argmax(violations))
    return Labelling(
        float(violations[worst]),
        float(losses[worst]),
        truth.positives[ascending[: missed[worst]]],
        negatives[: false[worst]],
    )


def sums_of_first(values: Floats) -> Floats:
    """Return the sums of the first 0, 1, 2, ... values."""
    sums = np.zeros(values.size + 1)
    np.cumsum(values, out=sums[1:])
    return sums


def _relevant_negatives(scores: Floats, truth: Truth, measure: Measure) -> Indices:
    """Return the negatives that a worst labelling may predict, those of high scores first.

    Far fewer than all have to be sorted: one more negative adds its score times the unit to the
    violation and, for precision, ``100 a / ((a + b) (a + b + 1))``, at most ``100 / (4 b + 1)``.
    """
    size = min(measure.size, truth.n_negatives)
    if measure.exactly:
        return _highest(scores, truth, size)
    chosen = _negatives_above(scores, truth, 0.0)
    if measure.recall:
        return _highest(scores, truth, size) if chosen.size > size else _descending(scores, chosen)
    chosen = _negatives_above(scores, truth, -PERCENT / truth.unit / (4 * chosen.size + 1))
    return _highest(scores, truth, size) if chosen.size < size else _descending(scores, chosen)


def _negatives_above(scores: Floats, truth: Truth, bound: float) -> Indices:
    above = np.flatnonzero(scores > bound)
    return above[truth.is_negative[above]]


def _highest(scores: Floats, truth: Truth, count: int) -> Indices:
    """Return the `count` highest negatives, in descending order."""
    # So many entries hold `count` negatives even if all positives are among them.
    first = max(0, scores.size - count - truth.positives.size)
    highest = np.argpartition(scores, first)[first:] if first else np.arange(scores.size)
    return _descending(scores, highest[truth.is_negative[highest]])[:count]


def _descending(scores: Floats, entries: Indices) -> Indices:
    return entries[np.argsort(-scores[entries])]


def _counts(sorted_negatives: Floats, truth: Truth, measure: Measure) -> tuple[Any, Any]:
    """Return numbers of positives, and for each the worst number of negatives to predict."""
    hits = np.arange(truth.positives.size + 1)
    if measure.exactly:
        fits = (hits <= measure.size) & (measure.size - hits <= truth.n_negatives)
        return hits[fits], measure.size - hits[fits]
    if measure.recall:
        hits = hits[hits <= measure.size]
        return hits, np.minimum(measure.size - hits, sorted_negatives.size)
    hits = hits[measure.size - hits <= truth.n_negatives]
    gains = truth.unit * sorted_negatives
    return hits, _worst_counts(hits, np.maximum(measure.size - hits, 0), gains)


def _worst_counts(hits: Indices, least: Indices, gains: Floats) -> Indices:
    """Return for each number of hits the worst number of false positives, by bisection.

    The violation is concave in it: it rises as long as one more negative has a positive effect.
    """
    low, high = least.copy(), np.maximum(least, gains.size)
    values = np.append(gains, -np.inf)
    while (low < high).any():
        # Where low == high already, the effect is not looked at.
        middle = np.minimum((low + high) // 2, gains.size)
        size = (hits + middle).astype(np.float64)
        effect = PERCENT * hits / np.maximum(size * (size + 1.0), 1.0) + values[middle]
        rises = (effect > 0) & (low < high)
        high = np.where(rises | (low == high), high, middle)
        low = np.where(rises, middle + 1, low)
    return low
