"""Cutting planes, and the quadratic program over them.

A labelling with loss ``l`` and ``g = Psi(truth) - Psi(labelling)`` is a lower bound on the risk,
the largest violation: ``R(w) >= l - <g, w>``. The best ``w`` with respect to the planes kept is
``w = sum_t alpha_t g_t``, where ``alpha`` maximises the dual::

    D(alpha) = <l, alpha> - 1/2 ||sum_t alpha_t g_t||^2    over  alpha >= 0,  sum_t alpha_t = C

Plane 0 is that of the truth, with loss and ``g`` zero. Every feasible ``alpha`` is a lower bound on
the optimum of the full problem.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm._numba import kernel, summing_kernel

Floats = NDArray[np.floating[Any]]

OLD = 50
"""Solutions in which a plane may be unused before it is dropped, as in SVM^struct."""
MAX_STEPS = 200_000
"""The most steps in one solution; with fewer planes than 1000 not met by far."""
BLOCK = 2048
"""Weights that are summed up at a time, in the fastest cache."""


class Planes:
    """The planes kept, with their Gram matrix and multipliers.

    Memory: ``width`` numbers per plane. Unused ones are dropped, so there are seldom more than
    a few hundred.

    Parameters
    ----------
    width : int
        The number of weights.
    dtype : dtype
        In which normals are kept; sums over them are in float64.
    """

    def __init__(self, width: int, dtype: Any = np.float64) -> None:
        self.count = 1
        self._normals = np.zeros((4, width), dtype)
        self._gram = np.zeros((4, 4))
        self._losses = np.zeros(4)
        self._alphas = np.zeros(4)
        self._ages = np.zeros(4, dtype=np.int64)

    @property
    def alphas(self) -> Floats:
        """The multipliers."""
        return self._alphas[: self.count]

    def add(self, normal: Floats, loss: float) -> None:
        """Keep one more plane, with multiplier 0."""
        if self.count == self._losses.size:
            self._grow(2 * self.count)
        new = self.count
        self.count += 1
        self._normals[new] = normal
        fill_products(self._gram[new], self._normals[: self.count])
        self._gram[: self.count, new] = self._gram[new, : self.count]
        self._losses[new], self._alphas[new], self._ages[new] = loss, 0.0, 0

    def solve(self, C: float, tol: float) -> None:
        """Maximise the dual to a gap of `tol`, from the present multipliers."""
        alphas = self.alphas
        alphas[0] = 0.0
        total = float(alphas.sum())
        if total > C:
            alphas *= C / total
        alphas[0] = max(0.0, C - float(alphas.sum()))
        maximise_dual(self._gram, alphas, self._bounds(), float(tol), np.int64(MAX_STEPS))
        ages = self._ages[: self.count]
        ages[:] = np.where(alphas > 0, 0, ages + 1)
        self._drop_old()

    def weights(self) -> Floats:
        """Return ``sum_t alpha_t g_t``."""
        weights = np.zeros(self._normals.shape[1])
        add_combination(weights, self.alphas, self._normals, np.int64(BLOCK))
        return weights

    def dual(self, weights: Floats) -> float:
        """Return the dual value, given the weights that belong to the multipliers.

        Normals kept in float32 differ from those of the labellings by rounding, and the value is
        the least that it can be.
        """
        norm = float(np.sqrt(weights @ weights))
        if self._normals.dtype == np.float32:
            lengths = np.sqrt(np.diagonal(self._gram)[: self.count])
            norm += float(np.finfo(np.float32).eps) * float(self.alphas @ lengths)
        return float(self._losses[: self.count] @ self.alphas) - 0.5 * norm**2

    def slack(self) -> float:
        """Return the largest bound on the risk by a plane at the weights of the multipliers."""
        return float(self._bounds().max())

    def _bounds(self) -> Floats:
        """Return ``l_t - <g_t, w>``, which is the slope of the dual as well."""
        gram = self._gram[: self.count, : self.count]
        return self._losses[: self.count] - gram @ self.alphas

    def _grow(self, capacity: int) -> None:
        old = self.count
        for name in ("_normals", "_losses", "_alphas", "_ages"):
            values = getattr(self, name)
            grown = np.zeros((capacity, *values.shape[1:]), dtype=values.dtype)
            grown[:old] = values
            setattr(self, name, grown)
        gram = np.zeros((capacity, capacity))
        gram[:old, :old] = self._gram
        self._gram = gram

    def _drop_old(self) -> None:
        kept = (self._ages[: self.count] < OLD) | (self.alphas > 0)
        kept[0] = True
        left = np.flatnonzero(kept)
        # Moving planes costs time, so several go at once.
        if self.count - left.size < 16:
            return
        self._gram[: left.size, : left.size] = self._gram[np.ix_(left, left)]
        for new, old in enumerate(left):
            if new != old:
                self._normals[new] = self._normals[old]
        for values in (self._losses, self._alphas, self._ages):
            values[: left.size] = values[left]
        self.count = left.size


@summing_kernel
def fill_products(products, normals):
    """Set the products of the last normal with all."""
    last = normals[normals.shape[0] - 1]
    for t in range(normals.shape[0]):
        normal, total = normals[t], 0.0
        for f in range(last.size):
            total += np.float64(normal[f]) * np.float64(last[f])
        products[t] = total


@kernel
def add_combination(weights, alphas, normals, block):
    """Add ``sum_t alpha_t g_t``."""
    for begin in range(0, weights.size, block):
        part = weights[begin : begin + block]
        for t in range(alphas.size):
            if alphas[t] != 0.0:
                alpha, normal = alphas[t], normals[t, begin : begin + block]
                for f in range(part.size):
                    part[f] += alpha * normal[f]


@kernel
def maximise_dual(gram, alphas, slopes, tol, max_steps):
    """Maximise the dual over the simplex by exact steps along pairs of coordinates.

    The pair: the largest slope, and the coordinate from which a step there gains most (the second
    order choice of SMO). Stops when ``<grad, best vertex - alpha>``, a bound on what is left to be
    gained, is at most `tol`.
    """
    count = alphas.size
    for _ in range(max_steps):
        up = np.argmax(slopes)
        gap, gain, down = 0.0, 0.0, -1
        for t in range(count):
            if alphas[t] > 0.0:
                rise = slopes[up] - slopes[t]
                gap += alphas[t] * rise
                curvature = max(gram[up, up] + gram[t, t] - 2.0 * gram[up, t], 1e-300)
                if rise * min(rise / curvature, alphas[t]) > gain:
                    gain, down = rise * min(rise / curvature, alphas[t]), t
        if gap <= tol or down < 0:
            break
        curvature = max(gram[up, up] + gram[down, down] - 2.0 * gram[up, down], 1e-300)
        step = (slopes[up] - slopes[down]) / curvature
        if step >= alphas[down] * (1.0 - 1e-12):
            step = alphas[down]
        alphas[up] += step
        alphas[down] = alphas[down] - step
        for t in range(count):
            slopes[t] -= step * (gram[up, t] - gram[down, t])
