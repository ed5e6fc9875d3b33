"""A training problem whose rows do not fit in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm._interrupts import raise_if_stopped
from topksvm.data._problem import Examples, Problem, check_norms, read_only
from topksvm.data._rows import DenseRows, squared_norms
from topksvm.data._sources import RowSource
from topksvm.data._windows import WindowReader

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class StreamedProblem(Problem):
    """A problem whose rows are read in windows; `rows` holds none, only their type and the bias."""

    reader: WindowReader

    def pieces(self, duals: Any) -> Iterator[tuple[Any, Examples, Any]]:
        """Yield all rows in order, a window at a time."""
        for window in self.reader.read(self.reader.plan(None)):
            part = slice(int(window.index[0]), int(window.index[-1]) + 1)
            yield (
                self.rows_of(window.x),
                Examples._make(array[part] for array in self.examples),
                duals._replace(start=duals.start[part], count=duals.count[part]),
            )

    def rows_of(self, x: Floats) -> DenseRows:
        """Return the rows of a window as kernels take them."""
        return DenseRows(read_only(x), self.rows.bias)


def make_streamed_problem(
    source: RowSource,
    labels: NDArray[np.integer[Any]],
    C: Floats,
    m: int,
    bias: float,
    window_rows: int,
) -> StreamedProblem:
    """Return the problem after one look at all rows, for their norms and for bad values."""
    reader = WindowReader(source, window_rows)
    n, d = source.shape
    norms = np.empty(n)
    for window in reader.read(reader.plan(None)):
        raise_if_stopped()
        part = norms[window.index[0] : window.index[-1] + 1]
        rows = DenseRows(read_only(window.x), bias)
        squared_norms(rows, np.int64(0), np.int64(len(window.x)), part)
        check_norms(part, source.dtype, int(window.index[0]))
    rows = DenseRows(read_only(np.empty((0, d), source.dtype)), bias)
    examples = Examples(labels.astype(np.int32), np.ascontiguousarray(C, np.float64), norms)
    return StreamedProblem(rows, examples, m, d + (bias != 0.0), reader)
