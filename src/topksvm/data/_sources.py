"""Rows that need not fit in memory: what a solver must know to read them by the piece.

A source has a shape, a type to compute in, and pieces that are cheap to read in one go. float16 and
bfloat16 are widened as they are read.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from topksvm.data._array_sources import array_source, file_of, is_half
from topksvm.data._arrow_source import ArrowSource

Floats = NDArray[np.floating[Any]]

MIN_PIECE, MAX_PIECE = 1 << 16, 1 << 20
"""Bytes that are read in one go: enough for a disk to be fast, little enough to shuffle well."""


UNKNOWN_LIMIT = 1 << 32
"""Bytes above which a memory map is read by the piece where the memory is not known: 4 GiB."""


@runtime_checkable
class RowSource(Protocol):
    """Rows that can be read by the piece, wherever they are.

    An object of any class with these attributes and methods is trained on, and predicted for, by
    :class:`topksvm.TopKLinearSVC` and :func:`topksvm.solve`, which hold two windows of its rows.

    Attributes
    ----------
    shape : tuple of int
        How many rows and features there are.
    dtype : dtype
        What to compute in, float32 or float64.

    See Also
    --------
    topksvm.TopKLinearSVC : Trains on such an object.

    Examples
    --------
    The guide for contributors has :ref:`a source in one file <add-a-row-source>`.

    >>> import numpy as np
    >>> from topksvm.data import RowSource
    >>> class Identity:
    ...     shape, dtype = (6, 6), np.dtype(np.float64)
    ...
    ...     def pieces(self, size):
    ...         return [(0, 4), (4, 6)]
    ...
    ...     def read(self, start, stop, out):
    ...         out[...] = np.eye(6)[start:stop]
    >>> isinstance(Identity(), RowSource)
    True
    >>> from topksvm import TopKLinearSVC
    >>> model = TopKLinearSVC().fit(Identity(), [0, 0, 1, 1, 2, 2])
    >>> model.predict(Identity())
    array([0, 0, 1, 1, 2, 2])
    """

    shape: tuple[int, int]
    dtype: np.dtype

    def pieces(self, size: int) -> list[tuple[int, int]]:
        """Return ranges of rows, in order, that cover all of them.

        Parameters
        ----------
        size : int
            How many bytes a piece should have, about: a suggestion.

        Returns
        -------
        pieces : list of tuple
            The first row of each piece, and the row after its last one.
        """

    def read(self, start: int, stop: int, out: Floats) -> None:
        """Write rows that lie in one piece to `out`.

        Parameters
        ----------
        start, stop : int
            The first row, and the row after the last one.
        out : ndarray of shape (stop - start, n_features)
            Where to write them, float32 or float64. It is called by one thread at a time, which
            need not be the one that made the source.
        """


class ConvertedSource:
    """The rows of a source in another precision than its own."""

    def __init__(self, source: RowSource, dtype: Any) -> None:
        self.source, self.shape, self.dtype = source, source.shape, np.dtype(dtype)

    def pieces(self, size: int) -> list[tuple[int, int]]:
        """See the protocol."""
        return self.source.pieces(size)

    def read(self, start: int, stop: int, out: Floats) -> None:
        """See the protocol."""
        self.source.read(start, stop, out)


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
    """Return whether `X` is read by the piece: a source, shards, Arrow, or half floats."""
    if isinstance(X, RowSource):
        return True
    if isinstance(X, list | tuple):
        return bool(X) and all(_is_shard(part) for part in X)
    if hasattr(X, "get_fragments"):
        return True
    return isinstance(X, np.ndarray) and X.ndim == 2 and is_half(X.dtype)


def is_streamed(X: Any, memory_limit: int | None = None) -> bool:
    """Return whether `X` is to be read by the piece: not in memory, and too large for it."""
    if not isinstance(X, np.memmap) or X.ndim != 2:
        return is_out_of_core(X)
    if memory_limit is None:
        memory = _physical_memory()
        memory_limit = UNKNOWN_LIMIT if memory is None else memory // 2
    return is_out_of_core(X) or X.nbytes > memory_limit


def _physical_memory() -> int | None:
    """Return the memory of the machine in bytes, or None where the system does not say."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf, others lack a name.
        return None
    return memory if memory > 0 else None


def open_source(X: Any, dtype: Any = None) -> RowSource:
    """Return `X` as a source of rows, to compute in `dtype` or else in their own precision."""
    source = _source_of(X)
    return source if dtype in (None, source.dtype) else ConvertedSource(source, dtype)


def _source_of(X: Any) -> RowSource:
    if isinstance(X, RowSource):
        _check_source(X)
        return X
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


def _check_source(source: RowSource) -> None:
    """Complain about a source, of a class of the user's, that cannot be read."""
    shape, dtype = tuple(source.shape), np.dtype(source.dtype)
    if len(shape) != 2 or min(shape) < 1 or dtype not in (np.float32, np.float64):
        raise ValueError(
            f"X, a {type(source).__name__}, has shape {shape} and dtype {dtype}; a source must "
            "have rows and features, (n, d), and dtype float32 or float64."
        )


def _opened(shard: Any) -> Any:
    if not isinstance(shard, str | Path):
        return shard
    try:
        return np.load(shard, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise ValueError(f"cannot read the shard {shard}: {error}") from error


def _is_shard(part: Any) -> bool:
    if isinstance(part, str | Path):
        return str(part).endswith(".npy")
    return isinstance(part, np.memmap) and part.ndim == 2
