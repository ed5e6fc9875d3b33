"""Rows of X, dense or sparse, behind one interface for the kernels.

The weights are kept in the layout that suits the rows: ``(m, d)`` for dense ones, so that a class
is contiguous, and ``(d, m)`` for sparse ones, so that a feature is. A `bias` other than 0 is the
value of a constant last feature that X itself does not hold.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topksvm._numba import dispatched, kernel, summing_kernel

LINE = 64
"""Bytes of a cache line, which vector instructions like to read whole."""


def aligned_zeros(shape: tuple[int, int], dtype: np.dtype) -> NDArray[Any]:
    """Return an array of zeros that begins at a cache line."""
    size = math.prod(shape) * dtype.itemsize
    memory = np.zeros(size + LINE, np.uint8)
    start = -memory.__array_interface__["data"][0] % LINE
    return memory[start : start + size].view(dtype).reshape(shape)


def padded(d: int, dtype: np.dtype) -> int:
    """Return `d` rounded up to whole cache lines."""
    per_line = LINE // dtype.itemsize
    return -(-d // per_line) * per_line


@dispatched
def load_row(rows, i, x):
    """Bring the features of row `i` to `x`, as the functions below want it.

    Beyond the features and the constant one, `x` holds zeros and is left alone. Sparse rows are
    used where they are.
    """
    return rows.load_row(rows, i, x)


@dispatched
def scores_at(rows, weights, i, x, classes, n, out):
    """Write the scores of row `i`, which is loaded, for ``classes[:n]`` to `out`."""
    return rows.scores_at(rows, weights, i, x, classes, n, out)


@dispatched
def scores_of_all(rows, weights, i, x, out):
    """Write the scores of row `i`, which is loaded, for all classes to `out`."""
    return rows.scores_of_all(rows, weights, i, x, out)


@dispatched
def add_row(rows, weights, i, x, k, factor):
    """Add `factor` times row `i`, which is loaded, to the weights of class `k`."""
    return rows.add_row(rows, weights, i, x, k, factor)


@dispatched
def squared_norm(rows, i):
    """Return ``<x_i, x_i>`` in float64."""
    return rows.squared_norm(rows, i)


class DenseRows(NamedTuple):
    """Rows of a C-ordered array.

    A row is copied before it is used: many classes read it then from where it is aligned as the
    weights are, in their precision, with the constant feature in its place.
    """

    x: NDArray[np.floating[Any]]
    bias: float

    @staticmethod
    def load_row(rows, i, x):
        """See the function of this name."""
        d = rows.x.shape[1]
        for j in range(d):
            x[j] = rows.x[i, j]
        if rows.bias != 0.0:
            x[d] = rows.bias

    @staticmethod
    def scores_at(rows, weights, i, x, classes, n, out):
        """See the function of this name."""
        # Four at a time, as the row is read once for all of them; the last one again if there are
        # fewer, so that a score does not depend on the company in which it is computed.
        for j in range(0, n, 4):
            b, c, e = min(j + 1, n - 1), min(j + 2, n - 1), min(j + 3, n - 1)
            out[j], out[b], out[c], out[e] = four_dots(
                weights, classes[j], classes[b], classes[c], classes[e], x
            )

    @staticmethod
    def scores_of_all(rows, weights, i, x, out):
        """See the function of this name."""
        m = out.size
        whole = m - m % 4
        for j in range(0, whole, 4):
            out[j], out[j + 1], out[j + 2], out[j + 3] = four_dots(
                weights, j, j + 1, j + 2, j + 3, x
            )
        for j in range(whole, m):
            out[j] = dot(weights, j, x)

    @staticmethod
    def add_row(rows, weights, i, x, k, factor):
        """See the function of this name."""
        scale = weights.dtype.type(factor)  # So that no entry is widened.
        for j in range(x.size):
            weights[k, j] += scale * x[j]

    @staticmethod
    def squared_norm(rows, i):
        """See the function of this name."""
        return sum_of_squares(rows.x[i]) + rows.bias * rows.bias


class SparseRows(NamedTuple):
    """Rows of a CSR matrix."""

    data: NDArray[np.floating[Any]]
    indices: NDArray[np.integer[Any]]
    indptr: NDArray[np.integer[Any]]
    bias: float

    @staticmethod
    def load_row(rows, i, x):
        """See the function of this name."""

    @staticmethod
    def scores_at(rows, weights, i, x, classes, n, out):
        """See the function of this name."""
        last = weights.shape[0] - 1
        for j in range(n):
            out[j] = weights[last, classes[j]] * rows.bias if rows.bias != 0.0 else 0.0
        for p in range(rows.indptr[i], rows.indptr[i + 1]):
            feature, value = rows.indices[p], rows.data[p]
            for j in range(n):
                out[j] += value * weights[feature, classes[j]]

    @staticmethod
    def scores_of_all(rows, weights, i, x, out):
        """See the function of this name."""
        m = weights.shape[1]
        out[:m] = 0.0
        for p in range(rows.indptr[i], rows.indptr[i + 1]):
            axpy(rows.data[p], weights[rows.indices[p]], out)
        if rows.bias != 0.0:
            axpy(rows.bias, weights[weights.shape[0] - 1], out)

    @staticmethod
    def add_row(rows, weights, i, x, k, factor):
        """See the function of this name."""
        for p in range(rows.indptr[i], rows.indptr[i + 1]):
            weights[rows.indices[p], k] += factor * rows.data[p]
        if rows.bias != 0.0:
            weights[weights.shape[0] - 1, k] += factor * rows.bias

    @staticmethod
    def squared_norm(rows, i):
        """See the function of this name."""
        return sum_of_squares(rows.data[rows.indptr[i] : rows.indptr[i + 1]]) + rows.bias**2


@summing_kernel
def dot(weights, k, x):
    """Return ``<w_k, x>``."""
    total = weights.dtype.type(0)
    for j in range(x.size):
        total += weights[k, j] * x[j]
    return total


@summing_kernel
def four_dots(weights, a, b, c, e, x):
    """Return ``<w_a, x>``, ``<w_b, x>``, ``<w_c, x>`` and ``<w_e, x>``, as `dot` does."""
    first = second = third = fourth = weights.dtype.type(0)
    for j in range(x.size):
        value = x[j]
        first += weights[a, j] * value
        second += weights[b, j] * value
        third += weights[c, j] * value
        fourth += weights[e, j] * value
    return first, second, third, fourth


@summing_kernel
def axpy(factor, x, y):
    """Add ``factor * x`` to ``y[: x.size]``."""
    scale = y.dtype.type(factor)  # In the precision of y, so that no entry is widened.
    for j in range(x.size):
        y[j] += scale * x[j]


@summing_kernel
def sum_of_squares(x):
    """Return ``<x, x>`` in float64."""
    total = 0.0
    for j in range(x.size):
        total += np.float64(x[j]) * np.float64(x[j])
    return total


@kernel
def squared_norms(rows, start, stop, out):
    """Write ``<x_i, x_i>`` of the rows from `start` to `stop` to `out`."""
    for i in range(start, stop):
        out[i] = squared_norm(rows, i)


@kernel
def gather_rows(rows, start, stop, out):
    """Copy the dense rows from `start` to `stop`, with the constant feature, to `out`."""
    for i in range(start, stop):
        load_row(rows, i, out[i - start])
