"""Passes by several threads: the steps of one thread."""

from __future__ import annotations

import numpy as np
import pytest

from solvers.cases import make_data, make_objective, make_sdca
from solvers.objective import check
from topksvm._team import CAN_GIVE_WAY
from topksvm._threads import thread_limit
from topksvm.solvers import _sdca

pytestmark = pytest.mark.skipif(not CAN_GIVE_WAY, reason="no teams on this system")

N, D, M = 170, 95, 100  # Several blocks, the last of them smaller; a feature more with the bias.


@pytest.fixture(autouse=True)
def even_little_work_is_shared(monkeypatch):
    for name in ("SMALL_SHARE", "SMALL_PASS", "LARGE_STEP"):
        monkeypatch.setattr(_sdca, name, 1)


def run_of(threads, k=3, bias=1.5, dtype=np.float64):
    X, y = make_data(N, D, M, dtype=dtype, overlap=3.0)
    objective = make_objective("topk_hinge_alpha", k, 0.0, X, y, C=0.1, bias=bias)
    with thread_limit(threads):
        return objective, make_sdca(objective)


@pytest.mark.parametrize("threads", [2, 3])
def test_passes_are_those_of_one_thread(threads):
    objective, alone = run_of(1)
    _, team = run_of(threads)
    assert (alone.team.size, alone.active_team.size) == (1, 1)
    assert (team.team.size, team.active_team.size) == (threads, 2)
    assert alone.block < N
    for _ in range(4):
        for one_pass in ("full_pass", "active_pass", "active_pass"):
            values = [getattr(run, one_pass)() for run in (alone, team)]
            assert values[1] == pytest.approx(values[0], rel=1e-12)
            assert team.dual == pytest.approx(alone.dual, rel=1e-12)
            np.testing.assert_allclose(team.weights, alone.weights, rtol=0, atol=1e-12)
            tables = [objective.dense(run.duals) for run in (alone, team)]
            np.testing.assert_allclose(tables[1], tables[0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_active_passes_are_the_same_to_the_last_bit(dtype):
    runs = [run_of(threads, dtype=dtype)[1] for threads in (1, 2)]
    # From the same state: full passes have products, whose rounding is up to BLAS.
    for run in runs:
        run.team = runs[0].team
        run.full_pass()
        run.pace[:4] = 20.0  # Often twice in a row.
    for _ in range(5):
        gains = [run.active_pass(1e-3) for run in runs]
        assert gains[0] == gains[1]
        np.testing.assert_array_equal(runs[0].weights, runs[1].weights)
    assert np.any(runs[0].pace != 1.0)


def test_a_log_that_fills_up_in_the_middle_of_a_pass(monkeypatch):
    """All members stop at the same block, and go on from there."""
    monkeypatch.setattr(_sdca, "SEGMENT", 64)
    objective, alone = run_of(1)
    _, team = run_of(2)
    for run in (alone, team):
        run.full_pass()
        little = run.duals.used[0] + run.room + 1
        run.duals = run.duals._replace(
            classes=run.duals.classes[:little].copy(), values=run.duals.values[:little].copy()
        )
        run.full_pass()
    np.testing.assert_allclose(team.weights, alone.weights, rtol=0, atol=1e-12)
    assert objective.violation(team.duals) <= 1e-9


def test_a_fit_on_two_threads_is_certified():
    objective, team = run_of(2)
    with thread_limit(2):
        result = team.run()
    assert team.seconds["active"] > 0.0
    check(objective, result, 1e-3)
