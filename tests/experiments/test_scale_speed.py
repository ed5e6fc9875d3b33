"""The measurement of growth and of training from disk, on sizes that take no time."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks import scale_speed
from benchmarks.scale_speed import Epoch, growth, make_file, run_to_gap, time_epoch
from topksvm.cli import _bench_scale, main

SHAPE = (600, 20, 12)


def call(function, *arguments):
    return function(*arguments)


def test_growth_is_the_exponent():
    epochs = [Epoch((n, 1, 1), 3.0 * n**1.5, 1.0, 10 * n) for n in (10, 100, 1000)]
    assert growth(epochs, 0, "seconds") == pytest.approx(1.5)
    assert growth(epochs, 0, "peak") == pytest.approx(1.0)


def test_file_holds_classes_that_can_be_told_apart(tmp_path):
    y = make_file(tmp_path / "x.npy", SHAPE)
    X = np.load(tmp_path / "x.npy")
    assert (X.shape, X.dtype) == ((600, 20), np.float16)
    assert (X >= 0).all()
    means = np.stack([X[y == c].mean(axis=0, dtype=np.float64) for c in range(12)])
    distance = ((X[:, None].astype(float) - means) ** 2).sum(axis=2)
    assert np.mean(distance.argmin(axis=1) == y) > 3 / 12  # Three times chance.


def test_both_kinds_of_run_reach_the_gap(tmp_path):
    y = make_file(tmp_path / "x.npy", SHAPE)
    for kind in ("memory", "streamed"):
        run = run_to_gap(tmp_path / "x.npy", y, 12, kind, 0.1, 1e-2, 60.0)
        assert run.relative_gap <= 1e-2
        assert run.shape == SHAPE
        assert 0 < run.pass_seconds * run.passes <= run.seconds
        assert run.peak > 10**7
    epoch = time_epoch(SHAPE, 1)
    assert epoch.seconds > 0


def test_command_prints_growth_and_runs(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(scale_speed, "in_own_process", call)
    shape = ",".join(map(str, SHAPE))
    words = ["bench", "scale", "--shape", shape, "--folder", str(tmp_path), "--json"]
    assert main(words) == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert run["relative_gap"] <= 1e-2
    assert main(words[:-1]) == 0  # The file is there already.
    assert "read by the piece" in capsys.readouterr().out
    monkeypatch.setattr(
        scale_speed, "time_epoch", lambda shape, _: Epoch(shape, float(np.prod(shape)), 1.0, 1)
    )
    monkeypatch.setattr(_bench_scale, "_compare", lambda *_: [])
    assert main(["bench", "scale", "--quick", "--json"]) == 0
    exponents = json.loads(capsys.readouterr().out)["exponents"]
    assert exponents == {name: [pytest.approx(1.0), pytest.approx(0.0)] for name in "ndm"}


def test_a_wrong_shape_and_a_full_disk_are_one_line(tmp_path, capsys):
    assert main(["bench", "scale", "--shape", "12,0,3"]) == 2
    assert "three numbers" in capsys.readouterr().err
    words = ["bench", "scale", "--shape", "900000000,9000,3", "--folder", str(tmp_path)]
    assert main(words) == 2
    assert "GiB free" in capsys.readouterr().err


def test_the_peak_is_that_of_the_process_and_not_of_the_one_that_started_it():
    large = np.ones(125_000_000)  # A gigabyte.
    assert scale_speed.in_own_process(scale_speed.peak_memory) < large.nbytes / 2
