"""The path over C against one fit after the other."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import topksvm
from solvers.cases import FORMATS, every_hinge, make_data, make_objective, with_formats
from solvers.objective import check
from topksvm.solvers import SCALES, Status
from topksvm.solvers._path import sum_of_values

CS = [1e-4, 1e-3, 1e-2, 0.1]


@pytest.mark.parametrize("smoothing", [0.0, 0.5])
@with_formats(every_hinge)
def test_every_point_is_certified_and_equals_a_cold_fit(name, smoothing, form):
    X, y = make_data(150, 6, 9)
    X = FORMATS[form](X)
    points = topksvm.path(X, y, name, CS, k=3, smoothing=smoothing, solver="sdca", tol=1e-5)
    assert points.Cs.tolist() == CS
    for C, result in points:
        objective = make_objective(name, 3, smoothing, X, y, C=C)
        primal, _ = check(objective, result, 1e-5)
        cold = topksvm.solve(X, y, name, C, k=3, smoothing=smoothing, solver="sdca", tol=1e-5)
        assert primal == pytest.approx(cold.certificate.primal, rel=2e-5)


@pytest.mark.parametrize("name", ["softmax", "topk_entropy"])
def test_smooth_losses_have_paths_too(name):
    X, y = make_data(150, 6, 9)
    for C, result in topksvm.path(X, y, name, CS, tol=1e-5):
        assert result.certificate.relative_gap <= 1e-5
        cold = topksvm.solve(X, y, name, C, tol=1e-5)
        assert result.certificate.primal == pytest.approx(cold.certificate.primal, rel=2e-5)


def test_results_are_in_the_order_asked_for():
    X, y = make_data(80, 4, 5)
    shuffled = topksvm.path(X, y, Cs=[1.0, 0.01, 0.1])
    ordered = topksvm.path(X, y, Cs=[0.01, 0.1, 1.0])
    for C, result in shuffled:
        place = ordered.Cs.tolist().index(C)
        np.testing.assert_array_equal(result.weights, ordered.results[place].weights)


def test_a_start_saves_passes():
    X, y = make_data(400, 8, 12)
    Cs = np.geomspace(1e-3, 1.0, 10)
    warm = sum(result.n_iter for _, result in topksvm.path(X, y, Cs=Cs, k=3))
    cold = sum(topksvm.solve(X, y, "topk_hinge_alpha", C, k=3).n_iter for C in Cs)
    assert warm < 0.8 * cold


def test_a_solution_that_a_larger_weight_leaves_as_it_is_takes_no_pass():
    """Classes that can be separated: from some C on no dual is at its bound."""
    X, y = np.eye(6), np.arange(6) % 3
    first, second = topksvm.path(X, y, "topk_hinge_alpha", [10.0, 20.0], tol=1e-6).results
    assert first.n_iter > 0
    assert (second.n_iter, second.status) == (0, Status.SOLVED)
    assert second.certificate.relative_gap <= 1e-6
    check(make_objective("topk_hinge_alpha", 1, 0.0, X, y, C=20.0), second, 1e-6)


def test_a_point_out_of_budget_is_named_and_the_path_goes_on():
    X, y = make_data(200, 5, 8)
    with pytest.warns(ConvergenceWarning) as caught:
        points = topksvm.path(X, y, Cs=[100.0, 200.0], tol=1e-9, max_iter=5)
    for C, warning in zip((100, 200), caught, strict=True):
        assert str(warning.message).startswith(f"At C = {C}: not solved to tol = 1e-09")
    assert [result.status for _, result in points] == [Status.MAX_ITER, Status.MAX_ITER]
    for C, result in points:
        check(make_objective("topk_hinge_alpha", 1, 0.0, X, y, C=C), result, np.inf)


def test_weights_of_examples_multiply_c():
    X, y = make_data(100, 5, 6)
    weights = np.random.default_rng(0).uniform(0.0, 2.0, 100)
    ((_, found),) = topksvm.path(X, y, Cs=[0.3], sample_weight=weights, tol=1e-6)
    expected = topksvm.solve(X, y, "topk_hinge_alpha", 0.3 * weights, tol=1e-6)
    assert found.certificate.primal == pytest.approx(expected.certificate.primal, rel=2e-6)


def test_sum_of_values_leaves_out_what_the_log_has_forgotten():
    X, y = make_data(100, 5, 6)
    result = topksvm.solve(X, y, "topk_hinge_alpha", 0.3, k=2)
    duals = result.duals
    parts = [duals.values[s : s + c].sum() for s, c in zip(duals.start, duals.count, strict=True)]
    assert duals.used[0] > duals.count.sum()
    assert sum_of_values(duals) == pytest.approx(sum(parts))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_separable_data_is_certified_at_any_weight_of_the_loss(dtype):
    """A violation of 1e-6 costs 1e-6 C; slightly larger weights do not have it."""
    rng = np.random.default_rng(0)
    y = np.arange(300) % 12
    X = (rng.standard_normal((12, 40))[y] + 0.3 * rng.standard_normal((300, 40))).astype(dtype)
    results = [topksvm.solve(X, y, "topk_hinge_alpha", C, k=2) for C in (1e3, 1e6)]
    for C, result in zip((1e3, 1e6), results, strict=True):
        assert result.status is Status.SOLVED
        objective = make_objective("topk_hinge_alpha", 2, 0.0, X, y, C=C)
        # Margins are right to a rounding error each, and those count C times.
        rounding = 1e-9 + len(y) * C * np.finfo(float).eps
        assert check(objective, result, 1e-3, rtol=rounding)[0] == pytest.approx(
            results[0].certificate.primal, rel=1e-3
        )
    assert SCALES[0] == 1.0


@pytest.mark.parametrize(
    ("Cs", "message"),
    [
        ([], "shape"),
        ([[1.0]], "shape"),
        ([1.0, 0.0], "Cs holds 0.0"),
        ([1.0, np.nan], "Cs holds nan"),
        (0, "Cs = 0"),
    ],
)
def test_a_bad_grid_is_named(Cs, message):
    X, y = make_data(20, 4, 3)
    with pytest.raises(ValueError, match=message):
        topksvm.path(X, y, Cs=Cs)


BAD = {
    "not a table": ({"X": np.zeros(5)}, "X has shape"),
    "integers": ({"X": np.zeros((20, 4), int)}, "X has dtype int"),
    "csc": ({"X": sp.csc_array(np.zeros((20, 4)))}, "csc format"),
    "nan": ({"X": np.full((20, 4), np.nan)}, "NaN"),
    "length of y": ({"y": np.arange(3)}, r"y has shape \(3,\) but X has 20 rows"),
    "labels of float": ({"y": np.zeros(20)}, "y has dtype float64"),
    "negative label": ({"y": np.arange(20) - 1}, "labels from -1"),
    "label too large": ({"n_classes": 3}, "from 0 to 3; they must be from 0 to 2"),
    "one class": ({"y": np.zeros(20, int)}, "There is 1 class"),
    "k": ({"k": 4}, "k = 4 but there are 4 classes"),
    "negative C": ({"C": -1.0}, "C is -1.0"),
    "shape of C": ({"C": np.ones(3)}, r"C has shape \(3,\)"),
    "infinite C": ({"C": np.r_[np.inf, np.ones(19)]}, "C is inf"),
    "tol": ({"tol": -1.0}, "tol = -1.0"),
    "max_iter": ({"max_iter": 0}, "max_iter = 0"),
    "max_time": ({"max_time": 0.0}, "max_time = 0.0"),
    "block_size": ({"block_size": 0}, "block_size = 0"),
}


@pytest.mark.parametrize("case", BAD)
def test_solve_names_bad_input(case):
    X, _ = make_data(20, 4, 4)
    changes, message = BAD[case]
    arguments = {"X": X, "y": np.arange(20) % 4, "loss": "topk_hinge_alpha", "C": 1.0} | changes
    with warnings.catch_warnings(), pytest.raises(ValueError, match=message):
        topksvm.solve(**arguments)
