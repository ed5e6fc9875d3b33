"""Going on in the direction of a pass: feasible, exact along the line, never a loss."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from solvers.cases import (
    FORMATS,
    every_hinge,
    full_pass,
    make_data,
    make_objective,
    make_sdca,
    with_formats,
)
from topksvm._numba import kernel
from topksvm.losses import LOSSES, feasible_step
from topksvm.projections import project_capped_simplex, project_topk_simplex
from topksvm.solvers import rebuild_weights, snapshot


@kernel
def call_feasible_step(loss, values, change, n, r, limit):
    return feasible_step(loss, values, change, n, r, limit)


def project(name, k, a, r):
    """Project onto the set of the duals, by projections tested elsewhere."""
    if name == "topk_hinge_alpha":
        return project_topk_simplex(a, k, r)
    if name == "topk_hinge_beta" or k == 1:
        return project_capped_simplex(a, k, r)
    first = project_capped_simplex(a, k, r)
    if first.sum() >= (k - 1) * r / k:
        return first
    return project_topk_simplex(a, k - 1, (k - 1) * r / k)


def violation(name, k, x, r):
    total = x.sum()
    caps = {
        "topk_hinge_alpha": total / k,
        "topk_hinge_beta": r / k,
        "topk_hinge_full": min(r / k, total / (k - 1) if k > 1 else np.inf),
    }
    return max(-x.min(), total - r, (x - caps[name]).max())


@pytest.mark.parametrize("k", [1, 2, 4])
@every_hinge
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_step_goes_as_far_as_is_feasible(name, k, seed):
    rng = np.random.default_rng(seed)
    r = rng.uniform(0.1, 3.0)
    old, new = (project(name, k, rng.standard_normal(9) + 0.3, r) for _ in range(2))
    new = new + 0.0 if rng.random() < 0.5 else 0.9 * new + 0.1 * old
    change = np.where(new > 0.0, new - old, 0.0)
    step = call_feasible_step(LOSSES[name](k), new, change, 9, r, 5.0)
    assert 0.0 <= step <= 5.0
    assert violation(name, k, new + step * change, r) <= 1e-9
    if step < 5.0:
        assert violation(name, k, new + (step + 1e-4) * change, r) > 0.0


@with_formats(every_hinge)
@pytest.mark.parametrize("smoothing", [0.0, 0.5])
def test_the_dual_rises_by_what_is_said(name, smoothing, form):
    X, y = make_data(200, 6, 30)
    objective = make_objective(name, 3, smoothing, FORMATS[form](X), y, C=0.2)
    solver = make_sdca(objective)
    full_pass(solver)
    gains = []
    for _ in range(12):
        before = snapshot(solver.duals)
        solver.active_pass()
        old = objective.dual(solver.duals)
        gain = solver.extrapolator.extrapolate(before, solver.duals, solver.weights)
        assert gain >= 0.0
        assert objective.dual(solver.duals) - old == pytest.approx(gain, abs=1e-9 * abs(old))
        problem = solver.problem
        exact = rebuild_weights(problem, solver.duals)
        np.testing.assert_allclose(solver.weights, exact, atol=1e-9)
        gains.append(gain)
    assert max(gains) > 0.0


def test_nothing_to_go_on_with():
    X, y = make_data(100, 6, 30)
    solver = make_sdca(make_objective("topk_hinge_alpha", 3, 0.0, X, y))
    full_pass(solver)
    weights = solver.weights.copy()
    before = snapshot(solver.duals)
    assert solver.extrapolator.extrapolate(before, solver.duals, solver.weights) == 0.0
    np.testing.assert_array_equal(solver.weights, weights)
