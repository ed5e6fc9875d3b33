"""What commands print, and the places that they write to."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from topksvm._progress import print_above
from topksvm.cli._errors import UserError


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


def print_json(result: Any) -> None:
    """Print what a program may read."""
    print(json.dumps(result, indent=2, default=str))


def warn(text: object) -> None:
    """Print a warning as one line."""
    print_above(f"topksvm: warning: {one_line(text)}")


def one_line(text: object) -> str:
    """Return the text of an error without line breaks and the full stop at its end."""
    return " ".join(str(text).split()).removesuffix(".")


def percent(share: float) -> str:
    """Return a share as a percentage with two decimals."""
    return f"{100 * share:.2f} %"


def with_notes(text: str, notes: Sequence[str]) -> str:
    """Return the text with notes on how the data was read."""
    return "; ".join([text, *notes])


def check_writable(path: Path, option: str, ends: Sequence[str] = ()) -> None:
    """Find out before the work whether its result can be written: a folder, or a file by `ends`."""
    if ends and path.suffix.lower() not in ends:
        raise UserError(
            f"{option} {path}: the name must end in {' or '.join(ends)}. Choose such a name."
        )
    folder = path.parent if ends else path
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
        if ends and path.is_dir():
            raise IsADirectoryError(21, "it is a folder")
    except OSError as error:
        what = path if ends else f"to the folder {path}"
        raise UserError(
            f"cannot write {what}: {error.strerror}. Choose another place with {option}."
        ) from error
