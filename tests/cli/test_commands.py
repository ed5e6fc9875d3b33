"""The command line as a person meets it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import topksvm
from topksvm._threads import thread_limit
from topksvm.cli import main
from topksvm.datasets import Dataset, make_ambiguous_classes

COMMANDS = (
    "demo",
    "train",
    "predict",
    "evaluate",
    "cv",
    "reproduce",
    "extract",
    "info",
)
PNG = b"\x89PNG\r\n\x1a\n"


def _run(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "topksvm", *arguments],
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


def test_version_and_help():
    done = _run("--version")
    assert (done.returncode, done.stdout) == (0, f"topksvm {topksvm.__version__}\n")
    done = _run("--help")
    assert done.returncode == 0
    for command in COMMANDS:
        assert re.search(rf"^    {command}\s", done.stdout, re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_examples(command, capsys):
    with pytest.raises(SystemExit) as end:
        main([command, "--help"])
    assert end.value.code == 0
    assert f"examples:\n  topksvm {command}" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [[], ["no-such"], ["bench"], ["info", "--no-such"]])
def test_wrong_words_are_one_line_that_names_the_help(arguments):
    done = _run(*arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("topksvm: error: ")
    assert "See topksvm" in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_library_does_not_know_the_options():
    package = Path(topksvm.__file__).parent
    named = [
        path
        for path in sorted(package.rglob("*.py"))
        if "cli" not in path.relative_to(package).parts
        and re.search(r"(?<![\w-])--[a-z]{2}", path.read_text())
    ]
    assert named == []


def test_info_names_the_versions(capsys):
    assert main(["info", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["topksvm"] == topksvm.__version__
    assert {"python", "numpy", "scipy", "scikit-learn", "numba", "threads"} <= set(facts)
    assert main(["info"]) == 0
    assert facts["numpy"] in capsys.readouterr().out


def test_demo_prints_the_table_and_writes_the_page(tmp_path, capsys, monkeypatch):
    X, y = make_ambiguous_classes(600, 16, 24, random_state=0)
    names = tuple(f"thing {c}" for c in range(24))
    small = Dataset("small", X[:400], y[:400], X[400:], y[400:], names, "Drawn by somebody, CC BY.")
    monkeypatch.setattr("topksvm.datasets.load_quickdraw", lambda **_: small)
    out = tmp_path / "new"
    with thread_limit(1):
        assert main(["demo", "--out", str(out)]) == 0
    lines = capsys.readouterr().out.splitlines()
    methods = ["top-1-SVM-alpha", "top-5-SVM-alpha", "top-10-SVM-alpha", "softmax"]
    table = {
        line.split()[0]: line.split()[1:7] for line in lines if line.startswith(tuple(methods))
    }
    assert list(table) == methods
    assert "Training for ten guesses instead of one" in lines[-1]
    rows = json.loads((out / "results.json").read_text())["rows"]
    shown = {row["method"]: f"{row['accuracy']['10']:.2f}" for row in rows}
    assert shown == {name: cells[-1] for name, cells in table.items()}
    assert (out / "curves.png").read_bytes().startswith(PNG)
    assert "Drawn by somebody, CC BY." in (out / "report.html").read_text()


def test_demo_into_a_file_is_one_clear_line(tmp_path, capsys):
    (tmp_path / "taken").write_text("")
    assert main(["demo", "--out", str(tmp_path / "taken")]) == 2
    error = capsys.readouterr().err
    assert error.startswith("topksvm: error: cannot write")
    assert error.count("\n") == 1


def test_a_wrong_number_of_threads_is_one_clear_line(capsys, monkeypatch):
    monkeypatch.setenv("TOPKSVM_NUM_THREADS", "many")
    assert main(["info"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("topksvm: error: The environment variable TOPKSVM_NUM_THREADS")
    assert error.count("\n") == 1


def test_a_closed_pipe_is_no_error():
    with subprocess.Popen(
        [sys.executable, "-m", "topksvm", "info"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_plots_without_matplotlib_say_how_to_install_it():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from topksvm.reproduction._figures import draw_simplices\n"
        "draw_simplices()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ImportError: Plots need matplotlib" in done.stderr
    assert "topksvm[plot]" in done.stderr
