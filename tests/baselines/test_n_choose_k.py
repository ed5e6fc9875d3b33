"""The n-choose-k model against enumeration, finite differences and softmax regression."""

from __future__ import annotations

from itertools import combinations
from math import fsum

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import check_grad
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from topksvm import TopKLinearSVC
from topksvm.baselines._n_choose_k import NChooseK, Objective
from topksvm.baselines._symmetric_polynomials import n_choose_k_losses


@parametrize_with_checks([NChooseK()])
@pytest.mark.filterwarnings("ignore")
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


def problem(n=60, d=5, m=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (X @ rng.normal(size=(d, m)) + rng.normal(size=(n, m))).argmax(axis=1)


def enumerated(scores, label, k):
    """Return ``-log p`` and its derivatives by the sum over all sets of k labels."""
    subsets = np.array(list(combinations(range(scores.size), k)))
    logs = np.array([fsum(scores[s]) for s in subsets])
    has_label = (subsets == label).any(axis=1)

    def marginals(logs, subsets):
        shares = np.exp(logs - logsumexp(logs))
        return np.bincount(subsets.ravel(), np.repeat(shares, k), minlength=scores.size)

    loss = logsumexp(logs) - logsumexp(logs[has_label])
    return loss, marginals(logs, subsets) - marginals(logs[has_label], subsets[has_label])


def computed(scores, labels, k):
    derivatives = np.array(scores, dtype=float, ndmin=2)
    loss = n_choose_k_losses(derivatives, np.atleast_1d(labels).astype(np.int64), np.int64(k))
    return loss, derivatives


@pytest.mark.parametrize("spread", [0.0, 1.0, 30.0, 1000.0])
@pytest.mark.parametrize("k", [1, 2, 3, 6])
def test_equals_enumeration(k, spread):
    rng = np.random.default_rng(k)
    for label in range(7):
        scores = spread * rng.normal(size=7) + 1e3
        loss, derivatives = computed(scores, label, k)
        expected_loss, expected = enumerated(scores, label, k)
        np.testing.assert_allclose(loss, expected_loss, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(derivatives[0], expected, atol=1e-9)


@pytest.mark.parametrize("scale", [1.0, 1e3, 1e8])
def test_a_thousand_classes(scale):
    # With scores that differ by more than 40, a set without the best k of them has no chance.
    rng = np.random.default_rng(0)
    scores, k = scale * rng.permutation(1000) / 10, 10
    loss, derivatives = computed(np.stack([scores] * 2), np.argsort(scores)[[0, -1]], k)
    ranked = np.sort(scores)[::-1]
    assert np.isfinite(derivatives).all()
    np.testing.assert_allclose(derivatives.sum(axis=1), 0.0, atol=1e-9)
    # The last class must take the place of the k-th; the first one is in every likely set.
    if scale > 1.0:
        assert loss == pytest.approx(ranked[k - 1] - ranked[-1])
        assert derivatives[0, np.argsort(scores)[0]] == pytest.approx(-1.0)
        assert derivatives[0, np.argsort(scores)[-k]] == pytest.approx(1.0)
        np.testing.assert_allclose(derivatives[1], 0.0, atol=1e-9)
    else:
        assert loss > ranked[k - 1] - ranked[-1]


def test_chance_of_a_random_guess_without_scores():
    for k in (1, 3, 10):
        assert computed(np.zeros(1000), 7, k)[0] == pytest.approx(np.log(1000 / k))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("k", [1, 3])
def test_gradient_is_that_of_the_objective(form, k):
    X, y = problem(n=300)
    objective = Objective(form(X), y, 6, k, 0.7)
    objective.block = 128  # Three blocks, the last one short.
    point = np.random.default_rng(1).normal(size=objective.size)
    error = check_grad(lambda w: objective(w)[0], lambda w: objective(w)[1], point)
    assert error < 1e-5 * np.linalg.norm(objective(point)[1])


def test_one_of_n_is_softmax_regression():
    X, y = problem()
    model = NChooseK(1, C=0.5, tol=1e-7).fit(X, y)
    ours = TopKLinearSVC(loss="softmax", C=0.5, fit_intercept=False, tol=1e-9).fit(X, y)
    assert model.objective_ == pytest.approx(ours.certificate_.primal, rel=1e-8)
    theirs = LogisticRegression(C=0.5, fit_intercept=False, tol=1e-10, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(model.coef_, theirs.coef_, atol=1e-5)


def test_from_two_on_it_is_not_convex():
    # log(1 + exp(r - s_y)) where r is close to the second largest of the other scores.
    ends = 20.0 * np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    values = [computed(row, 2, 2)[0] for row in (*ends, ends.mean(axis=0))]
    assert values[2] > (values[0] + values[1]) / 2 + 5.0


def test_training_reaches_a_stationary_point_for_sets():
    X, y = problem(n=200)
    model = NChooseK(2, C=1.0, tol=1e-6).fit(X, y)
    value, gradient = Objective(X, y, 6, 2, 1.0)(model.coef_.ravel())
    assert value == pytest.approx(model.objective_)
    at_zero = np.abs(Objective(X, y, 6, 2, 1.0)(np.zeros(30))[1]).max()
    assert np.abs(gradient).max() / at_zero == pytest.approx(model.gradient_norm_, rel=1e-3)
    assert model.gradient_norm_ <= 1e-6
    for seed in range(5):
        step = 0.1 * np.random.default_rng(seed).normal(size=30)
        assert Objective(X, y, 6, 2, 1.0)(model.coef_.ravel() + step)[0] > value


def test_sparse_and_float32():
    X, y = problem()
    model = NChooseK(2, tol=1e-6).fit(X, y)
    sparse = NChooseK(2, tol=1e-6).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(sparse.coef_, model.coef_, atol=1e-5)
    narrow = NChooseK(2, tol=1e-4).fit(X.astype(np.float32), y)
    assert narrow.coef_.dtype == np.float32
    np.testing.assert_allclose(narrow.coef_, model.coef_, atol=1e-2)


def test_says_how_far_it_came():
    X, y = problem()
    with pytest.warns(ConvergenceWarning, match=r"gradient .* of that at 0, after 2 iterations"):
        model = NChooseK(C=10.0, max_iter=2).fit(X, y)
    assert model.gradient_norm_ > model.tol


def test_bad_k():
    X, y = problem()
    with pytest.raises(ValueError, match="k = 6 but there are 6 classes; k must be between 1 and"):
        NChooseK(6).fit(X, y)
    many = np.arange(4000) // 2
    with pytest.raises(ValueError, match=r"k = 900 of 2000 classes .* Choose a smaller k"):
        NChooseK(900).fit(np.ones((4000, 1)), many)


def test_overflow():
    X, y = problem()
    with pytest.raises(ValueError, match=r"not finite, at C = 1e\+308\. Choose a smaller C"):
        NChooseK(C=1e308).fit(100 * X, y)


def test_says_what_it_found(capsys):
    X, y = problem()
    NChooseK(verbose=1).fit(X, y)
    assert capsys.readouterr().err.startswith("objective ")


def test_features_that_are_zero():
    model = NChooseK().fit(np.zeros((4, 2)), [0, 1, 0, 1])
    np.testing.assert_array_equal(model.coef_, 0.0)
