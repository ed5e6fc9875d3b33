"""Certificates hold in exact arithmetic: the true gap is at most the claimed one, always."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from exact.judge import Refused, examine
from exact.problems import DTYPES, FORMATS, LOSSES, Problem, make_problem

PER_GROUP = 105
GROUPS = list(product(LOSSES, DTYPES, FORMATS))


@pytest.mark.parametrize(("loss", "dtype", "form"), GROUPS)
def test_generated_problems(loss, dtype, form):
    begin = 1000 * GROUPS.index((loss, dtype, form))
    bad, refused = [], 0
    for seed in range(begin, begin + PER_GROUP):
        problem = make_problem(seed, loss, dtype, form)
        try:
            verdict = examine(problem)
        except Refused:
            refused += 1
            continue
        if verdict.violations:
            bad.append(f"{problem}: {verdict}")
    assert not bad, "\n".join([f"{len(bad)} of {PER_GROUP}:", *bad])
    assert refused < PER_GROUP // 10


def column(values, y, C, **changes):
    """Return a problem with one feature."""
    definition = {
        "loss": "topk_hinge_alpha",
        "k": 1,
        "smoothing": 0.0,
        "n_classes": 2,
        "bias": 1000.0,
    }
    run = {"solver": "sdca", "tol": 1e-9, "max_iter": 1000, "seed": 0}
    X = np.array(values, float)[:, None]
    return Problem(-1, X, np.array(y), C, {**definition, **changes}, run)


def test_an_objective_that_is_tiny_against_its_terms():
    problem = column([-900, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0], 84335.0)
    assert not examine(problem).violations
