"""DaskTeam without a cluster: rounds, losses and newcomers at moments that the tests choose."""

from __future__ import annotations

import numpy as np
import pytest
from solvers.cases import make_data, make_objective

from distributed_training.simulation import Simulation
from topksvm.distributed import _tasks, _team
from topksvm.distributed._cocoa import CoCoA
from topksvm.distributed._data import DaskData
from topksvm.distributed._placement import Change, next_change, place, place_lost
from topksvm.distributed._shard import Order
from topksvm.distributed._tasks import Call, Setting
from topksvm.distributed._team import DaskTeam
from topksvm.solvers._sdca import SDCAOptions
from topksvm.solvers._solve import make_loss

dask = pytest.importorskip("dask.array", reason="needs topksvm[dask]")
from distributed_training.immediate import ImmediateClient, values_of  # noqa: E402

N, M = 90, 12


@pytest.fixture
def objective():
    """Rows that look alike: shards get in each other's way."""
    X, y = make_data(N, 3, M)
    return make_objective("topk_hinge_alpha", 2, 0.0, np.abs(X) + 2.0, y, C=0.01)


@pytest.fixture
def make_team(objective):
    """Return a function that makes a team of three parts on workers with so many threads."""
    teams = []

    def make(n_jobs=None, lost=None, **threads):
        client = ImmediateClient(**threads)
        X, y = objective.X, objective.y
        rows = [dask.from_array(part, chunks=-1) for part in np.array_split(X, 3)]
        data = DaskData(client, "token", dask.concatenate(rows), y, None, None)
        homes = data.place(n_jobs)
        loss, C = make_loss(objective.name, objective.k), np.full(M, objective.C)
        setting = Setting("token", loss, np.arange(M), C, 0.0, "float64", len(homes), 0)
        team = DaskTeam(client, setting, data, homes)
        teams.append(team)
        if lost is not None:
            client.lose(lost)
        team.start()
        return team, client

    _tasks._LATEST.clear()  # All of them are called "token".
    yield make
    for team in teams:
        team.close()
    assert not _tasks._SHARDS


def duals_of(team):
    """Return the duals of all shards as one ``(n, m)`` table."""
    table, starts = np.zeros((N, M)), np.cumsum([0, 30, 30])
    for number, group in enumerate(team.data.groups):
        rows = np.concatenate(
            [starts[piece.part] + np.arange(piece.start, piece.stop) for piece in group]
        )
        duals = _tasks.snapshot(Call("token", number, 0))
        for i, start, count in zip(rows, duals.start, duals.count, strict=True):
            table[i, duals.classes[start : start + count]] = duals.values[start : start + count]
    return table


def check_consistent(team, objective, standing=None):
    """Assert that the weights on every worker are those of the duals; return the dual."""
    table = duals_of(team)
    for number in range(team.n_shards):
        weights = _tasks.fetch(Call("token", number, 0), team.version)
        np.testing.assert_allclose(weights, objective.weights(table), rtol=0, atol=1e-11)
    dual = objective.dual_of(table)
    assert standing is None or standing.dual == pytest.approx(dual, rel=1e-11)
    return dual


def test_it_computes_what_shards_in_one_process_compute(objective, make_team):
    """To the bit, with two rounds in a row that are taken back."""
    team, _ = make_team(a=2, b=1)
    simulation = Simulation(objective, np.array_split(np.arange(N), 3), tol=1e-4)
    runs = [CoCoA(team, SDCAOptions(1e-4)), simulation.cocoa]
    for run in runs:
        for _ in range(12):
            run.round(Order(reach=2.0))
        for caution in (0.05, 0.1):
            run.caution = sigma
            run.round(Order(reach=2.0, sigma=sigma, undo=run.must_undo))
    first, second = (run.run() for run in runs)
    assert [line.is_rejected for line in first.history[11:14]] == [False, True, True]
    assert sum(line.n_lost for line in first.history) == 0
    assert [line.dual for line in first.history] == [line.dual for line in second.history]
    np.testing.assert_array_equal(first.weights, second.weights)
    assert first.certificate.relative_gap <= 1e-4


