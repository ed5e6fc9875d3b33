"""The kernel machine as an estimator."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import chi2_kernel, linear_kernel, pairwise_kernels, rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import (
    check_sample_weight_equivalence_on_dense_data,
    check_sample_weight_equivalence_on_sparse_data,
    parametrize_with_checks,
)

import topksvm.estimators._kernel as kernel_module
from estimators.data import M, problem
from topksvm import TopKLinearSVC, TopKSVC
from topksvm._threads import n_threads

EXACT = {"C": 0.1, "tol": 1e-6, "max_iter": 100_000, "random_state": 0}
FORMATS = {"dense": np.ascontiguousarray, "csr": sp.csr_array}

WEIGHTS = (
    "Repeated rows are visited in another order than weighted ones, so two models within "
    "tol = 1e-3 differ by more than the 1e-7 of this check; and gamma='scale' does not look at "
    "weights, as in SVC. test_weights_are_repetitions runs it at a smaller tol and a given gamma, "
    "where it passes."
)
INTERCEPT = (
    "Class 0 can be predicted everywhere only by an intercept, which this model does not have."
)
NO_KERNEL = "X is not a kernel matrix, and the error says so."


def expected_failures(model):
    weights = {
        "check_sample_weight_equivalence_on_dense_data": WEIGHTS,
        "check_sample_weight_equivalence_on_sparse_data": WEIGHTS,
    }
    if model.kernel == "rbf":
        return weights
    if model.kernel == "linear":
        return {**weights, "check_class_weight_classifiers": INTERCEPT}
    return {
        "check_class_weight_classifiers": INTERCEPT,
        "check_positive_only_tag_during_fit": NO_KERNEL,
        "check_estimators_dtypes": NO_KERNEL,  # It cuts off the decimals of one.
        "check_classifiers_one_label_sample_weights": NO_KERNEL,
    }


def fit(X, y, sample_weight=None, **parameters):
    return TopKSVC(**{**EXACT, **parameters}).fit(X, y, sample_weight)


@parametrize_with_checks(
    [TopKSVC(), TopKSVC(kernel="linear", smoothing=0.5), TopKSVC(kernel="precomputed")],
    expected_failed_checks=expected_failures,
)
@pytest.mark.filterwarnings("ignore")
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "check",
    [check_sample_weight_equivalence_on_dense_data, check_sample_weight_equivalence_on_sparse_data],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_weights_are_repetitions(check):
    check("TopKSVC", TopKSVC(tol=1e-13, C=0.1, gamma=0.2))


@pytest.mark.parametrize(
    ("loss", "k", "form"),
    [
        ("topk_hinge_alpha", 1, "csr"),
        ("topk_hinge_alpha", 3, "dense"),
        ("topk_hinge_beta", 3, "csr"),
        ("topk_hinge_full", 3, "dense"),
        ("softmax", 1, "csr"),
    ],
)
def test_linear_kernel_is_the_linear_machine(loss, k, form):
    X, y = problem()
    linear = TopKLinearSVC(fit_intercept=False, loss=loss, k=k, **EXACT).fit(X, y)
    model = fit(FORMATS[form](X), y, kernel="linear", loss=loss, k=k)
    assert model.certificate_.relative_gap <= 1e-6
    assert model.certificate_.primal == pytest.approx(linear.certificate_.primal, rel=2e-6)
    # The objective is 1-strongly convex: ||V - W||^2 / 2 is at most the two gaps together.
    weights = model.dual_coef_ @ X[model.support_]
    distance = np.linalg.norm(weights - linear.coef_)
    assert distance**2 <= 4 * (linear.certificate_.gap + model.certificate_.gap)


@pytest.mark.parametrize("form", FORMATS)
def test_single_precision(form):
    X, y = problem(np.float32)
    linear = TopKLinearSVC(fit_intercept=False, **EXACT).fit(X.astype(float), y)
    model = fit(FORMATS[form](X), y, kernel="linear", tol=1e-4)
    assert model.certificate_.primal == pytest.approx(linear.certificate_.primal, rel=2e-4)
    for array in (model.dual_coef_, model.support_vectors_, model.decision_function(X)):
        assert array.dtype == np.float32
    assert fit(X, y, dtype="float64").dual_coef_.dtype == np.float64
    assert fit(X.astype(float), y, dtype=np.float32, tol=1e-3).dual_coef_.dtype == np.float32


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    "parameters",
    [
        {"kernel": "linear"},
        {"kernel": "rbf", "gamma": 0.7},
        {"kernel": "poly", "gamma": 0.5, "degree": 2, "coef0": 1.5},
        {"kernel": "sigmoid", "gamma": 0.05, "coef0": 0.1},
    ],
    ids=lambda parameters: parameters["kernel"],
)
@pytest.mark.filterwarnings("ignore:The kernel is not positive")
def test_named_kernels(parameters, form, monkeypatch):
    """Each is the precomputed kernel of that name, and predicts by the expansion over all rows."""
    X, y = problem()
    K = pairwise_kernels(
        X, metric=parameters["kernel"], filter_params=True, **{"gamma": 1.0, **parameters}
    )
    given = TopKSVC(kernel="precomputed", **EXACT)
    if parameters["kernel"] == "sigmoid":
        monkeypatch.setattr(kernel_module, "check_gram", lambda _: None)
    given.fit(K, y)
    model = fit(FORMATS[form](X), y, **parameters)
    np.testing.assert_allclose(given.certificate_.primal, model.certificate_.primal, rtol=1e-9)
    coefficients = np.zeros((M, len(y)))
    coefficients[:, model.support_] = model.dual_coef_
    scores = K @ coefficients.T
    np.testing.assert_allclose(model.decision_function(FORMATS[form](X)), scores, atol=1e-9)
    np.testing.assert_allclose(given.decision_function(K), scores, atol=1e-6)
    best = model.decision_function(X).argmax(axis=1)
    np.testing.assert_array_equal(model.predict(X), model.classes_[best])
    assert (np.abs(model.dual_coef_).sum(axis=0) > 0).all()


def test_fitted_attributes():
    X, y = problem()
    names = np.array(["ant", "bee", "cat", "dog", "emu", "fox"])[y]
    model = fit(X, names, C=10.0)
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
    assert (np.diff(model.support_) > 0).all()
    assert model.support_.size < len(y)
    counts = [np.sum(names[model.support_] == name) for name in model.classes_]
    np.testing.assert_array_equal(model.n_support_, counts)
    assert model.dual_coef_.shape == (M, model.support_.size)
    np.testing.assert_allclose(model.dual_coef_.sum(axis=0), 0.0, atol=1e-12)
    assert model.history_[-1]["primal"] == model.certificate_.primal
    assert model.history_[-1]["epoch"] == model.n_iter_
    assert model.n_features_in_ == X.shape[1]
    assert model.score(X, names) == np.mean(model.predict(X) == names) > 0.9
    assert model.score_topk(X, names, 2) >= model.score(X, names)
    assert not hasattr(fit(rbf_kernel(X), names, kernel="precomputed"), "support_vectors_")


def test_two_classes():
    X, y = problem(classes=2)
    model = fit(X, np.array(["no", "yes"])[y])
    scores = model.decision_function(X)
    assert scores.shape == (len(y),)
    expansion = rbf_kernel(X, model.support_vectors_, 1 / (12 * X.var())) @ model.dual_coef_.T
    np.testing.assert_allclose(scores, expansion[:, 1] - expansion[:, 0], atol=1e-12)
    np.testing.assert_array_equal(model.predict(X), model.classes_[(scores > 0).astype(int)])


def test_two_classes_are_the_svc_without_intercept():
    """``||w_2 - w_1||`` is all that matters: SVC with half the kernel's scale in C."""
    X, y = problem(classes=2)
    X = np.vstack([X, -X])  # Symmetric, so that the intercept of SVC is zero.
    y = np.concatenate([y, 1 - y])
    K = linear_kernel(X)
    peer = SVC(kernel="precomputed", C=0.2, tol=1e-8).fit(K, y)
    assert abs(peer.intercept_[0]) < 1e-6
    model = fit(K, y, kernel="precomputed", C=0.1, tol=1e-9)
    margin = peer.decision_function(K)
    scores = model.decision_function(K)
    assert abs(np.corrcoef(margin, scores)[0, 1]) > 1 - 1e-6


