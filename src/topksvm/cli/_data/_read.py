"""Read a file of any format, and check what every format must have."""

from __future__ import annotations

import csv
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from topksvm._scores_and_labels import some
from topksvm.cli._data._arrays import read_npy, read_npz, read_svmlight
from topksvm.cli._data._columns import choose_columns, choose_labels
from topksvm.cli._data._files import check_file, end_of, format_of, open_binary, open_text
from topksvm.cli._data._labels import labels_to_train_on
from topksvm.cli._data._request import DELIMITERS, Array, Request, Table
from topksvm.cli._data._tables import read_parquet, read_text, row_of
from topksvm.cli._errors import UserError
from topksvm.cli._output import one_line

_BLOCK = 1 << 22
"""Entries that are checked at a time."""

_UNREADABLE = (OSError, EOFError, ValueError, csv.Error, zlib.error, zipfile.BadZipFile)
"""What the readers of broken files raise."""


def read_examples(request: Request) -> Table:
    """Return the checked rows of a file, with labels if they are asked for."""
    check_file(request.path)
    format_ = request.format or format_of(request.path)
    _check_options(format_, request)
    table = _guarded(lambda: _read(format_, request), request.path, format_)
    _check_features(table, request)
    if not request.needs_labels:
        return table
    source, labels, notes = request.path, table.labels, table.notes
    if request.labels is not None:
        source, labels = request.labels, _read_labels(request.labels, request)
        notes += (f"labels: {request.labels}",)
    labels = _check_labels(labels, source, table.X.shape[0], request.path)
    return Table(table.X, labels, table.names, notes)


def read_to_train_on(request: Request) -> Table:
    """Return the rows with whole numbers or text as labels, of at least two classes."""
    table = read_examples(request)
    labels = labels_to_train_on(table.labels, request.labels or request.path)
    classes = np.unique(labels)
    if len(classes) < 2:
        raise UserError(
            f"the labels have one class only, {some(classes.tolist())}; at least 2 are needed. "
            "Check with --target or --labels-key what is read as labels."
        )
    return replace(table, labels=labels)


def _read(format_: str, request: Request) -> Table:
    if format_ in DELIMITERS:
        choose = partial(choose_columns, request=request)
        return read_text(request.path, DELIMITERS[format_], choose)
    if format_ == "parquet":
        return read_parquet(request.path, partial(choose_columns, request=request))
    return {"npy": read_npy, "npz": read_npz, "svmlight": read_svmlight}[format_](request)


def _read_labels(path: Path, request: Request) -> Array:
    check_file(path)
    end = end_of(path)
    if end not in (".npy", ".txt", ".csv", ".tsv"):
        raise UserError(
            f"--labels {path}: labels are read from .npy, .txt (one on each line), .csv and .tsv, "
            "also .gz. Write them in one of these."
        )

    def read() -> Any:
        if end == ".npy":
            with open_binary(path) as stream:
                return np.load(stream, allow_pickle=False)
        if end == ".txt":
            with open_text(path) as text:
                return np.array([line.strip() for line in text if line.strip()], dtype=object)
        return read_text(path, DELIMITERS[end[1:]], partial(choose_labels, request=request)).labels

    return np.asarray(_guarded(read, path, f"a file of labels ({end})"))


def _guarded(read: Callable[[], Any], path: Path, format_: str) -> Any:
    try:
        return read()
    except UnicodeDecodeError as error:
        raise UserError(
            f"cannot read {path} as {format_}: byte {error.start} is no UTF-8. Save it as UTF-8, "
            "or say with --format what it is."
        ) from error
    except _UNREADABLE as error:
        reason = one_line(error) or type(error).__name__
        raise UserError(
            f"cannot read {path} as {format_}: {reason}. It may be damaged, or of another format: "
            "use another copy, or say with --format what it is."
        ) from error


def _check_options(format_: str, request: Request) -> None:
    """Complain about options that would have no effect."""
    has_names = format_ in (*DELIMITERS, "parquet")
    if request.labels is not None:
        has_names = end_of(request.labels) in (".csv", ".tsv")
    has_own = format_ == "npz" and request.labels is None
    for option, value, acts, use in (
        ("--target", request.target, has_names, "tables: .csv, .tsv, .parquet"),
        ("--features-key", request.features_key, format_ == "npz", ".npz files"),
        ("--labels-key", request.labels_key, has_own, ".npz files without --labels"),
        ("--zero-based", request.zero_based or None, format_ == "svmlight", "svmlight files"),
    ):
        if value is not None and not acts:
            source = (option == "--target" and request.labels) or request.path
            raise UserError(f"{option} has no effect on {source}; it is for {use}. Leave it out.")


def _check_features(table: Table, request: Request) -> None:
    X, path = table.X, request.path
    if X.ndim != 2:
        raise UserError(
            f"{path}: the features have shape {X.shape}; they must have 2 dimensions, a row for "
            "each example. Reshape them, for example with X.reshape(len(X), -1)."
        )
    if X.dtype.kind not in "fiub":
        raise UserError(
            f"{path}: the features are of type {X.dtype}; they must be real numbers. Convert them, "
            "for example with X.astype('float32')."
        )
    if 0 in X.shape:
        raise UserError(
            f"{path} has {X.shape[0]} rows and {X.shape[1]} features; at least one of each is "
            "needed."
        )
    if request.n_features is not None and X.shape[1] != request.n_features:
        raise UserError(
            f"{path} has {X.shape[1]} features, but the model was trained on {request.n_features}. "
            "Use a file with the features that it was trained on."
        )
    if X.dtype.kind == "f":
        _check_finite(table, table.place or partial(row_of, path))


def _check_finite(table: Table, place: Callable[[int], str]) -> None:
    X = table.X
    step = max(1, _BLOCK // X.shape[1])
    for start in range(0, X.shape[0], step):
        block = X[start : start + step]
        if np.isfinite(block.data if sp.issparse(block) else block).all():
            continue
        if sp.issparse(block):
            entries = block.tocoo()
            at = np.argmin(np.isfinite(entries.data))
            row, column, value = entries.row[at], entries.col[at], entries.data[at]
        else:
            row, column = np.argwhere(~np.isfinite(block))[0]
            value = block[row, column]
        name = column if table.names is None else repr(table.names[column])
        raise UserError(
            f"{place(start + int(row))}, column {name}: the value is {value}. Features must be "
            "finite numbers; fill in missing values first, or leave the row out."
        )


def _check_labels(labels: Array, source: Path, n: int, path: Path) -> Array:
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels.ravel()
    if labels.ndim != 1 or labels.dtype.kind not in "iubfUSO":
        raise UserError(
            f"{source}: the labels have shape {labels.shape} and type {labels.dtype}; there must "
            "be one number or text for each row."
        )
    if len(labels) != n:
        raise UserError(
            f"{source} has {len(labels)} labels, but {path} has {n} rows; there must be one for "
            "each row, in the same order."
        )
    if labels.dtype.kind == "S":
        return np.array([label.decode(errors="replace") for label in labels], dtype=object)
    return labels.astype(object) if labels.dtype.kind == "U" else labels
