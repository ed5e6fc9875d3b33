"""What :func:`topksvm.solve` says about wrong input."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite

from topksvm.data._in_memory import in_memory

Floats = NDArray[np.floating[Any]]
Labels = NDArray[np.integer[Any]]


def check_rows(X: Any) -> Any:
    """Return X, dense or CSR; complain unless it is a finite table of float32 or float64."""
    if sp.issparse(X) and X.format != "csr":
        raise ValueError(f"X is a sparse matrix in {X.format} format; pass X.tocsr().")
    X = in_memory(X)
    if not sp.issparse(X):
        X = np.asarray(X)
    if X.dtype not in (np.float32, np.float64):
        raise ValueError(f"X has dtype {X.dtype}; it must be float32 or float64: use X.astype().")
    if X.ndim != 2 or min(X.shape) < 1:
        raise ValueError(f"X has shape {X.shape}; it must have rows and features: (n, d).")
    assert_all_finite(X, input_name="X")
    return X


def check_labels(y: Any, n: int, n_classes: int | None) -> tuple[Labels, int]:
    """Return the labels and the number of classes; complain unless they fit together."""
    labels = np.asarray(in_memory(y))
    if labels.shape != (n,):
        raise ValueError(f"y has shape {labels.shape} but X has {n} rows; y must be ({n},).")
    if not np.issubdtype(labels.dtype, np.integer):
        raise ValueError(
            f"y has dtype {labels.dtype}; labels must be whole numbers from 0 on. "
            "np.unique(y, return_inverse=True)[1] makes them, and TopKLinearSVC takes any labels."
        )
    low, high = int(labels.min()), int(labels.max())
    m = high + 1 if n_classes is None else int(n_classes)
    if low < 0 or high >= m:
        raise ValueError(f"y has labels from {low} to {high}; they must be from 0 to {m - 1}.")
    if m < 2:
        raise ValueError(f"There is {m} class; there must be at least 2: pass n_classes.")
    return labels, m


def check_weights(C: Any, n: int) -> Floats:
    """Return the weight of each example; complain unless they are finite and not negative."""
    weights = np.asarray(in_memory(C), dtype=np.float64)
    if weights.shape not in ((), (n,)):
        raise ValueError(f"C has shape {weights.shape}; it must be a number or have shape ({n},).")
    if not np.all(np.isfinite(weights)) or np.any(weights < 0.0):
        bad = weights[~(np.isfinite(weights) & (weights >= 0.0))] if weights.ndim else weights
        raise ValueError(f"C is {np.atleast_1d(bad)[0]}; it must be finite and at least 0.")
    return np.broadcast_to(weights, (n,))


def check_budget(tol: float, max_iter: int, max_time: float | None) -> None:
    """Complain unless the solver can stop."""
    if not tol >= 0.0:
        raise ValueError(f"tol = {tol}; it must be at least 0.")
    if max_iter < 1:
        raise ValueError(f"max_iter = {max_iter}; it must be at least 1.")
    if max_time is not None and not max_time > 0.0:
        raise ValueError(f"max_time = {max_time}; it must be above 0, or None for no limit.")
