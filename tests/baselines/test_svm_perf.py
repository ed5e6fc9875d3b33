"""SVM^perf: the optimum over all labellings, its certificate, and every parameter."""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from estimators.data import problem
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from baselines.labellings import all_labellings, worst_violation
from topksvm.baselines._cutting_planes import Stopping, svm_perf_path
from topksvm.baselines._line_search import Line, Tangent, search_line
from topksvm.baselines._planes import Planes
from topksvm.baselines._svm_perf import SVMPerf, make_measure, multiclass_reduction

MEASURES = [("precision", 0.5), ("precision", 1), ("recall", 1), ("recall", 2)]


def tiny(n=4, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    return rng.normal(size=(n, 2)) + 0.3 * y[:, None], y


def entries_of(X, y, classes, reduction):
    """Yield the features of all entries and the truth, for each binary problem."""
    if reduction == "ovr":
        for label in range(classes):
            yield X, (y == label).astype(int)
    else:
        features = np.concatenate([np.kron(np.eye(classes), x[None, :]) for x in X])
        yield features, np.eye(classes, dtype=int)[y].ravel()


def solve_by_enumeration(features, truth, C, measure):
    """Return the optimal value with a constraint for each labelling."""
    w, slack = cp.Variable(features.shape[1]), cp.Variable(nonneg=True)
    labellings, losses = zip(*all_labellings(truth, *measure), strict=True)
    normals = 100.0 / truth.size * (truth - np.array(labellings)) @ features
    program = cp.Problem(
        cp.Minimize(0.5 * cp.sum_squares(w) + C * slack),
        [normals @ w >= np.array(losses) - slack],
    )
    return program.solve(solver=cp.CLARABEL)


@pytest.mark.parametrize("reduction", ["multiclass", "ovr"])
@pytest.mark.parametrize("size", ["bound", "exact"])
@pytest.mark.parametrize(("measure", "k"), MEASURES)
def test_optimum_over_all_labellings(measure, k, size, reduction):
    X, y = tiny(n=3 if reduction == "multiclass" else 7)
    for C in (0.001, 0.1):
        model = SVMPerf(measure, k=k, C=C, size=size, reduction=reduction, tol=1e-7).fit(X, y)
        expected, primal = 0.0, 0.0
        blocks = [model.coef_.ravel()] if reduction == "multiclass" else list(model.coef_)
        for (features, truth), w in zip(entries_of(X, y, 3, reduction), blocks, strict=True):
            full = measure == "recall", max(1, int(k * truth.sum())), size == "exact"
            expected += solve_by_enumeration(features, truth, C, full)
            risk = worst_violation(features @ w, truth, *full)
            primal += 0.5 * w @ w + C * max(0.0, risk)
        assert model.certificate_.primal == pytest.approx(primal, rel=1e-12)
        assert model.certificate_.relative_gap <= 1e-7
        assert primal == pytest.approx(expected, rel=1e-5)
        assert model.certificate_.dual <= expected * (1 + 1e-5)


def test_quadratic_program_of_planes():
    rng = np.random.default_rng(0)
    normals, losses = rng.normal(size=(40, 6)), 3.0 + rng.normal(size=40)
    normals[7], losses[7] = normals[3], losses[3]  # The same plane twice: the Gram is singular.
    planes = Planes(6)
    for normal, loss in zip(normals, losses, strict=True):
        planes.add(normal, loss)
    for C in (0.1, 10.0, 1.0):
        planes.solve(C, 1e-9)
        alpha = cp.Variable(40, nonneg=True)
        dual = losses @ alpha - 0.5 * cp.sum_squares(normals.T @ alpha)
        best = cp.Problem(cp.Maximize(dual), [cp.sum(alpha) <= C]).solve(solver=cp.CLARABEL)
        assert planes.alphas.min() >= 0
        assert planes.alphas.sum() == pytest.approx(C)
        np.testing.assert_allclose(planes.weights(), planes.alphas[1:] @ normals, atol=1e-12)
        assert planes.dual(planes.weights()) == pytest.approx(best, rel=1e-6)


def test_planes_unused_for_long_are_dropped():
    rng = np.random.default_rng(0)
    normals, losses = rng.normal(size=(60, 3)), rng.normal(size=60)
    planes = Planes(3)
    for normal, loss in zip(normals, losses, strict=True):
        planes.add(normal, loss)
    planes.solve(1.0, 1e-12)
    before = planes.dual(planes.weights())
    for _ in range(60):
        planes.solve(1.0, 1e-12)
    assert planes.count < 20
    assert planes.dual(planes.weights()) == pytest.approx(before, rel=1e-9)


def test_line_search():
    rng = np.random.default_rng(0)
    for _ in range(50):
        slopes, values = rng.normal(size=5), rng.normal(size=5)
        line = Line(1.0, rng.normal(), 2.0, 1.5)

        def risk(t, slopes=slopes, values=values):
            worst = np.argmax(values + slopes * t)
            return Tangent(t, float(values[worst] + slopes[worst] * t), float(slopes[worst]))

        grid = np.linspace(0, 1, 10_001)
        best = line.value(grid, (values + slopes * grid[:, None]).max(axis=1)).min()
        t = search_line(line, risk(0.0), risk, 0.7, 1e-4)
        assert 0 <= t <= 1
        assert line.value(t, risk(t).value) <= best + 1e-3


@pytest.mark.parametrize(("measure", "k"), MEASURES)
def test_path_shares_planes(measure, k):
    X, y = problem(n=60)
    reduction = multiclass_reduction(X, y, 6, measure, k, "bound")
    stopping = Stopping(1e-3)
    path, saved = list(svm_perf_path(reduction, [0.05, 0.5, 5.0], stopping)), 0
    for solution in path:
        alone = next(svm_perf_path(reduction, [solution.C], stopping))
        saved += alone.n_iter - solution.n_iter
        assert solution.n_iter <= alone.n_iter
        assert solution.converged
        assert solution.certificate.relative_gap <= 1e-3
        assert solution.certificate.dual <= alone.certificate.primal
        assert alone.certificate.dual <= solution.certificate.primal
    # Over all C: for one of them it may be a tie, which is up to rounding.
    assert saved > 0


@pytest.mark.parametrize(("measure", "k"), MEASURES)
def test_zero_weights_are_never_the_model(measure, k):
    """No line leads down from 0 at first, so that 0 is within the tolerance; yet it ranks nothing.

    With few features and many examples the planes must find the steepest way first.
    """
    rng = np.random.default_rng(0)
    y = np.arange(400) % 5
    X = rng.normal(size=(400, 6)) + 0.5 * np.eye(5, 6)[y]
    model = SVMPerf(measure, k=k, C=1e-4).fit(X, y)
    assert model.certificate_.relative_gap <= 1e-3
    assert model.score(X, y) > 0.25
    reduction = multiclass_reduction(X, y, 5, measure, k, "bound")
    (first,) = svm_perf_path(reduction, [1e-4], Stopping(1e-3))
    assert not first.has_descended
    assert first.converged
    (last,) = svm_perf_path(reduction, [1e3], Stopping(1e-3, max_iter=1))
    assert not last.has_descended
    assert not last.converged
    assert last.weights.any()


@parametrize_with_checks(
    [SVMPerf(max_iter=200), SVMPerf("precision", reduction="ovr", max_iter=200)]
)
@pytest.mark.filterwarnings("ignore")
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_history_and_warning():
    X, y = problem(n=60)
    model = SVMPerf(C=5.0)
    with pytest.warns(ConvergenceWarning, match=r"relative duality gap is 0\.\d+: .* max_iter"):
        model.set_params(max_iter=3).fit(X, y)
    assert model.n_iter_ == len(model.history_) == 3
    assert model.certificate_.relative_gap > 1e-3
    model.set_params(max_iter=2000).fit(X, y)
    assert [line["iteration"] for line in model.history_] == list(range(1, model.n_iter_ + 1))
    duals = [line["dual"] for line in model.history_]
    primals = [line["primal"] for line in model.history_]
    assert (np.diff(duals) >= 0).all()
    assert (np.diff(primals) <= 1e-12).all()
    assert model.history_[-1]["gap"] == pytest.approx(model.certificate_.gap, abs=1e-9)


def test_epsilon_is_a_gap_in_units_of_c():
    X, y = problem(n=60)
    model = SVMPerf(C=5.0, tol=0.0, epsilon=1.0).fit(X, y)
    assert 0.05 < model.certificate_.gap <= 5.0


def test_problems_of_classes_in_parallel():
    X, y = problem(n=60)
    one = SVMPerf("precision", k=0.5, C=5.0, reduction="ovr", n_jobs=1).fit(X, y)
    two = SVMPerf("precision", k=0.5, C=5.0, reduction="ovr", n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(one.coef_, two.coef_)
    assert {line["label"] for line in one.history_} == set(range(6))
    assert one.score(X, y) > 2 / 6


@pytest.mark.parametrize("reduction", ["multiclass", "ovr"])
def test_sparse_and_float32(reduction):
    X, y = problem(n=60, dtype=np.float32)
    exact = SVMPerf(C=5.0, reduction=reduction).fit(X.astype(np.float64), y)
    single = SVMPerf(C=5.0, reduction=reduction).fit(X, y)
    assert single.coef_.dtype == np.float32
    assert single.certificate_.relative_gap <= 1.1e-3
    rows = SVMPerf(C=5.0, reduction=reduction).fit(sp.csr_array(X.astype(np.float64)), y)
    for model in (single, rows):
        assert model.certificate_.primal == pytest.approx(exact.certificate_.primal, rel=2e-3)


def test_k_of_too_many_entries():
    X, y = problem(n=60)
    with pytest.raises(ValueError, match=r"k = 6\.5 asks for 390 .* 360 entries.* at most 6\."):
        SVMPerf(k=6.5).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SVMPerf(k=6, C=0.5).fit(X, y)


@pytest.mark.parametrize("size", ["bound", "exact"])
@pytest.mark.parametrize("measure", ["precision", "recall"])
@pytest.mark.parametrize("k", [2, 5])
def test_k_of_too_many_entries_of_one_class(measure, size, k):
    """One large class must not stop the table: for it, all examples are predicted at most."""
    rng = np.random.default_rng(0)
    y = np.array([0, 0, 0, 0, 0, 1, 2, 2])
    X = rng.normal(size=(8, 3)) + 0.5 * np.eye(3)[y]
    model = SVMPerf(measure, k=k, C=0.1, size=size, reduction="ovr", tol=1e-7).fit(X, y)
    for label, w in enumerate(model.coef_):
        truth = (y == label).astype(int)
        full = measure == "recall", min(k * int(truth.sum()), y.size), size == "exact"
        value = 0.5 * w @ w + 0.1 * max(0.0, worst_violation(X @ w, truth, *full))
        assert value == pytest.approx(solve_by_enumeration(X, truth, 0.1, full), rel=1e-5, abs=1e-7)
    assert model.certificate_.gap <= 1e-6


def test_k_is_a_multiple_of_the_positives():
    for n in range(1, 200):
        for number in range(1, n + 1):
            assert make_measure("recall", number / n, "bound", n, 3 * n).size == number
    assert make_measure("recall", 2, "bound", 7, 21).size == 14
    assert make_measure("recall", 0.99, "bound", 7, 21).size == 6
    assert make_measure("recall", 0.01, "bound", 7, 21).size == 1


def test_k_counts_predictions():
    X, y = problem(n=60)
    certificates = {k: SVMPerf(k=k, C=50.0, tol=1e-4).fit(X, y).certificate_ for k in (1, 2, 4)}
    # More labellings may be violated.
    assert certificates[1].primal < certificates[2].dual
    assert certificates[2].dual <= certificates[4].primal


def test_planes_in_float32_bound_the_exact_dual():
    rng = np.random.default_rng(0)
    normals, losses = rng.normal(size=(30, 50)), 3.0 + rng.normal(size=30)
    planes = Planes(50, np.float32)
    for normal, loss in zip(normals, losses, strict=True):
        planes.add(normal, loss)
    planes.solve(10.0, 1e-6)
    weights = planes.alphas[1:] @ normals
    exact = losses @ planes.alphas[1:] - 0.5 * weights @ weights
    assert exact * (1 - 1e-5) <= planes.dual(planes.weights()) <= exact
