"""Rows that need not fit in memory: what a solver must know to read them by the piece.

A source has a shape, a type to compute in, and pieces that are cheap to read in one go. float16 and
bfloat16 are widened as they are read.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from topksvm.data._array_sources import array_source, file_of, is_half, owner_of
from topksvm.data._arrow_source import ArrowSource
from topksvm.data._memory import physical_memory

Floats = NDArray[np.floating[Any]]

MIN_PIECE, MAX_PIECE = 1 << 16, 1 << 20
"""Bytes that are read in one go: enough for a disk to be fast, little enough to shuffle well."""


UNKNOWN_LIMIT = 1 << 32
"""Bytes above which a memory map is read by the piece where the memory is not known: 4 GiB."""


class RowSource(Protocol):
    """Rows that can be read by the piece."""

    shape: tuple[int, int]
    dtype: np.dtype

    def pieces(self, size: int) -> list[tuple[int, int]]:
        """Return ranges of rows of about `size` bytes, in order, that cover all of them."""

    def read(self, start: int, stop: int, out: Floats) -> None:
        """Write the rows from `start` to `stop`, which lie in one piece, to `out`."""


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


def is_out_of_core(X: Any) -> bool:
    """Return whether `X` is of a kind that is read by the piece: shards, Arrow, or half floats."""
    if isinstance(X, list | tuple):
        return bool(X) and all(_is_shard(part) for part in X)
    if hasattr(X, "get_fragments"):
        return True
    return isinstance(X, np.ndarray) and X.ndim == 2 and is_half(X.dtype)


def is_streamed(X: Any, memory_limit: int | None = None) -> bool:
    """Return whether `X` is to be read by the piece: not in memory, and too large for it."""
    if owner_of(X) is None or X.ndim != 2:
        return is_out_of_core(X)
    if memory_limit is None:
        memory = physical_memory()
        memory_limit = UNKNOWN_LIMIT if memory is None else memory // 2
    return is_out_of_core(X) or X.nbytes > memory_limit


def open_source(X: Any) -> RowSource:
    """Return `X` as a source of rows."""
    if isinstance(X, list | tuple):
        names = [
            str(part) if isinstance(part, str | Path) else file_of(part) or f"shard {i}"
            for i, part in enumerate(X)
        ]
        parts = [array_source(_opened(part), name) for part, name in zip(X, names, strict=True)]
        return ShardedSource(parts, names)
    if hasattr(X, "get_fragments"):
        return ArrowSource(X)
    return array_source(X, file_of(X) or "X")


def _opened(shard: Any) -> Any:
    if not isinstance(shard, str | Path):
        return shard
    # A file can be damaged in any way, so any error is one about the file.
    try:
        rows = np.load(shard, mmap_mode="r", allow_pickle=False)
        if not isinstance(rows, np.ndarray):
            raise ValueError("it is an archive of arrays")
        extra = Path(shard).stat().st_size - rows.offset - rows.nbytes
        if extra > 0:
            raise ValueError(f"it has {extra} bytes more than its header says")
    except Exception as error:
        why = str(error) or type(error).__name__
        raise ValueError(f"cannot read the shard {shard}: {why.rstrip('.')}.") from error
    return rows


def _is_shard(part: Any) -> bool:
    if isinstance(part, str | Path):
        return str(part).endswith(".npy")
    return isinstance(part, np.memmap) and part.ndim == 2
