"""The benchmark of shards counts what it should."""

from __future__ import annotations

import pytest

from benchmarks.datasets import make_mixture
from benchmarks.distributed import count_rounds


def test_rounds_and_bytes_grow_with_the_number_of_shards():
    pytest.importorskip("distributed", reason="needs topksvm[dask]")
    X, y = make_mixture(300, 20, 15, "float64")
    one, two, four = count_rounds(X, y, 1.0, 2, shards=(1, 2, 4))
    assert one["rounds"] < two["rounds"] < four["rounds"]
    assert one["MB"] == 0.0
    assert two["MB"] * 1e6 == two["rounds"] * 20 * 15 * (16 + 8)
    assert four["MB"] * 1e6 == pytest.approx(3 * four["rounds"] * 20 * 15 * (16 + 8))
    assert max(row["gap"] for row in (one, two, four)) <= 1e-3
