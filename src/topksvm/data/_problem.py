"""A training problem in the form that solvers take, whatever the user passed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from topksvm._threads import map_row_ranges
from topksvm.data._rows import DenseRows, SparseRows, squared_norms

Floats = NDArray[np.floating[Any]]

LARGEST_SHARE = 2.0**-16
"""Share of the largest number of a precision that a squared norm may be, as it is multiplied by
dual variables yet."""


class Examples(NamedTuple):
    """What solvers need to know of the examples besides their rows."""

    labels: NDArray[np.int32]
    C: NDArray[np.float64]
    norms: NDArray[np.float64]


@dataclass(frozen=True)
class Problem:
    """``min_W 1/2 ||W||^2 + sum_i C_i phi(scores of x_i, y_i)``, `m` classes, `d` features.

    Attributes
    ----------
    rows : DenseRows or SparseRows
        The rows as compiled functions take them.
    examples : Examples
        An array for each of their `labels`, the weights `C` of their losses, and squared `norms`.
    m, d : int
        How many classes and features there are; the constant feature, if there is one, counts.

    See Also
    --------
    make_problem : What makes one.

    Examples
    --------
    >>> import numpy as np
    >>> from topksvm.data import make_problem
    >>> problem = make_problem(np.eye(4), np.array([0, 1, 2, 2]), np.ones(4), 3)
    >>> problem.n, problem.d, problem.m, problem.dtype
    (4, 4, 3, dtype('float64'))
    """

    rows: DenseRows | SparseRows
    examples: Examples
    m: int
    d: int

    @property
    def n(self) -> int:
        """The number of examples."""
        return int(self.examples.labels.size)

    @property
    def dtype(self) -> np.dtype:
        """The precision of X, and of the weights during training."""
        x = self.rows.x if isinstance(self.rows, DenseRows) else self.rows.data
        return x.dtype

    @property
    def is_sparse(self) -> bool:
        """Whether X is a CSR matrix; the weights are then kept as ``(d, m)``."""
        return isinstance(self.rows, SparseRows)

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the weights in the layout of the rows."""
        return (self.d, self.m) if self.is_sparse else (self.m, self.d)

    def pieces(self, duals: Any) -> Iterator[tuple[Any, Examples, Any]]:
        """Yield rows with what belongs to them, piece by piece; here there is but one."""
        yield self.rows, self.examples, duals

    def coefficients(self, weights: Floats) -> Floats:
        """Return the weights as ``(m, d)``."""
        return np.ascontiguousarray(weights.T) if self.is_sparse else weights


def make_problem(
    X: Any, labels: NDArray[np.integer[Any]], C: Floats, m: int, bias: float = 0.0
) -> Problem:
    """Return the problem for checked input.

    X is not copied unless it is in Fortran order or a CSR matrix with repeated entries. The kernels
    see it read-only, which also lets one compiled kernel serve memory maps and ordinary arrays.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
        The rows, float32 or float64.
    labels : ndarray of shape (n,)
        From 0 to ``m - 1``.
    C : ndarray of shape (n,)
        The weights of the losses.
    m : int
        The number of classes.
    bias : float, default=0.0
        The value of a constant last feature, 0 for none.

    Returns
    -------
    Problem
        What solvers take.

    Examples
    --------
    >>> import numpy as np
    >>> from topksvm.data import make_problem
    >>> make_problem(np.eye(4), np.array([0, 1, 2, 2]), np.ones(4), 3, bias=1.0).d
    5
    """
    rows: DenseRows | SparseRows
    if sp.issparse(X):
        if not X.has_canonical_format:  # The norm of a row needs each feature once.
            X = X.copy()
            X.sum_duplicates()
        rows = SparseRows(
            read_only(X.data),
            read_only(X.indices),
            read_only(X.indptr),
            float(bias),
        )
    else:
        rows = DenseRows(read_only(np.ascontiguousarray(X)), float(bias))
    n, d = X.shape
    norms = np.empty(n)
    map_row_ranges(lambda i, j: squared_norms(rows, i, j, norms), n, d)
    check_norms(norms, X.dtype)
    weights = np.ascontiguousarray(C, dtype=np.float64)
    examples = Examples(labels.astype(np.int32), weights, norms)
    return Problem(rows, examples, m, d + (bias != 0.0))


def check_norms(norms: Floats, dtype: np.dtype, first: int = 0) -> None:
    """Complain about rows that are not finite, or whose products overflow; `first` is a number."""
    is_bad = ~(norms < LARGEST_SHARE * float(np.finfo(dtype).max))
    if is_bad.any():
        row = int(np.argmax(is_bad))
        raise ValueError(
            f"Row {first + row} of X holds NaN or infinity, or is too large for {dtype}: its "
            f"squared norm, with that of the constant feature, is {norms[row]:g}. Remove the row, "
            "or correct its values; scale the features; choose a smaller intercept scaling (bias); "
            "or use float64."
        )


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view
