"""CoCoA+ as a simulation of K shards, against its definition, a convex solver, and one shard."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from solvers.cases import (
    FORMATS,
    SMOOTHING,
    losses as every_loss,
    make_data,
    make_objective,
    make_sdca,
    make_sparse_rows,
    optimum,
    run,
    with_softmax,
)
from solvers.objective import HINGES

from distributed_training.simulation import Simulation, dual_of, split
from topksvm._interrupts import StopRequested
from topksvm.distributed._shard import Order, Shard
from topksvm.solvers import SCALES, SDCAOptions, Status, Stopping
from topksvm.solvers._certificate import certify

some_losses = with_softmax(every_loss(HINGES, (3,), (0.0,)))
any_number_of_shards = pytest.mark.parametrize("K", [1, 2, 7, 32])


def check(simulation, result, tol):
    """Assert that the result is what it says it is; return the independent primal."""
    objective, table = simulation.objective, simulation.duals()
    primal, dual = objective.primal(result.weights), objective.dual_of(table)
    assert result.certificate.primal == pytest.approx(primal, rel=1e-9)
    assert result.certificate.dual == pytest.approx(dual, rel=1e-9)
    assert -1e-9 * primal <= primal - dual <= tol * primal * (1 + 1e-9)
    return primal


@any_number_of_shards
@some_losses
def test_certificate_is_true_and_the_gap_is_reached(name, k, smoothing, K):
    X, y = make_data(60, 8, 15)
    objective = make_objective(name, k, smoothing, X, y, C=0.2, bias=1.5)
    simulation = Simulation(objective, split(60, K), tol=1e-3, max_iter=10_000)
    result = simulation.run()
    assert result.status is Status.SOLVED
    assert result.weights.shape == (15, 9)
    check(simulation, result, 1e-3)


@pytest.mark.parametrize(("form", "dtype"), [("dense", np.float32), ("csr", np.float32)])
def test_formats_and_precisions(form, dtype):
    X, y = make_sparse_rows(60, 12, 15, dtype=dtype)
    objective = make_objective("topk_hinge_alpha", 3, 0.0, FORMATS[form](X), y, C=0.2, bias=0.5)
    simulation = Simulation(objective, split(60, 3), tol=1e-3)
    result = simulation.run()
    assert result.weights.dtype == dtype
    assert result.weights.shape == (15, 13)
    check(simulation, result, 1e-3)


@pytest.mark.parametrize("name", ["topk_hinge_alpha", "topk_hinge_beta"])
def test_the_optimum_is_the_same_for_any_partition(name):
    X, y = make_data(21, 4, 5)
    C = np.random.default_rng(1).uniform(0.1, 1.0, 21)
    C[4] = 0.0
    objective = make_objective(name, 2, 0.0, X, y, C=C)
    found = optimum(objective)
    empty = np.empty(0, int)
    partitions = {
        "one": split(21, 1),
        "two": split(21, 2),
        "more shards than examples": split(21, 32),
        "a class per shard": [np.flatnonzero(y == label) for label in range(5)],
        "empty ones": [empty, *split(21, 2), empty],
        "one of a single example": [np.arange(20), np.array([20])],
    }
    for parts in partitions.values():
        simulation = Simulation(objective, parts, passes=1, tol=1e-5)
        assert check(simulation, simulation.run(), 1e-5) == pytest.approx(found, rel=2e-5)


@any_number_of_shards
@pytest.mark.parametrize("smoothing", [0.0, SMOOTHING])
def test_the_dual_never_falls_and_the_weights_are_those_of_the_duals(K, smoothing):
    X, y = make_data(50, 5, 15)
    objective = make_objective("topk_hinge_alpha", 2, smoothing, X, y, C=0.5)
    simulation = Simulation(objective, split(50, K), tol=0.0)
    dual, shares = 0.0, []
    for number in range(12):
        result = simulation.shards.round(Order(reach=3.0 if number % 4 else 0.0))
        table = simulation.duals()
        np.testing.assert_allclose(
            simulation.shards.weights(), objective.weights(table), rtol=0, atol=1e-12
        )
        assert dual_of(result) == pytest.approx(objective.dual_of(table), rel=1e-10)
        assert dual_of(result) >= dual - 1e-12 * abs(dual)
        dual = dual_of(result)
        shares.append(result.model.share)
    assert max(shares) > 0.0 or K == 1


@pytest.mark.parametrize("K", [2, 7])
def test_the_dual_rises_by_at_least_the_gains_of_the_shards(K):
    """Which is what sigma = K is for: rows that all look alike are the worst case."""
    X, y = make_data(60, 3, 12)
    X = np.abs(X) + 2.0
    objective = make_objective("topk_hinge_beta", 2, 0.0, X, y, C=1.0)
    simulation = Simulation(objective, split(60, K), extrapolate=False)
    dual = 0.0
    for _ in range(6):
        before = [shard.solver.dual for shard in simulation.locals]
        result = simulation.shards.round(Order())
        gains = [
            (shard.solver.dual - old) / shard.sigma
            for shard, old in zip(simulation.locals, before, strict=True)
        ]
        assert min(gains) > 0.0
        assert dual_of(result) - dual >= sum(gains) * (1 - 1e-9)
        dual = dual_of(result)


def test_a_round_with_too_small_a_sigma_is_taken_back():
    X, y = make_data(60, 3, 12)
    objective = make_objective("topk_hinge_beta", 2, 0.0, np.abs(X) + 2.0, y, C=1.0)
    simulation = Simulation(objective, split(60, 7), tol=1e-3, max_iter=10_000)
    cocoa, duals, rejected = simulation.cocoa, [], []

    def make_round(order):
        certificate = cocoa.round(order)
        duals.append(certificate.dual)
        rejected.append(cocoa.details["is_rejected"])
        return certificate

    for _ in range(30):
        last = make_round(Order(reach=2.0))
    weights = simulation.shards.weights()
    cocoa.sigma = 1.0
    assert make_round(Order(reach=2.0, sigma=1.0)) is last
    assert cocoa.must_undo
    np.testing.assert_array_equal(simulation.shards.weights(), weights)
    assert make_round(Order(passes=0, undo=True)).dual == pytest.approx(last.dual, rel=1e-12)
    assert rejected[-3:] == [False, True, False]
    cocoa.sigma = 1.0
    result = simulation.run()
    assert result.history[-1].details["sigma"] > 2.0
    check(simulation, result, 1e-3)
    for dual, later in pairwise(duals + [line.dual for line in result.history]):
        assert later >= dual * (1 - 1e-12)


def test_shards_with_little_in_common_need_a_small_sigma():
    X, y = make_data(80, 200, 12)
    objective = make_objective("topk_hinge_alpha", 2, 0.0, X, y, C=0.01)
    simulation = Simulation(objective, split(80, 8), tol=1e-5)
    result = simulation.run()
    check(simulation, result, 1e-5)
    assert result.history[0].details["sigma"] == 8.0
    assert result.history[-1].details["sigma"] < 4.0


@pytest.mark.parametrize(
    "passes", [1, 1 + SDCAOptions().max_active], ids=["full passes", "and active ones"]
)
def test_one_shard_is_the_serial_solver_to_the_end(passes):
    """Which here puts its weights right after every round, as the shard does."""
    X, y = make_data(120, 6, 20)
    objective = make_objective("topk_hinge_alpha", 3, 0.0, X, y, C=0.3)
    simulation = Simulation(objective, [np.arange(120)], passes=passes, tol=1e-4)
    result = simulation.run()
    assert result.status is Status.SOLVED
    serial = make_sdca(objective)
    assert serial.use_active
    for line in result.history:
        serial.full_pass(serial.rng.permutation(serial.members))
        serial.end_full_pass()
        if passes > 1:
            serial.continue_phase(Stopping(0.0, 10**9))
        parts = serial.loss, serial.problem, serial.duals
        certificate, _, serial.weights[...] = certify(*parts, None, SCALES[:1])
        assert line.epoch == serial.n_passes
        assert line.dual == pytest.approx(certificate.dual, rel=1e-13)
        assert line.primal == pytest.approx(certificate.primal, rel=1e-12)
    np.testing.assert_allclose(simulation.shards.weights(), serial.weights, rtol=0, atol=1e-13)


@some_losses
def test_one_shard_is_the_plain_solver_that_users_call(name, k, smoothing):
    """Which puts its weights right only where the gap seems near: equal but for rounding."""
    X, y = make_data(60, 8, 15)
    objective = make_objective(name, k, smoothing, X, y, C=0.2, bias=1.5)
    serial = run(objective, solver="sdca", active=False, tol=1e-4)
    n_iter = serial.n_iter
    simulation = Simulation(objective, [np.arange(60)], passes=1, tol=0.0, max_iter=n_iter)
    result = simulation.run()
    assert result.n_iter == n_iter
    # The certificate may have found that slightly larger weights are better.
    larger = np.linalg.norm(serial.weights) / np.linalg.norm(result.weights)
    assert 1.0 - 1e-10 <= larger <= 1.0 + 1e-3
    np.testing.assert_allclose(larger * result.weights, serial.weights, rtol=0, atol=1e-10)
    assert result.certificate.dual == pytest.approx(serial.certificate.dual, rel=1e-11)
    assert result.certificate.relative_gap <= 1e-4


def test_extrapolating_in_the_direction_of_a_round_saves_rounds():
    X, y = make_data(100, 10, 15)
    objective = make_objective("topk_hinge_alpha", 2, 0.0, X, y)
    rounds = []
    for extrapolate in (True, False):
        simulation = Simulation(objective, split(100, 4), extrapolate=extrapolate, max_iter=10_000)
        result = simulation.run()
        check(simulation, result, 1e-3)
        rounds.append(len(result.history))
    assert rounds[0] < 0.5 * rounds[1]


def test_runs_repeat_and_the_history_adds_up():
    X, y = make_data(80, 6, 15)
    objective = make_objective("topk_hinge_alpha", 2, 0.0, X, y)
    first, second = (Simulation(objective, split(80, 3)).run() for _ in range(2))
    np.testing.assert_array_equal(first.weights, second.weights)
    history = [line.as_dict() for line in first.history]
    assert [line["round"] for line in history] == list(range(1, len(history) + 1))
    assert sum(line["local_passes"] for line in history) == first.n_iter == history[-1]["epoch"]
    assert {line["n_bytes"] for line in history} == {2 * 90 * (16 + 8)}
    for line, later in pairwise(history):
        assert later["dual"] >= line["dual"] - 1e-9 * abs(line["dual"])
    # The line of a round is written right after its end, before the next one begins.
    ends = np.cumsum([line["computation"] + line["communication"] for line in history])
    written = np.array([line["seconds"] for line in history])
    assert np.all(ends <= written * (1 + 1e-9))
    assert np.all(written[:-1] <= ends[1:] * (1 + 1e-9))


def test_budgets_are_kept():
    X, y = make_data(80, 6, 15)
    objective = make_objective("topk_hinge_alpha", 2, 0.0, X, y, C=10.0)
    result = Simulation(objective, split(80, 3), tol=1e-12, max_iter=7).run()
    assert (result.status, result.n_iter) == (Status.MAX_ITER, 7)
    simulation = Simulation(objective, split(80, 3), tol=1e-12, max_time=0.05)
    assert simulation.run().status is Status.MAX_TIME
    assert simulation.cocoa.clock.elapsed < 1.0


@pytest.mark.parametrize("rounds", [0, 3])
def test_interrupted_runs_end_with_a_certificate(rounds, monkeypatch):
    X, y = make_data(80, 6, 15)
    objective = make_objective("topk_hinge_alpha", 2, 0.0, X, y)
    simulation = Simulation(objective, split(80, 3), tol=1e-12)
    solve = Shard.solve

    def interrupted(shard, weights, order):
        if shard is simulation.locals[1] and simulation.cocoa.n_rounds == rounds and order.passes:
            raise StopRequested
        return solve(shard, weights, order)

    monkeypatch.setattr(Shard, "solve", interrupted)
    result = simulation.run()
    assert result.status is Status.INTERRUPTED
    assert result.certificate.primal == pytest.approx(objective.primal(result.weights), rel=1e-9)
    assert len(result.history) == max(1, rounds)


def test_larger_weights_are_certified_where_they_are_better():
    """Classes that can be separated, and a large C: tiny violations of the margins cost much."""
    X, y = make_data(60, 40, 12, overlap=0.3)
    objective = make_objective("topk_hinge_alpha", 2, 0.0, X.astype(np.float32), y, C=1e4)
    simulation = Simulation(objective, split(60, 3), tol=3e-3)
    result = simulation.run()
    table = simulation.duals()
    plain = objective.weights(table)
    assert np.linalg.norm(result.weights) > (1 + 5e-5) * np.linalg.norm(plain)
    check(simulation, result, 3e-3)


def test_a_shard_extrapolate_from_its_snapshot():
    X, y = make_data(60, 6, 15)
    objective = make_objective("topk_hinge_beta", 2, 0.0, X, y)
    simulation = Simulation(objective, split(60, 3))
    for _ in range(3):
        simulation.shards.round(Order())
    old = simulation.locals[1]
    problem = old.solver.problem
    plain = replace(
        problem, examples=problem.examples._replace(C=objective.radii[simulation.parts[1]])
    )
    again = Shard(old.solver.loss, plain, 3, duals=old.snapshot())
    before, after = old.contribution(), again.contribution()
    assert after.sums.total == pytest.approx(before.sums.total, rel=1e-12)
    np.testing.assert_allclose(after.weights, before.weights, rtol=0, atol=1e-12)
    simulation.shards.shards[1] = simulation.locals[1] = again
    check(simulation, simulation.run(), 1e-3)
