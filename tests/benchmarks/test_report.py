"""From measurements to the page: who was there first is decided from the CSV alone."""

from __future__ import annotations

import csv
import sys

import numpy as np
import pytest

from benchmarks import memory, report, tables
from benchmarks.jobs import Job
from benchmarks.measure import Outcome
from benchmarks.races import accuracy_races, objective_races
from benchmarks.rows import flatten, write

SHAPES = {"toy": (300, 20, 12)}
FACTS = {
    "date": "2026-01-01",
    "processor": "abacus",
    "processors": 2,
    "memory": "1 GiB",
    "platform": "none",
    "versions": {"numpy": "2"},
    "load": 0.1,
    "commit": "abc1234-dirty",
    "commands": ["python -m benchmarks peers"],
}


def _outcome(solver, points, kind="objective", status="done", reason=""):
    objective = "hinge-1" if kind == "objective" else "own"
    job = Job(kind, "toy", solver, objective, 1.0 if kind == "objective" else 0.5, 1, 30.0)
    return Outcome(job, status, reason, points, compile_seconds=1.25)


def _points(*pairs, dual=None):
    return [
        {"setting": 0.1, "seconds": s, "primal": p, "dual": dual, "megabytes": 3.0}
        for s, p in pairs
    ]


def _accuracies(*pairs):
    return [{"setting": 1, "seconds": s, "accuracy": a, "megabytes": 1.0} for s, a in pairs]


@pytest.fixture
def rows():
    outcomes = [
        _outcome("topksvm hinge", _points((0.1, 102.0), (0.2, 100.05), (0.4, 100.01), dual=100.0)),
        _outcome("LinearSVC crammer_singer", _points((0.3, 103.0), (0.9, 100.1), (2.0, 100.001))),
        _outcome(
            "LIBLINEAR -s 4", _points((5.0, 101.0)), status="stopped", reason="not reached in 30 s"
        ),
        _outcome("lightning SGD", [], status="skipped", reason="not installed"),
        _outcome("topksvm softmax", _accuracies((0.5, 0.70), (1.0, 0.81)), "accuracy"),
        _outcome("Cyanure", _accuracies((0.2, 0.82), (3.0, 0.80)), "accuracy"),
        _outcome("SGDClassifier hinge", _accuracies((0.1, 0.60)), "accuracy"),
        Outcome(Job("products", "toy", "", "", 0.0, 1, 30.0), "done", "", [{"seconds": 0.01}]),
    ]
    return flatten(outcomes, SHAPES)


def test_the_csv_has_a_line_per_measurement(rows, tmp_path):
    write(rows, tmp_path / "results.csv")
    with (tmp_path / "results.csv").open(newline="") as stream:
        lines = list(csv.DictReader(stream))
    assert len(lines) == len(rows)
    for line, row in zip(lines, rows, strict=True):
        assert line == {name: "" if v is None else str(v) for name, v in row.items()}


def test_the_time_is_that_of_the_fastest_fit_that_is_good_enough(rows):
    (race,) = objective_races(rows)
    times = {arrival.solver: arrival.seconds for arrival in race.arrivals}
    assert times == {
        "topksvm hinge": 0.2,
        "LinearSVC crammer_singer": 0.9,
        "LIBLINEAR -s 4": None,
        "lightning SGD": None,
    }
    assert race.ratio == pytest.approx(4.5)
    assert race.is_ahead
    notes = {arrival.solver: arrival.note for arrival in race.arrivals}
    assert notes["LIBLINEAR -s 4"] == "not reached in 30 s (1.0e-02 after 5 s)"
    assert notes["lightning SGD"] == "not installed"


def test_the_accuracy_to_reach_is_the_best_peer_s_in_the_end(rows):
    (race,) = accuracy_races(rows)
    assert race.goal == "0.8000"
    assert race.ours == 1.0
    assert race.best_peer.solver == "Cyanure"
    assert race.best_peer.seconds == 0.2
    assert not race.is_ahead
    behind = report.summary([], [race])
    assert behind == [
        "test top-5 accuracy: ahead of every peer on 0 of 1 problems; not on toy "
        "(Cyanure takes 0.2 of our time)."
    ]


def test_the_page_says_what_was_chosen(rows):
    ours = [row | {"objective": "hinge-20"} for row in rows if row["solver"] == "topksvm softmax"]
    both = ours + [row for row in rows if row["solver"] == "Cyanure"]
    table = tables.choices(both)
    assert table.split("\n\n")[1] == (
        "   * - data\n     - topksvm softmax\n     - Cyanure\n"
        "   * - toy\n     - k = 20, C = 0.5\n     - C = 0.5\n"
    )
    assert table in report.page(both, FACTS, [])


def test_no_race_is_won_that_was_not_finished(rows):
    slow = [row for row in rows if row["solver"] != "topksvm hinge" or row["primal"] > 101]
    (race,) = objective_races(slow)
    assert race.ours is None
    assert not race.is_ahead


def test_peers_that_never_arrive_give_a_bound(rows):
    kept = [row for row in rows if row["solver"] != "LinearSVC crammer_singer"]
    (race,) = objective_races(kept)
    assert race.is_ahead
    assert race.ratio is None
    assert race.least_ratio == pytest.approx(25.0)
    slow = [{**row, "seconds": 9.0} if row["is_ours"] else row for row in kept]
    (race,) = objective_races(slow)
    assert not race.is_ahead
    assert race.is_open
    assert "undecided" in report.summary([race], [])[0]


def test_a_race_without_peers_does_not_count(rows):
    (race,) = objective_races([row for row in rows if row["is_ours"]])
    assert not race.has_peers
    assert report.summary([race], []) == []


def test_a_value_below_a_proven_bound_is_an_alarm(rows):
    rows[3]["primal"] = 99.9
    with pytest.raises(RuntimeError, match="below the proven bound"):
        objective_races(rows)


def test_the_page_has_every_number_and_is_valid(rows, tmp_path):
    core = pytest.importorskip("docutils.core")
    report.write_page(rows, FACTS, tmp_path)
    page = (tmp_path / "benchmarks.rst").read_text(encoding="utf-8")
    assert {p.name for p in (tmp_path / "images" / "benchmarks").iterdir()} == {
        "ratios.png",
        "hinge-1.png",
    }
    for text in (
        "abacus",
        "abc1234-dirty",
        "python -m benchmarks peers\n",
        "0.900",
        "4.5",
        "not installed",
        "0.8000",
        "1.25",
    ):
        assert text in page
    settings = {"halt_level": 2, "report_level": 2}
    core.publish_doctree(page, settings_overrides=settings)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can set the mark back")
def test_memory_is_what_the_block_used():
    first, array = memory.with_memory(lambda: np.ones(8_000_000))
    second, _ = memory.with_memory(lambda: np.ones(1_000_000))
    assert array.nbytes == 64_000_000
    assert 60 < first < 100
    assert second < 30
