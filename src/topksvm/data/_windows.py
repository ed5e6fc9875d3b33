"""Windows of rows, read ahead by a thread while the one before is worked on.

Single rows in random order would each cost a disk a seek. Here pieces of some hundred kilobytes are
read in random order until a window is full, and the rows are shuffled within it. With a thousand
pieces to a window, that takes as many passes as a shuffle of all rows, even on a file sorted by
class; with thirty it takes more (n = 20,000, d = 256, m = 200, sorted, windows of a tenth of the
rows, full passes only, to a relative gap of 1e-3: 21 passes for a full shuffle, 21, and 29).
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm.data import _sources
from topksvm.data._sources import RowSource

Floats = NDArray[np.floating[Any]]
Indices = NDArray[np.int64]
Piece = tuple[int, int]

PIECES = 1024
"""Pieces of a window, about."""


@dataclass(frozen=True)
class Window:
    """Rows in memory, and which rows they are."""

    x: Floats
    index: Indices


class WindowReader:
    """Reads windows of at most `rows` rows into two buffers that take turns."""

    def __init__(self, source: RowSource, rows: int) -> None:
        self.source = source
        # Many pieces, so that a window has rows of all classes even if the file is sorted by them.
        wanted = rows * source.shape[1] * source.dtype.itemsize // PIECES
        size = min(max(wanted, _sources.MIN_PIECE), _sources.MAX_PIECE)
        self.pieces = source.pieces(size)
        _sources.check_pieces(self.pieces, source.shape[0])
        largest = max(stop - start for start, stop in self.pieces)
        self.rows = min(max(rows, largest), source.shape[0])
        self.buffers = [np.empty((self.rows, source.shape[1]), source.dtype) for _ in range(2)]

    def plan(self, rng: np.random.Generator | None) -> list[list[Piece]]:
        """Return the pieces of every window, in random order unless `rng` is None."""
        order = range(len(self.pieces)) if rng is None else rng.permutation(len(self.pieces))
        windows: list[list[Piece]] = []
        used = self.rows
        for number in order:
            start, stop = self.pieces[number]
            if used + stop - start > self.rows:
                windows.append([])
                used = 0
            windows[-1].append((start, stop))
            used += stop - start
        return windows

    def read(self, windows: list[list[Piece]]) -> Iterator[Window]:
        """Yield the windows in turn; each is valid until the next one is asked for."""
        with ThreadPoolExecutor(1) as reader:
            ahead: Future[Window] | None = None
            for number in range(len(windows)):
                window = (ahead or reader.submit(self._fill, windows[number], number)).result()
                if number + 1 < len(windows):
                    ahead = reader.submit(self._fill, windows[number + 1], number + 1)
                yield window

    def _fill(self, pieces: list[Piece], number: int) -> Window:
        buffer, used, index = self.buffers[number % 2], 0, []
        for start, stop in pieces:
            self.source.read(start, stop, buffer[used : used + stop - start])
            index.append(np.arange(start, stop))
            used += stop - start
        return Window(buffer[:used], np.concatenate(index))
