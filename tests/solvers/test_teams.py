"""Passes by several threads: the steps of one thread."""

from __future__ import annotations

import numpy as np
import pytest

from solvers.cases import complete, full_pass, make_data, make_objective, make_sdca
from solvers.objective import check
from topksvm._team import CAN_GIVE_WAY
from topksvm._threads import thread_limit
from topksvm.solvers import SDCA

pytestmark = pytest.mark.skipif(not CAN_GIVE_WAY, reason="no teams on this system")

N, D, M = 490, 2800, 100
"""So many features that threads share them, whatever the pass; several blocks, the last smaller."""


def make_solver(threads, k=3, bias=1.5, dtype=np.float64):
    X, y = make_data(N, D, M, dtype=dtype, overlap=3.0)
    X *= np.array(np.sqrt(95 / D), dtype)  # Norms that go with C.
    objective = make_objective("topk_hinge_alpha", k, 0.0, X, y, C=0.1, bias=bias)
    with thread_limit(threads):
        return objective, make_sdca(objective)


@pytest.mark.parametrize("threads", [2, 3])
def test_passes_are_those_of_one_thread(threads):
    objective, alone = make_solver(1)
    _, team = make_solver(threads)
    sizes = [(run.engine.team.size, run.engine.active_team.size) for run in (alone, team)]
    assert sizes == [(1, 1), (threads, 2)]
    assert alone.engine.block_size < N
    assert N % alone.engine.block_size > 0
    for _ in range(4):
        for one_pass in (full_pass, SDCA.active_pass, SDCA.active_pass):
            values = [one_pass(run) or run.gap + run.dual for run in (alone, team)]
            assert values[1] == pytest.approx(values[0], rel=1e-12)
            assert team.dual == pytest.approx(alone.dual, rel=1e-12)
            np.testing.assert_allclose(team.weights, alone.weights, rtol=0, atol=1e-12)
            tables = [objective.dense(run.duals) for run in (alone, team)]
            np.testing.assert_allclose(tables[1], tables[0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_active_passes_are_the_same_to_the_last_bit(dtype):
    runs = [make_solver(threads, dtype=dtype)[1] for threads in (1, 2)]
    # From the same state: full passes have products, whose rounding is up to BLAS.
    rates = [run.state.candidates.visit_rate for run in runs]
    for run, rate in zip(runs, rates, strict=True):
        run.engine.team = runs[0].engine.team
        full_pass(run)
        rate[:4] = 20.0  # Often twice in a row.
    for _ in range(5):
        gains = [run.active_pass(1e-3) for run in runs]
        assert gains[0] == gains[1]
        np.testing.assert_array_equal(runs[0].weights, runs[1].weights)
    assert np.any(rates[0][4:] != 1.0)


def test_a_log_that_fills_up_in_the_middle_of_a_pass():
    """All members stop at the same block, and go on from there."""
    objective, alone = make_solver(1)
    _, team = make_solver(2)
    for run in (alone, team):
        full_pass(run)
        little = run.duals.used[0] + run.engine.room + 1
        run.duals = run.duals._replace(
            classes=run.duals.classes[:little].copy(), values=run.duals.values[:little].copy()
        )
        full_pass(run)
    np.testing.assert_allclose(team.weights, alone.weights, rtol=0, atol=1e-12)
    assert objective.violation(team.duals) <= 1e-9


def test_a_fit_on_two_threads_is_certified():
    objective, team = make_solver(2)
    with thread_limit(2):
        result = complete(team)
    assert result.seconds["active"] > 0.0
    check(objective, result, 1e-3)
