"""The guard: bounds, and the comparison of two checkouts."""

from __future__ import annotations

import json

import pytest

from benchmarks import guard
from benchmarks.__main__ import main, parse

GOOD = {"full pass": 1.0, "active pass": 0.1, "dual step": 1.0, "time to gap": 10.0}


def test_a_ratio_above_its_bound_is_too_slow():
    rows = guard.judge(GOOD | {"full pass": 3.1, "dual step": float("nan")}, None)
    verdicts = {row["what"]: row["verdict"] for row in rows}
    assert verdicts == {
        "full pass": "too slow",
        "active pass": "ok",
        "dual step": "too slow",
        "time to gap": "ok",
    }


def test_against_a_file_three_per_cent_are_allowed(tmp_path, capsys, monkeypatch):
    found = dict(GOOD)
    monkeypatch.setattr(guard, "measure", lambda _: dict(found))
    file = str(tmp_path / "before.json")
    assert main(["guard", "--write", file]) == 0
    content = json.loads((tmp_path / "before.json").read_text())
    assert content["ratios"] == GOOD
    assert content["machine"]["commit"]

    found |= {"full pass": 1.029, "active pass": 0.02}
    assert main(["guard", "--compare", file]) == 0
    assert "+2.9 %" in capsys.readouterr().out
    found["active pass"] = 0.1031
    assert main(["guard", "--compare", file]) == 1
    rows = guard.judge(found, GOOD)
    assert [row["verdict"] for row in rows] == ["ok", "too slow", "ok", "ok"]


@pytest.mark.parametrize("text", ["{}", "no", None])
def test_a_file_that_is_no_good_is_found_before_the_measurement(text, tmp_path, capsys):
    if text is not None:
        (tmp_path / "x.json").write_text(text)
    assert main(["guard", "--compare", str(tmp_path / "x.json")]) == 2
    assert "cannot read" in capsys.readouterr().err


def test_only_what_was_measured_alike_is_compared(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(guard, "measure", lambda _: GOOD)
    file = str(tmp_path / "x.json")
    assert main(["guard", "--quick", "--write", file]) == 0
    assert main(["guard", "--compare", file]) == 2
    assert "'quick': True" in capsys.readouterr().err


def test_every_piece_is_in_units_of_its_reference(monkeypatch):
    passes = {"products": 2.0, "full": 3.0, "active": 1.0}
    monkeypatch.setattr(guard, "measure_passes", lambda *_, **__: passes)
    monkeypatch.setattr(guard, "measure_dual_step", lambda **_: {"step": 6.0, "sort": 4.0})
    monkeypatch.setattr(guard, "time_products", lambda *_: 1e-9)
    ratios = guard.measure(parse(["guard", "--quick", "--turns", "1"]))
    gap = ratios.pop("time to gap")
    assert ratios == {"full pass": 1.5, "active pass": 0.5, "dual step": 1.5}
    assert gap > 1e6  # Some hundredths of a second, at least, in units of a nanosecond.


def test_the_silhouettes_are_another_ratio(tmp_path, monkeypatch):
    monkeypatch.setattr(
        guard, "measure_passes", lambda *_, **__: dict.fromkeys(("products", "full", "active"), 1.0)
    )
    monkeypatch.setattr(guard, "measure_dual_step", lambda **_: {"step": 1.0, "sort": 1.0})
    monkeypatch.setattr(guard, "silhouettes_or_mixture", lambda path: (path, None, 1.0))
    monkeypatch.setattr(guard, "time_to_gap", lambda X, *_: 1.0 if X is None else 2.0)
    file = str(tmp_path / "x.mat")
    ratios = guard.measure(parse(["guard", "--quick", "--silhouettes", file]))
    assert (ratios["time to gap"], ratios["time to gap, silhouettes"]) == (1.0, 2.0)
    assert [row["verdict"] for row in guard.judge(ratios, None)] == ["ok"] * 5
