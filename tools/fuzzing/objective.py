"""The objective in plain NumPy and float64, to check certificates of larger fits."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

TOLERANCE = 1e-6


def objective(scores, y, loss: str, C, k: int, squared_norm: float) -> float:
    """Return ``1/2 ||W||^2 + sum_i C phi(h_i)`` for labels from 0."""
    n, m = scores.shape
    h = scores - scores[np.arange(n), y][:, None]
    h = h[np.arange(m) != y[:, None]].reshape(n, m - 1)
    return float(squared_norm / 2 + C * loss_values(h, loss, k).sum())


def loss_values(h, loss: str, k: int):
    """Return the loss of every row of margins."""
    if loss == "softmax":
        return logsumexp(np.column_stack([h, np.zeros(len(h))]), axis=1)
    top = -np.sort(-(h + 1), axis=1)[:, :k]
    return np.maximum(top.mean(axis=1), 0)  # topk_hinge_alpha


def linear_objective(W, bias: float, X, y, loss: str, C: float, k: int) -> float:
    """Return the objective of weights with a last column for the bias, if there is one."""
    X = np.asarray(X, np.float64)
    if bias:
        X = np.column_stack([X, np.full(len(X), bias)])
    W = np.asarray(W, np.float64)
    return objective(X @ W.T, y, loss, C, k, (W**2).sum())


def check(certificate, own: float) -> None:
    """Raise unless the claimed objective is right, and the dual below it."""
    if not abs(certificate.primal - own) <= TOLERANCE * abs(own):
        raise AssertionError(f"the certificate says {certificate.primal}, the objective is {own}")
    if not certificate.gap >= -1e-9 * abs(own):
        raise AssertionError(f"the gap is negative: {certificate}")
