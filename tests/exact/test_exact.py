"""Certificates hold in exact arithmetic: the true gap is at most the claimed one, always."""

from __future__ import annotations

from itertools import product

import pytest

from exact.judge import Refused, examine
from exact.past_cases import PAST_CASES
from exact.problems import DTYPES, FORMATS, LOSSES, make_problem

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


@pytest.mark.parametrize("name", PAST_CASES)
def test_past_cases(name):
    verdict = examine(PAST_CASES[name])
    assert not verdict.violations, verdict
