"""The options of all commands that read examples."""

from __future__ import annotations

import argparse
from pathlib import Path

from topksvm.cli._data._read import FORMATS
from topksvm.cli._data._table import Request
from topksvm.cli._options import one_of

_HELP = """Examples in .npy (with --labels), .npz, .csv or .tsv (with a line of names), .parquet, or
.svm, .libsvm or .svmlight; each also with .gz."""


def add_data_options(
    parser: argparse.ArgumentParser, *, needs_labels: bool = True, is_optional: bool = False
) -> None:
    """Add the file of examples, and what to take from it."""
    parser.add_argument(
        "data",
        type=Path,
        nargs="?" if is_optional else None,
        metavar="DATA",
        help="the examples; see below",
    )
    group = parser.add_argument_group("reading DATA", _HELP)
    group.add_argument(
        "--format",
        type=one_of("--format", FORMATS),
        metavar="NAME",
        help=f"{', '.join(FORMATS)}; by default from the end of the name",
    )
    group.add_argument(
        "--target",
        metavar="COLUMN",
        help="the column with the labels, in tables; by default one named label, target or y, "
        "else the last" + ("" if needs_labels else ", if there is one more than the model needs"),
    )
    group.add_argument("--features-key", metavar="NAME", help="the array of a .npz file (X)")
    if needs_labels:
        group.add_argument(
            "--labels", type=Path, metavar="FILE", help="labels from .npy, .txt, .csv or .tsv"
        )
        group.add_argument("--labels-key", metavar="NAME", help="the array of a .npz file (y)")
    group.add_argument(
        "--zero-based",
        action="store_true",
        help="features in .svm files are numbered from 0, even if no 0 occurs",
    )


def request_of(
    options: argparse.Namespace,
    *,
    n_features: int | None = None,
    names: tuple[str, ...] | None = None,
) -> Request:
    """Return what the options ask of the file of examples."""
    return Request(
        options.data,
        options.format,
        options.target,
        getattr(options, "labels", None),
        options.features_key,
        getattr(options, "labels_key", None),
        options.zero_based,
        needs_labels=hasattr(options, "labels"),
        n_features=n_features,
        names=names,
    )