def test_gamma():
    X, y = problem()
    for form in FORMATS.values():
        scale = fit(form(X), y)
        number = fit(form(X), y, gamma=1.0 / (X.shape[1] * X.var()))
        np.testing.assert_allclose(scale.dual_coef_, number.dual_coef_, atol=1e-6)
        assert scale._kernel_function.gamma == pytest.approx(SVC().fit(X, y)._gamma, rel=1e-12)
    auto, tenth = fit(X, y, gamma="auto"), fit(X, y, gamma=1 / 12)
    np.testing.assert_array_equal(auto.dual_coef_, tenth.dual_coef_)
    assert abs(auto.certificate_.primal - scale.certificate_.primal) > 1e-3
    assert fit(np.ones((6, 2)), [0, 1] * 3)._kernel_function.gamma == 1.0


def test_callables():
    X, y = problem()
    named = fit(X, y, gamma=0.5)
    matrix = fit(X, y, kernel=lambda A, B: rbf_kernel(A, B, gamma=0.5))
    pair = fit(X, y, kernel=lambda a, b: np.exp(-0.5 * np.sum((a - b) ** 2)))
    for model in (matrix, pair):
        assert model.certificate_.primal == pytest.approx(named.certificate_.primal, rel=1e-9)
        np.testing.assert_allclose(
            model.decision_function(X[:9]), named.decision_function(X[:9]), atol=1e-6
        )
    fit(np.abs(X), y, kernel=chi2_kernel)
    inner = fit(X[:, :3], y, kernel=np.dot)
    linear = fit(X[:, :3], y, kernel="linear")
    assert inner.certificate_.primal == pytest.approx(linear.certificate_.primal, rel=1e-9)


