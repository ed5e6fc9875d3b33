"""DaskShards without a cluster: rounds, losses and newcomers at moments that the tests choose."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from solvers.cases import make_data, make_objective

from distributed_training.simulation import Simulation, dual_of
from topksvm.distributed import _dask_shards, _tasks
from topksvm.distributed._cocoa import CoCoA
from topksvm.distributed._dask_shards import DaskShards
from topksvm.distributed._data import DaskData
from topksvm.distributed._placement import Change, next_change, place, place_lost
from topksvm.distributed._shard import Order
from topksvm.distributed._tasks import Call, ShardSetup
from topksvm.solvers import Run, Stopping, make_loss

dask = pytest.importorskip("dask.array", reason="needs topksvm[dask]")
from distributed_training.immediate import ImmediateClient, values_of  # noqa: E402

N, M = 90, 12


@pytest.fixture
def objective():
    """Rows that look alike: shards get in each other's way."""
    X, y = make_data(N, 3, M)
    return make_objective("topk_hinge_alpha", 2, 0.0, np.abs(X) + 2.0, y, C=0.01)


@pytest.fixture
def make_shards(objective):
    """Return a function that makes shards of three parts on workers with so many threads."""
    all_shards = []

    def make(n_jobs=None, lost=None, **threads):
        client = ImmediateClient(**threads)
        X, y = objective.X, objective.y
        rows = [dask.from_array(part, chunks=-1) for part in np.array_split(X, 3)]
        data = DaskData(client, "token", dask.concatenate(rows), y, None, None)
        homes = data.place(n_jobs)
        loss, C = make_loss(objective.name, objective.k), np.full(M, objective.C)
        setup = ShardSetup("token", loss, np.arange(M), C, 0.0, "float64", len(homes), 0)
        shards = DaskShards(client, setup, data, homes)
        all_shards.append(shards)
        if lost is not None:
            client.lose(lost)
        shards.start()
        return shards, client

    _tasks._LATEST.clear()  # All of them are called "token".
    yield make
    for shards in all_shards:
        shards.close()
    assert not _tasks._SHARDS


def duals_of(shards):
    """Return the duals of all shards as one ``(n, m)`` table."""
    table, starts = np.zeros((N, M)), np.cumsum([0, 30, 30])
    for number, group in enumerate(shards.data.groups):
        rows = np.concatenate(
            [starts[piece.part] + np.arange(piece.start, piece.stop) for piece in group]
        )
        duals = _tasks.snapshot(Call("token", number, 0))
        for i, start, count in zip(rows, duals.start, duals.count, strict=True):
            table[i, duals.classes[start : start + count]] = duals.values[start : start + count]
    return table


def check_consistent(shards, objective, result=None):
    """Assert that the weights on every worker are those of the duals; return the dual."""
    table = duals_of(shards)
    for number in range(shards.n_shards):
        weights = _tasks.fetch(Call("token", number, 0), shards.version)
        np.testing.assert_allclose(weights, objective.weights(table), rtol=0, atol=1e-11)
    dual = objective.dual_of(table)
    assert result is None or dual_of(result) == pytest.approx(dual, rel=1e-11)
    return dual


def test_it_computes_what_shards_in_one_process_compute(objective, make_shards):
    """To the bit, with two rounds in a row that are taken back."""
    shards, _ = make_shards(a=2, b=1)
    simulation = Simulation(objective, np.array_split(np.arange(N), 3), tol=1e-4)
    solvers = CoCoA(shards), simulation.cocoa
    lines = [[], []]
    for solver, made in zip(solvers, lines, strict=True):
        for sigma in (*[None] * 12, 0.05, 0.1):
            solver.sigma = sigma or solver.sigma
            certificate = solver.round(Order(reach=2.0, sigma=sigma, undo=solver.must_undo))
            made.append((certificate.dual, solver.details["is_rejected"]))
    first, second = (Run(solver, Stopping(1e-4)).complete() for solver in solvers)
    assert lines[0] == lines[1]
    assert [is_rejected for _, is_rejected in lines[0][11:]] == [False, True, True]
    assert sum(line.details["n_lost"] for line in first.history) == 0
    assert [line.dual for line in first.history] == [line.dual for line in second.history]
    np.testing.assert_array_equal(first.weights, second.weights)
    assert first.certificate.relative_gap <= 1e-4


def test_a_worker_that_joins_takes_half_of_the_largest_shard(objective, make_shards):
    shards, client = make_shards(a=1, b=1)
    cocoa = CoCoA(shards)
    for _ in range(4):
        last = cocoa.round(Order(reach=2.0))
    assert (shards.homes, shards.data.sizes()) == (["a", "b"], [30, 60])
    client.threads["c"] = 2
    shards.rebalance()
    assert shards.homes == ["a", "b", "c", "c"]
    assert sorted(shards.data.sizes()) == [15, 15, 30, 30]
    result = shards.round(Order(passes=0))
    assert dual_of(result) == pytest.approx(last.dual, rel=1e-12)
    assert (result.n_lost, result.snapshot_bytes > 0) == (0, True)
    check_consistent(shards, objective, result)
    assert set(client.places.values()) == {"a", "b", "c"}
    result = Run(cocoa, Stopping(1e-4, 10_000)).complete()
    assert result.certificate.relative_gap <= 1e-4
    assert {line.details["n_shards"] for line in result.history} == {4}
    for dual, later in pairwise([last.dual, *(line.dual for line in result.history)]):
        assert later >= dual * (1 - 1e-12)
    shards.rebalance()
    assert shards.n_shards == 4


