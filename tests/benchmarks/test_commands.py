"""The command line of the benchmarks, and what every command says about its measurements."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import __main__ as command, guard, machine
from benchmarks.__main__ import COMMANDS, in_columns, main

ROOT = Path(__file__).parents[2]


def test_the_commands_have_names_and_help():
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--help"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    names = ("peers", "report", "guard", "projections", "solver", "path", "scale", "distributed")
    assert tuple(COMMANDS) == names
    for name in names:
        assert f"\n    {name}" in done.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_explains_itself(name, capsys):
    with pytest.raises(SystemExit, match="0"):
        main([name, "--help"])
    assert f"usage: python -m benchmarks {name}" in capsys.readouterr().out


@pytest.mark.parametrize("words", [[], ["no-such"], ["guard", "--no-such"]])
def test_wrong_words_exit_with_2(words, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(words)
    assert "usage: python -m benchmarks" in capsys.readouterr().err


@pytest.fixture
def calls(monkeypatch):
    """Replace the guard by made-up tables; note what is called."""
    calls = []

    def run(options):
        calls.append("run")
        assert options.turns == 3
        return {"Times": [{"what": "a", "seconds": 0.12345678, "verdict": "ok"}]}

    monkeypatch.setattr(guard, "run", run)
    monkeypatch.setattr(command, "warm_up", lambda _: calls.append("warm-up"))
    return calls


def test_kernels_are_compiled_first_and_the_output_says_where_it_is_from(calls, capsys):
    words = ["guard", "--turns", "3", "--write", "/home/somebody/x.json"]
    assert main(words) == 0
    assert calls == ["warm-up", "run"]
    out = capsys.readouterr().out
    facts = machine.facts(words)
    for value in (facts["processor"], facts["commit"], facts["versions"]["numpy"]):
        assert value in out
    assert "python -m benchmarks guard --turns 3 --write x.json\n" in out
    assert out.endswith("Times\n\nwhat  seconds  verdict\na      0.1235  ok\n")

    assert main([*words, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["machine"]["commit"] == facts["commit"]
    assert result["machine"]["commands"][0].startswith("python -m benchmarks guard")
    assert result["Times"][0]["seconds"] == 0.12345678


def test_the_commit_is_that_of_the_sources(monkeypatch, tmp_path):
    done = subprocess.run(
        ["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False, cwd=ROOT
    )
    if done.returncode == 0:
        assert done.stdout.startswith(machine.commit().removesuffix("-dirty"))
    monkeypatch.setattr(machine.topksvm, "__file__", str(tmp_path / "topksvm.py"))
    assert machine.commit() == "unknown"


def test_a_verdict_that_is_not_ok_is_the_exit_code(calls, monkeypatch):
    rows = [{"verdict": "ok"}, {"verdict": "too slow"}]
    monkeypatch.setattr(guard, "run", lambda _: {"Times": rows})
    assert main(["guard"]) == 1
    assert calls == ["warm-up"]


def test_a_wrong_file_is_one_line(tmp_path, capsys):
    (tmp_path / "no.mat").write_text("no")
    assert main(["solver", "--silhouettes", str(tmp_path / "no.mat")]) == 2
    *_, error = capsys.readouterr().err.splitlines()
    assert error.startswith("benchmarks: --silhouettes ")
    assert "no.mat is not the" in error


def test_columns_are_aligned_and_may_be_absent():
    text = in_columns([{"name": "a", "n": 1}, {"name": "bcdef", "n": 100, "C": 0.5}])
    assert text == "name     n    C\na        1\nbcdef  100  0.5"


def test_a_command_needs_no_other(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "benchmarks.path", None)
    with pytest.raises(SystemExit, match="0"):
        main(["guard", "--help"])
    assert "--compare FILE" in capsys.readouterr().out
