"""Every parameter acts or raises."""

from __future__ import annotations

import time

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from estimators.data import M, objective, problem
from topksvm import TopKLinearSVC
from topksvm._threads import n_threads
from topksvm.losses import LOSSES

EXACT = {"C": 0.1, "tol": 1e-8, "max_iter": 100_000, "random_state": 0}
NEAR = pytest.approx


def fit(X, y, sample_weight=None, **parameters):
    return TopKLinearSVC(**{**EXACT, **parameters}).fit(X, y, sample_weight)


@pytest.mark.parametrize("k", [1, 3, 5])
@pytest.mark.parametrize("scaling", [1.0, 7.0])
def test_certificate_is_that_of_the_model(k, scaling):
    X, y = problem()
    model = fit(X, y, k=k, intercept_scaling=scaling)
    assert model.certificate_.relative_gap <= 1e-8
    assert objective(model, X, y) == NEAR(model.certificate_.primal, rel=1e-12)


def test_loss_and_k_act():
    X, y = problem()
    one = {loss: fit(X, y, loss=loss, tol=1e-5).certificate_.primal for loss in LOSSES}
    hinge = one["topk_hinge_alpha"]
    assert one["topk_hinge_beta"] == NEAR(hinge, rel=1e-4)  # All hinges are the same for k = 1.
    assert one["topk_hinge_full"] == NEAR(hinge, rel=1e-4)
    assert one["topk_entropy"] == NEAR(one["softmax"], rel=1e-4)
    assert abs(one["softmax"] - hinge) > 1e-2 * hinge
    three = [
        fit(X, y, loss=loss, k=3, tol=1e-5).certificate_.primal
        for loss in ("topk_hinge_alpha", "topk_hinge_full", "topk_hinge_beta")
    ]
    assert three[0] < three[1] - 1e-4 < three[2] - 1e-3 < hinge


def test_c_acts():
    X, y = problem()
    norms = [np.linalg.norm(fit(X, y, C=C).coef_) for C in (0.01, 0.1, 1.0)]
    assert norms[0] < norms[1] < norms[2]


def test_smoothing_and_solver_act():
    X, y = problem()
    sdca = fit(X, y, smoothing=0.5, solver="sdca")
    lbfgs = fit(X, y, smoothing=0.5, solver="lbfgs")
    auto = fit(X, y, smoothing=0.5)
    assert sdca.certificate_.primal == NEAR(lbfgs.certificate_.primal, rel=1e-7)
    np.testing.assert_array_equal(auto.coef_, lbfgs.coef_)
    assert abs(sdca.certificate_.primal - fit(X, y).certificate_.primal) > 1e-2


def test_intercept():
    X, y = problem()
    without = fit(X, y, fit_intercept=False, tol=1e-6)
    assert not without.intercept_.any()
    weak, strong = (
        fit(X, y, intercept_scaling=0.1, tol=1e-6),
        fit(X, y, intercept_scaling=10.0, tol=1e-6),
    )
    assert np.linalg.norm(weak.intercept_) < np.linalg.norm(strong.intercept_)
    ones = np.hstack([X, np.full((len(y), 1), 10.0)])
    explicit = fit(ones, y, fit_intercept=False, tol=1e-6)
    assert explicit.certificate_.primal == NEAR(strong.certificate_.primal, rel=3e-6)


def test_repeated_rows_are_weights():
    X, y = problem()
    times = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = fit(X, y, times)
    repeated = fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert weighted.certificate_.primal == NEAR(repeated.certificate_.primal, rel=3e-8)
    assert objective(weighted, X, y, times) == NEAR(weighted.certificate_.primal, rel=1e-12)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-3)


@pytest.mark.parametrize("loss", ["topk_hinge_alpha", "softmax"])
def test_zero_weights_remove_rows(loss):
    X, y = problem()
    keep = np.random.default_rng(1).random(len(y)) < 0.6
    weighted = fit(X, y, keep.astype(float), loss=loss)
    removed = fit(X[keep], y[keep], loss=loss)
    assert weighted.certificate_.primal == NEAR(removed.certificate_.primal, rel=3e-8)


