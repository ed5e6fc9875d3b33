"""State from outside: whatever is passed as a start, the certificate at the end is right."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import topksvm
from topksvm import TopKLinearSVC
from topksvm.data import make_problem
from topksvm.losses import LOSSES
from topksvm.solvers import Status, make_duals_feasible, make_loss
from topksvm.solvers._certificate import certify
from topksvm.solvers._start import check_structure

HINGES = ["topk_hinge_alpha", "topk_hinge_beta", "topk_hinge_full"]


def data(n=60, d=4, m=8, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, (X @ rng.standard_normal((d, m)) + rng.gumbel(size=(n, m))).argmax(axis=1)


def solved(X, y, loss, **options):
    return topksvm.solve(X, y, loss, n_classes=8, **{"tol": 1e-7} | options)


@pytest.mark.parametrize("loss", HINGES)
@pytest.mark.parametrize("first", [("topk_hinge_alpha", 1), ("topk_hinge_beta", 5), ("softmax", 1)])
@pytest.mark.parametrize("C", [0.01, 10.0])
def test_a_start_of_another_problem_leads_to_the_same_optimum(loss, first, C):
    """A result for k = 1 as the start for k = 5 was 'solved' after no pass, 4 % off."""
    X, y = data()
    warm = solved(X, y, first[0], k=first[1], C=0.1, solver="sdca")
    cold = solved(X, y, loss, k=5, C=C)
    found = solved(X, y, loss, k=5, C=C, warm=warm)
    assert found.status is Status.SOLVED
    assert found.certificate.primal == pytest.approx(cold.certificate.primal, rel=3e-7)
    assert found.certificate.dual == pytest.approx(cold.certificate.dual, rel=3e-7)


def test_the_earlier_result_stays_as_it_was():
    X, y = data()
    warm = solved(X, y, "topk_hinge_alpha", k=3, C=1.0)
    before = [array.copy() for array in warm.duals]
    solved(X, y, "topk_hinge_alpha", k=3, C=0.1, warm=warm)
    for array, copy in zip(warm.duals, before, strict=True):
        np.testing.assert_array_equal(array, copy)


@pytest.mark.parametrize("n", [10, 200])
def test_a_start_for_other_rows_is_an_error(n):
    """The process used to die."""
    X, y = data()
    warm = solved(X, y, "topk_hinge_alpha")
    other_X, other_y = data(n)
    with pytest.raises(ValueError, match=f"those of 60 rows, and here there are {n}"):
        solved(other_X, other_y, "topk_hinge_alpha", warm=warm)


def test_a_start_with_other_labels_is_made_feasible():
    """A variable of what is now the true class would count in the dual, and move no weights."""
    X, y = data()
    warm = solved(X, y, "topk_hinge_alpha", k=2, C=1.0)
    other = (y + 1) % 8
    cold = solved(X, other, "topk_hinge_alpha", k=2, C=1.0)
    found = solved(X, other, "topk_hinge_alpha", k=2, C=1.0, warm=warm)
    assert found.certificate.dual == pytest.approx(cold.certificate.dual, rel=3e-7)


def test_what_is_no_start_is_an_error():
    X, y = data()
    smooth = solved(X, y, "softmax")
    with pytest.raises(ValueError, match="no dual variables"):
        solved(X, y, "topk_hinge_alpha", warm=smooth)
    with pytest.raises(ValueError, match=r"weights of shape \(8, 4\).*\(8, 5\)"):
        solved(X, y, "softmax", bias=1.0, warm=smooth)
    smooth.weights[0, 0] = np.nan
    with pytest.raises(ValueError, match="finite"):
        solved(X, y, "softmax", warm=smooth)
    with pytest.raises(TypeError, match="warm is of type dict"):
        solved(X, y, "softmax", warm={})


def damage(duals, how):
    copy = type(duals)(*(array.copy() for array in duals))
    i = int(np.argmax(copy.count > 1))
    at = copy.start[i]
    if how == "class":
        copy.classes[at] = 8
    elif how == "negative class":
        copy.classes[at] = -1
    elif how == "twice":
        copy.classes[at + 1] = copy.classes[at]
    elif how in ("nan", "inf", "negative"):
        copy.values[at] = {"nan": np.nan, "inf": np.inf, "negative": -1.0}[how]
    elif how == "start":
        copy.start[i] = 1 << 60
    elif how == "negative start":
        copy.start[i] = -5
    elif how == "count":
        copy.count[i] = np.iinfo(np.int32).max
    elif how == "dtype":
        copy = copy._replace(values=copy.values.astype(np.float32))
    elif how == "short":
        copy = copy._replace(values=copy.values[:3])
    return copy


@pytest.mark.parametrize(
    "how",
    [
        "class",
        "negative class",
        "twice",
        "nan",
        "inf",
        "negative",
        "start",
        "negative start",
        "count",
        "dtype",
        "short",
    ],
)
def test_damaged_duals_never_reach_a_kernel(how):
    X, y = data()
    warm = solved(X, y, "topk_hinge_alpha", k=3, C=1.0)
    warm.duals = damage(warm.duals, how)
    with pytest.raises(ValueError, match="warm cannot be a start"):
        solved(X, y, "topk_hinge_alpha", k=3, warm=warm)


def test_a_variable_of_the_true_class_is_found():
    X, y = data()
    duals = solved(X, y, "topk_hinge_alpha", k=3, C=1.0).duals
    check_structure(duals, 60, 8, y.astype(np.int32))
    i = int(np.argmax(duals.count > 0))
    duals.classes[duals.start[i]] = y[i]
    with pytest.raises(ValueError, match=f"row {i} are damaged"):
        check_structure(duals, 60, 8, y.astype(np.int32))


@pytest.mark.parametrize("loss", ["topk_hinge_alpha", "topk_hinge_beta", "softmax"])
def test_the_certificate_refuses_infeasible_duals(loss):
    X, y = data()
    result = solved(X, y, loss, k=1 if loss == "softmax" else 3, C=1.0, solver="sdca")
    kind = make_loss(loss, 1 if loss == "softmax" else 3)
    problem = make_problem(X, y, np.full(60, 1.0), 8)
    certificate, *_ = certify(kind, problem, result.duals)
    assert certificate.relative_gap < 1e-5
    # Softmax has room: its duals leave a share to the true class.
    result.duals.values[: result.duals.used[0]] *= 1e3 if loss == "softmax" else 1.01
    with pytest.raises(RuntimeError, match="infeasible"):
        certify(kind, problem, result.duals)


@pytest.mark.parametrize("name", list(LOSSES))
def test_duals_in_the_domain_lose_next_to_nothing(name):
    X, y = data()
    kind = make_loss(name, 1 if name == "softmax" else 3)
    if not kind.traits.has_dual_step:
        pytest.skip("has no dual step")
    result = solved(X, y, name, k=1 if name == "softmax" else 3, C=1.0, solver="sdca")
    problem = make_problem(X, y, np.full(60, 1.0), 8)
    assert make_duals_feasible(kind, problem.examples, result.duals) < 1e-13


@pytest.mark.parametrize("sparse", [False, True])
def test_estimators_start_from_any_last_fit(sparse):
    X, y = data(120)
    rows = sp.csr_matrix(X) if sparse else X
    model = TopKLinearSVC(k=3, C=1.0, warm_start=True, tol=1e-6, max_iter=10**6)
    for changes in ({}, {"C": 0.01}, {"C": 30.0}, {"k": 5}, {"loss": "topk_hinge_beta"}):
        found = model.set_params(**changes).fit(rows, y)
        cold = TopKLinearSVC(**model.get_params() | {"warm_start": False}).fit(rows, y)
        assert found.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=3e-6)
    model.set_params(loss="topk_hinge_alpha", smoothing=1.0).fit(rows, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.set_params(solver="sdca").fit(rows, y)  # The last fit has no duals.


@pytest.mark.parametrize("bias", [1e19, 1e160])
def test_rows_whose_squares_overflow_are_an_error(bias):
    """There was a NaN intercept under a certificate that said 40."""
    X, y = data()
    model = TopKLinearSVC(intercept_scaling=bias)
    with pytest.raises(ValueError, match="too large for float32"):
        model.fit(X.astype(np.float32), y)
