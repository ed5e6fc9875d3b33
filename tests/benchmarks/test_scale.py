"""Growth and training from disk, on sizes that take no time."""

from __future__ import annotations

import json
from argparse import Namespace

import numpy as np
import pytest

from benchmarks import memory, scale
from benchmarks.__main__ import main

SHAPE = (600, 20, 12)


def call(function, *arguments):
    return function(*arguments)


def test_growth_is_the_exponent():
    sizes = np.array([10, 100, 1000])
    assert scale.growth(sizes, 3.0 * sizes**1.5) == pytest.approx(1.5)
    assert scale.growth(sizes, 10 * sizes) == pytest.approx(1.0)


def test_file_holds_classes_that_can_be_told_apart(tmp_path):
    y = scale.make_file(tmp_path / "x.npy", SHAPE)
    X = np.load(tmp_path / "x.npy")
    assert (X.shape, X.dtype) == ((600, 20), np.float16)
    assert (X >= 0).all()
    means = np.stack([X[y == c].mean(axis=0, dtype=np.float64) for c in range(12)])
    distance = ((X[:, None].astype(float) - means) ** 2).sum(axis=2)
    assert np.mean(distance.argmin(axis=1) == y) > 3 / 12  # Three times chance.


def test_both_kinds_of_run_reach_the_gap(tmp_path):
    y = scale.make_file(tmp_path / "x.npy", SHAPE)
    options = Namespace(C=0.1, max_time=60.0, threads=1)
    for where in ("memory", "disk"):
        row = scale.run_to_gap(tmp_path / "x.npy", y, where, 1e-2, options)
        assert row["rows from"] == where
        assert row["gap"] <= 1e-2
        assert row["n, d, m"] == str(SHAPE)
        assert 0 < row["per pass"] * row["passes"] <= row["seconds"]
        assert row["peak MB"] > 10


def test_the_command_trains_on_a_shape_and_keeps_its_features(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(scale, "in_own_process", call)
    shape = ",".join(map(str, SHAPE))
    words = ["scale", "--shape", shape, "--folder", str(tmp_path), "--threads", "1"]
    assert main([*words, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["Training on float16 features, C = 0.01"]
    assert row["gap"] <= 1e-2
    monkeypatch.setattr(scale, "make_file", None)  # The file is there already.
    assert main(words) == 0
    assert " disk " in capsys.readouterr().out


def test_the_command_says_how_time_and_memory_grow(capsys, monkeypatch):
    def measured(shape, threads):
        return {"full": float(np.prod(shape)), "active": 2.0, "peak MB": 3.0, "threads": threads}

    monkeypatch.setattr(scale, "in_own_process", call)
    monkeypatch.setattr(scale, "time_passes", measured)
    monkeypatch.setattr(scale, "compare", lambda *_: [])
    assert main(["scale", "--quick", "--json"]) == 0
    tables = json.loads(capsys.readouterr().out)
    rows = tables["Exponents of growth, by least squares on logarithms"]
    assert [row["with"] for row in rows] == list("ndm")
    for row in rows:
        assert row["full"] == pytest.approx(1.0)
        assert row["peak MB"] == pytest.approx(0.0, abs=1e-12)


def test_a_wrong_shape_and_a_full_disk_are_one_line(tmp_path, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["scale", "--shape", "12,0,3"])
    assert "nor three numbers" in capsys.readouterr().err
    assert main(["scale", "--shape", "900000000,9000,3", "--folder", str(tmp_path)]) == 2
    *_, error = capsys.readouterr().err.splitlines()
    assert error.startswith("benchmarks: ")
    assert "GiB free" in error


def test_the_peak_is_that_of_the_process_and_not_of_the_one_that_started_it():
    large = np.ones(125_000_000)  # A gigabyte.
    assert scale.in_own_process(memory.peak_megabytes) < large.nbytes / 2e6