def test_class_weights():
    X, y = problem()
    y = np.where(np.arange(len(y)) < 60, 0, y)
    factors = {c: 0.5 + c for c in range(M)}
    by_class = fit(X, y, class_weight=factors)
    by_example = fit(X, y, np.array([factors[c] for c in y]))
    np.testing.assert_array_equal(by_class.coef_, by_example.coef_)
    balanced = fit(X, y, class_weight="balanced")
    by_example = fit(X, y, len(y) / (M * np.bincount(y))[y])
    assert balanced.certificate_.primal == NEAR(by_example.certificate_.primal, rel=3e-8)
    assert abs(balanced.certificate_.primal - fit(X, y).certificate_.primal) > 1e-3


def test_balanced_with_a_class_without_weight():
    X, y = problem()
    model = fit(X, y, (y != 2).astype(float), class_weight="balanced", tol=1e-4)
    assert model.coef_.shape[0] == M
    assert np.isfinite(model.coef_).all()
    assert not (model.predict(X) == 2).any()


@pytest.mark.parametrize("loss", ["topk_hinge_alpha", "softmax"])
def test_tol_acts(loss):
    X, y = problem()
    loose, tight = fit(X, y, loss=loss, tol=0.1), fit(X, y, loss=loss, tol=1e-6)
    assert loose.certificate_.relative_gap <= 0.1
    assert tight.certificate_.relative_gap <= 1e-6 < loose.certificate_.relative_gap
    assert loose.n_iter_ < tight.n_iter_


@pytest.mark.parametrize("loss", ["topk_hinge_alpha", "softmax"])
def test_max_iter_acts_and_warns(loss):
    X, y = problem()
    with pytest.warns(ConvergenceWarning) as record:
        model = fit(X, y, loss=loss, max_iter=2)
    assert model.n_iter_ <= 3
    text, gap = str(record[0].message), model.certificate_.relative_gap
    assert f"{gap:.3g}" in text
    assert f"{100 * gap:.3g} %" in text
    assert "Raise max_iter" in text
    assert record[0].filename == __file__
    assert model.history_[-1]["gap"] == model.certificate_.gap


@pytest.mark.parametrize("loss", ["topk_hinge_alpha", "softmax"])
def test_max_time_acts(loss):
    X, y = problem(n=600)
    fit(X, y, loss=loss, tol=0.5)  # Compiles.
    start = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match="Raise max_time"):
        fit(X, y, loss=loss, tol=1e-12, max_time=1e-6)
    assert time.perf_counter() - start < 5.0


@pytest.mark.parametrize("dtype", ["float32", np.float32, np.dtype("float32")])
def test_dtype_acts(dtype):
    X, y = problem(np.float64)
    assert fit(X, y, dtype=dtype, tol=1e-3).coef_.dtype == np.float32
    assert fit(X.astype(np.float32), y, dtype="float64", tol=1e-3).coef_.dtype == np.float64


def test_n_jobs_acts(monkeypatch):
    seen = []
    monkeypatch.setenv("TOPKSVM_NUM_THREADS", "3")
    X, y = problem()
    for n_jobs, expected in ((None, 3), (1, 1), (-1, 3), (-2, 2), (-9, 1)):
        seen.clear()
        model = fit(X, y, n_jobs=n_jobs, tol=1e-3, callback=lambda _: seen.append(n_threads()))
        assert set(seen) == {expected}
        assert model.certificate_.relative_gap <= 1e-3


def test_random_state_acts():
    X, y = problem()
    first, again = (fit(X, y, tol=1e-2, random_state=1) for _ in range(2))
    other = fit(X, y, tol=1e-2, random_state=2)
    np.testing.assert_array_equal(first.coef_, again.coef_)
    assert (first.coef_ != other.coef_).any()


