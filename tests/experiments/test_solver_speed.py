"""The solver's benchmark on a problem small enough for a test: that it measures, not how fast."""

from __future__ import annotations

import pytest

from benchmarks.path_speed import time_path, time_together
from benchmarks.solver_speed import (
    make_mixture,
    measure_passes,
    time_dual_step,
    time_to_gap,
)


def test_passes_and_products_are_all_measured():
    speed = measure_passes((150, 8, 20), k=2, repeats=1)
    assert speed.shape == (150, 8, 20)
    assert min(speed.products, speed.full, speed.active) > 0
    assert time_dual_step(m=50, repeats=1) > 0


def test_every_method_reaches_the_same_objective():
    X, y = make_mixture(150, 8, 20, "float32")
    times = list(time_to_gap(X, y, 0.1, ks=(1, 3)))
    methods = [t.method.split(",")[0].strip() for t in times]
    ours = ["topksvm float32", "topksvm float64", "sequential SDCA float64", "with sparse updates"]
    assert methods == [*ours, "LIBLINEAR", *ours]
    assert all(t.relative_gap <= 1e-3 for t in times)
    for k in (1, 3):
        objectives = [t.primal for t in times if t.k == k]
        assert max(objectives) <= min(objectives) * (1 + 1e-3)


def test_a_path_is_measured_against_single_fits():
    X, y = make_mixture(150, 8, 20, "float32")
    speed = time_path(X, y, 2, Cs=[1e-3, 1e-2, 1e-1])
    assert speed.ratio == speed.warm_seconds / sum(speed.cold_seconds)
    assert len(speed.cold_seconds) == len(speed.warm_gaps) == len(speed.Cs) == 3
    assert max(speed.warm_gaps + speed.cold_gaps) <= 1e-3
    assert min(speed.cold_passes) >= 1
    assert sum(speed.warm_passes) < sum(speed.cold_passes)


@pytest.mark.parametrize("where", ["memory", "disk"])
def test_paths_together_are_measured_against_one_after_the_other(where, tmp_path):
    X, y = make_mixture(60, 300, 30, "float32")  # More weights, lest passes go without blocks.
    folder = tmp_path if where == "disk" else None
    speed = time_together(X, y, (1, 3), [1e-3, 1e-2], folder=folder)
    assert (speed.where, speed.ks, speed.Cs) == (where, [1, 3], [1e-3, 1e-2])
    assert min(speed.together, speed.one_by_one, speed.plain) > 0
    assert speed.ratio == speed.together / speed.one_by_one
    assert speed.max_gap <= 1e-3
    assert [file.name for file in tmp_path.iterdir()] == (["X.npy"] if folder else [])
