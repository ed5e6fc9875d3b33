"""The loss of the contributor guide, as the page prints it: through the harness, and trained."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import NamedTuple

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from estimators.data import problem
from losses import references, test_losses as harness

import topksvm
from topksvm import TopKLinearSVC, TopKLinearSVCCV, TopKSVC
from topksvm.losses import LOSSES, declare

NAME = "topk_squared_hinge"
CODE = Path(__file__).parents[2] / "docs" / "code"

_spec = spec_from_file_location(NAME, CODE / f"{NAME}.py")
_module = sys.modules[NAME] = module_from_spec(_spec)
_spec.loader.exec_module(_module)
Loss = _module.TopKSquaredHinge


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    """Do what the line in ``losses/__init__.py`` would."""
    monkeypatch.setitem(LOSSES, NAME, Loss)
    monkeypatch.setitem(references.MARGIN, NAME, 1.0)


def _top_mean(h, k):
    return np.sort(h)[-k:].mean()


@pytest.mark.parametrize("k", [1, 2, 5])
def test_value_equals_its_formula(k):
    for row, base, _ in harness._rows(k, np.float64):
        h = references.margins(NAME, row, base)
        expected = float(max(np.longdouble(0), _top_mean(h, k)) ** 2 / 2)
        assert harness._value(Loss(k), row, base) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("k", [1, 2, 5])
def test_step_stays_in_the_cone_and_leaves_no_gap(k):
    """Fenchel-Young holds with equality: nothing is left to gain on the example."""
    moved = 0
    for row, base, rng in harness._rows(k, np.float64):
        norm, C = 10.0 ** rng.uniform(-2, 2), 10.0 ** rng.uniform(-2, 2)
        x = harness._step(Loss(k), row, base, norm, C)
        total = x.sum()
        moved += total > 0
        assert x.max() * k <= total * (1 + 1e-12)
        after = references.margins(NAME, row, base).astype(float) - norm * (x + total)
        value = C * max(0.0, _top_mean(after, k)) ** 2 / 2
        conjugate = total**2 / (2 * C)
        scale = C * float(np.abs(after).max()) ** 2
        assert value + conjugate - after @ x == pytest.approx(0.0, abs=1e-12 * max(scale, C))
        found = harness._compiled_dual_value(Loss(k), x, x.size, C)
        assert found == pytest.approx(total - conjugate, rel=1e-12)
    assert moved > 3


def test_step_of_a_row_of_zeros():
    x = harness._step(Loss(2), np.zeros(4), 0.0, 0.0, 3.0)
    value = harness._value(Loss(2), np.zeros(4), 0.0)
    assert harness._compiled_dual_value(Loss(2), x, x.size, 3.0) == pytest.approx(3.0 * value)


@pytest.mark.parametrize("k", [1, 2, 5])
def test_invariances_of_the_harness(k):
    harness.test_order_of_the_classes_does_not_matter(NAME, k, 0.0, np.float64)
    harness.test_a_constant_added_to_all_scores_does_not_matter(NAME, k, 0.0, np.float64)
    harness.test_nan_ends(NAME, k, 0.0)


def _train():
    """Run the script of the page, without the compiler, which would take longer than training."""
    done = subprocess.run(
        [sys.executable, CODE / "train_with_it.py"],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return {name: float(number) for name, number in re.findall(r"(\w+) +([\d.]+)", done.stdout)}


def test_training_reaches_the_optimum_of_a_convex_solver():
    certificate = _train()
    rng = np.random.default_rng(0)
    X, y, C, k = rng.standard_normal((30, 4)), np.arange(30) % 5, 0.3, 2
    W = cp.Variable((5, 4))
    objective = cp.sum_squares(W) / 2
    for row, label in zip(X, y, strict=True):
        wrong = np.delete(np.arange(5), label)
        h = W[wrong] @ row - W[label] @ row + 1
        objective += C / 2 * cp.square(cp.pos(cp.sum_largest(h, k) / k))
    optimum = cp.Problem(cp.Minimize(objective)).solve(solver=cp.CLARABEL)
    assert certificate["primal"] == pytest.approx(optimum, rel=1e-6)
    assert certificate["dual"] == pytest.approx(optimum, rel=1e-6)
    assert certificate["dual"] <= certificate["primal"] <= certificate["dual"] * (1 + 2e-7)


# End of the excerpt.


@pytest.fixture(scope="module")
def data():
    return problem(np.float32)


SETTINGS = {"C": 0.1, "tol": 1e-4, "random_state": 0}


def _objective(W, X, y, k, C):
    """Return the primal objective of weights without intercepts, from its definition."""
    scores = X.astype(float) @ W.T.astype(float)
    total = 0.5 * float((W.astype(float) ** 2).sum())
    for row, label in zip(scores, y, strict=True):
        h = np.delete(row, label) - row[label] + 1.0
        total += 0.5 * C * max(0.0, _top_mean(h, k)) ** 2
    return total


def _on_disk(X, folder):
    np.save(folder / "X.npy", X.astype(np.float16))
    return np.load(folder / "X.npy", mmap_mode="r")


@pytest.mark.parametrize("form", ["dense", "csr", "float16 on disk"])
def test_it_trains_like_any_other(form, data, tmp_path):
    X, y = data
    X = X.astype(np.float16).astype(np.float32)  # So that all forms are the same problem.
    rows = {"csr": sp.csr_array, "float16 on disk": lambda X: _on_disk(X, tmp_path)}
    given = rows.get(form, np.asarray)(X)
    model = TopKLinearSVC(2, loss=NAME, fit_intercept=False, **SETTINGS).fit(given, y)
    assert model.status_ == "solved"
    objective = _objective(model.coef_, X, y, 2, 0.1)
    assert objective == pytest.approx(model.certificate_.primal, rel=1e-6)
    assert model.score(given, y) > 0.5


def test_it_trains_a_kernel_machine(data):
    X, y = data
    kernel = TopKSVC(2, loss=NAME, kernel="linear", **SETTINGS).fit(X, y)
    linear = TopKLinearSVC(2, loss=NAME, fit_intercept=False, **SETTINGS).fit(X, y)
    assert kernel.certificate_.primal == pytest.approx(linear.certificate_.primal, rel=2e-4)


def test_it_is_searched_over_and_traced(data):
    X, y = data
    search = TopKLinearSVCCV((1, 2), [0.01, 0.1], losses=(NAME,), cv=2, max_extensions=0)
    search.fit(X, y)
    assert set(search.cv_results_["param_loss"]) == {NAME}
    assert (search.cv_results_["max_relative_gap"] <= 1e-3).all()
    for C, result in topksvm.path(X, y, NAME, [0.01, 0.1], k=2):
        objective = _objective(result.weights, X, y, 2, C)
        assert result.status.name == "SOLVED"
        assert objective == pytest.approx(result.certificate.primal, rel=1e-5)


def test_what_it_cannot_do_is_said():
    X, y = np.eye(6), np.arange(6) % 3
    with pytest.raises(ValueError, match="needs a smooth loss"):
        topksvm.solve(X, y, NAME, solver="lbfgs")
    with pytest.raises(ValueError, match="smoothing"):
        topksvm.solve(X, y, NAME, smoothing=0.5)


class Undeclared(NamedTuple):
    k: int
    value, dual_value = Loss.value, Loss.dual_value
    make_feasible, dual_step = Loss.make_feasible, Loss.dual_step


ENTRANCES = {
    "solve": lambda X, y: topksvm.solve(X, y, "mine"),
    "path": lambda X, y: topksvm.path(X, y, "mine"),
    "linear": TopKLinearSVC(loss="mine").fit,
    "kernel": TopKSVC(loss="mine").fit,
    "search": TopKLinearSVCCV(ks=(1,), losses=("mine",)).fit,
    "on disk": lambda X, y: TopKLinearSVC(loss="mine").fit(X.astype(np.float16), y),
}
every_entrance = pytest.mark.parametrize("fit", ENTRANCES.values(), ids=ENTRANCES)


@every_entrance
def test_a_loss_without_traits_is_one_clear_error(fit, monkeypatch):
    monkeypatch.setitem(LOSSES, "mine", Undeclared)
    with pytest.raises(TypeError, match=r"loss Undeclared declares no traits; decorate its class"):
        fit(np.eye(6), np.arange(6) % 3)


@every_entrance
def test_a_loss_that_no_solver_can_take_is_one_clear_error(fit, monkeypatch):
    class Mine(NamedTuple):
        k: int
        value, dual_value, make_feasible = Loss.value, Loss.dual_value, Loss.make_feasible

    monkeypatch.setitem(LOSSES, "mine", declare(has_dual_step=False)(Mine))
    with pytest.raises(ValueError, match=r"dual step, which 'mine' does not have; choose one of"):
        fit(np.eye(6), np.arange(6) % 3)


@pytest.mark.parametrize(
    ("traits", "missing"),
    [
        ({}, "dual_step"),
        ({"has_dual_step": False, "smooth": True}, "gradient"),
        ({"has_dual_step": False, "uses_smoothing": True}, "smoothing, gradient"),
        ({"has_feasible_step": True}, "smoothing, dual_step, feasible_step"),
    ],
)
def test_what_traits_promise_must_be_there(traits, missing):
    class Mine(NamedTuple):
        k: int
        value, dual_value, make_feasible = Loss.value, Loss.dual_value, Loss.make_feasible

    with pytest.raises(TypeError, match=f"loss Mine lacks {missing}; see"):
        declare(**traits)(Mine)
    with pytest.raises(TypeError, match="smoth"):
        declare(smoth=True)