def test_verbose_prints_the_gap_to_stderr(capfd):
    X, y = problem()
    fit(X, y, tol=1e-3)
    assert capfd.readouterr() == ("", "")
    model = fit(X, y, tol=1e-3, verbose=1)
    out, err = capfd.readouterr()
    assert out == ""
    assert 1 <= len(err.splitlines()) <= model.n_iter_
    assert "gap" in err


BAD = [
    ({"k": 0}, "k"),
    ({"k": 1.5}, "k"),
    ({"loss": "hinge"}, "loss"),
    ({"C": 0.0}, "C"),
    ({"C": np.inf}, "C"),
    ({"C": 1e308, "class_weight": {0: 1e10}}, "not finite"),
    ({"smoothing": -1.0}, "smoothing"),
    ({"solver": "newton"}, "solver"),
    ({"fit_intercept": "yes"}, "fit_intercept"),
    ({"intercept_scaling": 0.0}, "intercept_scaling"),
    ({"class_weight": "equal"}, "class_weight"),
    ({"class_weight": {0: -1.0}}, r"class_weight of class .*0.* is -1\.0"),
    ({"class_weight": {9: 1.0}}, "class_weight"),
    ({"class_weight": dict.fromkeys(range(M), 0.0)}, "weights of all examples are zero"),
    ({"tol": 0.0}, "tol"),
    ({"max_iter": 0}, "max_iter"),
    ({"max_time": 0.0}, "max_time"),
    ({"warm_start": "yes"}, "warm_start"),
    ({"dtype": np.int32}, "dtype = .*int32.*float32, float64"),
    ({"dtype": "float16"}, "dtype"),
    ({"n_jobs": 0}, "n_jobs"),
    ({"random_state": "x"}, "random_state"),
    ({"verbose": -1}, "verbose"),
    ({"memory_limit": 0}, "memory_limit"),
    ({"checkpoint": 1}, "checkpoint"),
    ({"callback": "print"}, "callback"),
    ({"k": M}, f"k = {M} but there are {M} classes"),
    ({"k": 99}, f"k = 99 but there are {M} classes"),
    ({"solver": "lbfgs"}, "'lbfgs' needs a smooth loss"),
    ({"solver": "sdca", "loss": "topk_entropy"}, "'sdca' needs a dual step"),
    ({"smoothing": 1.0, "loss": "softmax"}, "smoothing = 1.0 has no meaning"),
    ({"k": 2, "loss": "softmax"}, "k = 2 has no meaning"),
]


@pytest.mark.parametrize(("parameters", "message"), BAD)
def test_bad_parameters(parameters, message):
    X, y = problem()
    with pytest.raises(ValueError, match=message):
        fit(X, y, **parameters)


def test_bad_data():
    X, y = problem()
    with pytest.raises(ValueError, match="1 class"):
        fit(X, np.zeros_like(y))
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        fit(X, y, -np.ones(len(y)))
    with pytest.raises(ValueError, match="zero"):
        fit(X, y, np.zeros(len(y)))
    with pytest.raises(ValueError, match="NaN"):
        fit(np.where(X > 0, X, np.nan), y)
    with pytest.raises(ValueError, match="Unknown label type"):
        fit(X, X[:, 0])


def test_a_loss_registered_later_is_known(monkeypatch):
    from topksvm import TopKSVC
    from topksvm.losses import TopKHingeBeta

    X, y = np.eye(6), np.arange(6) % 3
    for kind in (TopKLinearSVC, TopKSVC):
        with pytest.raises(ValueError, match="'loss' parameter"):
            kind(loss="mine").fit(X, y)
    monkeypatch.setitem(LOSSES, "mine", TopKHingeBeta)
    for kind in (TopKLinearSVC, TopKSVC):
        found = kind(k=2, loss="mine", random_state=0).fit(X, y)
        same = kind(k=2, loss="topk_hinge_beta", random_state=0).fit(X, y)
        assert found.certificate_ == same.certificate_
