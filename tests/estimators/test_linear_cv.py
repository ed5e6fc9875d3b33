"""The search over C, loss and training k against scikit-learn's, and against its own parts."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import PredefinedSplit, StratifiedKFold
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

from topksvm import TopKLinearSVC, TopKLinearSVCCV, plotting
from topksvm.estimators import _search
from topksvm.estimators._search import beyond_the_edge
from topksvm.metrics import topk_scorer
from topksvm.solvers import solve_paths

GRID = [1e-3, 1e-2, 1e-1]
COLUMNS = [f"{kind}_test_top{k}" for kind in ("mean", "std", "split0", "rank") for k in (1, 3)]


def ambiguous(n=240, d=8, m=8, dtype=np.float64):
    """Classes in overlapping pairs."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % m
    X = rng.standard_normal((m // 2, d))[y // 2] + 0.7 * rng.standard_normal((n, d))
    X[:, 0] += 0.3 * (y % 2)
    return X.astype(dtype), y


def search(X, y, **options):
    defaults = {"ks": (1, 3), "Cs": GRID, "cv": 3, "random_state": 0, "max_extensions": 0}
    return TopKLinearSVCCV(**(defaults | options)).fit(X, y)


SMALL = {"ks": (1,), "Cs": [1e-3, 0.01], "cv": 2, "max_extensions": 0, "max_iter": 20_000}
WHY = "As for TopKLinearSVC: passes at a small tol, see the test below."


@parametrize_with_checks(
    [TopKLinearSVCCV(**SMALL)],
    expected_failed_checks=lambda _: {
        "check_sample_weight_equivalence_on_dense_data": WHY,
        "check_sample_weight_equivalence_on_sparse_data": WHY,
    },
)
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_weights_are_repetitions():
    check = estimator_checks.check_sample_weight_equivalence_on_dense_data
    check("TopKLinearSVCCV", TopKLinearSVCCV(**SMALL, tol=1e-11))


@pytest.mark.parametrize("rows", [np.asarray, sp.csr_array])
def test_scores_are_those_of_models_fitted_on_the_folds(rows):
    X, y = ambiguous()
    found = search(rows(X), y, tol=1e-8, losses=("topk_hinge_alpha", "softmax"))
    table = found.cv_results_
    folds = list(StratifiedKFold(3).split(X, y))
    assert len(table["params"]) == 3 * (2 + 1)  # Softmax has no k, and is trained once.
    for row, params in enumerate(table["params"]):
        assert params["C"] == table["param_C"][row]
        for wanted in (1, 3):
            scores = [
                TopKLinearSVC(**params, tol=1e-8).fit(X[a], y[a]).score_topk(X[b], y[b], wanted)
                for a, b in folds
            ]
            assert table[f"mean_test_top{wanted}"][row] == pytest.approx(np.mean(scores))
            assert table[f"std_test_top{wanted}"][row] == pytest.approx(np.std(scores))
            assert table[f"split2_test_top{wanted}"][row] == pytest.approx(scores[2])
    assert (table["max_relative_gap"] <= 1e-8).all()


def test_the_choice_is_the_best_for_each_k_and_is_trained_on_all_rows():
    X, y = ambiguous()
    found = search(X, y, train_ks=(1, 2, 3), losses=("topk_hinge_alpha", "topk_hinge_beta"))
    for k in (1, 3):
        mean = found.cv_results_[f"mean_test_top{k}"]
        row = found.cv_results_["params"].index(found.best_params_[k])
        assert found.cv_results_[f"rank_test_top{k}"][row] == 1
        assert found.best_score_[k] == mean.max()
        ties = found.cv_results_["param_C"][mean == mean.max()]
        assert found.best_C_[k] == found.best_params_[k]["C"] == ties.min()
        model = found.estimators_[k]
        assert {name: getattr(model, name) for name in ("loss", "k", "C")} == found.best_params_[k]
        assert model.certificate_.relative_gap <= found.tol
        assert found.score_topk(X, y, k) == model.score_topk(X, y, k)
        np.testing.assert_array_equal(found.predict_topk(X, k), model.predict_topk(X, k))
    np.testing.assert_array_equal(found.coef_, found.estimators_[1].coef_)
    assert found.model_for(2) is found.estimators_[3]
    assert found.model_for(7) is found.estimators_[3]


@pytest.mark.parametrize("loss", ["topk_hinge_alpha", "softmax"])
def test_the_result_does_not_depend_on_the_number_of_jobs(loss):
    X, y = ambiguous(dtype=np.float32)
    one, two = (search(X, y, losses=(loss,), n_jobs=n, max_extensions=1) for n in (1, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    assert one.best_params_ == two.best_params_
    for column in COLUMNS:
        np.testing.assert_array_equal(one.cv_results_[column], two.cv_results_[column])


def mapped(X, folder):
    """The same on disk, read-only."""
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r")


IN_BLOCKS = {"d": 140, "m": 60, "n": 180}
"""Weights too many for the first cache: passes go by blocks, which paths can share."""

MIXED = {
    "losses": ("topk_hinge_alpha", "softmax", "topk_hinge_beta"),
    "train_ks": (1, 3, 5),
    "Cs": [1e-3, 1e-2],
    "max_extensions": 1,
    "tol": 1e-2,
}


@pytest.mark.parametrize("form", ["dense", "mapped", "csr"])
def test_paths_beside_one_another_change_nothing(form, tmp_path):
    X, y = ambiguous(**IN_BLOCKS)
    rows = {"dense": X, "mapped": mapped(X, tmp_path), "csr": sp.csr_array(X)}[form]
    one, *others = (search(rows, y, **MIXED, n_jobs=n) for n in (1, 2, 16))
    assert len(one.Cs_) > 2
    assert len(one.cv_results_["params"]) == (3 + 1 + 3) * len(one.Cs_)
    timings = {"mean_fit_time", "std_fit_time"}
    for other in others:
        assert one.best_params_ == other.best_params_
        for k, model in one.estimators_.items():
            np.testing.assert_array_equal(model.coef_, other.estimators_[k].coef_)
        for column in set(one.cv_results_) - timings:
            np.testing.assert_array_equal(one.cv_results_[column], other.cv_results_[column])
    assert all((one.cv_results_[column] >= 0.0).all() for column in timings)


@pytest.mark.parametrize(
    ("n_jobs", "sizes"),
    [(1, [6, 6, 6]), (2, [2] * 9), (3, [2, 2, 1, 1] * 3), (16, [1] * 18)],
)
def test_paths_of_a_fold_are_in_as_many_groups_as_keep_the_threads_busy(n_jobs, sizes, monkeypatch):
    groups, points = [], []

    def recorded(problem, tasks, setup):
        groups.append(len(tasks))
        for point in solve_paths(problem, tasks, setup):
            points.append(point)
            yield point

    monkeypatch.setattr(_search, "solve_paths", recorded)
    X, y = ambiguous(**IN_BLOCKS)
    search(X, y, **(MIXED | {"max_extensions": 0}), n_jobs=n_jobs, refit=False)
    assert sorted(groups) == sorted(sizes)
    assert len(points) == 3 * 6 * 2  # Not softmax, which has another solver.


def test_the_grid_grows_where_the_best_lies_at_its_edge():
    X, y = ambiguous()
    fixed = search(X, y, ks=(1,), Cs=[1e-6, 1e-5])
    grown = search(X, y, ks=(1,), Cs=[1e-6, 1e-5], max_extensions=4)
    assert fixed.Cs_.tolist() == [1e-6, 1e-5]
    assert len(grown.Cs_) > 2
    assert grown.best_score_[1] >= fixed.best_score_[1]
    assert len(grown.cv_results_["param_C"]) == len(grown.Cs_)


def test_one_value_more_on_the_side_of_the_edge():
    assert beyond_the_edge([0.1, 1.0, 10.0], {1.0}) == []
    assert beyond_the_edge([0.1, 1.0, 10.0], {10.0}) == [100.0]
    assert beyond_the_edge([0.5, 1.0], {0.5, 1.0}) == [0.25, 2.0]
    assert beyond_the_edge([1.0], {1.0}) == []


def test_any_splitter_and_any_scorer():
    X, y = ambiguous()
    fold = np.repeat([-1, 0, 1], 80)
    found = search(X, y, cv=PredefinedSplit(fold), scoring="balanced_accuracy")
    assert {"split0_test_top1", "split1_test_top1"} <= set(found.cv_results_)
    assert "split2_test_top1" not in found.cv_results_
    np.testing.assert_array_equal(
        found.cv_results_["mean_test_top1"], found.cv_results_["mean_test_top3"]
    )
    by_scorer = search(X, y, scoring={1: topk_scorer(1), 3: topk_scorer(3)})
    by_default = search(X, y)
    for column in COLUMNS:
        np.testing.assert_allclose(by_scorer.cv_results_[column], by_default.cv_results_[column])
    with pytest.raises(ValueError, match="no scorer for k = 3"):
        search(X, y, scoring={1: topk_scorer(1)})


def test_rows_held_out_do_not_train():
    """Labels of the rows held out turned round must not change the model of the fold."""
    X, y = ambiguous()
    train, test = np.arange(160), np.arange(160, 240)
    other = y.copy()
    other[test] = (other[test] + 1) % 8
    runs = [search(X, labels, cv=[(train, test)], tol=1e-6) for labels in (y, other)]
    honest = TopKLinearSVC(C=0.1, tol=1e-6).fit(X[train], y[train])
    for labels, run in zip((y, other), runs, strict=True):
        row = run.cv_results_["params"].index({"loss": "topk_hinge_alpha", "k": 1, "C": 0.1})
        expected = honest.score_topk(X[test], labels[test], 1)
        assert run.cv_results_["mean_test_top1"][row] == pytest.approx(expected)


def test_no_model_without_refit():
    X, y = ambiguous()
    found = search(X, y, refit=False)
    assert found.best_params_
    with pytest.raises(NotFittedError, match="refit=False"):
        found.predict(X)


def test_points_out_of_budget_are_counted():
    X, y = ambiguous()
    with pytest.warns(ConvergenceWarning) as caught:
        search(X, y, Cs=[1e-3, 100.0], tol=1e-9, max_iter=3, refit=False)
    (message,) = [str(w.message) for w in caught]
    assert "4 of 4 points" in message
    assert "smallest at C = 0.001" in message


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"ks": (1, 8)}, ValueError, "ks holds k = 8 but there are 8 classes"),
        ({"ks": ()}, ValueError, "ks is empty"),
        ({"ks": (1.5,)}, TypeError, "ks holds 1.5"),
        ({"train_ks": (0,)}, ValueError, "train_ks holds k = 0"),
        ({"losses": ("hinge",)}, ValueError, "losses = "),
        ({"losses": ("topk_entropy",), "solver": "sdca"}, ValueError, "dual step"),
        ({"Cs": [0.0]}, ValueError, "Cs holds 0.0"),
    ],
)
def test_bad_parameters_are_named(options, error, message):
    X, y = ambiguous()
    with pytest.raises(error, match=message):
        search(X, y, **options)


