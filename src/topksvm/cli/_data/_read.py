"""Find the format of a file, read it, and check what every format must have."""

from __future__ import annotations

import csv
import gzip
import io
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp

from topksvm.cli._data._arrays import read_npy, read_npz
from topksvm.cli._data._parquet import read_parquet
from topksvm.cli._data._svmlight import read_svmlight
from topksvm.cli._data._table import Array, Request, Table
from topksvm.cli._data._text import read_delimited, read_label_column
from topksvm.cli._errors import UserError
from topksvm.cli._output import one_line

FORMATS = {
    "csv": (".csv",),
    "npy": (".npy",),
    "npz": (".npz",),
    "parquet": (".parquet", ".pq"),
    "svmlight": (".svmlight", ".libsvm", ".svm"),
    "tsv": (".tsv", ".tab"),
}
"""The formats, and the ends of the names of their files."""

_BLOCK = 1 << 22
"""Entries that are checked at a time."""

_UNREADABLE = (OSError, EOFError, ValueError, csv.Error, zlib.error, zipfile.BadZipFile)
"""What the readers of broken files raise."""


def read_examples(request: Request) -> Table:
    """Return the checked rows of a file, with labels if they are asked for."""
    _check_file(request.path)
    format_ = request.format or _format_of(request.path)
    _check_options(format_, request)
    table = _guarded(lambda: _read(format_, request), request.path, format_)
    _check_features(table.X, request, table.names)
    if not request.needs_labels:
        return table
    labels = table.labels if request.labels is None else _read_labels(request)
    assert labels is not None
    labels = _check_labels(labels, len_of(table.X), request.labels or request.path, request)
    notes = table.notes if request.labels is None else (*table.notes, f"labels: {request.labels}")
    return Table(table.X, labels, table.names, notes)


def len_of(X: Any) -> int:
    """Return the number of rows."""
    return int(X.shape[0])


def _read(format_: str, request: Request) -> Table:
    if format_ in ("csv", "tsv"):
        with _open_text(request.path) as text:
            return read_delimited(text, "," if format_ == "csv" else "\t", request)
    if format_ == "svmlight":
        with _open_binary(request.path) as raw:
            return read_svmlight(raw, request)
    if request.path.suffix == ".gz":
        # These jump about in the file, which is slow in a compressed one.
        with io.BytesIO(gzip.decompress(request.path.read_bytes())) as stream:
            return _read_arrays(format_, stream, request)
    if format_ == "npy":
        return read_npy(None, request)
    with request.path.open("rb") as stream:
        return _read_arrays(format_, stream, request)


def _read_arrays(format_: str, stream: IO[bytes], request: Request) -> Table:
    readers = {"npy": read_npy, "npz": read_npz, "parquet": read_parquet}
    return readers[format_](stream, request)


def _read_labels(request: Request) -> Array:
    path = request.labels
    assert path is not None
    _check_file(path)
    end = _end_of(path)

    def read() -> Array:
        if end == ".npy":
            with _open_binary(path) as stream:
                return np.asarray(np.load(io.BytesIO(stream.read()), allow_pickle=False))
        with _open_text(path) as text:
            if end == ".txt":
                return np.array([line.strip() for line in text if line.strip()], dtype=object)
            return read_label_column(text, "," if end == ".csv" else "\t", request)

    if end not in (".npy", ".txt", ".csv", ".tsv"):
        raise UserError(
            f"--labels {path}: labels are read from .npy, .txt (one on each line), .csv and .tsv, "
            "also .gz. Write them in one of these."
        )
    return _guarded(read, path, f"a file of labels ({end})")


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


def _check_file(path: Path) -> None:
    if path.is_dir():
        raise UserError(f"{path} is a folder; give a file.")
    if not path.is_file():
        raise UserError(f"there is no file {path}. Check the name and the folder.")
    if path.stat().st_size == 0:
        raise UserError(f"{path} is empty. Give a file with at least two rows.")


def _check_options(format_: str, request: Request) -> None:
    """Complain about options that would have no effect."""
    has_names = ("csv", "tsv", "parquet")
    labels_have_names = request.labels is not None and _end_of(request.labels) in (".csv", ".tsv")
    target_acts = labels_have_names or (request.labels is None and format_ in has_names)
    for option, is_given, acts, use in (
        ("--target", request.target is not None, target_acts, "tables: .csv, .tsv, .parquet"),
        ("--features-key", request.features_key is not None, format_ == "npz", ".npz files"),
        (
            "--labels-key",
            request.labels_key is not None,
            format_ == "npz" and request.labels is None,
            ".npz files without --labels",
        ),
        ("--zero-based", request.zero_based, format_ == "svmlight", "svmlight files"),
    ):
        if is_given and not acts:
            source = request.labels if option == "--target" and request.labels else request.path
            raise UserError(f"{option} has no effect on {source}; it is for {use}. Leave it out.")


def _end_of(path: Path) -> str:
    """Return the end of the name, without ``.gz``."""
    return (path.with_suffix("") if path.suffix == ".gz" else path).suffix.lower()


def _format_of(path: Path) -> str:
    end = _end_of(path)
    for name, ends in FORMATS.items():
        if end in ends:
            return name
    known = ", ".join(end for ends in FORMATS.values() for end in ends)
    raise UserError(
        f"{path}: the end of the name, {end!r}, is no known format; known are {known}, also with "
        f".gz. Say with --format which it is: {', '.join(FORMATS)}."
    )


def _open_binary(path: Path) -> IO[bytes]:
    return gzip.open(path) if path.suffix == ".gz" else path.open("rb")  # type: ignore[return-value]


def _open_text(path: Path) -> IO[str]:
    # utf-8-sig also takes the mark with which Excel begins a file.
    return io.TextIOWrapper(_open_binary(path), encoding="utf-8-sig", newline="")


def _check_features(X: Any, request: Request, names: tuple[str, ...] | None) -> None:
    path = request.path
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
    _check_finite(X, path, names)


def _check_finite(X: Any, path: Path, names: tuple[str, ...] | None) -> None:
    if X.dtype.kind != "f":
        return
    step = max(1, _BLOCK // X.shape[1])
    for start in range(0, X.shape[0], step):
        block = X[start : start + step]
        if np.isfinite(block.data if sp.issparse(block) else block).all():
            continue
        dense = block.tocoo() if sp.issparse(block) else None
        if dense is not None:
            at = int(np.argmin(np.isfinite(dense.data)))
            row, column, value = dense.row[at], dense.col[at], dense.data[at]
        else:
            row, column = np.argwhere(~np.isfinite(block))[0]
            value = block[row, column]
        what = f"column {column}" if names is None else f"column {names[column]!r}"
        raise UserError(
            f"{path}, row {start + row} (counted from 0), {what}: the value is {value}. Features "
            "must be finite numbers; fill in missing values first, or leave the row out."
        )


def _check_labels(labels: Array, n: int, source: Path, request: Request) -> Array:
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels.ravel()
    if labels.ndim != 1 or labels.dtype.kind not in "iubfUSO":
        raise UserError(
            f"{source}: the labels have shape {labels.shape} and type {labels.dtype}; there must "
            "be one number or text for each row."
        )
    if len(labels) != n:
        raise UserError(
            f"{source} has {len(labels)} labels, but {request.path} has {n} rows; there must be "
            "one for each row, in the same order."
        )
    if labels.dtype.kind == "S":
        return np.array([label.decode(errors="replace") for label in labels], dtype=object)
    return labels.astype(object) if labels.dtype.kind == "U" else labels
