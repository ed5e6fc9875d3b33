"""The two products of an evaluation, scores ``X W'`` and ``A' X``, for some examples at a time.

Weights are ``(m, d)`` here whatever the rows are; those for sparse rows are best the transpose of
an array in C order, as they are read feature by feature.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from topksvm.solvers._problem import Problem
from topksvm.solvers._rows import DenseRows, SparseRows

Floats = NDArray[np.floating[Any]]
Labels = NDArray[np.integer[Any]]

CACHED_SCORES = 1 << 19
"""Scores that are still in the cache when they are read again."""


class DenseProducts:
    """Products by BLAS.

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

    def scores(self, weights: Floats, start: int, stop: int) -> Floats:
        """Return the scores of the examples from `start` to `stop`."""
        x = self._x(start, stop, weights.dtype)
        scores = x @ weights[:, : x.shape[1]].T
        if self.rows.bias != 0.0:
            scores += self.rows.bias * weights[:, -1]
        return scores

    def add_back(self, coefficients: Any, start: int, stop: int, out: Floats) -> None:
        """Add the sum over examples of their `coefficients` times their row, for each class."""
        x = self._x(start, stop, out.dtype)
        out[:, : x.shape[1]] += coefficients.T @ x
        if self.rows.bias != 0.0:
            out[:, -1] += self.rows.bias * coefficients.sum(axis=0, dtype=np.float64)

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
    """Products of CSR rows by SciPy."""

    def __init__(self, rows: SparseRows, m: int) -> None:
        self.rows = rows
        self.block = self.wide_block = max(256, CACHED_SCORES // m)
        self.last_key: Any = None
        self.last_x: Any = None

    def scores(self, weights: Floats, start: int, stop: int) -> Floats:
        """Return the scores of the examples from `start` to `stop`."""
        x = self._x(start, stop, weights)
        scores = x @ weights.T[: x.shape[1]]
        if self.rows.bias != 0.0:
            scores += self.rows.bias * weights[:, -1]
        return scores

    def add_back(self, coefficients: Floats, start: int, stop: int, out: Floats) -> None:
        """Add the sum over examples of their `coefficients` times their row, for each class."""
        x = self._x(start, stop, out)
        out.T[: x.shape[1]] += x.T @ coefficients
        if self.rows.bias != 0.0:
            out[:, -1] += self.rows.bias * coefficients.sum(axis=0, dtype=np.float64)

    add_back_from_zero = add_back

    def _x(self, start: int, stop: int, like: Floats) -> Any:
        """Return some rows; what was made last is kept, as both products want it."""
        key = start, stop, like.dtype
        if key != self.last_key:
            rows = self.rows
            first, last = rows.indptr[start], rows.indptr[stop]
            self.last_x = sp.csr_array(
                (
                    rows.data[first:last].astype(like.dtype, copy=False),
                    rows.indices[first:last],
                    rows.indptr[start : stop + 1] - first,
                ),
                shape=(stop - start, like.shape[1] - (rows.bias != 0.0)),
            )
            self.last_key = key
        return self.last_x


def make_products(problem: Problem) -> DenseProducts | SparseProducts:
    """Return the products for the rows of the problem."""
    if isinstance(problem.rows, SparseRows):
        return SparseProducts(problem.rows, problem.m)
    return DenseProducts(problem.rows, problem.examples.labels, problem.m)