def test_precomputed_in_cross_validation():
    X, y = problem()
    K = rbf_kernel(X, gamma=0.7)
    settings = {"C": 1.0, "tol": 1e-6, "random_state": 0}
    given = cross_val_score(TopKSVC(kernel="precomputed", **settings), K, y, cv=3)
    inside = cross_val_score(TopKSVC(gamma=0.7, **settings), X, y, cv=3)
    np.testing.assert_array_equal(given, inside)
    assert (given > 2 / M).all()
    grid = {"kernel": ["rbf", "linear"], "C": [1e-5, 1.0]}
    search = GridSearchCV(TopKSVC(random_state=0), grid, cv=3).fit(X, y)
    assert search.best_params_["C"] == 1.0


def test_a_small_cache_gives_the_same_model(monkeypatch):
    X, y = problem(n=700)
    grams = []
    make = kernel_module.ComputedGram

    def spy(*args):
        grams.append(make(*args))
        return grams[-1]

    monkeypatch.setattr(kernel_module, "ComputedGram", spy)
    small, large = fit(X, y, cache_size=1, tol=1e-3), fit(X, y, tol=1e-3)
    assert grams[0].store.nbytes <= 1 << 20 < 700 * 700 * 8
    assert grams[0].n_computed > grams[1].n_computed == 700
    np.testing.assert_array_equal(small.dual_coef_, large.dual_coef_)
    np.testing.assert_array_equal(small.support_, large.support_)
    assert small.certificate_ == large.certificate_


def test_prediction_looks_at_support_vectors_only_block_by_block(monkeypatch):
    X, y = problem()
    model = fit(X, y, C=10.0)
    whole = model.decision_function(X)
    shapes = []
    function = model._kernel_function

    def spy(A, B):
        shapes.append((A.shape[0], B.shape[0]))
        return function(A, B)

    model._kernel_function = spy
    monkeypatch.setattr(kernel_module, "BLOCK_ENTRIES", 40 * model.support_.size)
    np.testing.assert_allclose(model.decision_function(X), whole, atol=1e-12)
    n = model.support_.size
    assert n < len(y)
    assert shapes == [(40, n), (40, n), (40, n), (30, n)]


