"""Which loss and which C a method gets for the race to an accuracy."""

from __future__ import annotations

import pytest

from benchmarks.datasets import DATASETS
from benchmarks.jobs import RIVALS, choose_among, plan_choice

GRID = (0.01, 0.1, 1.0, 10.0)


def _points(accuracies):
    return [
        {"setting": C, "accuracy": accuracy} for C, accuracy in zip(GRID, accuracies, strict=True)
    ]


@pytest.mark.parametrize(
    ("accuracies", "expected"),
    [
        ([0.5, 0.9, 0.8, 0.7], 0.1),
        ([0.9, 0.9, 0.9, 0.9], 0.1),
        ([0.5, 0.9, 0.9, 0.9], 1.0),
        ([0.5, 0.6, 0.9, 0.9], 1.0),
        ([0.9, 0.1, 0.1, 0.9], 0.01),
    ],
)
def test_the_best_c_and_of_equals_the_middle_one(accuracies, expected):
    for points in (_points(accuracies), _points(accuracies)[::-1]):
        found = choose_among({("LinearSVC one-vs-rest", "own"): points}, "LinearSVC one-vs-rest")
        assert found == {"objective": "own", "C": expected}


def test_the_best_k_and_of_equals_that_of_the_guesses():
    by_loss = {
        ("topksvm hinge", "hinge-5"): _points([0.1, 0.8, 0.2, 0.1]),
        ("topksvm hinge", "hinge-1"): _points([0.1, 0.1, 0.8, 0.1]),
        ("topksvm hinge", "hinge-20"): [],
    }
    assert choose_among(by_loss, "topksvm hinge") == {"objective": "hinge-5", "C": 0.1}
    by_loss["topksvm hinge", "hinge-10"] = _points([0.1, 0.1, 0.1, 0.9])
    assert choose_among(by_loss, "topksvm hinge") == {"objective": "hinge-10", "C": 10.0}


def test_one_solver_chooses_for_all_of_the_same_loss():
    by_loss = {
        ("topksvm softmax", "softmax"): _points([0.1, 0.2, 0.3, 0.1]),
        ("SGDClassifier hinge", "own"): _points([0.4, 0.1, 0.1, 0.1]),
    }
    assert choose_among(by_loss, "Cyanure") == {"objective": "softmax", "C": 1.0}
    assert choose_among(by_loss, "SGDClassifier hinge") == {"objective": "own", "C": 0.01}
    assert choose_among(by_loss, "SGDClassifier log_loss") is None


def test_every_method_takes_part_in_the_choice_with_every_loss():
    jobs = list(plan_choice([DATASETS["tiny"]], list(RIVALS), 1, 1.0))
    found = [(job.solver, job.objective) for job in jobs]
    assert len(set(found)) == len(found)
    for name, objectives in RIVALS.items():
        for objective in objectives:
            assert any(o == objective and (o != "own" or s == name) for s, o in found)
