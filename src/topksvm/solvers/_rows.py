"""Rows of X, dense or sparse, behind one interface for the kernels.

The weights are kept in the layout that suits the rows: ``(m, d)`` for dense ones, so that a class
is contiguous, and ``(d, m)`` for sparse ones, so that a feature is. A `bias` other than 0 is the
value of a constant last feature that X itself does not hold.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topksvm._numba import dispatched, kernel, summing_kernel


@dispatched
def scores_at(rows, weights, i, classes, n, out):
    """Write the scores of row `i` for ``classes[:n]`` to `out`."""
    return rows.scores_at(rows, weights, i, classes, n, out)


@dispatched
def scores_of_all(rows, weights, i, out):
    """Write the scores of row `i` for all classes to `out`."""
    return rows.scores_of_all(rows, weights, i, out)


@dispatched
def add_row(rows, weights, i, k, factor):
    """Add `factor` times row `i` to the weights of class `k`."""
    return rows.add_row(rows, weights, i, k, factor)


@dispatched
def squared_norm(rows, i):
    """Return ``<x_i, x_i>`` in float64."""
    return rows.squared_norm(rows, i)


class DenseRows(NamedTuple):
    """Rows of a C-ordered array."""

    x: NDArray[np.floating[Any]]
    bias: float

    @staticmethod
    def scores_at(rows, weights, i, classes, n, out):
        """See the function of this name."""
        x, d = rows.x[i], rows.x.shape[1]
        for j in range(n):
            out[j] = dot(weights[classes[j]], x)
        if rows.bias != 0.0:
            for j in range(n):
                out[j] += weights[classes[j], d] * rows.bias

    @staticmethod
    def scores_of_all(rows, weights, i, out):
        """See the function of this name."""
        x, d = rows.x[i], rows.x.shape[1]
        for j in range(weights.shape[0]):
            out[j] = dot(weights[j], x)
        if rows.bias != 0.0:
            for j in range(weights.shape[0]):
                out[j] += weights[j, d] * rows.bias

    @staticmethod
    def add_row(rows, weights, i, k, factor):
        """See the function of this name."""
        axpy(factor, rows.x[i], weights[k])
        if rows.bias != 0.0:
            weights[k, rows.x.shape[1]] += factor * rows.bias

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
    def scores_at(rows, weights, i, classes, n, out):
        """See the function of this name."""
        last = weights.shape[0] - 1
        for j in range(n):
            out[j] = weights[last, classes[j]] * rows.bias if rows.bias != 0.0 else 0.0
        for p in range(rows.indptr[i], rows.indptr[i + 1]):
            feature, value = rows.indices[p], rows.data[p]
            for j in range(n):
                out[j] += value * weights[feature, classes[j]]

    @staticmethod
    def scores_of_all(rows, weights, i, out):
        """See the function of this name."""
        m = weights.shape[1]
        out[:m] = 0.0
        for p in range(rows.indptr[i], rows.indptr[i + 1]):
            axpy(rows.data[p], weights[rows.indices[p]], out)
        if rows.bias != 0.0:
            axpy(rows.bias, weights[weights.shape[0] - 1], out)

    @staticmethod
    def add_row(rows, weights, i, k, factor):
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
def dot(w, x):
    """Return ``<w[: x.size], x>``."""
    total = w[0] * x[0]
    for j in range(1, x.size):
        total += w[j] * x[j]
    return total


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
def gather_rows(x, bias, index, out):
    """Copy the rows ``x[index]``, with the constant feature if there is one, to `out`."""
    d = x.shape[1]
    for i in range(index.size):
        row = x[index[i]]
        for j in range(d):
            out[i, j] = row[j]
        if bias != 0.0:
            out[i, d] = bias