def test_deterministic():
    X, y = problem()
    one, two, other = (fit(X, y, tol=1e-3, random_state=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)
    assert one.dual_coef_.shape != other.dual_coef_.shape or np.any(
        one.dual_coef_ != other.dual_coef_
    )
    copy = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(copy.decision_function(X), one.decision_function(X))
    assert not hasattr(clone(one), "dual_coef_")


def test_weights_act():
    X, y = problem()
    factors = np.where(y == 2, 3.0, 1.0)
    by_example = fit(X, y, factors)
    by_class = fit(X, y, class_weight={2: 3.0})
    np.testing.assert_array_equal(by_example.dual_coef_, by_class.dual_coef_)
    assert by_example.certificate_.primal > fit(X, y).certificate_.primal + 1e-2
    without = fit(X[y != 2], y[y != 2])
    zero = fit(X, y, (y != 2).astype(float), gamma=without._kernel_function.gamma)
    assert (y[zero.support_] != 2).all()


def test_n_jobs_verbose_and_max_iter_act(monkeypatch, capsys):
    X, y = problem()
    seen = []
    with monkeypatch.context() as patch:
        patch.setenv("TOPKSVM_NUM_THREADS", "3")
        for n_jobs, expected in ((None, 3), (2, 2), (-1, 3), (-2, 2)):
            seen.clear()
            fit(X, y, n_jobs=n_jobs, tol=0.1, callback=lambda _: seen.append(n_threads()))
            assert set(seen) == {expected}
    fit(X, y, tol=0.1)
    assert capsys.readouterr().err == ""
    fit(X, y, verbose=1, tol=1e-3)
    assert "relative gap" in capsys.readouterr().err
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = fit(X, y, C=100.0, max_iter=2)
    assert model.n_iter_ == 2
    with pytest.warns(ConvergenceWarning, match="max_time"):
        fit(X, y, C=100.0, max_time=1e-9)


def bent(K):
    """Return K with one large eigenvalue turned negative, and no entry out of order."""
    values, vectors = np.linalg.eigh(K)
    values[-4] *= -0.3
    return vectors * values @ vectors.T


def test_what_is_no_kernel():
    X, y = problem()
    K = rbf_kernel(X)

    def message(K):
        with pytest.raises(ValueError, match=r"K|X") as caught:
            fit(K, y, kernel="precomputed")
        return str(caught.value)

    assert "shape (150, 20)" in message(K[:, :20])
    lopsided = K.copy()
    lopsided[140, 3] += 1e-3
    assert "not symmetric: K[3, 140]" in message(lopsided)
    negative = K.copy()
    negative[7, 7] = -0.5
    assert "K[7, 7] = -0.5 is negative" in message(negative)
    steep = K.copy()
    steep[2, 9] = steep[9, 2] = 1.2
    assert "|K[2, 9]| = 1.2 is above sqrt(K[2, 2] K[9, 9])" in message(steep)
    assert "eigenvalue -" in message(bent(K))
    hollow = K.copy()
    hollow[0, 0] = np.nan
    assert "NaN" in message(hollow)
    with pytest.raises(TypeError, match="dense data is required"):
        fit(sp.csr_array(K), y, kernel="precomputed")
    model = fit(K, y, kernel="precomputed")
    with pytest.raises(ValueError, match="150 features"):
        model.predict(K[:, :20])


def test_rounding_is_no_reason_to_complain():
    X, y = problem(np.float32)
    K = linear_kernel(X)
    assert np.linalg.eigvalsh(K.astype(float))[0] < 0.0
    fit(K, y, kernel="precomputed", tol=1e-3)
    fit(K.astype(float), y, kernel="precomputed", tol=1e-3)


def test_functions_that_are_no_kernels():
    X, y = problem()
    with pytest.raises(ValueError, match="not symmetric"):
        fit(X, y, kernel=lambda A, B: A @ B.T + A[:, :1] ** 2)
    with pytest.raises(ValueError, match=r"K\[\d+, \d+\] = .* is negative"):
        fit(X, y, kernel=lambda A, B: -(A @ B.T))
    with pytest.raises(ValueError, match="positive semi-definite"):
        fit(X, y, kernel="poly", degree=2, coef0=-1.0)
    with pytest.raises(ValueError, match=r"neither a matrix .* nor a number"):
        fit(X, y, kernel=lambda *_: "near")
    with pytest.raises(ValueError, match="not finite"), np.errstate(over="ignore"):
        fit(X * 1e9, y, kernel="poly", degree=50, gamma=1.0)


def test_sigmoid_is_trained_with_a_warning_until_a_norm_is_negative():
    X, y = problem()
    with pytest.warns(UserWarning, match="certificate_ is no bound"):
        fit(X, y, kernel="sigmoid", gamma=0.1, coef0=0.5, C=0.01, tol=1e-2)
    with (
        pytest.raises(ValueError, match="squared norm -"),
        pytest.warns(UserWarning, match="certificate_ is no bound"),
    ):
        fit(X, y, kernel="sigmoid", gamma=3.0, tol=1e-2)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"loss": "topk_entropy"}, "dual step.*'topk_entropy'.*topk_hinge_alpha"),
        ({"kernel": "gauss"}, "'kernel'"),
        ({"gamma": 0.0}, "'gamma'"),
        ({"gamma": "large"}, "'gamma'"),
        ({"cache_size": 0}, "'cache_size'"),
        ({"degree": -1}, "'degree'"),
        ({"k": M}, f"k = {M} but there are {M} classes"),
        ({"loss": "softmax", "k": 2}, "k = 2 has no meaning"),
        ({"dtype": "float16"}, "'dtype'"),
    ],
)
def test_bad_parameters(parameters, words):
    X, y = problem()
    with pytest.raises(ValueError, match=words):
        fit(X, y, **parameters)
