"""Parts of the data as workers see them: checked on arrival, then looked at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite, check_array, column_or_1d

from topksvm.data import file_of
from topksvm.estimators import without_duplicates

Array = NDArray[Any]


@dataclass(frozen=True)
class Piece:
    """The rows from `start` to `stop` of a part of the data."""

    part: int
    start: int
    stop: int

    @property
    def n(self) -> int:
        """How many rows."""
        return self.stop - self.start


@dataclass(frozen=True)
class Block:
    """Rows with their labels and weights, checked."""

    X: Any
    y: Array
    weights: Array

    def __sizeof__(self) -> int:
        """Return what Dask takes for the size: that of the arrays, unless they are in a file."""
        rows = 0 if file_of(self.X) else bytes_of_rows(self.X)
        return rows + self.y.nbytes + self.weights.nbytes

    def rows(self, piece: Piece) -> Block:
        """Return some of the rows: a copy, so that the others need not be kept."""
        if piece.n == self.y.size:
            return self
        some = slice(piece.start, piece.stop)
        X = self.X[some]
        if not (sp.issparse(X) or file_of(X)):
            X = X.copy()
        return Block(X, self.y[some].copy(), self.weights[some].copy())


@dataclass(frozen=True)
class Survey:
    """What must be known of a block before the problem can be set up; small."""

    n: int
    d: int
    dtype: str
    is_sparse: bool
    labels: Array
    label_weights: Array
    n_bytes: int
    is_mapped: bool


def read_block(number: int, X: Any, y: Any, weights: Any, dtype: str | None) -> Block:
    """Check a part of the data; the error names the part."""
    try:
        return _checked(X, y, weights, dtype)
    except (TypeError, ValueError) as error:
        raise ValueError(f"Part {number} of the data (counted from 0): {error}") from error


def _checked(X: Any, y: Any, weights: Any, dtype: str | None) -> Block:
    if dtype is None and getattr(X, "dtype", None) == np.float16:
        dtype = "float32"  # As on one machine; the rule below would make it float64.
    X = check_array(
        X,
        accept_sparse="csr",
        dtype=[np.float64, np.float32] if dtype is None else np.dtype(dtype),
        order="C",
        accept_large_sparse=True,
        ensure_min_samples=0,
        input_name="X",
    )
    y = column_or_1d(y)
    assert_all_finite(y, input_name="y")
    if y.size != X.shape[0]:
        raise ValueError(
            f"X has {X.shape[0]} rows but y has {y.size}; the chunks of X and y must match."
        )
    if weights is None:
        weights = np.ones(y.size)
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != y.shape:
        raise ValueError(f"sample_weight has shape {weights.shape} but y has {y.shape}.")
    if not (np.isfinite(weights).all() and (weights >= 0.0).all()):
        raise ValueError("sample_weight has a value that is negative or not finite.")
    return Block(without_duplicates(X), y, weights)


def survey(block: Block) -> Survey:
    """Return what the client must know of a block."""
    try:
        labels, codes = np.unique(block.y, return_inverse=True)
    except TypeError as error:
        raise ValueError(
            f"The labels of a part of y cannot be compared ({error}); they must be of one type."
        ) from error
    sums = np.bincount(codes, block.weights, minlength=labels.size)
    X = block.X
    n, d = X.shape
    is_mapped = file_of(X) is not None
    return Survey(n, d, X.dtype.name, sp.issparse(X), labels, sums, bytes_of_rows(X), is_mapped)


def bytes_of_rows(X: Any) -> int:
    """Return the size of the arrays that rows consist of."""
    arrays = (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,)
    return sum(array.nbytes for array in arrays)


def join(blocks: Sequence[Block], dtype: str) -> Block:
    """Return the blocks as one; the rows of a single one are not copied."""
    rows: Any = [block.X for block in blocks]
    if len(rows) == 1:
        X = rows[0]
    else:
        X = sp.vstack(rows, format="csr") if sp.issparse(rows[0]) else np.concatenate(rows)
    y = np.concatenate([block.y for block in blocks])
    weights = np.concatenate([block.weights for block in blocks])
    return Block(X.astype(dtype, copy=False), y, weights)


def check_surveys(surveys: Sequence[Survey]) -> None:
    """Complain unless the blocks fit together."""
    _check_alike("X", {i: f"{other.d} features" for i, other in enumerate(surveys)})
    kinds = {i: "sparse" if other.is_sparse else "dense" for i, other in enumerate(surveys)}
    _check_alike("X", {i: f"{kind} rows" for i, kind in kinds.items()})
    # Numpy would turn numbers beside strings into strings.
    filled = {i: other.labels.dtype.kind for i, other in enumerate(surveys) if other.n}
    if not filled:
        raise ValueError("X has no rows; at least two, of different classes, are needed.")
    labels = {i: "numbers" if kind in "biuf" else "no numbers" for i, kind in filled.items()}
    _check_alike("y", {i: f"labels that are {kind}" for i, kind in labels.items()})


def _check_alike(name: str, found: dict[int, str]) -> None:
    (first, known), *others = found.items()
    for number, other in others:
        if other != known:
            raise ValueError(
                f"Part {number} of {name} has {other} but part {first} has {known}; all parts must "
                "have the same."
            )


def labels_of(surveys: Sequence[Survey]) -> tuple[Array, Array]:
    """Return the classes of all blocks and the sums of the weights of their examples."""
    some = [other for other in surveys if other.n]
    classes, codes = np.unique(np.concatenate([s.labels for s in some]), return_inverse=True)
    sums = np.bincount(codes, np.concatenate([s.label_weights for s in some]), classes.size)
    return classes, sums
