"""The benchmark of shards counts what it should."""

from __future__ import annotations

from benchmarks.distributed_speed import measure_distributed
from benchmarks.solver_speed import make_mixture


def test_rounds_and_bytes_grow_with_the_number_of_shards():
    X, y = make_mixture(300, 20, 15, "float64")
    one, two, eight = measure_distributed(X, y, 1.0, 2, shards=(1, 2, 8), n_workers=0)
    assert one.rounds < two.rounds < eight.rounds
    assert one.n_bytes == 0
    assert two.n_bytes == two.rounds * 20 * 15 * (16 + 8)
    assert eight.n_bytes == 7 * eight.rounds * 20 * 15 * (16 + 8)
    assert max(row.relative_gap for row in (one, two, eight)) <= 1e-3
