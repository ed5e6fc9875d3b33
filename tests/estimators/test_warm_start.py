"""Going on from the last fit, and stopping before the end."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import topksvm.estimators._linear as linear
from estimators.data import objective, problem
from topksvm import TopKLinearSVC

TOL = 1e-6
HINGE = {"C": 0.1, "tol": TOL, "max_iter": 100_000, "random_state": 0}
SMOOTH = {**HINGE, "loss": "softmax"}
SMOOTH_SDCA = {**SMOOTH, "solver": "sdca", "tol": 1e-5}


@pytest.mark.parametrize("settings", [HINGE, SMOOTH, SMOOTH_SDCA])
def test_the_same_again_is_quick(settings):
    X, y = problem()
    model = TopKLinearSVC(warm_start=True, **settings).fit(X, y)
    cold, certificate = model.n_iter_, model.certificate_
    model.fit(X, y)
    assert model.n_iter_ <= max(2, cold // 4) < cold
    assert model.certificate_.primal == pytest.approx(certificate.primal, rel=2 * settings["tol"])


@pytest.mark.parametrize("settings", [HINGE, SMOOTH, SMOOTH_SDCA])
@pytest.mark.parametrize("C", [0.05, 0.0001, 0.2])
def test_another_c(settings, C):
    X, y = problem()
    model = TopKLinearSVC(warm_start=True, **settings).fit(X, y)
    model.set_params(C=C).fit(X, y)
    cold = TopKLinearSVC(**{**settings, "C": C}).fit(X, y)
    assert model.certificate_.relative_gap <= settings["tol"]
    assert model.certificate_.primal == pytest.approx(
        cold.certificate_.primal, rel=2 * settings["tol"]
    )


@pytest.mark.parametrize("settings", [HINGE, SMOOTH_SDCA])
def test_other_weights_among_them_zeros(settings):
    X, y = problem()
    weights = np.random.default_rng(0).integers(0, 3, len(y))
    model = TopKLinearSVC(warm_start=True, **settings).fit(X, y).fit(X, y, weights)
    cold = TopKLinearSVC(**settings).fit(X, y, weights)
    assert model.certificate_.relative_gap <= settings["tol"]
    assert model.certificate_.primal == pytest.approx(
        cold.certificate_.primal, rel=2 * settings["tol"]
    )
    again = model.fit(X, y)  # From zero weights back to ones.
    assert again.certificate_.relative_gap <= settings["tol"]


def changes():
    X, y = problem()
    return {
        "labels": (X, np.roll(y, 7), False),
        "fewer examples": (X[:100], y[:100], False),
        "fewer features": (X[:, :9].copy(), y, False),
        "other names": (X, np.array(list("uvwxyz"))[y], False),
        "other values": (X[:, ::-1].copy(), y, True),
    }


@pytest.mark.parametrize("change", changes())
def test_changed_data_is_right(change, monkeypatch):
    X, y = problem()
    model = TopKLinearSVC(warm_start=True, **HINGE).fit(X, y)
    starts = []
    train_on = linear.train_on

    def spy(*args, warm, **kwargs):
        starts.append(warm is not None)
        return train_on(*args, warm=warm, **kwargs)

    monkeypatch.setattr(linear, "train_on", spy)
    X, y, warm = changes()[change]
    model.fit(X, y)
    assert starts == [warm]
    assert model.certificate_.relative_gap <= TOL
    assert objective(model, X, y) == pytest.approx(model.certificate_.primal, rel=1e-9)
    cold = TopKLinearSVC(**HINGE).fit(X, y)
    assert model.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=2 * TOL)


def test_changed_loss_starts_cold():
    X, y = problem()
    model = TopKLinearSVC(warm_start=True, **HINGE).fit(X, y).set_params(k=3).fit(X, y)
    cold = TopKLinearSVC(3, **HINGE).fit(X, y)
    np.testing.assert_array_equal(model.coef_, cold.coef_)


def test_the_start_is_left_as_it_was():
    X, y = problem()
    model = TopKLinearSVC(warm_start=True, **HINGE).fit(X, y)
    before = pickle.dumps(model._last_fit)

    def fail(_):
        raise MemoryError

    with pytest.raises(MemoryError):
        model.set_params(C=0.01, callback=fail).fit(X, y)
    model.set_params(callback=None)
    assert pickle.dumps(model._last_fit) == before
    earlier = model._last_fit
    model.fit(X, y)
    assert pickle.dumps(earlier) == before


def test_duals_are_kept_only_for_a_warm_start():
    X, y = problem()
    model = TopKLinearSVC(warm_start=True, **HINGE).fit(X, y)
    with_duals = len(pickle.dumps(model))
    assert (
        pickle.loads(pickle.dumps(model)).fit(X, y).n_iter_
        < TopKLinearSVC(**HINGE).fit(X, y).n_iter_
    )
    assert "_last_fit" not in vars(clone(model))
    model.set_params(warm_start=False)
    assert len(pickle.dumps(model)) < with_duals / 2
    assert "_last_fit" not in vars(pickle.loads(pickle.dumps(model)))
    model.fit(X, y)
    assert model._last_fit is None


@pytest.mark.parametrize("settings", [HINGE, SMOOTH])
def test_interruption_leaves_a_certified_model(settings):
    X, y = problem()
    seen = []

    def interrupt(progress):
        seen.append(progress.passes)
        if progress.passes >= 3:
            raise KeyboardInterrupt

    model = TopKLinearSVC(callback=interrupt, **settings)
    with pytest.warns(ConvergenceWarning, match=r"interrupted.*warm_start=True"):
        model.fit(X, y)
    assert model.status_ == "interrupted"
    assert seen[-1] <= model.n_iter_ <= seen[-1] + 1
    assert TOL < model.certificate_.relative_gap < 1.0
    if settings is HINGE:
        assert objective(model, X, y) == pytest.approx(model.certificate_.primal, rel=1e-9)
    assert model.predict(X).shape == y.shape
    # What the warning advises works.
    model.set_params(warm_start=True, callback=None).fit(X, y)
    assert model.certificate_.relative_gap <= TOL
    assert model.status_ == "solved"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for one process")
def test_ctrl_c():
    script = """
        import os, signal, threading, warnings
        signal.signal(signal.SIGINT, signal.default_int_handler)  # Shells may have it ignored.
        from estimators.data import objective, problem
        from topksvm import TopKLinearSVC
        X, y = problem(n=2000)
        model = TopKLinearSVC(tol=0.5).fit(X, y)  # Compiles.
        model.set_params(tol=1e-15, C=1e6, max_iter=10**9, max_time=60)
        threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        with warnings.catch_warnings(record=True) as record:
            warnings.simplefilter("always")
            model.fit(X, y)
        assert "interrupted" in str(record[0].message), record
        error = objective(model, X, y) / model.certificate_.primal - 1
        assert abs(error) < 1e-9, error
        assert model.history_[-1]["seconds"] < 30
        print("usable", model.score(X, y))
    """
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("usable")
