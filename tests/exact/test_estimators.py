"""What an estimator claims about the model that it stores, intercepts included."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from flint import fmpq_mat

from exact.arithmetic import fmpq_float, rational
from exact.judge import ExactProblem
from topksvm import TopKLinearSVC


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", ["topk_hinge_alpha", "topk_hinge_beta", "topk_hinge_full"])
def test_the_gap_is_that_of_the_stored_model(loss, dtype):
    """The intercepts were rounded after the proof, which in float32 was off by half a per cent."""
    rng = np.random.default_rng(0)
    n_solved = 0
    for _ in range(60):
        n = int(rng.integers(2, 6))
        X = rng.standard_normal((n, 2)).astype(dtype)
        y = rng.integers(0, 2, n)
        y[:2] = [0, 1]
        scaling, C = float(rng.choice([3.0, 30.0, 1000.0])), float(10.0 ** rng.integers(2, 7))
        model = TopKLinearSVC(
            loss=loss, C=C, intercept_scaling=scaling, random_state=0, max_iter=3000, n_jobs=1
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y)
        if model.status_ != "solved":
            continue
        n_solved += 1
        entries = []
        for coefficients, intercept in zip(model.coef_, model.intercept_, strict=True):
            entries += [rational(value) for value in coefficients]
            entries.append(rational(intercept) / rational(scaling))
        exact = ExactProblem(X, y, loss, C, n_classes=2, bias=scaling)
        primal = exact.primal(fmpq_mat(2, 3, entries)).lower
        dual = rational(model.certificate_.dual)
        if primal > 0:
            gap = float(fmpq_float((primal - dual) / primal))
            assert gap <= model.certificate_.relative_gap
    assert n_solved > 15
