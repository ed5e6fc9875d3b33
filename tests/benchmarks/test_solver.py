"""Passes, times to a gap and paths: what is measured, not how fast it is."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from benchmarks.__main__ import main
from benchmarks.datasets import make_mixture
from benchmarks.passes import measure_dual_step, measure_passes
from benchmarks.path import time_path, time_together
from benchmarks.solver import time_passes, time_to_gap
from benchmarks.timing import threads, time_products
from topksvm._threads import n_threads


def test_a_mixture_is_the_same_in_chunks(monkeypatch):
    X, y = make_mixture(100, 8, 5)
    monkeypatch.setattr("benchmarks.datasets.CHUNK", 7)
    again, labels = make_mixture(100, 8, 5)
    np.testing.assert_array_equal(y, labels)
    np.testing.assert_allclose(X, again, rtol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1.0, rtol=1e-6)


def test_passes_are_counted_and_timed():
    """An active pass looks at a few of the classes, a full one at all of them."""
    X, y = make_mixture(600, 60, 300)
    best = measure_passes(X, y, k=2, turns=2)
    assert 0 < best["active"] < best["full"]
    assert best["products"] > 0
    (row, *_) = time_passes([(150, 8, 20)], turns=1)
    assert row["full / products"] == row["full"] / row["products"]


def test_the_dual_step_and_the_sort_are_timed_per_row():
    small, large = (measure_dual_step(m, turns=3) for m in (50, 5000))
    assert 0 < small["step"] < large["step"] < 1e-3
    assert 0 < small["sort"] < large["sort"]


def test_products_are_measured_on_some_rows_and_said_of_all(monkeypatch):
    shapes = []

    def fastest(products, turns):
        shapes.append([product.shape for product in products()])
        return float(turns)

    monkeypatch.setattr("benchmarks.timing.fastest", fastest)
    X = np.ones((4000, 50))
    assert time_products(X, 30, turns=2, rows=400) == 20.0
    assert time_products(sp.csr_matrix(X), 30, turns=2, rows=400) == 20.0
    assert shapes == [[(400, 30), (30, 50)], [(400, 30), (50, 30)]]


def test_a_limit_on_threads_ends(monkeypatch):
    monkeypatch.setenv("TOPKSVM_NUM_THREADS", "3")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    with threads(1):
        assert n_threads() == 1
    assert n_threads() == 3


def test_every_method_reaches_the_same_objective():
    X, y = make_mixture(150, 8, 20)
    rows = list(time_to_gap(X, y, 0.1, ks=(1, 3)))
    methods = [row["method"].split(",")[0].strip() for row in rows]
    ours = ["topksvm float32", "topksvm float64", "sequential SDCA float64", "with sparse updates"]
    assert methods == [*ours, "LIBLINEAR", *ours]
    assert all(row["relative gap"] <= 1e-3 for row in rows)
    for k in (1, 3):
        objectives = [row["objective"] for row in rows if row["k"] == k]
        assert max(objectives) <= min(objectives) * (1 + 1e-3)


def test_a_path_is_measured_against_single_fits():
    X, y = make_mixture(150, 8, 20)
    *points, whole = time_path(X, y, 2, Cs=[1e-3, 1e-2, 1e-1])
    assert [point["C"] for point in points] == ["0.001", "0.01", "0.1"]
    assert whole["single: seconds"] == sum(point["single: seconds"] for point in points)
    assert whole["path / single"] == whole["path: seconds"] / whole["single: seconds"]
    assert max(max(point["path: gap"], point["single: gap"]) for point in points) <= 1e-3
    assert min(point["single: passes"] for point in points) >= 1
    warm, cold = (sum(point[f"{way}: passes"] for point in points) for way in ("path", "single"))
    assert warm < cold


@pytest.mark.parametrize("where", ["memory", "disk"])
def test_paths_together_are_measured_against_one_after_the_other(where, tmp_path):
    X, y = make_mixture(60, 300, 30)  # Enough weights for passes by blocks.
    folder = tmp_path if where == "disk" else None
    row = time_together(X, y, (1, 3), [1e-3, 1e-2], folder=folder)
    assert row["X in"] == where
    assert min(row["together"], row["one by one"], row["topksvm.path"]) > 0
    assert row["together / one by one"] == row["together"] / row["one by one"]
    assert row["largest gap"] <= 1e-3
    assert [file.name for file in tmp_path.iterdir()] == (["X.npy"] if folder else [])


def test_the_command_measures_paths_in_memory_and_on_disk(capsys, monkeypatch):
    small = (*make_mixture(60, 300, 30), 1.0)
    monkeypatch.setattr("benchmarks.path.silhouettes_or_mixture", lambda _: small)
    assert main(["path", "--together", "-k", "1", "3"]) == 0
    memory, disk = capsys.readouterr().out.splitlines()[-2:]
    assert memory.startswith("memory ")
    assert disk.startswith("disk ")
    assert main(["path", "-k", "30"]) == 2
    assert "is not between 1 and 29" in capsys.readouterr().err
