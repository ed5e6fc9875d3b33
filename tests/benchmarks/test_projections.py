"""The scaling experiment: the arithmetic of its summary, and what the command writes."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from benchmarks import projections
from benchmarks.__main__ import main
from topksvm.reproduction import measure_scaling

NAMES = ("sort", "knapsack", "top-1 simplex", "top-5 simplex", "top-10 simplex")
PNG = b"\x89PNG\r\n\x1a\n"


class MadeUp:
    """Seconds of one dimension."""

    def __init__(self, dimension, *seconds):
        self.dimension, self.seconds = dimension, dict(zip(NAMES, seconds, strict=True))

    def ratio(self, method, to):
        return self.seconds[method] / self.seconds[to]


def test_the_summary_has_the_worst_of_each():
    measurements = [
        MadeUp(100, 1.0, 2.0, 2.0, 2.2, 2.4),
        MadeUp(1000, 50.0, 20.0, 21.0, 22.0, 23.0),
        MadeUp(10**6, 9e4, 4e4, 2.1e4, 2.2e4, 2.3e4),
    ]
    summary = {row["figure"]: row["value"] for row in projections.summarise(measurements)}
    assert summary == {
        "worst ratio of top-k simplex to knapsack": pytest.approx(1.2),
        "worst ratio of a projection to sorting, d >= 1000": pytest.approx(0.46),
        "worst growth exponent, d = 1000 to 1000000": pytest.approx(np.log10(2000) / 3),
    }


def test_the_command_measures_and_writes(tmp_path, capsys, monkeypatch):
    seen = []

    def fewer(dimensions, points):
        seen.append((*dimensions, points))
        return measure_scaling(dimensions[:1] if dimensions[0] <= 1000 else [3000], 3, repeats=1)

    monkeypatch.setattr(projections, "measure_scaling", fewer)
    assert main(["projections", "--quick", "--out", str(tmp_path), "--json"]) == 0
    assert seen == [(d, 100) for d in (100, 300, 1000, 3000, 10**4, 3 * 10**4, 10**5)]
    result = json.loads(capsys.readouterr().out)
    assert result["CPU microseconds per point"][0]["dimension"] == 100
    with (tmp_path / "scaling.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert {row["dimension"] for row in rows} == {"100", "300", "1000", "3000"}
    assert {row["method"] for row in rows} == set(NAMES)
    assert all(float(row["cpu_seconds"]) > 0 for row in rows)
    for name in ("scaling.png", "simplex.png"):
        assert (tmp_path / name).read_bytes().startswith(PNG)


def test_a_folder_that_cannot_be_written_is_found_out_early(tmp_path, capsys):
    (tmp_path / "taken").write_text("")
    assert main(["projections", "--out", str(tmp_path / "taken")]) == 2
    assert "cannot write to the folder" in capsys.readouterr().err
