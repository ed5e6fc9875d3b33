"""Processes with budgets, missing peers, and runs that are killed."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from benchmarks import jobs, measure, peers, worker
from benchmarks.__main__ import main, parse
from benchmarks.datasets import DATASETS, Splits, make_synthetic, restore, store
from benchmarks.jobs import Job, plan
from benchmarks.measure import Outcome, Store, run_job, run_jobs
from benchmarks.objectives import OBJECTIVES
from benchmarks.solvers import SOLVERS, MissingError

JOB = Job("objective", "tiny", "LinearSVC crammer_singer", "hinge-1", 1.0, 1, 30.0)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "tiny"
    store(make_synthetic(300, 20, 12, 100, 100), path)
    return path


class Pipe:
    """Collects what a worker sends, in this process."""

    def __init__(self):
        self.events = []

    def send(self, event):
        self.events.append(event)

    @property
    def points(self):
        return [facts for event, facts in self.events if event == "point"]


def _work(job, file, bound=None):
    pipe = Pipe()
    worker.run(job, file, bound, pipe)
    return pipe


def test_what_is_stored_is_what_is_read(file):
    data = restore(file)
    assert data.shape == (300, 20, 12)
    assert data.X_test.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(data.X_val, axis=1), 1.0, rtol=1e-5)


def test_a_job_in_its_own_process_approaches_the_optimum(file):
    outcome = run_job(JOB, file, bound=0.0)
    assert outcome.status == "done", outcome.reason
    values = [point["primal"] for point in outcome.points]
    assert len(values) == len(SOLVERS[JOB.solver].settings)
    assert min(values) == pytest.approx(values[-1], rel=1e-4)
    assert values[-1] < 0.95 * values[0]
    assert all(point["seconds"] > 0.0 for point in outcome.points)


def test_a_solver_over_its_budget_is_stopped_and_keeps_its_points(file):
    job = Job(**vars(JOB) | {"budget": 1e-6})
    outcome = run_job(job, file)
    assert outcome.status == "stopped"
    assert outcome.reason == "not reached in 1e-06 s"

    fitted, point = ("fitted", {"seconds": 0.6}), ("point", {"primal": 1.0})
    sent = [("start", {}), fitted, point, ("start", {})]

    class Slow:
        def poll(self, limit):
            self.limit = limit
            return bool(sent)

        def recv(self):
            return sent.pop(0)

    connection = Slow()
    outcome = measure._listen(Job(**vars(JOB) | {"budget": 1.0}), connection)
    assert outcome.status == "stopped"
    assert outcome.points == [{"primal": 1.0}]
    assert 0.0 < connection.limit <= 0.4  # What the first fit left.


def test_a_missing_package_is_a_reason_to_skip(file, monkeypatch):
    monkeypatch.setitem(sys.modules, "liblinear.liblinearutil", None)
    job = Job(**vars(JOB) | {"solver": "LIBLINEAR -s 4"})
    event, facts = _work(job, file).events[-1]
    assert event == "skipped"
    assert "pip install liblinear-official" in facts["reason"]


def test_a_package_that_does_not_load_is_skipped_too(file, monkeypatch):
    def fail(name):
        raise OSError(f"{name}: wrong processor")

    monkeypatch.setattr("benchmarks.solvers.base.import_module", fail)
    event, facts = _work(JOB, file).events[-1]
    assert event == "skipped"
    assert "wrong processor" in facts["reason"]


def test_a_solver_that_fails_does_not_stop_the_others(file, monkeypatch):
    def fail(*_):
        raise MemoryError("no room")

    monkeypatch.setattr(SOLVERS[JOB.solver], "fit", fail)
    assert _work(JOB, file).events[-1] == ("failed", {"reason": "MemoryError: no room"})


def test_the_settings_end_when_the_goal_is_reached_with_room(file):
    job = Job(**vars(JOB) | {"solver": "topksvm hinge"})
    pipe = _work(job, file)
    bound = max(point["dual"] for point in pipe.points)
    assert pipe.points[-1]["primal"] <= bound * (1 + 2.5e-4)
    peer = _work(JOB, file, bound)
    assert len(peer.points) < len(SOLVERS[JOB.solver].settings)
    assert peer.points[-1]["primal"] <= bound * (1 + 2.1e-4)
    assert peer.points[-1]["primal"] >= bound * (1 - 1e-9)


@pytest.mark.parametrize(
    "name", [name for name, s in SOLVERS.items() if "hinge-1" in s.losses or "softmax" in s.losses]
)
def test_all_solvers_minimise_the_same_objective(file, name):
    kind = SOLVERS[name]
    try:
        kind.check()
    except MissingError as error:
        pytest.skip(str(error))
    objective = kind.losses[0]
    ours = "topksvm softmax" if objective == "softmax" else "topksvm hinge"
    bound = _bound(file, ours, objective)
    job = Job("objective", "tiny", name, objective, 1.0, 1, 30.0)
    best = min(point["primal"] for point in _work(job, file, bound).points)
    assert bound * (1 - 1e-9) <= best <= bound * 1.001


_BOUNDS = {}


def _bound(file, solver, objective):
    if objective not in _BOUNDS:
        job = Job("objective", "tiny", solver, objective, 1.0, 1, 30.0)
        _BOUNDS[objective] = max(point["dual"] for point in _work(job, file).points)
    return _BOUNDS[objective]


def test_accuracy_latency_and_products(file):
    race = _work(Job("accuracy", "tiny", "SGDClassifier hinge", "own", 1.0, 1, 30.0), file)
    assert 0.8 < race.points[-1]["accuracy"] <= 1.0
    predictions = _work(Job("latency", "tiny", "topksvm hinge", "hinge-1", 1.0, 1, 30.0), file)
    assert 0.0 < predictions.points[0]["seconds_1"] < predictions.points[0]["seconds_10000"]
    products = _work(Job("products", "tiny", "", "", 0.0, 1, 30.0), file)
    assert products.points[0]["seconds"] > 0.0


def test_a_k_as_large_as_the_number_of_classes_is_skipped(file):
    pipe = _work(Job("choice", "tiny", "topksvm hinge", "hinge-12", 0.0, 1, 30.0), file)
    assert pipe.events == [("skipped", {"reason": "k = 12 is too large for 12 classes"})]


def test_a_run_that_was_killed_goes_on(tmp_path, monkeypatch):
    done = []

    def pretend(job, _, bound):
        done.append((job.solver, bound))
        return Outcome(job, "done", "", [{"primal": 2.0, "dual": 1.0, "seconds": 0.1}])

    monkeypatch.setattr(measure, "run_job", pretend)
    wanted = [Job(**vars(JOB) | {"solver": name}) for name in ("a", "b", "c")]
    path = tmp_path / "results.jsonl"
    run_jobs(wanted[:2], Store(path), tmp_path)
    path.write_bytes(path.read_bytes()[:-20])  # Killed while the second line was written.
    results = Store(path)
    assert len(results.outcomes) == 1
    run_jobs(wanted, results, tmp_path)
    assert done == [("a", None), ("b", 1.0), ("b", 1.0), ("c", 1.0)]
    assert [outcome.job.solver for outcome in Store(path).outcomes.values()] == ["a", "b", "c"]


def test_peers_ends_with_a_report(tmp_path, capsys, monkeypatch):
    def pretend(job, _, __):
        seconds = 1.0 if job.solver == "topksvm hinge" else 3.0
        point = {"setting": 0.1, "seconds": seconds, "primal": 2.0, "dual": 2.0}
        return Outcome(job, "done", "", [point])

    monkeypatch.setattr(measure, "run_job", pretend)
    words = ["--data", "tiny", "--quick", "--out", str(tmp_path)]
    solvers = ["--solvers", "topksvm hinge", "LinearSVC crammer_singer"]
    assert main(["peers", *words, *solvers]) == 0
    out = capsys.readouterr().out
    assert "ahead of every peer on 1 of 1 problems" in out
    assert "python -m benchmarks peers --data tiny" in out
    assert main(["report", "--out", str(tmp_path), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["Seconds to the goal"]
    assert {row["solver"]: row["seconds"] for row in rows} == {solvers[1]: "1", solvers[2]: "3"}
    assert (tmp_path / "results.csv").is_file()
    assert main(["report", "--out", str(tmp_path / "no")]) == 2
    assert "run python -m benchmarks peers" in capsys.readouterr().err


def test_choose_writes_the_best_c(tmp_path, monkeypatch):
    def pretend(job, _, __):
        points = [{"setting": C, "accuracy": 0.5 + (C == 0.1) / 4} for C in DATASETS["tiny"].grid]
        return Outcome(job, "done", "", points)

    monkeypatch.setattr(measure, "run_job", pretend)
    monkeypatch.setattr(peers, "CHOSEN", tmp_path / "chosen.json")
    monkeypatch.setattr(jobs, "CHOSEN", tmp_path / "chosen.json")
    words = ["--data", "tiny", "--solvers", "topksvm hinge", "--out", str(tmp_path)]
    assert main(["peers", "--choose", *words]) == 0
    chosen = json.loads((tmp_path / "chosen.json").read_text())
    assert chosen == {"tiny": {"topksvm hinge": {"objective": "hinge-5", "C": 0.1}}}


def test_results_are_not_overwritten(tmp_path, capsys):
    (tmp_path / "results.jsonl").write_text("")
    assert main(["peers", "--data", "tiny", "--out", str(tmp_path)]) == 2
    assert "--resume" in capsys.readouterr().err


def test_data_that_are_absent_are_left_out(tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("TOPKSVM_DATA", raising=False)
    words = ["peers", "--data", "caltech", "banking77", "tiny", "--out", str(tmp_path)]
    data = peers.prepare(parse(words))
    assert [item.name for item in data] == ["tiny"]
    assert "caltech is left out: TOPKSVM_DATA is not set" in capsys.readouterr().err


def test_the_plan_has_ours_first_and_the_same_threads(monkeypatch):
    choice = {"objective": "hinge-20", "C": 3.0}
    monkeypatch.setattr(jobs, "read_chosen", lambda: {"probe": dict.fromkeys(SOLVERS, choice)})
    planned = list(plan(list(DATASETS.values()), list(SOLVERS), [1, 2]))
    seen = set()
    for job in planned:
        if job.kind == "objective":
            problem = (*measure.problem_of(job), job.threads)
            assert problem in seen or SOLVERS[job.solver].is_ours
            seen.add(problem)
    assert {job.threads for job in planned if job.data == "large"} == {2}
    assert {job.threads for job in planned if job.data == "probe"} == {1, 2}
    races = [job for job in planned if job.kind == "accuracy"]
    assert {(job.threads, job.objective, job.C) for job in races} == {(1, "hinge-20", 3.0)}
    assert len({job.key for job in planned}) == len(planned)


def test_c_is_chosen_on_validation_rows_from_all_training_rows(monkeypatch):
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(12), 40)
    X = (5.0 * np.eye(12)[y] + rng.standard_normal((480, 12))).astype(np.float32)
    data = Splits(X, y, X[:100], y[:100], X, (y + 1) % 12)  # No use of the test rows.
    kind = SOLVERS["topksvm hinge"]
    seen, points = [], []
    fit = kind.fit
    monkeypatch.setattr(kind, "fit", lambda *args: seen.append(len(args[2])) or fit(*args))
    job = Job("choice", "digits", "topksvm hinge", "hinge-5", 0.0, 1, 60.0)
    worker._choose(
        job, kind, OBJECTIVES["hinge-5"], data, lambda what, facts: points.append((what, facts))
    )
    found = [facts["accuracy"] for what, facts in points if what == "point"]
    assert len(found) == len(DATASETS["digits"].grid)
    assert max(found) > 0.95
    assert seen == [480] * len(found)
