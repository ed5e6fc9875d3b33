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
def copy_row(rows, i, out):
    """Write the dense row `i`, with the constant feature if there is one, to `out`."""
    return rows.copy_row(rows, i, out)


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
        x, d = rows.x, rows.x.shape[1]
        whole = n - n % 4
        for j in range(0, whole, 4):  # Four at a time: the row is read once for all of them.
            out[j], out[j + 1], out[j + 2], out[j + 3] = four_dots(
                weights, classes[j], classes[j + 1], classes[j + 2], classes[j + 3], x, i
            )
        for j in range(whole, n):
            out[j] = dot(weights, classes[j], x, i)
        if rows.bias != 0.0:
            for j in range(n):
                out[j] += weights[classes[j], d] * rows.bias

    @staticmethod
    def scores_of_all(rows, weights, i, out):
        """See the function of this name."""
        d, m = rows.x.shape[1], out.size
        whole = m - m % 4
        for j in range(0, whole, 4):
            out[j], out[j + 1], out[j + 2], out[j + 3] = four_dots(
                weights, j, j + 1, j + 2, j + 3, rows.x, i
            )
        for j in range(whole, m):
            out[j] = dot(weights, j, rows.x, i)
        if rows.bias != 0.0:
            for j in range(out.size):
                out[j] += weights[j, d] * rows.bias

    @staticmethod
    def add_row(rows, weights, i, k, factor):
        """See the function of this name."""
        d = rows.x.shape[1]
        scale = weights.dtype.type(factor)  # So that no entry is widened.
        for j in range(d):
            weights[k, j] += scale * rows.x[i, j]
        if rows.bias != 0.0:
            weights[k, d] += factor * rows.bias

    @staticmethod
    def copy_row(rows, i, out):
        """See the function of this name."""
        d = rows.x.shape[1]
        for j in range(d):
            out[j] = rows.x[i, j]
        if rows.bias != 0.0:
            out[d] = rows.bias

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
def dot(weights, k, x, i):
    """Return ``<w_k, x_i>``; weights beyond the features of `x` do not count."""
    total = weights.dtype.type(0)
    for j in range(x.shape[1]):
        total += weights[k, j] * x[i, j]
    return total


@summing_kernel
def four_dots(weights, a, b, c, e, x, i):
    """Return ``<w_a, x_i>``, ``<w_b, x_i>``, ``<w_c, x_i>`` and ``<w_e, x_i>``."""
    first = second = third = fourth = weights.dtype.type(0)
    for j in range(x.shape[1]):
        value = x[i, j]
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
        copy_row(rows, i, out[i - start])
