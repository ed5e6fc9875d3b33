"""Parquet, with pyarrow."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import IO, Any

import numpy as np

from topksvm.cli._data._columns import choose_columns
from topksvm.cli._data._table import Array, Request, Table
from topksvm.cli._errors import UserError


def read_parquet(stream: IO[bytes], request: Request) -> Table:
    """Return the table in a Parquet file."""
    parquet = _import_parquet(request.path)
    file = parquet.ParquetFile(stream)
    header = list(file.schema_arrow.names)
    columns = choose_columns(header, request)
    used = [*columns.features, *([] if columns.target is None else [columns.target])]
    table = file.read(columns=[header[i] for i in used])
    features = [_numbers(table, header[i], request.path) for i in columns.features]
    is_single = all(column.dtype == np.float32 for column in features)
    X = np.empty((len(features[0]), len(features)), np.float32 if is_single else np.float64)
    for j, column in enumerate(features):
        X[:, j] = column
    return Table(
        X,
        None if columns.target is None else _labels(table, header[columns.target], request.path),
        tuple(header[i] for i in columns.features),
        columns.notes,
    )


def _import_parquet(path: Path) -> Any:
    try:
        return import_module("pyarrow.parquet")
    except ImportError as error:
        raise UserError(
            f"{path}: Parquet files are read with the package pyarrow, which is missing; install "
            "it with: pip install pyarrow. Or write the table as .csv or .npz."
        ) from error


def _numbers(table: Any, name: str, path: Path) -> Array:
    column = table.column(name)
    _check_nulls(column, name, path)
    values = np.asarray(column.to_numpy())
    if values.dtype.kind not in "fiub":
        raise UserError(
            f"{path}, column {name!r} is of type {column.type}. Features must be numbers; encode "
            "it first, or say with --target which column holds the labels."
        )
    return values


def _labels(table: Any, name: str, path: Path) -> Array:
    column = table.column(name)
    _check_nulls(column, name, path)
    values = np.asarray(column.to_numpy())
    return values if values.dtype.kind in "fiub" else np.array(column.to_pylist(), dtype=object)


def _check_nulls(column: Any, name: str, path: Path) -> None:
    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy()))
        raise UserError(
            f"{path}, row {row} (counted from 0), column {name!r}: the value is missing. Fill it "
            "in, or leave the row out."
        )
