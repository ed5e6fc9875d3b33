r"""Coordinates in which the objective of a smooth loss is nearly round.

For each class the objective has about the curvature

.. math::
    G = I + \frac{\delta}{m} \sum_i C_i \, x_i x_i^\top = L L^\top

where :math:`\delta / m` stands for the curvature of the loss, :math:`p (1 - p)` for softmax:
an example gives each of the ``m`` classes its share, and less the fewer doubts there are left. In
``V = W L`` this is the identity, so that L-BFGS need not learn the spread of the features first.
For sparse rows, which may have very many features, the diagonal of ``G`` must do.

Bounds of this kind go back to Böhning (1992), "Multinomial logistic regression algorithm", Ann.
Inst. Statist. Math. 44; here it only chooses coordinates, so it need not be a bound.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky
from scipy.linalg.lapack import dtrtri

from topksvm._interrupts import raise_if_stopped
from topksvm._threads import map_ranges
from topksvm.data import DenseRows, Problem, SparseRows

Floats = NDArray[np.floating[Any]]

DOUBT = 0.1
"""The curvature of the loss, times the number of classes. From 0.03 to 0.3 the evaluations needed
on digits and silhouettes differ by up to a third; a mixture that can be separated, with a large C,
is trained best with this value."""

LEAST_ROWS = 4
"""Examples per feature from which on the coordinates cost little beside an evaluation."""

ENOUGH_ROWS = 8
"""Examples per feature from which the curvature is estimated, where there are more."""

AFFORDABLE = 5
"""Evaluations of the objective that the estimate may cost as much as."""

STRIPES, LEAST_STRIPE = 4, 128
"""Parts that a triangular matrix is divided into, and how wide they are at least."""

BLOCK_ENTRIES = 1 << 20
"""Entries of the rows that are copied at a time."""


class Metric:
    """The change of coordinates ``W = V inverse``, with ``inverse = L^-1``.

    Parameters
    ----------
    factor : ndarray of shape (d, d)
        ``L``, lower triangular.
    dtype : dtype
        The precision of the weights.
    """

    def __init__(self, factor: Floats, dtype: np.dtype[Any]) -> None:
        self.factor = factor
        inverse, _ = dtrtri(factor, lower=1)
        self.inverse = np.ascontiguousarray(inverse, dtype)

    def coordinates(self, weights: Floats) -> Floats:
        """Return ``V`` for ``W``, in float64."""
        return weights @ self.factor

    def weights(self, coordinates: Floats) -> Floats:
        """Return ``W`` for ``V``."""
        left = coordinates.astype(self.inverse.dtype, copy=False)
        out = np.empty_like(left)

        def work(start: int, stop: int) -> None:
            out[:, start:stop] = left[:, start:] @ self.inverse[start:, start:stop]

        map_ranges(work, stripes(len(self.inverse)))
        return out

    def gradient(self, by_weights: Floats) -> Floats:
        """Return the gradient by ``V`` for that by ``W``."""
        out = np.empty(by_weights.shape, np.result_type(by_weights, self.inverse))

        def work(start: int, stop: int) -> None:
            out[:, start:stop] = by_weights[:, :stop] @ self.inverse[start:stop, :stop].T

        map_ranges(work, stripes(len(self.inverse)))
        return out

    def curvature(self, direction: Floats, slope: Floats) -> float:
        """Return that of the objective for softmax at zero along ``direction = weights(slope)``.

        There ``p (1 - p)`` is ``1 / m``, so with ``||direction L||^2 = ||slope||^2`` it follows
        from ``G``.
        """
        own = sum_of_squares(direction)
        return own + (sum_of_squares(slope) - own) / DOUBT


class DiagonalMetric:
    """The change of coordinates of sparse rows, feature by feature: the diagonal of ``L``.

    Rare and common features of a text differ by orders of magnitude.
    """

    def __init__(self, curvature: Floats, dtype: np.dtype[Any]) -> None:
        self.factor = np.sqrt(curvature)
        self.inverse = (1.0 / self.factor).astype(dtype)

    def coordinates(self, weights: Floats) -> Floats:
        """Return ``V`` for ``W``, in float64."""
        return weights * self.factor

    def weights(self, coordinates: Floats) -> Floats:
        """Return ``W`` for ``V``."""
        return coordinates.astype(self.inverse.dtype, copy=False) * self.inverse

    def gradient(self, by_weights: Floats) -> Floats:
        """Return the gradient by ``V`` for that by ``W``."""
        return by_weights * self.inverse


def stripes(d: int) -> list[tuple[int, int]]:
    """Return ranges of features; a product for each leaves out most zeros of a triangular matrix.

    They are shared by our threads. (BLAS has products of triangular matrices, but it has one
    thread here.)
    """
    width = max(LEAST_STRIPE, -(-d // STRIPES))
    return [(start, min(start + width, d)) for start in range(0, d, width)]


def sum_of_squares(x: Floats) -> float:
    """Return ``||x||^2``, summed in float64."""
    wide = x.ravel(order="K").astype(np.float64, copy=False)  # In memory order: without a copy.
    return float(wide @ wide)


def make_metric(problem: Problem) -> Metric | DiagonalMetric | None:
    """Return the metric of the problem, or None if it would cost more than it saves.

    That is where dense rows are few: a change of coordinates costs ``2 m d^2``, and an evaluation
    ``4 n m d``. Or where the classes are few: the estimate costs ``2 d^2`` for each example that it
    looks at.
    """
    n, m, d = problem.n, problem.m, problem.d
    if isinstance(problem.rows, SparseRows):
        return _diagonal_metric(problem.rows, problem)
    if n < LEAST_ROWS * d:
        return None
    stride = max(1, n // (ENOUGH_ROWS * d))
    if (n // stride) * d > AFFORDABLE * 2 * n * m:
        return None
    curvature = _second_moments(problem.rows, problem.examples.C, stride)
    curvature *= DOUBT / m
    # Rounding must not make it indefinite.
    curvature[np.diag_indices(d)] += 1.0 + np.finfo(problem.dtype).eps * np.trace(curvature)
    if not np.isfinite(curvature).all():
        return None
    factor = cholesky(curvature, lower=True, overwrite_a=True, check_finite=False)
    return Metric(factor, problem.dtype)


def _diagonal_metric(rows: SparseRows, problem: Problem) -> DiagonalMetric | None:
    C, d = problem.examples.C, problem.d
    weights = np.repeat(C, np.diff(rows.indptr)) * np.square(rows.data, dtype=np.float64)
    moments = np.bincount(rows.indices, weights, d)
    moments[-1] += rows.bias**2 * C.sum()  # Of the constant feature, if there is one.
    curvature = 1.0 + DOUBT / problem.m * moments
    return DiagonalMetric(curvature, problem.dtype) if np.isfinite(curvature).all() else None


def _second_moments(rows: DenseRows, C: Floats, stride: int) -> Floats:
    """Return the lower triangle of ``sum_i C_i x_i x_i'``, from every `stride`-th example."""
    n, d = rows.x.shape
    d += rows.bias != 0.0
    moments = np.zeros((d, d))
    block = max(1, BLOCK_ENTRIES // d) * stride
    for start in range(0, n, block):
        raise_if_stopped()
        part = slice(start, min(start + block, n), stride)
        x = rows.x[part]
        if rows.bias != 0.0:
            x = np.column_stack([x, np.full(len(x), rows.bias, x.dtype)])
        x = x * np.sqrt(stride * C[part]).astype(x.dtype)[:, None]
        add_triangle(x, moments)
    return moments


def add_triangle(x: Floats, out: Floats) -> None:
    """Add the lower triangle of ``x' x``, and a little more, to `out`."""

    def work(start: int, stop: int) -> None:
        out[start:, start:stop] += x[:, start:].T @ x[:, start:stop]

    map_ranges(work, stripes(len(out)))
