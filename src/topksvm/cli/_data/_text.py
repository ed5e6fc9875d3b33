"""CSV and TSV with a line of names, read line by line so that errors can say where they are."""

from __future__ import annotations

import csv
import math
from array import array
from collections.abc import Sequence
from typing import IO

import numpy as np

from topksvm.cli._data._columns import choose_columns
from topksvm.cli._data._table import Array, Request, Table
from topksvm.cli._errors import UserError
from topksvm.cli._output import some


def read_delimited(stream: IO[str], delimiter: str, request: Request) -> Table:
    """Return the table in a text file."""
    reader = csv.reader(stream, delimiter=delimiter, strict=True)
    header = [name.strip() for name in next(reader, [])]
    columns = choose_columns(header, request)
    numbers, labels = array("d"), []
    for row in reader:
        if not row:
            continue  # A blank line, as many editors leave at the end.
        where = f"{request.path}, line {reader.line_num}"
        if len(row) != len(header):
            raise UserError(
                f"{where}: {len(row)} cells, but the first line names {len(header)} columns. Mend "
                "the line, or put cells that contain the separator in double quotes."
            )
        numbers.extend(_parse([row[i] for i in columns.features], where, header, columns.features))
        if columns.target is not None:
            labels.append(_label(row[columns.target], where, header[columns.target]))
    X = np.frombuffer(numbers, dtype=np.float64).reshape(-1, len(columns.features))
    return Table(
        X,
        None if columns.target is None else np.array(labels, dtype=object),
        tuple(header[i] for i in columns.features),
        columns.notes,
    )


def read_label_column(stream: IO[str], delimiter: str, request: Request) -> Array:
    """Return the labels in a text file with a line of names."""
    reader = csv.reader(stream, delimiter=delimiter, strict=True)
    header = [name.strip() for name in next(reader, [])]
    name = request.target if request.target is not None else header[-1]
    if name not in header:
        raise UserError(
            f"{request.labels} has no column {name!r}. It has {some(header)}; choose one of them "
            "with --target."
        )
    position = header.index(name)
    labels = []
    for row in reader:
        if row:
            cell = row[position] if position < len(row) else ""
            labels.append(_label(cell, f"{request.labels}, line {reader.line_num}", name))
    return np.array(labels, dtype=object)


def _label(cell: str, where: str, name: str) -> str:
    label = cell.strip()
    if not label:
        raise UserError(f"{where}, column {name!r}: the label is empty. Fill it in.")
    return label


def _parse(
    cells: list[str], where: str, header: Sequence[str], features: Sequence[int]
) -> list[float]:
    try:
        values = list(map(float, cells))
        if math.isfinite(sum(values)):  # NaN and inf would show in the sum.
            return values
    except ValueError:
        values = []
    for cell, i in zip(cells, features, strict=True):
        _check_cell(cell, f"{where}, column {header[i]!r}")
    return values


def _check_cell(cell: str, where: str) -> None:
    try:
        value = float(cell)
    except ValueError:
        found = cell if len(cell) <= 40 else f"{cell[:37]}..."
        what = f"{found!r} is no number" if cell.strip() else "the cell is empty"
        raise UserError(
            f"{where}: {what}. Features must be finite numbers; encode text and fill in missing "
            "values first, or say with --target which column holds the labels."
        ) from None
    if not math.isfinite(value):
        raise UserError(
            f"{where}: {cell.strip()!r}. Features must be finite numbers; fill in missing values "
            "first, or leave the row out."
        )
