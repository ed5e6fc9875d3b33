"""What is minimised, and what it is for: one judge for the weights of every solver, in float64.

Nothing here is shared with the library, whose own certificates it checks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]
Labels = NDArray[np.integer[Any]]

_BLOCK = 1 << 22
"""Scores that are held at once."""


@dataclass(frozen=True)
class Objective:
    r"""``1/2 ||W||^2 + C sum_i loss(W x_i, y_i)``, without intercepts.

    The loss is ``"softmax"``, the multinomial logistic loss, or ``"hinge"``, the top-k hinge loss
    alpha: the mean of the k largest :math:`1 + s_j - s_y` of the wrong classes, or 0 if that is
    negative. For k = 1 it is Crammer and Singer's.
    """

    loss: str
    k: int = 1

    @property
    def name(self) -> str:
        """A short name."""
        return self.loss if self.loss == "softmax" else f"hinge-{self.k}"

    def value(self, W: Floats, X: Any, y: Labels, C: float) -> float:
        """Return the objective at the weights ``W`` of shape (m, d)."""
        W = np.asarray(W, dtype=np.float64)
        total = 0.0
        for start, stop in _blocks(len(y), len(W)):
            total += float(self._losses(scores(X[start:stop], W), y[start:stop]).sum())
        return 0.5 * float(np.vdot(W, W)) + C * total

    def _losses(self, s: Floats, y: Labels) -> Floats:
        rows = np.arange(len(y))
        s -= s[rows, y][:, None]
        if self.loss == "softmax":
            top = s.max(axis=1)
            return top + np.log(np.exp(s - top[:, None]).sum(axis=1))
        s += 1.0
        s[rows, y] = -np.inf
        largest = np.partition(s, -self.k, axis=1)[:, -self.k :]
        return np.maximum(largest.mean(axis=1), 0.0)


def topk_accuracy(W: Floats, X: Any, y: Labels, k: int = 5, intercept: Any = 0.0) -> float:
    """Return the share of rows with fewer than k other scores as large as the true class's."""
    W = np.asarray(W, dtype=np.float64)
    hits = 0
    for start, stop in _blocks(len(y), len(W)):
        s = scores(X[start:stop], W) + intercept
        own = s[np.arange(stop - start), y[start:stop]]
        hits += int(((s >= own[:, None]).sum(axis=1) <= k).sum())
    return hits / len(y)


def scores(X: Any, W: Floats) -> Floats:
    """Return the float64 scores ``X W'`` of dense or sparse rows."""
    return np.asarray(X.astype(np.float64) @ W.T)


def _blocks(n: int, m: int) -> list[tuple[int, int]]:
    step = max(1, _BLOCK // m)
    return [(start, min(start + step, n)) for start in range(0, n, step)]


def suboptimality(primal: float, dual: float) -> float:
    """Return how far `primal` is above the lower bound `dual` of the optimum, relative to it."""
    # No loss is negative: a bound of 0 or less says nothing.
    return (primal - dual) / dual if dual > 0.0 else np.inf


def objective_named(name: str) -> Objective:
    """Return ``softmax``, ``hinge-k`` for any k, or one of a name that no judge knows."""
    loss, _, k = name.partition("-")
    return Objective(loss, int(k or 1))


OBJECTIVES = {name: objective_named(name) for name in ("hinge-1", "hinge-5", "softmax")}
"""What is raced for."""
