"""Rows that need not fit in memory: what a solver must know to read them by the piece.

A source has a shape, a type to compute in, and pieces that are cheap to read in one go. float16 and
bfloat16 are widened as they are read.
"""

from __future__ import annotations

import mmap
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]

MIN_PIECE, MAX_PIECE = 1 << 16, 1 << 20
"""Bytes that are read in one go: enough for a disk to be fast, little enough to shuffle well."""


class RowSource(Protocol):
    """Rows that can be read by the piece."""

    shape: tuple[int, int]
    dtype: np.dtype

    def pieces(self, size: int) -> list[tuple[int, int]]:
        """Return ranges of rows of about `size` bytes, in order, that cover all of them."""

    def read(self, start: int, stop: int, out: Floats) -> None:
        """Write the rows from `start` to `stop`, which lie in one piece, to `out`."""


class ArraySource:
    """The rows of an array, which may be a memory map."""

    def __init__(self, array: Any) -> None:
        if array.ndim != 2 or not _is_real(array.dtype):
            raise ValueError(
                f"X has shape {array.shape} and type {array.dtype}; it must be a table of floats: "
                "float16, bfloat16, float32 or float64."
            )
        self.array = array
        self.shape = (int(array.shape[0]), int(array.shape[1]))
        self.dtype = np.dtype(np.float64 if array.dtype == np.float64 else np.float32)

    def pieces(self, size: int) -> list[tuple[int, int]]:
        """See the protocol."""
        n, d = self.shape
        rows = max(1, size // max(1, d * self.array.dtype.itemsize))
        return [(start, min(start + rows, n)) for start in range(0, n, rows)]

    def read(self, start: int, stop: int, out: Floats) -> None:
        """See the protocol."""
        np.copyto(out, self.array[start:stop], casting="unsafe")


class MappedSource(ArraySource):
    """The rows of a memory map, which leave the memory of the process once they are read.

    They stay in the cache of the system, which gives them up when memory is short; but counted as
    the process's own they would hide what it really needs.
    """

    def __init__(self, array: np.memmap) -> None:
        super().__init__(array)
        self.map: Any = array._mmap  # type: ignore[attr-defined]
        self.address = np.frombuffer(self.map, np.uint8).ctypes.data

    def read(self, start: int, stop: int, out: Floats) -> None:
        """See the protocol."""
        super().read(start, stop, out)
        rows = self.array[start:stop]
        begin = rows.ctypes.data - self.address
        # Whole pages only: those at the ends belong to other rows too, which is no harm.
        first = begin // mmap.PAGESIZE * mmap.PAGESIZE
        if hasattr(self.map, "madvise"):
            self.map.madvise(mmap.MADV_DONTNEED, first, begin + rows.nbytes - first)


class ShardedSource:
    """The rows of several sources, one after the other."""

    def __init__(self, parts: Sequence[RowSource], names: Sequence[str]) -> None:
        if not parts:
            raise ValueError("X is an empty list; it must hold at least one shard.")
        widths = [part.shape[1] for part in parts]
        for name, width in zip(names, widths, strict=True):
            if width != widths[0]:
                raise ValueError(
                    f"{name} has {width} features but {names[0]} has {widths[0]}; all shards must "
                    "have the same."
                )
        self.parts = list(parts)
        self.first = np.concatenate([[0], np.cumsum([part.shape[0] for part in parts])]).tolist()
        self.shape = (int(self.first[-1]), widths[0])
        self.dtype = np.result_type(*(part.dtype for part in parts))

    def pieces(self, size: int) -> list[tuple[int, int]]:
        """See the protocol."""
        return [
            (first + start, first + stop)
            for first, part in zip(self.first, self.parts, strict=False)
            for start, stop in part.pieces(size)
        ]

    def read(self, start: int, stop: int, out: Floats) -> None:
        """See the protocol."""
        place = bisect_right(self.first, start) - 1
        first = self.first[place]
        self.parts[place].read(start - first, stop - first, out)


class ArrowSource:
    """The rows of a Parquet or Arrow data set: one column of lists, or a column per feature."""

    def __init__(self, dataset: Any) -> None:
        fragments = [group for part in dataset.get_fragments() for group in _row_groups(part)]
        self.groups = [(group, rows) for group in fragments if (rows := _count_rows(group))]
        if not self.groups:
            raise ValueError("X is an Arrow data set without rows.")
        self.first = np.concatenate([[0], np.cumsum([rows for _, rows in self.groups])]).tolist()
        sample = _as_array(self.groups[0][0].head(1))
        self.shape = (int(self.first[-1]), sample.shape[1])
        self.dtype = np.dtype(np.float64 if sample.dtype == np.float64 else np.float32)

    def pieces(self, size: int) -> list[tuple[int, int]]:  # noqa: ARG002
        """See the protocol: a piece is a row group, as none can be read in part."""
        return list(zip(self.first[:-1], self.first[1:], strict=True))

    def read(self, start: int, stop: int, out: Floats) -> None:
        """See the protocol."""
        place = bisect_right(self.first, start) - 1
        table = _as_array(self.groups[place][0].to_table())
        first = self.first[place]
        np.copyto(out, table[start - first : stop - first], casting="unsafe")


def _row_groups(fragment: Any) -> list[Any]:
    split = getattr(fragment, "split_by_row_group", None)
    return [fragment] if split is None else list(split())


def _count_rows(fragment: Any) -> int:
    groups = getattr(fragment, "row_groups", None)
    # A row group of a file counts the rows of the whole file.
    return int(fragment.count_rows() if groups is None else sum(g.num_rows for g in groups))


def _as_array(table: Any) -> NDArray[Any]:
    """Return the features of an Arrow table as ``(n, d)``."""
    columns = [column.combine_chunks() for column in table.columns]
    if len(columns) == 1 and hasattr(columns[0].type, "value_type"):
        values = columns[0].flatten().to_numpy(zero_copy_only=False)
        return values.reshape(len(columns[0]), -1)
    return np.column_stack([column.to_numpy(zero_copy_only=False) for column in columns])


def is_out_of_core(X: Any) -> bool:
    """Return whether `X` is of a kind that is read by the piece: shards, Arrow, or half floats."""
    if isinstance(X, list | tuple):
        return bool(X) and all(_is_shard(part) for part in X)
    if hasattr(X, "get_fragments"):
        return True
    return isinstance(X, np.ndarray) and X.ndim == 2 and _is_half(X.dtype)


def open_source(X: Any) -> RowSource:
    """Return `X` as a source of rows."""
    if isinstance(X, list | tuple):
        names = [
            str(part) if isinstance(part, str | Path) else f"shard {i}" for i, part in enumerate(X)
        ]
        return ShardedSource([open_source(_opened(part)) for part in X], names)
    if hasattr(X, "get_fragments"):
        return ArrowSource(X)
    is_mapped = isinstance(X, np.memmap) and X.flags.c_contiguous and not X.flags.writeable
    return MappedSource(X) if is_mapped and hasattr(X, "_mmap") else ArraySource(X)


def _opened(shard: Any) -> Any:
    if not isinstance(shard, str | Path):
        return shard
    try:
        return np.load(shard, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise ValueError(f"cannot read the shard {shard}: {error}") from error


def _is_shard(part: Any) -> bool:
    if isinstance(part, str | Path):
        return str(part).endswith(".npy")
    return isinstance(part, np.memmap) and part.ndim == 2


def _is_half(dtype: np.dtype) -> bool:
    return dtype.name in ("float16", "bfloat16")


def _is_real(dtype: np.dtype) -> bool:
    return _is_half(dtype) or dtype in (np.float32, np.float64)
