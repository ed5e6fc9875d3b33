"""The most violated labelling is the worst of all, by trying all."""

from __future__ import annotations

import numpy as np
import pytest

from baselines.labellings import worst_violation
from topksvm.baselines._labellings import SAMPLE, Measure, Truth, most_violated

ENTRIES = 9


def _check(scores, truth, measure):
    entries = Truth(np.flatnonzero(truth), truth.size)
    found = most_violated(scores, entries, measure)
    labelling = truth.copy()
    assert truth[found.missed].all()
    assert not truth[found.false].any()
    assert len(set(found.false)) == found.false.size
    labelling[found.missed], labelling[found.false] = 0, 1
    predicted, hits = labelling.sum(), int(labelling @ truth)
    if measure.exactly:
        assert predicted == measure.size
    else:
        assert predicted <= measure.size if measure.recall else predicted >= measure.size
    whole = truth.sum() if measure.recall else max(predicted, 1)
    assert found.loss == pytest.approx(100.0 * (1.0 - hits / whole))
    margin = 100.0 / truth.size * float((truth - labelling) @ scores)
    assert entries.margin(found, scores) == pytest.approx(margin)
    assert found.violation == pytest.approx(found.loss - margin)
    assert found.violation == pytest.approx(worst_violation(scores, truth, *measure), abs=1e-9)


@pytest.mark.parametrize("exactly", [False, True])
@pytest.mark.parametrize("recall", [False, True])
@pytest.mark.parametrize("positives", [1, 3, 8])
def test_worst_of_all(recall, exactly, positives):
    rng = np.random.default_rng(positives)
    truth = np.zeros(ENTRIES, dtype=int)
    truth[rng.permutation(ENTRIES)[:positives]] = 1
    for size in (1, 2, 4, ENTRIES - positives, ENTRIES):
        measure = Measure(recall, size, exactly)
        # The loss matters as much as the scores at a scale of about 1.
        for scale in (0.0, 0.2, 1.0, 100.0):
            _check(scale * rng.normal(size=ENTRIES), truth, measure)
            _check(scale * rng.integers(-2, 3, size=ENTRIES).astype(float), truth, measure)


@pytest.mark.parametrize("recall", [False, True])
def test_large_problem_by_all_counts(recall):
    """All pairs of counts instead of all labellings, so that few of many negatives are sorted."""
    rng = np.random.default_rng(0)
    truth = np.zeros(400, dtype=int)
    truth[rng.permutation(400)[:30]] = 1
    for scale, offset in ((0.5, 0.0), (10.0, -10.0), (10.0, 10.0), (50.0, -80.0)):
        scores = scale * rng.normal(size=400) + offset
        positive, negative = np.sort(scores[truth == 1]), -np.sort(-scores[truth == 0])
        for size in (1, 20, 60, 300):
            best = -np.inf
            for a in range(31):
                for b in range(371):
                    if (a + b <= size) if recall else (a + b >= size):
                        whole = 30 if recall else max(a + b, 1)
                        change = negative[:b].sum() - positive[: 30 - a].sum()
                        best = max(best, 100 * (1 - a / whole) + change / 4)
            measure = Measure(recall, size, exactly=False)
            found = most_violated(scores, Truth(np.flatnonzero(truth), 400), measure)
            assert found.violation == pytest.approx(best)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("measure", [Measure(True, 900, False), Measure(False, 9, False)])
def test_many_entries_by_a_full_sort(measure, dtype):
    """So many that the bound on the negatives is guessed from a sample."""
    rng = np.random.default_rng(0)
    n = 5 * SAMPLE
    positives = np.sort(rng.permutation(n)[:40])
    truth = Truth(positives, n)
    for scale, offset in ((0.0, 0.0), (100.0, 0.0), (100.0, -300.0), (3000.0, -6000.0)):
        scores = (scale * rng.normal(size=n) + offset).astype(dtype)
        negative = -np.sort(-scores[truth.is_negative].astype(float))
        gained = np.append(0.0, np.cumsum(negative))
        lost = np.append(0.0, np.cumsum(np.sort(scores[positives].astype(float))))
        best, b = -np.inf, np.arange(gained.size)
        for a in range(41):
            allowed = b[: measure.size - a + 1] if measure.recall else b[max(9 - a, 0) :]
            loss = 1.0 - a / (40 if measure.recall else np.maximum(a + allowed, 1))
            values = 100.0 * loss + truth.unit * (gained[allowed] - lost[40 - a])
            best = max(best, float(values.max()))
        found = most_violated(scores, truth, measure)
        assert found.violation == pytest.approx(best, rel=1e-9)
        assert found.violation == pytest.approx(found.loss - truth.margin(found, scores), rel=1e-9)
