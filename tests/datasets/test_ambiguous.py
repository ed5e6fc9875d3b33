"""Made-up classes: as ambiguous as the formula says, and reproducible."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression

from topksvm.datasets import make_ambiguous_classes
from topksvm.metrics import topk_accuracy

SHAPE = (6000, 64, 20)


def _class_means(**options):
    """The centres, from clear examples of the same seed without noise."""
    X, y = make_ambiguous_classes(20, *SHAPE[1:], overlap=0, noise=0, random_state=0, **options)
    return X[np.argsort(y)]


def _accuracies(overlap, ks, **options):
    X, y = make_ambiguous_classes(*SHAPE, overlap=overlap, random_state=0, **options)
    return topk_accuracy(y, X @ _class_means().T, ks=ks)


@pytest.mark.parametrize("overlap", [0.0, 0.3, 0.7, 1.0])
def test_accuracy_of_the_best_classifier(overlap):
    ks = np.array([1, 2, 3, 4, 5])
    expected = 1 - overlap + overlap * ks / 5
    # Four standard deviations of a share among 6000.
    np.testing.assert_allclose(_accuracies(overlap, ks), expected, atol=4 * 0.5 / np.sqrt(6000))


def test_no_overlap_is_separable():
    assert _accuracies(0.0, (1,)) == 1


def test_top_1_falls_while_the_group_is_found():
    top = np.array([_accuracies(overlap, (1, 5)) for overlap in (0, 0.25, 0.5, 0.75, 1)])
    assert (np.diff(top[:, 0]) < -0.1).all()
    assert (top[:, 1] > 0.99).all()


def test_a_trained_classifier_meets_it_too():
    options = {"overlap": 0.6, "group_size": 4, "random_state": 3}
    X, y = make_ambiguous_classes(2000, 32, 8, **options)
    model = LogisticRegression(C=10.0, fit_intercept=False).fit(X[:1000], y[:1000])
    top = topk_accuracy(y[1000:], model.decision_function(X[1000:]), ks=(1, 4))
    assert top[0] < 0.65
    assert top[1] > 0.97


def test_noise_is_in_halves_of_the_least_distance():
    centres = _class_means()
    X, y = make_ambiguous_classes(*SHAPE, overlap=0, noise=0.7, random_state=0)
    distances = np.linalg.norm(centres[:, None] - centres, axis=2)
    distances[np.diag_indices(20)] = np.inf
    a, b = np.unravel_index(distances.argmin(), distances.shape)
    np.testing.assert_allclose((X - centres[y]).std(), 0.7 * distances.min() / 2, rtol=0.01)
    X, y = X[y == a], y[y == a]
    share = (X @ centres[b] > X @ centres[a]).mean()
    assert abs(share - norm.cdf(-1 / 0.7)) < 4 * 0.3 / np.sqrt(len(X))


def test_centres_have_unit_length_and_groups_of_equal_distances():
    centres = _class_means().astype(np.float64)
    np.testing.assert_allclose(np.linalg.norm(centres, axis=1), 1, atol=1e-6)
    cosines = centres[:5] @ centres[:5].T
    np.testing.assert_allclose(cosines[~np.eye(5, dtype=bool)], cosines[0, 1], atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_same_seed_same_data(dtype):
    options = {"random_state": 7, "dtype": dtype}
    X, y = make_ambiguous_classes(103, 8, 7, group_size=3, **options)
    again = make_ambiguous_classes(103, 8, 7, group_size=3, **options)
    assert X.dtype == dtype
    np.testing.assert_array_equal(X, again[0])
    np.testing.assert_array_equal(y, again[1])
    assert set(np.bincount(y)) == {14, 15}
    other = make_ambiguous_classes(103, 8, 7, group_size=3, random_state=8)[0]
    assert not np.allclose(X, other)


@pytest.mark.parametrize("state", [np.random.default_rng(0), np.random.RandomState(0), None])
def test_other_random_states(state):
    assert np.isfinite(make_ambiguous_classes(10, 5, 5, random_state=state)[0]).all()


def test_memory_is_that_of_the_output():
    make_ambiguous_classes(random_state=0)
    tracemalloc.start()
    X, _ = make_ambiguous_classes(100_000, 256, 100, random_state=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < X.nbytes + 4e7


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_samples": 0}, "n_samples=0 is not an integer of at least 1"),
        ({"n_features": 1}, "n_features=1"),
        ({"n_classes": 2.5}, "n_classes=2.5"),
        ({"n_samples": True}, "n_samples=True"),
        ({"overlap": "half"}, "overlap='half' is not a share"),
        ({"noise": None}, "noise=None is not a finite number"),
        ({"dtype": "no-such"}, "dtype='no-such' is neither"),
        ({"overlap": 1.5}, "overlap=1.5 is not a share"),
        ({"overlap": float("nan")}, "overlap=nan"),
        ({"noise": -1}, "noise=-1"),
        ({"group_size": 0}, "group_size=0"),
        ({"group_size": 21}, "group_size=21 is more than .*n_classes=20. Make groups smaller"),
        ({"dtype": np.float16}, "neither float32 nor float64"),
        ({"random_state": -1}, "random_state=-1 is not a seed"),
    ],
)
def test_bad_arguments(options, words):
    with pytest.raises(ValueError, match=words):
        make_ambiguous_classes(**options)
