"""Binary problems over pairs of examples and classes, whose features are never formed."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from topksvm._numba import kernel
from topksvm.baselines._labellings import Labelling, Measure, Truth, most_violated

Floats = NDArray[np.floating[Any]]

ROWS = 2048
"""Rows of X that are widened to float64 at a time."""
DENSE = 0.15
"""The share of entries from which on a matrix product is faster than sums over entries."""


class Reduction:
    """The binary problem with an entry for each row of X and each column of weights.

    Entry ``i * columns + j`` has the score ``<w_j, x_i>``. With a column per class it is the
    multiclass reduction, where ``(i, y_i)`` is positive; with one column it is a class against the
    others.

    The scores that are searched have the precision of X. Normals of planes are sums in float64, and
    so are the scores that certificates are made of.
    """

    def __init__(self, X: Any, positives: NDArray[np.intp], columns: int, measure: Measure) -> None:
        self.X = X
        self.columns = columns
        self.truth = Truth(positives, X.shape[0] * columns)
        self.measure = measure

    @property
    def width(self) -> int:
        """The number of weights."""
        return self.columns * int(self.X.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """The precision of scores and planes."""
        return np.dtype(self.X.dtype)

    def scores(self, weights: Floats) -> Floats:
        """Return the scores of all entries, in the precision of X."""
        return self._scores(self.X, weights.astype(self.dtype, copy=False))

    def exact_scores(self, weights: Floats) -> Floats:
        """Return the scores of all entries in float64."""
        if self.dtype == np.float64:
            return self._scores(self.X, weights)
        parts = [self._scores(self.X[rows].astype(np.float64), weights) for rows in self._blocks()]
        return np.concatenate(parts)

    def _scores(self, X: Any, weights: Floats) -> Floats:
        return np.ascontiguousarray(X @ weights.reshape(self.columns, -1).T).ravel()

    def _blocks(self) -> list[slice]:
        return [slice(begin, begin + ROWS) for begin in range(0, self.X.shape[0], ROWS)]

    def worst(self, scores: Floats) -> Labelling:
        """Return the most violated labelling."""
        return most_violated(scores, self.truth, self.measure)

    def normal(self, labelling: Labelling) -> Floats:
        """Return ``Psi(truth) - Psi(labelling)``, in float64."""
        unit, parts = self.truth.unit, ((1.0, labelling.missed), (-1.0, labelling.false))
        count = sum(entries.size for _, entries in parts)
        if sp.issparse(self.X) or count > DENSE * self.truth.is_negative.size:
            signs = np.zeros(self.truth.is_negative.size, dtype=np.int8)
            for sign, entries in parts:
                signs[entries] = sign
            return unit * self._combination(signs)
        sums = np.zeros((self.columns, self.X.shape[1]))
        for sign, entries in parts:
            add_rows(sums, self.X, entries, sign)
        return unit * sums.ravel()

    def _combination(self, factors: NDArray[Any]) -> Floats:
        """Return the sum of the features of all entries times their factors."""
        table = factors.reshape(-1, self.columns)
        total = np.zeros((self.columns, self.X.shape[1]))
        for rows in self._blocks():
            # As a sparse matrix the features of X stay so, too.
            part = sp.csr_array(table[rows].T) if sp.issparse(self.X) else table[rows].T
            total += part.astype(np.float64) @ self.X[rows].astype(np.float64, copy=False)
        return total.ravel()

    def first_normal(self) -> Floats | None:
        """Return the mean normal of labellings that miss all positives, if the measure allows them.

        They predict as many negatives as there are positives, or as the measure asks for. Their
        mean is a valid plane with the full loss, in a direction that is of use from the start.
        """
        truth, size = self.truth, self.measure.size
        if not self.measure.exactly:
            limit = min if self.measure.recall else max
            size = limit(size, truth.positives.size)
        if size > truth.n_negatives:
            return None
        signs = np.where(truth.is_negative, -size / truth.n_negatives, 1.0)
        return truth.unit * self._combination(signs)


@kernel
def add_rows(sums, X, entries, sign):
    """Add the rows of X of all entries to the rows of `sums` that are their columns, times sign."""
    columns = sums.shape[0]
    for entry in entries:
        # Slices of their own, as the compiler does not see through indices of two dimensions.
        target, source = sums[entry % columns], X[entry // columns]
        for f in range(target.size):
            target[f] += sign * source[f]
