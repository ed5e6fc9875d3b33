"""The loss of the contributor guide, as the page prints it: through the harness, and trained."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest
from losses import references, test_losses as harness

import topksvm
from topksvm.losses import LOSSES

NAME = "topk_squared_hinge"
CODE = Path(__file__).parents[2] / "docs" / "code"

_spec = spec_from_file_location(NAME, CODE / f"{NAME}.py")
_module = module_from_spec(_spec)
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


def test_what_it_cannot_do_is_said():
    X, y = np.eye(6), np.arange(6) % 3
    with pytest.raises(ValueError, match="needs a smooth loss"):
        topksvm.solve(X, y, NAME, solver="lbfgs")
    with pytest.raises(ValueError, match="smoothing"):
        topksvm.solve(X, y, NAME, smoothing=0.5)
