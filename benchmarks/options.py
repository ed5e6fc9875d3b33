"""What the commands' options have in common."""

from __future__ import annotations

import argparse
from pathlib import Path


class InputError(Exception):
    """A mistake in the options or files; the message is shown without a traceback."""


def add_silhouettes(parser: argparse.ArgumentParser) -> None:
    """Add ``--silhouettes``; see :func:`benchmarks.datasets.silhouettes_or_mixture`."""
    parser.add_argument(
        "--silhouettes",
        type=Path,
        metavar="FILE",
        help="the .mat file of Caltech 101 Silhouettes, trained with C = 0.01; without it, a "
        "synthetic problem of the same shape with C = 1",
    )


def positive(text: str) -> int:
    """Return a whole number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)
