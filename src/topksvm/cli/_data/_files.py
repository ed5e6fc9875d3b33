"""Files of examples: there, of a known format, opened."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import IO

from topksvm.cli._data._request import FORMATS
from topksvm.cli._errors import UserError


def check_file(path: Path) -> None:
    """Complain unless there is a file with something in it."""
    if path.is_dir():
        raise UserError(f"{path} is a folder; give a file.")
    if not path.is_file():
        raise UserError(f"there is no file {path}. Check the name and the folder.")
    if path.stat().st_size == 0:
        raise UserError(f"{path} is empty. Give a file with at least two rows.")


def end_of(path: Path) -> str:
    """Return the end of the name, without ``.gz``."""
    return (path.with_suffix("") if is_compressed(path) else path).suffix.lower()


def format_of(path: Path) -> str:
    """Return the format that the name tells."""
    end = end_of(path)
    for name, ends in FORMATS.items():
        if end in ends:
            return name
    known = ", ".join(end for ends in FORMATS.values() for end in ends)
    raise UserError(
        f"{path}: the end of the name, {end!r}, is no known format; known are {known}, also with "
        f".gz. Say with --format which it is: {', '.join(FORMATS)}."
    )


def is_compressed(path: Path) -> bool:
    """Return whether the file is compressed by gzip."""
    return path.suffix == ".gz"


def open_binary(path: Path) -> IO[bytes]:
    """Open a file, which may be compressed."""
    return gzip.open(path) if is_compressed(path) else path.open("rb")  # type: ignore[return-value]


def open_text(path: Path) -> IO[str]:
    """Open a file of text."""
    # utf-8-sig also takes the mark with which Excel begins a file.
    return io.TextIOWrapper(open_binary(path), encoding="utf-8-sig", newline="")
