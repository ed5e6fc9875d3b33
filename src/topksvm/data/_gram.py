"""Rows of the Gram matrix ``K_ij = K(x_i, x_j)``: given, or computed when needed within a budget.

Solvers ask for rows by *slot*: a place in a table, :attr:`store`, that compiled code reads without
copying. For a given K the slots are its rows. For a kernel function the table holds as many rows
as fit in the budget, and the last few slots are for rows that are used once and overwritten.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from topksvm.data._problem import read_only

Floats = NDArray[np.floating[Any]]
Indices = NDArray[np.int64]
KernelFunction = Callable[[Any, Any], Any]

TILE = 32
"""Rows computed by one call of the kernel function, no fewer and no more; columns are a multiple.

Matrix products of other sizes, and the odd rows and columns at their edges, round differently. This
way a row has the same bits whenever it is computed, so that the cache does not change the model.
"""

MEGABYTE = 1 << 20


class Gram(ABC):
    """A Gram matrix of `n` examples, row by row."""

    n: int
    dtype: np.dtype
    store: Floats
    """The table of rows, of shape ``(slots, n)``, read-only."""
    most_rows: int
    """How many rows can be asked for at once."""

    @abstractmethod
    def diagonal(self) -> NDArray[np.float64]:
        """Return ``K_ii``."""

    def begin_pass(self, visited: Indices) -> None:  # noqa: B027 (nothing to do by default)
        """Prepare for a pass that needs the rows `visited`, each once."""

    @abstractmethod
    def slots(self, index: Indices) -> Indices:
        """Return where in `store` the rows `index` are; valid until the next call."""

    @abstractmethod
    def wide_rows(self, start: int, stop: int) -> NDArray[np.float64]:
        """Return the rows from `start` to `stop` in float64, for the certificate."""


class GivenGram(Gram):
    """A Gram matrix that the user has computed, C-contiguous."""

    def __init__(self, K: Floats) -> None:
        self.n, self.dtype = K.shape[0], K.dtype
        self.store = read_only(K)
        self.most_rows = self.n

    def diagonal(self) -> NDArray[np.float64]:
        """Return ``K_ii``."""
        return np.diagonal(self.store).astype(np.float64)

    def slots(self, index: Indices) -> Indices:
        """Return the rows themselves."""
        return index

    def wide_rows(self, start: int, stop: int) -> NDArray[np.float64]:
        """Return the rows in float64."""
        return self.store[start:stop].astype(np.float64)


class ComputedGram(Gram):
    """A Gram matrix computed from examples, of which a part is kept.

    Parameters
    ----------
    function : callable
        ``function(X, Y)`` returns the matrix of all ``K(x, y)``.
    X : ndarray or CSR matrix of shape (n, d)
        The examples; K is computed in their precision.
    cache_size : float
        Megabytes for rows of K. One row is held whatever the budget.
    block : int
        How many rows are wanted at once at most.

    Notes
    -----
    A row once kept stays, unless the present pass has no use for it. A pass needs every row just
    once, in a new order: were the rows least recently used thrown away, as is usual, the next pass
    would find fewer of them.
    """

    def __init__(self, function: KernelFunction, X: Any, cache_size: float, block: int) -> None:
        self.function, self.X = function, with_whole_tiles(X)
        self.n, self.dtype = X.shape[0], X.dtype
        fitting = int(cache_size * MEGABYTE) // (self.n * self.dtype.itemsize)
        self.most_rows = max(1, min(block, fitting, self.n))
        has_room_for_all = fitting >= self.n
        self.n_kept = self.n if has_room_for_all else max(fitting - self.most_rows, 0)
        n_slots = self.n if has_room_for_all else self.n_kept + self.most_rows
        self.n_computed = 0
        self._table = np.empty((n_slots, self.n), self.dtype)
        self.store = read_only(self._table)
        self._slot_of = np.full(self.n, -1, np.int64)
        self._owner_of = np.full(self.n_kept, -1, np.int64)
        self._free = np.arange(self.n_kept)

    def diagonal(self) -> NDArray[np.float64]:
        """Return ``K_ii`` from small squares along the diagonal."""
        diagonal = np.empty(self.n)
        for start in range(0, self.n, TILE):
            part = self.X[start : min(start + TILE, self.n)]
            square = checked_values(self.function(part, part), part.shape[0], part.shape[0])
            diagonal[start : start + TILE] = np.diagonal(square).astype(self.dtype)
        return diagonal

    def begin_pass(self, visited: Indices) -> None:
        """Give up the rows that are not among `visited`, as far as their slots are needed."""
        is_visited = np.zeros(self.n + 1, np.bool_)  # The last one stands for no owner.
        is_visited[visited] = True
        free = np.flatnonzero(~is_visited[self._owner_of])
        self._free = free[np.argsort(self._owner_of[free] >= 0, kind="stable")]  # Empty ones first.

    def slots(self, index: Indices) -> Indices:
        """Return the slots of the rows `index`, at most `most_rows`, computing what is missing.

        What no free slot is left for goes to the last slots of the table.
        """
        slots = self._slot_of[index]
        missing = np.flatnonzero(slots < 0)
        if missing.size:
            n_new = min(missing.size, self._free.size)
            fresh, self._free = self._free[:n_new], self._free[n_new:]
            slots[missing[:n_new]] = fresh
            slots[missing[n_new:]] = self.n_kept + np.arange(missing.size - n_new)
            self._forget(fresh)
            self._compute(index[missing], slots[missing])
            self._slot_of[index[missing[:n_new]]] = fresh
            self._owner_of[fresh] = index[missing[:n_new]]
        return slots

    def _forget(self, slots: Indices) -> None:
        owners = self._owner_of[slots]
        self._slot_of[owners[owners >= 0]] = -1
        self._owner_of[slots] = -1

    def _compute(self, index: Indices, slots: Indices) -> None:
        for start in range(0, index.size, TILE):
            part = index[start : start + TILE]
            rows = compute_tile(self.function, self.X, part)
            self._table[slots[start : start + TILE]] = rows[:, : self.n]
        self.n_computed += index.size

    def wide_rows(self, start: int, stop: int) -> NDArray[np.float64]:
        """Return the rows in float64: those kept if they are that, else computed from X anew."""
        rows = np.empty((stop - start, self.n))
        index = np.arange(start, stop)
        kept = (self._slot_of[index] >= 0) & (self.dtype == np.float64)
        rows[kept] = self._table[self._slot_of[index[kept]]]
        X = self.X.astype(np.float64, copy=False)
        missing = np.flatnonzero(~kept)
        for first in range(0, missing.size, TILE):
            part = missing[first : first + TILE]
            rows[part] = compute_tile(self.function, X, index[part])[:, : self.n]
        return rows


def with_whole_tiles(X: Any) -> Any:
    """Return the rows of X, dense ones with some of them again up to a multiple of `TILE`."""
    n = X.shape[0]
    if sp.issparse(X) or n % TILE == 0:  # Sparse products treat every row by itself.
        return X
    return X[np.resize(np.arange(n), n + TILE - n % TILE)]


def compute_tile(function: KernelFunction, X: Any, index: Indices) -> Floats:
    """Return at most `TILE` rows of K, by a call for exactly that many."""
    padded = np.resize(index, TILE)
    return checked_values(function(X[padded], X), TILE, X.shape[0])[: index.size]


def checked_values(values: Any, n_rows: int, n_columns: int) -> Floats:
    """Return what a kernel function gave; complain unless it is a finite matrix of that shape."""
    matrix = np.asarray(values)
    if matrix.shape != (n_rows, n_columns):
        raise ValueError(
            f"The kernel returned an array of shape {matrix.shape} for {n_rows} and {n_columns} "
            f"rows; it must return one value for each pair, in shape ({n_rows}, {n_columns})."
        )
    if not np.isfinite(matrix).all():
        raise ValueError(
            "The kernel returned values that are not finite. Scale the features, or choose a "
            "smaller gamma or degree."
        )
    return matrix
