"""What is asked of a file, by which options, and what is found in it."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]

FORMATS = {
    "csv": (".csv",),
    "npy": (".npy",),
    "npz": (".npz",),
    "parquet": (".parquet", ".pq"),
    "svmlight": (".svmlight", ".libsvm", ".svm"),
    "tsv": (".tsv", ".tab"),
}
"""The formats, and the ends of the names of their files."""

DELIMITERS = {"csv": ",", "tsv": "\t"}
"""What separates the cells of text files."""

_HELP = """Examples in .npy (with --labels), .npz, .csv or .tsv (with a line of names), .parquet, or
.svm, .libsvm or .svmlight; each also with .gz."""


@dataclass(frozen=True)
class Request:
    """A file, and what to look for in it.

    `n_features` and `names` are those of the model that the rows are for, None in training; `names`
    is None as well if the model knows no names.
    """

    path: Path
    format: str | None = None
    target: str | None = None
    labels: Path | None = None
    features_key: str | None = None
    labels_key: str | None = None
    zero_based: bool = False
    needs_labels: bool = True
    n_features: int | None = None
    names: tuple[str, ...] | None = None

    @property
    def wants_own_labels(self) -> bool:
        """Whether the labels are wanted, and from the file itself."""
        return self.needs_labels and self.labels is None


@dataclass(frozen=True)
class Table:
    """The rows of a file.

    Labels are as in the file, text or numbers; `notes` say what was taken for what; `place` says
    where in the file a row is, for messages.
    """

    X: Any
    labels: Any = None
    names: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()
    place: Callable[[int], str] | None = None


def add_data_options(parser: Any, *, needs_labels: bool = True, is_optional: bool = False) -> None:
    """Add the file of examples, and what to take from it."""
    count = "?" if is_optional else None
    parser.add_argument(
        "data", type=Path, nargs=count, metavar="DATA", help="the examples; see below"
    )
    parser.set_defaults(needs_labels=needs_labels, labels=None, labels_key=None)
    target = "the column with the labels, in tables; by default label, target or y, else the last"
    if not needs_labels:
        target += ", if there is one more than the model needs"
    add = parser.add_argument_group("reading DATA", _HELP).add_argument
    add("--format", choices=list(FORMATS), help="by default from the end of the name")
    add("--target", metavar="COLUMN", help=target)
    add("--features-key", metavar="NAME", help="the array of a .npz file (X)")
    if needs_labels:
        add("--labels", type=Path, metavar="FILE", help="labels from .npy, .txt, .csv or .tsv")
        add("--labels-key", metavar="NAME", help="the array of a .npz file (y)")
    zero_based = "features in .svm files are numbered from 0, even if no 0 occurs"
    add("--zero-based", action="store_true", help=zero_based)


def request_of(options: argparse.Namespace, **model: Any) -> Request:
    """Return what the options ask of the file of examples, for a model if there is one."""
    names = ("format", "target", "labels", "features_key", "labels_key", "zero_based")
    asked = {name: getattr(options, name) for name in names}
    return Request(options.data, needs_labels=options.needs_labels, **asked, **model)
