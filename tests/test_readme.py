"""The README stays true."""

from __future__ import annotations

import re
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def test_the_examples_run_and_print_what_their_comments_say(capsys):
    first, *others = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    names: dict[str, object] = {}
    code = first
    for block in (first, *others):  # Each goes on where the one before ended.
        exec(compile(block, str(README), "exec"), names)
    printed = capsys.readouterr().out.splitlines()
    (claimed,) = re.findall(r"# (0\.\d+): the digit", code)
    assert f"{float(printed[0]):.{len(claimed) - 2}f}" == claimed


def test_the_two_commands_are_there():
    makefile = (README.parent / "Makefile").read_text()
    for command in ("demo", "test"):
        assert f"make {command}" in README.read_text()
        assert f"\n{command}:" in makefile
