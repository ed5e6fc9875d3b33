"""Progress: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pytest

from topksvm._progress import CountBar, GapBar, print_above


class Terminal(io.StringIO):
    def isatty(self):
        return True


def make_terminal(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    return stream


def at(passes, gap):
    return SimpleNamespace(passes=passes, seconds=0.5 * passes, relative_gap=gap)


def test_the_gap_in_lines(capsys):
    with GapBar(1e-4, "starting") as bar:
        for passes, gap in ((1, float("inf")), (2, 0.5), (3, 1e-2), (4, 1e-5)):
            bar(at(passes, gap))
    # The first at once, and the last; those between came too soon.
    assert capsys.readouterr().err.splitlines() == [
        "pass 1: relative gap about inf after 0.5 s",
        "pass 4: relative gap about 1.00e-05 after 2.0 s",
    ]


def test_the_gap_on_a_terminal(monkeypatch):
    terminal = make_terminal(monkeypatch)
    with GapBar(1e-4, "starting") as bar:
        assert "starting" in terminal.getvalue()
        bar(at(1, 1e-2))
        assert bar.bar.n == pytest.approx(0.5)
        bar(at(2, 1e-1))  # It never goes back.
        assert bar.bar.n == pytest.approx(0.5)
        bar(at(3, 1e-9))
        assert bar.bar.n == 1.0
        print_above("a line")
    shown = terminal.getvalue()
    assert "a line\n" in shown
    assert shown.endswith("\r")
    assert "pass 3: relative gap about 1.00e-09 after 1.5 s" in shown


def test_counts_in_lines(capsys):
    with CountBar("rows") as bar:
        bar.show(0, 3)
        for done in (1, 2, 3):
            bar.show(done, 3, f"number {done}")
    first, last = capsys.readouterr().err.splitlines()
    assert first.startswith("rows: 0/3 [00:00<?")
    assert last == "rows: 3/3 [00:00<00:00], number 3"


def test_nothing_is_shown_of_work_that_never_began(capsys):
    with CountBar("rows", 3), GapBar(1e-3, "starting"):
        pass
    assert capsys.readouterr().err == ""


def test_counts_on_a_terminal(monkeypatch):
    terminal = make_terminal(monkeypatch)
    with CountBar("fits") as bar:
        bar(SimpleNamespace(done=1, total=4))
        bar(SimpleNamespace(done=3, total=4))
        bar.bar.refresh()
        assert "fits:  75%|" in terminal.getvalue()
        assert "| 3/4 [" in terminal.getvalue()
