"""Kernel functions by name, by scikit-learn, or by the user."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.metrics.pairwise import pairwise_kernels

KERNELS = ("linear", "poly", "rbf", "sigmoid")

Matrix = NDArray[Any]


@dataclass(frozen=True)
class NamedKernel:
    """One of :data:`KERNELS`, with its parameters; it uses those that it has."""

    name: str
    gamma: float
    degree: float
    coef0: float

    def __call__(self, X: Any, Y: Any) -> Matrix:
        """Return ``K(x, y)`` for all pairs of rows."""
        return pairwise_kernels(
            X,
            Y,
            metric=self.name,
            filter_params=True,
            gamma=self.gamma,
            degree=self.degree,
            coef0=self.coef0,
        )


@dataclass(frozen=True)
class PairKernel:
    """A function of two rows, called for every pair."""

    function: Callable[[Any, Any], Any]

    def __call__(self, X: Any, Y: Any) -> Matrix:
        """Return ``K(x, y)`` for all pairs of rows."""
        return pairwise_kernels(X, Y, metric=self.function)


def resolve_gamma(gamma: Any, X: Any) -> float:
    """Return the number that `gamma` stands for, as :class:`sklearn.svm.SVC` defines it."""
    if gamma == "scale":
        variance = _variance(X)
        return 1.0 / (X.shape[1] * variance) if variance > 0.0 else 1.0
    return 1.0 / X.shape[1] if gamma == "auto" else float(gamma)


def _variance(X: Any) -> float:
    if not sp.issparse(X):
        return float(X.var(dtype=np.float64))
    # The zeros that are not stored count as well.
    data, size = X.data.astype(np.float64), X.shape[0] * X.shape[1]
    mean = float(data.sum()) / size
    return (float(np.sum((data - mean) ** 2)) + (size - data.size) * mean**2) / size


def wrap_callable(function: Any, X: Any) -> Any:
    """Return the user's function as one of two matrices, which it may already be.

    As for :class:`sklearn.svm.SVC` it takes two matrices and returns the matrix of all pairs, or as
    for :func:`sklearn.metrics.pairwise.pairwise_kernels` two rows and returns a number. Which of
    the two, a few rows of X tell: on the right not as many as there are features, or ``np.dot``
    would seem to be of the first kind.
    """
    n_right = 3 if X.shape[1] != 3 else 4
    left, right = (
        X[np.resize(np.arange(X.shape[0]), 2)],
        X[np.resize(np.arange(X.shape[0]), n_right)],
    )
    try:
        values: Any = function(left, right)
    except Exception:  # Whatever a function of rows makes of matrices.
        values = None
    if np.shape(values) == (2, n_right):
        return function
    try:
        np.asarray(PairKernel(function)(left, right), dtype=np.float64)
    except Exception as error:
        raise ValueError(
            f"kernel = {function!r} returned neither a matrix for two matrices of rows, as for "
            f"sklearn.svm.SVC, nor a number for two rows ({type(error).__name__}: {error})."
        ) from error
    return PairKernel(function)
