"""Which C a method gets for the race to an accuracy."""

from __future__ import annotations

import pytest

from benchmarks.__main__ import middle_of_best


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
    points = [
        {"setting": setting, "accuracy": accuracy}
        for setting, accuracy in zip((0.01, 0.1, 1.0, 10.0), accuracies, strict=True)
    ]
    assert middle_of_best(points) == expected
    assert middle_of_best(points[::-1]) == expected
