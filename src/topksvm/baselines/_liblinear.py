"""LIBLINEAR as scikit-learn has it, below :class:`sklearn.svm.LinearSVC`.

That one warns about every class that is stopped by the number of iterations. Such warnings can be
kept from the user only by filters that belong to the whole process, which other threads change,
too. Here nothing is said, and the caller sees by the number of iterations.
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.svm import _liblinear
from sklearn.utils import check_random_state

Array = NDArray[Any]

LARGEST_INT = np.iinfo(np.intc).max

ONE_AT_A_TIME = threading.Lock()
"""The random numbers of LIBLINEAR belong to the process, so that threads would mix them up."""


class LiblinearOptions(NamedTuple):
    """Without an intercept, and as the arguments of :class:`sklearn.svm.LinearSVC` otherwise."""

    loss: str
    C: float
    tol: float
    max_iter: int
    seed: int

    def solver(self, n: int, d: int) -> int:
        """Return the number of the solver: the Newton method for tall data and a smooth loss."""
        if self.loss == "hinge":
            return 3
        return 1 if n < d else 2


def train_liblinear(
    options: LiblinearOptions, X: Any, labels: Array, weights: Array
) -> tuple[Array, int]:
    """Return the normal vectors, of two classes that of the latter, and the most iterations."""
    numbers, classes = np.unique(labels, return_inverse=True)[::-1]
    rows = _with_small_indices(X) if sp.issparse(X) else np.ascontiguousarray(X)
    with ONE_AT_A_TIME:
        _liblinear.set_verbosity_wrap(0)
        normals, counts = _liblinear.train_wrap(
            rows,
            numbers.astype(np.float64),
            sp.issparse(rows),
            options.solver(*rows.shape),
            options.tol,
            -1.0,  # No constant feature.
            options.C,
            np.ones(classes.size),
            options.max_iter,
            check_random_state(options.seed).randint(LARGEST_INT),
            0.1,  # The width of a regression.
            np.ascontiguousarray(weights, np.float64),
        )
    return normals, int(np.max(counts))


def _with_small_indices(X: Any) -> Any:
    """Return CSR rows with the indices that LIBLINEAR has."""
    if X.indices.dtype == X.indptr.dtype == np.intc:
        return X
    if max(X.nnz, *X.shape) > LARGEST_INT:
        raise ValueError(
            f"X has {X.nnz} entries, and LIBLINEAR can address {LARGEST_INT}. Take fewer rows."
        )
    parts = (X.data, X.indices.astype(np.intc), X.indptr.astype(np.intc))
    return type(X)(parts, shape=X.shape)
