"""All labellings of a tiny problem, one by one."""

from __future__ import annotations

import itertools

import numpy as np


def all_labellings(truth, recall, size, exactly):
    """Yield ``(labelling, loss in percent)`` for all that are allowed; both are of 0 and 1."""
    truth = np.asarray(truth)
    for choice in itertools.product([0, 1], repeat=truth.size):
        labelling = np.array(choice)
        predicted, hits = labelling.sum(), int(labelling @ truth)
        if exactly:
            allowed = predicted == size
        else:
            allowed = predicted <= size if recall else predicted >= size
        if allowed:
            whole = truth.sum() if recall else max(predicted, 1)
            yield labelling, 100.0 * (1.0 - hits / whole)


def worst_violation(scores, truth, recall, size, exactly):
    """Return the largest violation, by trying all."""
    return max(
        loss + 100.0 / truth.size * float((labelling - truth) @ scores)
        for labelling, loss in all_labellings(truth, recall, size, exactly)
    )
