"""The judge of all solvers, against the definitions, one example at a time."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp

from benchmarks import objectives
from benchmarks.objectives import OBJECTIVES, Objective, topk_accuracy
from topksvm import solve


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((70, 6)).astype(np.float32)
    return rng.standard_normal((9, 6)), X, rng.integers(0, 9, 70)


def _value(loss, k, W, X, y, C):
    total = 0.5 * math.fsum(w * w for w in W.ravel())
    for x, label in zip(X.astype(float), y, strict=True):
        s = [math.fsum(a * b for a, b in zip(w, x, strict=True)) for w in W]
        if loss == "softmax":
            total += C * math.log(math.fsum(math.exp(t - s[label]) for t in s))
        else:
            wrong = sorted((1 + t - s[label] for j, t in enumerate(s) if j != label), reverse=True)
            total += C * max(0.0, sum(wrong[:k]) / k)
    return total


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("block", [1 << 22, 45], ids=["at once", "in blocks"])
def test_the_value_is_that_of_the_definition(problem, name, block, monkeypatch):
    monkeypatch.setattr(objectives, "_BLOCK", block)
    W, X, y = problem
    objective = OBJECTIVES[name]
    expected = _value(objective.loss, objective.k, W, X, y, 0.7)
    assert objective.value(W, X, y, 0.7) == pytest.approx(expected, rel=1e-12)
    assert objective.value(W, sp.csr_matrix(X), y, 0.7) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_library_means_the_same(problem, name):
    _, X, y = problem
    objective = OBJECTIVES[name]
    loss = "softmax" if objective.loss == "softmax" else "topk_hinge_alpha"
    result = solve(X, y, loss, 0.3, k=objective.k)
    value = objective.value(result.weights, X, y, 0.3)
    assert value == pytest.approx(result.certificate.primal, rel=1e-5)


def test_huge_scores_do_not_overflow(problem):
    W, X, y = problem
    assert np.isfinite(Objective("softmax").value(1e6 * W, X, y, 1.0))


def test_ties_count_against_the_true_class():
    X, y = np.eye(3), np.array([0, 1, 2])
    W = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    assert topk_accuracy(W, X, y, 1) == pytest.approx(1 / 3)
    assert topk_accuracy(W, X, y, 2) == 1.0
    assert topk_accuracy(W, X, y, 1, intercept=np.array([1.0, 0.0, 0.0])) == pytest.approx(1 / 3)
