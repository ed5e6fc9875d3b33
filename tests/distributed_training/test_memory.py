"""What a shard takes of the memory, against what is said of it beforehand."""

from __future__ import annotations

import sys
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from solvers.cases import make_data

from topksvm.data import make_problem
from topksvm.distributed._blocks import Block
from topksvm.distributed._estimates import (
    bytes_of_shard,
    bytes_of_worker,
    check_memory,
    duals_per_example,
)
from topksvm.distributed._model import make_model, start_model
from topksvm.distributed._shard import Contribution, Order, Shard
from topksvm.solvers import SCALES, DualSums, make_loss


def rounds(loss, X, y, m):
    """Make some rounds as a worker does that also adds the contributions."""
    shard = Shard(loss, make_problem(X, y, np.full(len(y), 0.1), m), 2)
    models = [start_model(shard.solver.problem.shape, "float64")]
    for _ in range(3):
        sums = shard.solve(models[-1].weights, Order(reach=2.0, sigma=2.0))
        models = [models[-1], make_model(sums + sums, m, "float64")]
        shard.extrapolate(models[-1].share)
        shard.evaluate(models[-1].weights, SCALES)


@pytest.mark.parametrize(("n", "d", "m"), [(60, 2000, 60), (4000, 5, 15)])
def test_a_shard_takes_no_more_than_it_says(n, d, m):
    """Either the weights or the duals are what counts."""
    X, y = make_data(n, d, m)
    loss = make_loss("topk_hinge_alpha", 2)
    rounds(loss, X, y, m)  # Loads what is compiled.
    tracemalloc.start()
    try:
        rounds(loss, X, y, m)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    said = bytes_of_shard(n, 0, m * d, duals_per_example(loss, m))
    assert 0.25 * said < peak < 1.2 * said


def test_the_worker_with_most_counts():
    sizes = [(10, 1000), (20, 2000), (5, 100)]
    each = [bytes_of_shard(*size, 50, 4) for size in sizes]
    assert each[1] - each[0] == 1000 + 10 * (200 + 64 * 4)
    assert bytes_of_worker(each, ["a", "b", "a"]) == max(each[0] + each[2], each[1])
    assert duals_per_example(make_loss("softmax"), 30) == 30
    assert duals_per_example(make_loss("topk_hinge_alpha", 2), 30) == 18
    check_memory(100, 100)
    with pytest.raises(ValueError, match=r"about 0\.0 MB .* memory_limit = 99 .*more workers"):
        check_memory(100, 99)


def test_dask_is_told_how_large_things_are():
    """By ``sys.getsizeof``, which it asks; it would take a dataclass for a few bytes."""
    W = np.ones((20, 500))
    assert 80_000 <= sys.getsizeof(Contribution(W, DualSums(0.0, 0.0, 0.0), 20)) < 81_000
    both = Contribution(W, DualSums(0.0, 0.0, 0.0), 20, direction=W)
    assert 160_000 <= sys.getsizeof(both) < 161_000
    assert 80_000 <= sys.getsizeof(start_model(W.shape, W.dtype)) < 81_000
    for rows in (W, sp.csr_array(W)):
        assert W.nbytes <= sys.getsizeof(Block(rows, np.ones(20), np.ones(20))) < 2 * W.nbytes
