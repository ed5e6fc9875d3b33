"""OneVsRestSVC: against scikit-learn's own, a QP solver, and any number of processes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from topksvm.baselines import _one_vs_rest
from topksvm.baselines._one_vs_rest import GROUP, OneVsRestSVC


def data(n=90, d=5, m=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % m
    return rng.normal(size=(n, d)) + rng.normal(size=(m, d))[y], y


def test_the_same_as_several_classes_at_once():
    X, y = data()
    ours = OneVsRestSVC(0.3, tol=1e-8).fit(X, y)
    theirs = LinearSVC(C=0.3, tol=1e-8, fit_intercept=False, dual=False).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 3.0}])
def test_optimum_of_a_qp_solver(loss, class_weight):
    cp = pytest.importorskip("cvxpy")
    X, y = data()
    y[:20] = 0
    model = OneVsRestSVC(
        0.2, loss=loss, class_weight=class_weight, tol=1e-8, max_iter=100_000, random_state=0
    ).fit(X, y)
    sizes = np.bincount(y)
    factors = {"balanced": len(y) / (3 * sizes), "None": np.ones(3)}.get(
        str(class_weight), np.array([3.0, 1.0, 1.0])
    )
    for c, weights in enumerate(model.coef_):
        w = cp.Variable(X.shape[1])
        losses = cp.pos(1 - cp.multiply(np.where(y == c, 1.0, -1.0), X @ w))
        losses = losses if loss == "hinge" else cp.square(losses)
        objective = 0.5 * cp.sum_squares(w) + 0.2 * cp.sum(cp.multiply(factors[y], losses))
        cp.Problem(cp.Minimize(objective)).solve(solver=cp.CLARABEL)
        np.testing.assert_allclose(weights, w.value, atol=1e-4)


def test_processes_do_not_change_the_model():
    X, y = data()
    one = OneVsRestSVC(loss="hinge", random_state=0, max_iter=5000)
    two = OneVsRestSVC(loss="hinge", random_state=0, max_iter=5000, n_jobs=2)
    np.testing.assert_array_equal(one.fit(X, y).coef_, two.fit(X, y).coef_)


def test_sparse_float32_and_two_classes():
    X, y = data(m=2)
    plain = OneVsRestSVC().fit(X, y)
    assert plain.coef_.shape == (2, X.shape[1])
    np.testing.assert_allclose(plain.coef_[0], -plain.coef_[1], atol=1e-3)
    np.testing.assert_allclose(OneVsRestSVC().fit(sp.csr_array(X), y).coef_, plain.coef_, atol=1e-6)
    assert OneVsRestSVC().fit(X.astype(np.float32), y).coef_.dtype == np.float32


def test_one_warning_for_all_classes():
    X, y = data()
    names = np.array(["a", "b", "c"], dtype=object)[y]
    with pytest.warns(ConvergenceWarning, match="3 of 3 classes, the first 'a', .*max_iter = 1 "):
        OneVsRestSVC(loss="hinge", C=100.0, max_iter=1).fit(X, names)


@pytest.mark.parametrize("weight", [0.0, -1.0])
def test_weights_that_are_not_positive(weight):
    X, y = data()
    with pytest.raises(ValueError, match=rf"class_weight of class 1 is {weight}; .*positive"):
        OneVsRestSVC(class_weight={1: weight}).fit(X, y)


NO_INTERCEPT = (
    "Without intercept no weight makes one class win everywhere: of x and -x one goes to each of "
    "two classes."
)


@parametrize_with_checks(
    [OneVsRestSVC(), OneVsRestSVC(loss="hinge")],
    expected_failed_checks=lambda _: {"check_class_weight_classifiers": NO_INTERCEPT},
)
@pytest.mark.filterwarnings("ignore")
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_more_classes_than_are_trained_at_a_time(loss, monkeypatch):
    monkeypatch.setattr(_one_vs_rest, "LARGE", 0)
    X, y = data(n=180, m=GROUP + 2)
    model = OneVsRestSVC(0.3, loss=loss, tol=1e-8, max_iter=100_000, random_state=0).fit(X, y)
    for c in range(GROUP + 2):
        alone = LinearSVC(
            loss=loss, C=0.3, tol=1e-8, max_iter=100_000, fit_intercept=False, random_state=1
        ).fit(X, y == c)
        np.testing.assert_allclose(model.coef_[c], alone.coef_[0], atol=1e-5)


def test_classes_trained_together_that_are_stopped(monkeypatch):
    monkeypatch.setattr(_one_vs_rest, "LARGE", 0)
    X, y = data()
    with pytest.warns(ConvergenceWarning, match="3 of 3 classes, the first 0, .*max_iter = 1 "):
        OneVsRestSVC(loss="hinge", C=100.0, max_iter=1).fit(X, y)