def test_progress_says_how_much_is_left(capfd):
    X, y = ambiguous()
    search(X, y, verbose=1)
    err = capfd.readouterr().err
    last = err.splitlines()[-1]
    assert last.startswith(f"fits: {3 * 3 * 2}/{3 * 3 * 2} [")
    assert last.endswith("<00:00]")
    search(X, y)
    assert capfd.readouterr().err == ""


def test_the_plot_of_the_search():
    from matplotlib.figure import Figure

    X, y = ambiguous()
    found = search(X, y, losses=("topk_hinge_alpha", "softmax"))
    axes = plotting.plot_path(found, ax=Figure().subplots())
    best = found.cv_results_["mean_test_top1"].reshape(-1, 3).max(axis=0)
    drawn = [line.get_ydata() for line in axes.get_lines() if len(line.get_xdata()) == 3]
    assert any(np.allclose(line, best) or np.allclose(line, 100 * best) for line in drawn)


def test_a_frame_and_its_names():
    X, y = ambiguous(d=4)
    frame = pd.DataFrame(X, columns=list("abcd"))
    found = search(frame, y)
    plain = search(X, y)
    assert found.feature_names_in_.tolist() == list("abcd")
    np.testing.assert_array_equal(found.predict(frame), plain.predict(X))
    np.testing.assert_array_equal(found.predict_topk(frame, 3), plain.predict_topk(X, 3))
    with pytest.raises(ValueError, match="feature names"):
        found.predict(frame[list("dcba")])


def test_clone_and_weights():
    X, y = ambiguous()
    weights = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    with warnings.catch_warnings():
        model = clone(TopKLinearSVCCV(ks=(1,), Cs=GRID, cv=3, max_extensions=0)).fit(X, y, weights)
    direct = TopKLinearSVC(C=model.best_C_[1]).fit(X, y, weights)
    assert model.certificate_.primal == pytest.approx(direct.certificate_.primal, rel=2e-3)
