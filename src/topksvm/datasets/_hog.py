"""Histograms of oriented gradients of pictures with few gray levels, in a few lines of NumPy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["CELL", "ORIENTATIONS", "describe_gradients", "to_unit_norm"]

ORIENTATIONS = 8
CELL = 4
_CHUNK = 500  # Pictures at a time: what is counted of them stays in the cache.


def describe_gradients(levels: NDArray[np.uint8], n_levels: int) -> NDArray[np.float32]:
    """Describe square pictures of gray levels below `n_levels` by the directions of their edges.

    Central differences give each pixel a direction, in ``[0, pi)`` as light on dark is the same
    edge as dark on light, and a magnitude, which is shared between the two nearest of 8
    orientations in proportion to nearness. Each cell of 4 x 4 pixels sums them up; each block of
    2 x 2 cells is divided by its Euclidean norm, blocks overlap; so is the whole, at last.

    References
    ----------
    N. Dalal, B. Triggs. Histograms of oriented gradients for human detection. CVPR 2005.
    """
    n, side, _ = levels.shape
    votes = _votes(n_levels)
    features = np.empty((n, (side // CELL - 1) ** 2 * 4 * ORIENTATIONS), dtype=np.float32)
    for start in range(0, n, _CHUNK):
        cells = _count_gradients(levels[start : start + _CHUNK], n_levels) @ votes
        features[start : start + _CHUNK] = _blocks(cells)
    return to_unit_norm(features)


def to_unit_norm(X: NDArray[np.float32]) -> NDArray[np.float32]:
    """Divide each row by its Euclidean norm, in place; rows of zeros stay."""
    norms = np.sqrt(np.einsum("ij,ij->i", X, X))
    X /= np.where(norms > 0, norms, 1)[:, None]
    return X


def _votes(n_levels: int) -> NDArray[np.float32]:
    """Return what each possible gradient adds to each orientation.

    With L levels a difference is one of 2 L - 1 integers: there are so few gradients that it is
    enough to count them, instead of an arctangent per pixel.
    """
    steps = np.arange(1 - n_levels, n_levels)
    down, right = (part.ravel() for part in np.meshgrid(steps, steps, indexing="ij"))
    position = np.arctan2(down, right) % np.pi * (ORIENTATIONS / np.pi)
    lower = np.floor(position).astype(np.int64)
    gradient = np.arange(len(down))
    votes = np.zeros((len(down), ORIENTATIONS))
    votes[gradient, lower % ORIENTATIONS] = np.hypot(down, right) * (1 + lower - position)
    votes[gradient, (lower + 1) % ORIENTATIONS] = np.hypot(down, right) * (position - lower)
    return votes.astype(np.float32)


def _count_gradients(levels: NDArray[np.uint8], n_levels: int) -> NDArray[np.float32]:
    """Return how often each gradient occurs in each cell: (n, cells, cells, gradients)."""
    n, side, _ = levels.shape
    cells = side // CELL
    padded = np.pad(levels, ((0, 0), (1, 1), (1, 1)), mode="edge").astype(np.int64)
    down = padded[:, 2:, 1:-1] - padded[:, :-2, 1:-1]
    right = padded[:, 1:-1, 2:] - padded[:, 1:-1, :-2]
    base = 2 * n_levels - 1
    gradient = (down + (n_levels - 1)) * base + (right + (n_levels - 1))
    tiles = gradient[:, : cells * CELL, : cells * CELL].reshape(n, cells, CELL, cells, CELL)
    cell = np.arange(n * cells * cells).reshape(n, cells, 1, cells, 1)
    counts = np.bincount((cell * base**2 + tiles).ravel(), minlength=n * cells**2 * base**2)
    return counts.reshape(n, cells, cells, base**2).astype(np.float32)


def _blocks(cells: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the blocks of 2 x 2 cells, each of norm one (zero if it is empty), flattened."""
    corners = [cells[:, :-1, :-1], cells[:, :-1, 1:], cells[:, 1:, :-1], cells[:, 1:, 1:]]
    blocks = np.concatenate(corners, axis=-1)
    unit = to_unit_norm(blocks.reshape(-1, blocks.shape[-1]))
    return unit.reshape(len(cells), -1)
