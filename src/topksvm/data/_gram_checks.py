"""Whether a Gram matrix is one: square, symmetric, positive semi-definite.

The dual is concave, and its value bounds the primal from below, only if K has no negative
eigenvalue. To know all eigenvalues costs more than to train, but by Cauchy's interlacing theorem a
negative eigenvalue of a principal submatrix proves that K has one: a sample of rows can convict.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]

SAMPLE = 256
"""Rows of the submatrix whose eigenvalues are computed."""

TILE = 1024

REMEDY = "Check how it was computed, or train on K - lambda_min * I, or choose another kernel."


def tolerance(dtype: np.dtype) -> float:
    """Return the relative error that is put down to rounding."""
    return max(1e-6, float(np.sqrt(np.finfo(dtype).eps)))


def check_square(shape: tuple[int, ...]) -> None:
    """Complain unless K has a column for each row."""
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(
            f"kernel = 'precomputed' needs the square matrix of all pairs of training examples, "
            f"but X has shape {shape}. Pass K(X_train, X_train)."
        )


def check_gram(K: Floats) -> None:
    """Complain unless K is symmetric and shows no negative eigenvalue, but for rounding."""
    check_diagonal(np.diagonal(K))
    for i in range(0, K.shape[0], TILE):
        for j in range(i, K.shape[0], TILE):
            rows, columns = np.arange(K.shape[0])[i : i + TILE], slice(j, j + TILE)
            check_tile(K, rows, columns)
    sample = sample_rows(K.shape[0])
    check_eigenvalues(K[np.ix_(sample, sample)])


def check_sample(K: Floats) -> None:
    """Complain unless a small K is symmetric and has no negative eigenvalue, but for rounding."""
    check_diagonal(np.diagonal(K))
    check_tile(K, np.arange(K.shape[0]), slice(None))
    check_eigenvalues(K)


def sample_rows(n: int) -> NDArray[np.int64]:
    """Return at most `SAMPLE` rows, always the same ones."""
    return np.sort(np.random.default_rng(0).permutation(n)[:SAMPLE])


def check_diagonal(diagonal: Floats) -> None:
    """Complain about a negative ``K_ii``: the squared norm of an example."""
    i = int(np.argmin(diagonal))
    if diagonal[i] < 0.0:
        raise ValueError(
            f"The kernel is not positive semi-definite: K[{i}, {i}] = {diagonal[i]:.6g} is "
            f"negative, which no squared norm can be. {REMEDY}"
        )


def check_tile(K: Floats, rows: NDArray[np.int64], columns: slice) -> None:
    """Complain about entries unlike their mirror image, or larger than Cauchy-Schwarz allows."""
    diagonal = np.diagonal(K).astype(np.float64)
    slack = tolerance(K.dtype)
    tile = K[rows[0] : rows[-1] + 1, columns].astype(np.float64)
    mirror = K[columns, rows[0] : rows[-1] + 1].T
    excess = np.abs(tile - mirror)
    largest = max(float(np.abs(tile).max()), float(np.abs(mirror).max()))
    b, c = np.unravel_index(int(np.argmax(excess)), excess.shape)
    i, j = int(rows[b]), int(np.arange(K.shape[1])[columns][c])
    if excess[b, c] > slack * largest:
        raise ValueError(
            f"The kernel is not symmetric: K[{i}, {j}] = {K[i, j]:.6g} but "
            f"K[{j}, {i}] = {K[j, i]:.6g}. Check how it was computed; (K + K.T) / 2 is symmetric."
        )
    bound = np.sqrt(np.outer(diagonal[rows], diagonal[columns]))
    excess = np.abs(tile) - bound
    b, c = np.unravel_index(int(np.argmax(excess)), excess.shape)
    i, j = int(rows[b]), int(np.arange(K.shape[1])[columns][c])
    if excess[b, c] > slack * float(diagonal.max()):
        raise ValueError(
            f"The kernel is not positive semi-definite: |K[{i}, {j}]| = {abs(K[i, j]):.6g} is "
            f"above sqrt(K[{i}, {i}] K[{j}, {j}]) = {bound[b, c]:.6g}, against the inequality of "
            f"Cauchy and Schwarz. {REMEDY}"
        )


def check_eigenvalues(K: Floats) -> None:
    """Complain about a clearly negative eigenvalue of a small K."""
    values = np.linalg.eigvalsh(K.astype(np.float64))
    if values[0] < -tolerance(K.dtype) * max(abs(values[0]), abs(values[-1])):
        raise ValueError(
            f"The kernel is not positive semi-definite: on {K.shape[0]} of the training examples "
            f"it has the eigenvalue {values[0]:.6g}, while the largest is {values[-1]:.6g}. "
            f"{REMEDY}"
        )
