"""What commands print: tables, plain sentences, and progress that a pipe does not see."""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from topksvm.cli._errors import UserError

_SECONDS_BETWEEN_LINES = 2.0
"""How often a pipe gets a line of progress; a terminal gets all, in place."""


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows of text in columns, right-aligned under their header."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    for row in [header, ["-" * width for width in widths], *rows]:
        print("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))


def print_facts(facts: dict[str, str]) -> None:
    """Print names and values in two columns."""
    width = max(map(len, facts))
    for name, value in facts.items():
        print(f"{name:{width}}  {value}")


def report_progress(text: str) -> None:
    """Show what is being done: in place on a terminal, as a line on a plain error stream."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
    else:
        print(text, file=sys.stderr, flush=True)


def end_progress() -> None:
    """Clear the progress from a terminal."""
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def warn(text: str) -> None:
    """Print a warning as one line."""
    print(f"topksvm: warning: {one_line(text)}", file=sys.stderr)


@contextlib.contextmanager
def lines_as_progress(*, is_on: bool) -> Iterator[None]:
    """Show the lines that are printed to the error stream inside as progress, if `is_on`."""
    stream = _ProgressStream(sys.stderr)
    try:
        with contextlib.redirect_stderr(stream if is_on else sys.stderr):
            yield
    finally:
        if is_on:
            end_progress()


class _ProgressStream(io.TextIOBase):
    """Shows each line in place on a terminal, and one every few seconds elsewhere."""

    def __init__(self, to: Any) -> None:
        self.to = to
        self.text = ""
        self.next = 0.0

    def write(self, text: str) -> int:
        *lines, self.text = (self.text + text).split("\n")
        if lines and (self.to.isatty() or time.monotonic() >= self.next):
            self.next = time.monotonic() + _SECONDS_BETWEEN_LINES
            with contextlib.redirect_stderr(self.to):
                report_progress(lines[-1])
        return len(text)


def some(items: Sequence[Any], most: int = 5) -> str:
    """Return the first few of `items` in words."""
    listed = ", ".join(repr(item) for item in items[:most])
    return listed if len(items) <= most else f"{listed} and {len(items) - most} more"


def one_line(text: object) -> str:
    """Return the text of an error without line breaks and the full stop at its end."""
    return " ".join(str(text).split()).removesuffix(".")


def in_options(text: object, words: dict[str, str]) -> str:
    """Return the text of an error of the library in the words of the command line."""
    text = str(text)
    for argument, option in words.items():
        text = text.replace(argument, option)
    return text


def percent(share: float) -> str:
    """Return a share as a percentage with two decimals."""
    return f"{100 * share:.2f} %"


def check_writable(path: Path, option: str, ends: Sequence[str]) -> None:
    """Find out before the work, not after it, whether its result can be written."""
    if path.suffix.lower() not in ends:
        raise UserError(
            f"{option} {path}: the name must end in {' or '.join(ends)}. Choose such a name."
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise IsADirectoryError(21, "it is a folder")
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise UserError(
            f"cannot write {path}: {error.strerror}. Choose another place with {option}."
        ) from error