def test_a_shard_of_a_worker_with_too_many_goes_to_one_that_joins(objective, make_shards):
    shards, client = make_shards(a=1, b=1)
    for _ in range(6):  # The copies of the duals are one round old.
        result = shards.round(Order(reach=2.0))
    client.lose("a")
    again = shards.round(Order(reach=2.0))
    assert (shards.homes, again.n_lost) == (["b", "b"], 1)
    assert dual_of(again) > 0.9 * dual_of(result)
    client.threads["c"] = 1
    shards.rebalance()
    last = shards.round(Order())
    assert (sorted(shards.homes), last.n_lost) == (["b", "c"], 0)
    assert dual_of(last) >= check_consistent(shards, objective, last) * (1 - 1e-11)
    assert dual_of(last) >= dual_of(again)


def test_a_worker_lost_before_its_shard_is_built(objective, make_shards):
    shards, _ = make_shards(a=1, b=1, lost="a")
    assert shards.homes == ["b", "b"]
    check_consistent(shards, objective, shards.round(Order()))


def test_a_worker_lost_while_a_round_is_to_be_taken_back(objective, make_shards, monkeypatch):
    """The shards that are left take it back before the weights are made anew."""
    monkeypatch.setattr(_dask_shards, "SNAPSHOT_ROUNDS", 1)
    shards, client = make_shards(a=1, b=1)
    for _ in range(12):
        before = shards.round(Order(reach=2.0))
    snapshots = shards.snapshots
    monkeypatch.setattr(_dask_shards, "SNAPSHOT_ROUNDS", 1000)
    fallen = shards.round(Order(reach=2.0, sigma=0.05))
    assert fallen.model.plain_dual < dual_of(before)
    shards.reject()
    client.lose("b")
    assert shards.snapshots is snapshots
    result = shards.round(Order(passes=0, undo=True))
    assert result.n_lost == 1
    assert dual_of(result) == pytest.approx(dual_of(before), rel=1e-11)
    check_consistent(shards, objective, result)


def test_newcomers_are_not_used_where_the_duals_are_too_large_to_move(make_shards, monkeypatch):
    shards, client = make_shards(a=1, b=1)
    shards.round(Order())
    client.threads["c"] = 1
    monkeypatch.setattr(_dask_shards, "SNAPSHOT_BYTES", 0)
    shards.rebalance()
    assert shards.homes == ["a", "b"]


def test_no_more_shards_than_asked_for(make_shards):
    shards, client = make_shards(n_jobs=2, a=2)
    shards.round(Order())
    client.threads["c"] = 4
    shards.rebalance()
    assert shards.homes == ["a", "a"]


def test_shards_are_split_at_any_row(objective, make_shards):
    shards, _ = make_shards(a=1)
    for _ in range(3):
        result = shards.round(Order())
    shards.data.most_shards = lambda threads: 8  # noqa: ARG005
    shards.workers.client.threads["b"] = 7
    shards.rebalance()
    assert shards.n_shards == 8
    assert max(shards.data.sizes()) <= 2 * min(shards.data.sizes())
    again = shards.round(Order(passes=0))
    assert dual_of(again) == pytest.approx(dual_of(result), rel=1e-12)
    check_consistent(shards, objective, again)


def test_tasks_that_dask_runs_again_change_nothing(objective, make_shards):
    """As it does if a worker with the result of a later task is lost."""
    shards, client = make_shards(a=1, b=1)
    ran, submit = [], client.submit

    def note_and_submit(task, *args, **options):
        ran.append((task, args))
        return submit(task, *args, **options)

    client.submit = note_and_submit
    for _ in range(3):
        result = shards.round(Order(reach=2.0))
    changing = {_tasks.solve, _tasks.evaluate}
    again = [(task, args) for task, args in ran if task in changing]
    assert len(again) == 12
    for task, args in again:
        with pytest.raises(_tasks.ShardLostError):
            task(*values_of(args))
    check_consistent(shards, objective, result)
    shards.close()
    call = Call("token", 0, 1)
    with pytest.raises(_tasks.ShardLostError):
        _tasks.build(call, shards.setup, [], [], None)


def test_placement_prefers_workers_that_have_the_rows():
    groups, sizes = [[0, 1], [2], [3]], [10, 10, 20, 20]
    holders = [["b"], ["b"], ["a"], ["a"]]
    assert place(groups, sizes, holders, {"a": 1, "b": 1, "c": 2}) == ["b", "a", "c"]


def test_changes_of_place():
    homes = ["a", "x", "x", "b"]
    place_lost(homes, [1, 2], {"a": 1, "b": 2, "c": 1})
    assert homes == ["a", "c", "b", "b"]
    assert next_change(["a", "a", "b"], [5, 5, 9], {"a": 1, "b": 1, "c": 1}, 3) == Change(
        0, "c", is_split=False
    )
    threads = {"a": 1, "b": 1, "c": 1}
    assert next_change(["a", "b"], [5, 9], threads, 3) == Change(1, "c", is_split=True)
    assert next_change(["a", "b"], [5, 9], threads, 2) is None
    assert next_change(["a", "b"], [1, 1], threads, 3) is None
    assert next_change(["a", "b"], [5, 9], {"a": 1, "c": 1}, 3) is None  # First the loss.
