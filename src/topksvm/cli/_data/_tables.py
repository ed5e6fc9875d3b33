"""CSV, TSV and Parquet, read by pandas."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from topksvm.cli._data._columns import Columns
from topksvm.cli._data._files import open_binary, open_text
from topksvm.cli._data._request import Array, Table
from topksvm.cli._errors import UserError, import_extra

Choose = Callable[[list[str]], Columns]
"""From the names of all columns to those that are to be read."""

Place = Callable[[int], str]
"""From the number of a row to where it is in the file."""


def read_text(path: Path, delimiter: str, choose: Choose) -> Table:
    """Return the table in a text file with a line of names."""
    pandas = import_extra("pandas", f"{path}: reading a table")
    with open_text(path) as stream:
        header = [name.strip() for name in next(_rows(csv.reader(stream, delimiter=delimiter)), [])]
        if not header:
            raise UserError(f"{path} has blank lines only. Give a file with at least two rows.")
        columns = choose(header)
        stream.seek(0)
        frame = _parse(pandas, path, stream, delimiter, header, columns.target)
    return _table(pandas, frame, columns, partial(_line, path, delimiter, len(header)))


def read_parquet(path: Path, choose: Choose) -> Table:
    """Return the table in a Parquet file."""
    import_extra("pyarrow", f"{path}: reading Parquet")
    pandas = import_extra("pandas", f"{path}: reading Parquet")
    with open_binary(path) as stream:
        frame = pandas.read_parquet(stream, engine="pyarrow")
    frame.columns = [str(name) for name in frame.columns]
    return _table(pandas, frame, choose(list(frame.columns)), partial(row_of, path))


def row_of(path: Path, row: int) -> str:
    """Return where a row is in a file that has no lines."""
    return f"{path}, row {row} (counted from 0)"


def _rows(lines: Iterable[list[str]]) -> Iterator[list[str]]:
    """Yield the rows that pandas sees: those that are not blank."""
    return (cells for cells in lines if len(cells) > 1 or "".join(cells).strip())


def _line(path: Path, delimiter: str, n_columns: int, row: int) -> str:
    """Return the line of a row; complain if it has fewer cells than there are columns."""
    with open_text(path) as stream:
        reader = csv.reader(stream, delimiter=delimiter)
        cells = next(islice(_rows(reader), row + 1, None))
        place = f"{path}, line {reader.line_num}"
    if len(cells) < n_columns:
        raise UserError(
            f"{place}: {len(cells)} cells, but the first line names {n_columns} columns. Complete "
            "the line."
        )
    return place


def _parse(
    pandas: Any,
    path: Path,
    stream: IO[str],
    delimiter: str,
    header: list[str],
    target: str | None,
) -> Any:
    """Return the data frame; an empty cell makes its column one of text, and so does NaN."""
    errors = pandas.errors
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.DtypeWarning)
        warnings.simplefilter("error", errors.ParserWarning)
        try:
            frame = pandas.read_csv(
                stream,
                sep=delimiter,
                header=0,
                names=header,
                index_col=False,
                dtype={} if target is None else {target: object},
                keep_default_na=False,
                skipinitialspace=True,
            )
        except errors.ParserWarning as error:
            raise UserError(
                f"{path}: the lines have more cells than the first line names columns, "
                f"{len(header)}. Name all columns, or put cells that contain the separator in "
                "double quotes."
            ) from error
    if target is not None:
        frame[target] = frame[target].str.strip()
    return frame


def _table(pandas: Any, frame: Any, columns: Columns, place: Place) -> Table:
    labels = None if columns.target is None else _labels(frame[columns.target], place)
    if list(frame.columns) != columns.features:
        frame = frame[columns.features]
    X = _numbers(pandas, frame, place)
    return Table(X, labels, tuple(columns.features), columns.notes, place)


def _numbers(pandas: Any, frame: Any, place: Place) -> Array:
    """Return the features in C order; float32 if all are."""
    parsed = {}
    for name in frame.columns[[dtype.kind not in "fiub" for dtype in frame.dtypes]]:
        column = frame[name]
        parsed[name] = pandas.to_numeric(column.astype(str), errors="coerce")
        bad = np.flatnonzero(~np.isfinite(parsed[name]))
        if bad.size:
            cell = column.iloc[bad[0]]
            raise UserError(
                f"{place(bad[0])}, column {name!r}: {_in_words(pandas, cell)}. Features must be "
                "finite numbers; encode text and fill in missing values first, or say with "
                "--target which column holds the labels."
            )
    if parsed:
        frame = frame.assign(**parsed)
    is_single = len(frame.dtypes) > 0 and all(dtype == np.float32 for dtype in frame.dtypes)
    dtype = np.float32 if is_single else np.float64
    return np.ascontiguousarray(frame.to_numpy(dtype, na_value=np.nan))


def _in_words(pandas: Any, cell: Any) -> str:
    text = "" if cell is None or cell is pandas.NA else str(cell).strip()
    if not text:
        return "the cell is empty"
    return f"{text if len(text) <= 40 else text[:37] + '...'!r} is no number"


def _labels(column: Any, place: Place) -> Array:
    missing = np.flatnonzero(column.isna() | (column == ""))
    if missing.size:
        raise UserError(
            f"{place(missing[0])}, column {column.name!r}: the label is empty. Fill it in, or "
            "leave the row out."
        )
    return np.asarray(column)