def test_a_worker_that_joins_takes_half_of_the_largest_shard(objective, make_team):
    team, client = make_team(a=1, b=1)
    cocoa = CoCoA(team, SDCAOptions(1e-4, 10_000))
    for _ in range(4):
        last = cocoa.round(Order(reach=2.0))
    assert (team.homes, team.data.sizes()) == (["a", "b"], [30, 60])
    client.threads["c"] = 2
    team.welcome()
    assert team.homes == ["a", "b", "c", "c"]
    assert sorted(team.data.sizes()) == [15, 15, 30, 30]
    standing = team.round(Order(passes=0))
    assert standing.dual == pytest.approx(last.dual, rel=1e-12)
    assert (standing.n_lost, standing.snapshot_bytes > 0) == (0, True)
    check_consistent(team, objective, standing)
    assert set(client.places.values()) == {"a", "b", "c"}
    result = cocoa.run()
    assert result.certificate.relative_gap <= 1e-4
    assert {line.n_shards for line in result.history[5:]} == {4}
    for line, later in zip(result.history, result.history[1:], strict=False):
        assert later.dual >= line.dual * (1 - 1e-12)
    team.welcome()
    assert team.n_shards == 4


def test_a_shard_of_a_worker_with_too_many_goes_to_one_that_joins(objective, make_team):
    team, client = make_team(a=1, b=1)
    for _ in range(6):  # The copies of the duals are one round old.
        standing = team.round(Order(reach=2.0))
    client.lose("a")
    again = team.round(Order(reach=2.0))
    assert (team.homes, again.n_lost) == (["b", "b"], 1)
    assert again.dual > 0.9 * standing.dual
    client.threads["c"] = 1
    team.welcome()
    last = team.round(Order())
    assert (sorted(team.homes), last.n_lost) == (["b", "c"], 0)
    assert last.dual >= check_consistent(team, objective, last) * (1 - 1e-11)
    assert last.dual >= again.dual


def test_a_worker_lost_before_its_shard_is_built(objective, make_team):
    team, _ = make_team(a=1, b=1, lost="a")
    assert team.homes == ["b", "b"]
    check_consistent(team, objective, team.round(Order()))


def test_a_worker_lost_while_a_round_is_to_be_taken_back(objective, make_team, monkeypatch):
    """The shards that are left take it back before the weights are made anew."""
    monkeypatch.setattr(_team, "SNAPSHOT_ROUNDS", 1)
    team, client = make_team(a=1, b=1)
    for _ in range(12):
        before = team.round(Order(reach=2.0))
    snapshots = team.snapshots
    monkeypatch.setattr(_team, "SNAPSHOT_ROUNDS", 1000)
    fallen = team.round(Order(reach=2.0, sigma=0.05))
    assert fallen.plain_dual < before.dual
    team.reject()
    client.lose("b")
    assert team.snapshots is snapshots
    standing = team.round(Order(passes=0, undo=True))
    assert standing.n_lost == 1
    assert standing.dual == pytest.approx(before.dual, rel=1e-11)
    check_consistent(team, objective, standing)


def test_newcomers_are_not_used_where_the_duals_are_too_large_to_move(make_team, monkeypatch):
    team, client = make_team(a=1, b=1)
    team.round(Order())
    client.threads["c"] = 1
    monkeypatch.setattr(_team, "SNAPSHOT_BYTES", 0)
    team.welcome()
    assert team.homes == ["a", "b"]


def test_no_more_shards_than_asked_for(make_team):
    team, client = make_team(n_jobs=2, a=2)
    team.round(Order())
    client.threads["c"] = 4
    team.welcome()
    assert team.homes == ["a", "a"]


def test_shards_are_split_at_any_row(objective, make_team):
    team, _ = make_team(a=1)
    for _ in range(3):
        standing = team.round(Order())
    team.data.most_shards = lambda threads: 8  # noqa: ARG005
    team.workers.client.threads["b"] = 7
    team.welcome()
    assert team.n_shards == 8
    assert max(team.data.sizes()) <= 2 * min(team.data.sizes())
    again = team.round(Order(passes=0))
    assert again.dual == pytest.approx(standing.dual, rel=1e-12)
    check_consistent(team, objective, again)


def test_tasks_that_dask_runs_again_change_nothing(objective, make_team):
    """As it does if a worker with the result of a later task is lost."""
    team, client = make_team(a=1, b=1)
    ran, submit = [], client.submit

    def note_and_submit(task, *args, **options):
        ran.append((task, args))
        return submit(task, *args, **options)

    client.submit = note_and_submit
    for _ in range(3):
        standing = team.round(Order(reach=2.0))
    changing = {_tasks.solve, _tasks.evaluate}
    again = [(task, args) for task, args in ran if task in changing]
    assert len(again) == 12
    for task, args in again:
        with pytest.raises(_tasks.ShardLostError):
            task(*values_of(args))
    check_consistent(team, objective, standing)
    team.close()
    call = Call("token", 0, 1)
    with pytest.raises(_tasks.ShardLostError):
        _tasks.build(call, team.setting, [], [], None)


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
