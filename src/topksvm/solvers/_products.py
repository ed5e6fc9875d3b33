"""The two products of an evaluation, scores ``X W'`` and ``A' X``, for some examples at a time.

Weights are ``(m, d)`` here whatever the rows are; those for sparse rows are best the transpose of
an array in C order, as they are read feature by feature.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from topksvm._numba import borrow, kernel, summing_kernel
from topksvm._threads import map_parts, map_row_ranges
from topksvm.data import DenseRows, Problem, SparseRows, axpy

Floats = NDArray[np.floating[Any]]
Labels = NDArray[np.integer[Any]]

CACHED_SCORES = 1 << 19
"""Scores that are still in the cache when they are read again."""


PARTS = 4
"""Parts of the gradient that threads compute side by side."""

SMALL_PRODUCT = 1 << 22
"""Multiplications in a product below which another thread does not pay."""


class DenseProducts:
    """Products by BLAS, which has one thread for each of ours.

    Attributes
    ----------
    block : int
        How many examples to take at a time.
    wide_block : int
        The same where their rows have to be widened: fresh memory for many takes time.
    """

    def __init__(self, rows: DenseRows, labels: Labels, m: int) -> None:
        self.rows, self.labels = rows, labels
        n, d = rows.x.shape
        self.block = max(256, min(n, (1 << 22) // m))
        self.wide_block = min(self.block, max(256, (1 << 20) // max(m, d)))
        self.row_size = m * d

    def prepared(self, weights: Floats) -> Floats:
        """Return the weights in the layout that `scores` wants."""
        return weights

    def scores(self, weights: Floats, start: int, stop: int, out: Floats) -> None:
        """Write the scores of the examples from `start` to `stop` to `out`."""
        x = self._x(start, stop, weights.dtype)
        np.matmul(x, weights[:, : x.shape[1]].T, out=out)
        if self.rows.bias != 0.0:
            out += self.rows.bias * weights[:, -1]

    def add_back(self, coefficients: Any, start: int, stop: int, out: Floats) -> None:
        """Add the sum over examples of their `coefficients` times their row, for each class."""
        x = self._x(start, stop, out.dtype)
        m, d = out.shape[0], x.shape[1]
        if self.rows.bias != 0.0:
            out[:, -1] += self.rows.bias * coefficients.sum(axis=0, dtype=np.float64)
        if m * d * len(x) < SMALL_PRODUCT or sp.issparse(coefficients):
            out[:, :d] += coefficients.T @ x
            return

        def by_features(i: int, j: int) -> None:
            out[:, i:j] += coefficients.T @ x[:, i:j]

        def by_classes(i: int, j: int) -> None:
            out[i:j, :d] += coefficients[:, i:j].T @ x

        # The longer side, so that what all parts read is less.
        work, size = (by_features, d) if d > m else (by_classes, m)
        map_parts(work, size, max(16, -(-size // PARTS)))

    def add_back_from_zero(self, coefficients: Floats, start: int, stop: int, out: Floats) -> None:
        """Do the same where the scores were zero: then all wrong classes of an example are alike.

        One sum for all classes, and one more for the examples of each, take no matrix product.
        """
        labels = self.labels[start:stop]
        rows = np.arange(len(labels))
        wrong = coefficients[rows, (labels == 0).astype(np.intp)]
        more = coefficients[rows, labels] - wrong
        if np.count_nonzero(coefficients == wrong[:, None]) < coefficients.size - len(labels):
            self.add_back(coefficients, start, stop, out)
            return
        own = sp.csr_array((more, (rows, labels)), coefficients.shape)
        common = np.zeros((1, out.shape[1]), out.dtype)
        self.add_back(wrong[:, None], start, stop, common)
        out += common
        self.add_back(own, start, stop, out)

    def _x(self, start: int, stop: int, dtype: np.dtype) -> Floats:
        return self.rows.x[start:stop].astype(dtype, copy=False)


class SparseProducts:
    """Products of CSR rows, a few features at a time; threads share examples, or else classes."""

    def __init__(self, rows: SparseRows, m: int) -> None:
        self.rows, self.m = rows, m
        self.block = self.wide_block = max(256, CACHED_SCORES // m)
        self.row_size = m * (1 + rows.data.size // max(1, rows.indptr.size - 1))

    def prepared(self, weights: Floats) -> Floats:
        """Return the weights in the layout that `scores` wants."""
        return np.ascontiguousarray(weights.T)

    def scores(self, weights: Floats, start: int, stop: int, out: Floats) -> None:  # noqa: ARG002
        """Write the scores of the examples from `start` to `stop` to `out`."""
        sparse_scores(self.rows, weights, start, out)

    def add_back(self, coefficients: Floats, start: int, stop: int, out: Floats) -> None:
        """Add the sum over examples of their `coefficients` times their row, for each class."""
        by_feature = out.T

        def work(i: int, j: int) -> None:
            add_sparse_rows(self.rows, coefficients[:, i:j], start, by_feature[:, i:j])

        map_row_ranges(work, self.m, self.row_size // self.m * (stop - start))

    add_back_from_zero = add_back


def make_products(problem: Problem) -> DenseProducts | SparseProducts:
    """Return the products for the rows of the problem."""
    if isinstance(problem.rows, SparseRows):
        return SparseProducts(problem.rows, problem.m)
    return DenseProducts(problem.rows, problem.examples.labels, problem.m)


@kernel
def sparse_scores(rows, weights, first, out):
    """Write the scores of the sparse rows from `first` on to `out`."""
    rows, weights, out = borrow(rows), borrow(weights), borrow(out)
    v, f = rows.data, rows.indices
    for b in range(out.shape[0]):
        start, stop = rows.indptr[first + b], rows.indptr[first + b + 1]
        y = out[b]
        y[:] = 0.0
        if rows.bias != 0.0:
            axpy(rows.bias, weights[weights.shape[0] - 1], y)
        fours = stop - (stop - start) % 4
        for p in range(start, fours, 4):
            add_four(v, f, p, weights, y)
        for p in range(fours, stop):
            axpy(v[p], weights[f[p]], y)


@kernel
def add_sparse_rows(rows, coefficients, first, out):
    """Add the sparse rows from `first` on, times their coefficients for each class, to `out`."""
    rows, coefficients, out = borrow(rows), borrow(coefficients), borrow(out)
    v, f = rows.data, rows.indices
    for b in range(coefficients.shape[0]):
        start, stop = rows.indptr[first + b], rows.indptr[first + b + 1]
        x = coefficients[b]
        if rows.bias != 0.0:
            axpy(rows.bias, x, out[out.shape[0] - 1])
        fours = stop - (stop - start) % 4
        for p in range(start, fours, 4):
            add_to_four(x, v, f, p, out)
        for p in range(fours, stop):
            axpy(v[p], x, out[f[p]])


@summing_kernel
def add_four(values, features, p, weights, y):
    """Add the weights of the four features from place `p` on, times their values, to `y`."""
    a, b = y.dtype.type(values[p]), y.dtype.type(values[p + 1])
    c, e = y.dtype.type(values[p + 2]), y.dtype.type(values[p + 3])
    wa, wb = weights[features[p]], weights[features[p + 1]]
    wc, we = weights[features[p + 2]], weights[features[p + 3]]
    for j in range(y.size):
        y[j] += (a * wa[j] + b * wb[j]) + (c * wc[j] + e * we[j])


@summing_kernel
def add_to_four(x, values, features, p, out):
    """Add `x`, times the values of the four features from place `p` on, to their rows of `out`."""
    dtype = out.dtype.type
    a, b, c, e = (
        dtype(values[p]), dtype(values[p + 1]), dtype(values[p + 2]), dtype(values[p + 3])
    )  # fmt: skip
    ya, yb = out[features[p]], out[features[p + 1]]
    yc, ye = out[features[p + 2]], out[features[p + 3]]
    for j in range(x.size):
        value = x[j]
        ya[j] += a * value
        yb[j] += b * value
        yc[j] += c * value
        ye[j] += e * value
