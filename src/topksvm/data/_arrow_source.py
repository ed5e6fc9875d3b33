"""Rows of Parquet files and Arrow data sets, read by the row group.

Every list must have as many values as there are features, and nothing may be missing: otherwise the
values of one row would become those of the next.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm.data._arrow_files import WatchedFile

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Group:
    """Rows that are read in one go, and their file."""

    fragment: Any
    rows: int
    source: WatchedFile

    @property
    def file(self) -> str:
        """The name of the file."""
        return self.source.name


class ArrowSource:
    """The rows of a Parquet or Arrow data set: one column of lists, or a column per feature."""

    def __init__(self, dataset: Any) -> None:
        sources = [_watched(part) for part in dataset.get_fragments()]
        if not sources:
            raise ValueError("X is an Arrow data set without files; it must have at least one.")
        schemas = [_schema(source) for source in sources]
        files = [source.name for source in sources]
        folders = {key for source in sources for key in source.folder_keys()}
        self.columns = _common_columns(dataset.schema.names, schemas, files)
        _check_columns(set(dataset.schema.names) - folders, self.columns, files[0])
        self.has_lists = _has_lists(self.columns, schemas, files)
        self.groups = [group for source in sources for group in _row_groups(source)]
        if not self.groups:
            raise ValueError("X is an Arrow data set that has no rows; it must have at least one.")
        sizes = [group.rows for group in self.groups]
        self.first = np.concatenate([[0], np.cumsum(sizes)]).tolist()
        d = self._length_of_lists() if self.has_lists else len(self.columns)
        self.shape = (int(self.first[-1]), d)
        types = {schema.field(name).type for schema in schemas for name in self.columns}
        self.dtype = np.result_type(np.float32, *(_numpy_type(kind) for kind in types))

    @property
    def feature_names(self) -> list[str] | None:
        """The names of the features, if there is a column for each."""
        return None if self.has_lists else self.columns

    def pieces(self, size: int) -> list[tuple[int, int]]:  # noqa: ARG002
        """See the protocol: a piece is a row group, as none can be read in part."""
        return list(zip(self.first[:-1], self.first[1:], strict=True))

    def read(self, start: int, stop: int, out: Floats) -> None:
        """See the protocol."""
        place = bisect_right(self.first, start) - 1
        first, group = self.first[place], self.groups[place]
        table = self._table(group)
        if table.num_rows != group.rows:
            raise ValueError(
                f"{group.file} has changed since it was opened: a row group has {table.num_rows} "
                f"rows instead of {group.rows}. Leave it as it is until the end, and run it again."
            )
        table = table.slice(start - first, stop - start)
        for j, column in enumerate(table.columns):
            self._copy(column, Place(group.file, start), out if self.has_lists else out[:, j])

    def _copy(self, column: Any, place: Place, out: NDArray[Any]) -> None:
        """Write the values of a column to `out`, one row or one number for each entry."""
        done = 0
        for chunk in column.chunks:
            now = replace(place, row=place.row + done)
            values = self._values(chunk, now) if self.has_lists else _numbers(chunk, now)
            rows = slice(done, done + len(chunk))
            np.copyto(out[rows], values.reshape(out[rows].shape), casting="unsafe")
            done += len(chunk)

    def _values(self, lists: Any, place: Place) -> NDArray[Any]:
        """Return the values of lists, all of which have as many as there are features."""
        lengths = _lengths(lists, place)
        wrong = np.flatnonzero(lengths != self.shape[1])
        if wrong.size:
            place.complain(
                wrong[0],
                f"is a list of {lengths[wrong[0]]} values, and the first row has {self.shape[1]}; "
                "all lists must have the same length",
            )
        return _numbers(lists.flatten(), place, self.shape[1])

    def _length_of_lists(self) -> int:
        group = self.groups[0]
        lists = self._table(group, 1).column(0)
        if not len(lists):
            raise ValueError(f"cannot read {group.file}: its first row group has no rows.")
        (length,) = _lengths(next(c for c in lists.chunks if len(c)), Place(group.file, 0))
        if length == 0:
            Place(group.file, 0).complain(0, "is an empty list; there must be at least one feature")
        return int(length)

    def _table(self, group: Group, rows: int | None = None) -> Any:
        group.source.check()
        with _reading(group.file):
            if rows is None:
                table = group.fragment.to_table(columns=self.columns)
            else:
                table = group.fragment.head(rows, columns=self.columns)
            table.validate(full=True)  # Lists of a damaged file may begin anywhere in memory.
        group.source.check()
        return table


@dataclass(frozen=True)
class Place:
    """Where rows come from: a file, and the number of the first of them in X."""

    file: str
    row: int

    def complain(self, row: Any, what: str) -> None:
        """Raise the error about a row, counted from the first."""
        raise ValueError(
            f"Row {self.row + int(row)} of X, in {self.file}, {what}. Remove the row or correct it."
        )


def _lengths(lists: Any, place: Place) -> NDArray[np.int64]:
    _refuse_nulls(lists, place)
    return np.asarray(lists.value_lengths().to_numpy(zero_copy_only=False), np.int64)


def _numbers(values: Any, place: Place, per_row: int = 1) -> NDArray[Any]:
    _refuse_nulls(values, place, per_row)
    return np.asarray(values.to_numpy(zero_copy_only=False))


def _refuse_nulls(values: Any, place: Place, per_row: int = 1) -> None:
    if values.null_count:
        missing = np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False))
        place.complain(missing[0] // per_row, "has a value that is missing (null)")


@contextmanager
def _reading(file: str) -> Iterator[None]:
    """Name the file in an error about it."""
    pa = _arrow()
    try:
        yield
    except (OSError, KeyError, UnicodeError, pa.ArrowException) as error:
        raise ValueError(f"cannot read {file}: {error}") from error


def _watched(fragment: Any) -> WatchedFile:
    with _reading(str(getattr(fragment, "path", "the Arrow data set"))):
        return WatchedFile(fragment)


def _schema(source: WatchedFile) -> Any:
    with _reading(source.name):
        schema = source.fragment.physical_schema
        str(schema.names)  # A damaged name cannot be decoded.
        return schema


def _common_columns(wanted: list[str], schemas: list[Any], files: list[str]) -> list[str]:
    """Return the names of the columns with features, which all files must have."""
    first = schemas[0].names
    for schema, file in zip(schemas, files, strict=True):
        if sorted(schema.names) != sorted(first):
            raise ValueError(
                f"{file} has {len(schema.names)} columns, {_some(schema.names)}, but {files[0]} "
                f"has {len(first)}, {_some(first)}; all files must have the same."
            )
    # Without those that stand for folders, and those that the user left out.
    names = [name for name in wanted if name in first]
    if not names:
        raise ValueError(f"{files[0]} has no columns; there must be at least one feature.")
    if len(set(names)) < len(names):
        raise ValueError(f"{files[0]} has two columns of one name; rename one of them.")
    return names


def _check_columns(wanted: set[str], found: list[str], file: str) -> None:
    """Complain if the data set has a column that is in no file."""
    missing = sorted(wanted - set(found))
    if missing:
        raise ValueError(
            f"cannot read {file}: it has no column {missing[0]!r}, but the data set has. Open the "
            "data set again, if the file is right."
        )


def _has_lists(columns: list[str], schemas: list[Any], files: list[str]) -> bool:
    """Return whether rows are lists; complain unless that, or all columns, are numbers."""
    for schema, file in zip(schemas, files, strict=True):
        for name in columns:
            kind = schema.field(name).type
            if _numpy_type(kind) is None:
                raise ValueError(
                    f"{file}: the column {name!r} is of type {kind}; it must have numbers, or "
                    "lists of numbers. Leave it out, or convert it."
                )
            if _is_list(kind) and len(columns) > 1:
                raise ValueError(
                    f"{file}: the column {name!r} has lists and is not the only one; there must "
                    "be one column of lists, or a column of numbers for each feature."
                )
    kinds = [_is_list(schema.field(columns[0]).type) for schema in schemas]
    if any(kinds) and not all(kinds):
        other = files[kinds.index(not kinds[0])]
        raise ValueError(
            f"The column {columns[0]!r} has lists in one of {files[0]} and {other} and numbers in "
            "the other; all files must have the same."
        )
    return kinds[0]


def _is_list(kind: Any) -> bool:
    pa = _arrow()
    tests = ("is_list", "is_large_list", "is_fixed_size_list", "is_list_view", "is_large_list_view")
    return any(getattr(pa.types, test)(kind) for test in tests if hasattr(pa.types, test))


def _numpy_type(kind: Any) -> Any:
    """Return the type of numbers in NumPy, or None if they are none."""
    pa = _arrow()
    values = kind.value_type if _is_list(kind) else kind
    if pa.types.is_floating(values) or pa.types.is_integer(values) or pa.types.is_boolean(values):
        return np.dtype(values.to_pandas_dtype())
    return None


def _row_groups(source: WatchedFile) -> list[Group]:
    with _reading(source.name):
        split = getattr(source.fragment, "split_by_row_group", None)
        parts = [source.fragment] if split is None else list(split())
        groups = [Group(part, rows, source) for part in parts if (rows := _count_rows(part))]
        if sum(group.rows for group in groups) != _count_all_rows(source.fragment):
            raise OSError("its row groups do not have as many rows as it says")
    source.check()
    # A chunk of a table in memory may be empty, a file must not.
    if not groups and source.place is not None:
        raise ValueError(f"{source.name} has no rows; leave it out.")
    return groups


def _count_rows(fragment: Any) -> int:
    groups = getattr(fragment, "row_groups", None)
    # A row group of a file counts the rows of the whole file.
    return int(fragment.count_rows() if groups is None else sum(g.num_rows for g in groups))


def _count_all_rows(fragment: Any) -> int:
    groups = getattr(fragment, "row_groups", None)
    is_whole = groups is not None and len(groups) == fragment.metadata.num_row_groups
    return int(fragment.metadata.num_rows) if is_whole else int(fragment.count_rows())


def _some(names: list[str], most: int = 3) -> str:
    return ", ".join(map(repr, names[:most])) + (", ..." if len(names) > most else "")


def _arrow() -> Any:
    return import_module("pyarrow")
