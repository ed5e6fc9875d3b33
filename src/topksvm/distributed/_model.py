"""What the contributions of all shards come to: a model, and what a round has proven of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm.distributed._one_thread import on_one_thread
from topksvm.distributed._shard import Contribution, Evaluation
from topksvm.solvers import (
    SCALES,
    Certificate,
    Size,
    gamma,
    lower_bound,
    make_certificate,
    upper_bound,
)

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Model:
    """The weights of all duals, rounded to the precision of X, and what is known of them.

    Attributes
    ----------
    weights : ndarray
        What the user would get, in the layout of the rows.
    square : float
        ``||weights||^2``.
    exact_square : float
        ``||W||^2`` of the weights of the duals, which are not rounded.
    mass : float
        ``sum_i <1, x_i> ||x_i||`` of the duals before they were extrapolated.
    size : Size
        The lengths of the sums.
    share : float
        How far the duals were extrapolated in the direction of the last two rounds.
    plain_dual : float
        The dual objective before that.
    passes, seconds, gain : int, float, float
        See :class:`Contribution`.
    """

    weights: Floats
    square: float
    exact_square: float
    mass: float
    size: Size
    share: float = 0.0
    plain_dual: float = 0.0
    passes: int = 0
    seconds: float = 0.0
    gain: float = 0.0

    def __sizeof__(self) -> int:
        """Return what Dask takes for the size: that of the weights."""
        return self.weights.nbytes

    def times(self, factor: float) -> Model:
        """Return the model with larger weights, for the same duals."""
        weights = (factor * self.weights.astype(np.float64)).astype(self.weights.dtype)
        return replace(self, weights=weights, square=_square(weights))

    def without_weights(self) -> Model:
        """Return the numbers alone."""
        return replace(self, weights=np.empty(0))


def start_model(shape: tuple[int, int], dtype: Any) -> Model:
    """Return the model that belongs to no duals."""
    return Model(np.zeros(shape, dtype), 0.0, 0.0, 0.0, Size(0, 0, 0))


@on_one_thread
def make_model(total: Contribution, m: int, dtype: Any) -> Model:
    """Return the model of `m` classes for the sum of all contributions.

    Along the direction the dual is a parabola. Its examples can go that far and no farther, so at
    most the whole of it is added.
    """
    exact, share = total.weights, 0.0
    plain_dual = total.sums.total - 0.5 * float(np.vdot(exact, exact))
    if total.direction is not None:
        slope = total.slope - float(np.vdot(exact, total.direction))
        curvature = total.curvature + float(np.vdot(total.direction, total.direction))
        if slope > 0.0 and curvature > 0.0:
            share = min(1.0, slope / curvature)
            exact = exact + share * total.direction
    weights = exact.astype(dtype)
    size, mass = Size(total.n, m, exact.size // m), total.sums.mass
    found = share, plain_dual, total.passes, total.seconds, total.gain
    return Model(weights, _square(weights), _square(exact), mass, size, *found)


def _square(weights: Floats) -> float:
    wide = weights.astype(np.float64, copy=False)
    return float(np.einsum("ij,ij->i", wide, wide).sum())


@dataclass(frozen=True)
class RoundResult:
    """Where a round has led: a model, without its weights, and what all shards found at it.

    Attributes
    ----------
    model : Model
        What the contributions came to.
    found : Evaluation
        The losses at `SCALES` times its weights, and the sums of the duals.
    n_bytes : int
        Bytes that travelled between workers.
    n_lost : int
        Shards that had to be rebuilt.
    snapshot_bytes : int
        Bytes of duals that were copied to the client.
    """

    model: Model
    found: Evaluation
    n_bytes: int = 0
    n_lost: int = 0
    snapshot_bytes: int = 0

    def certificates(self) -> list[Certificate]:
        """Return a certificate for each scale; that of the first, 1, is proven."""
        model, sums, size = self.model, self.found.sums, self.model.size
        *losses, margins = self.found.losses.tolist()
        bound = lower_bound(sums, model.exact_square, size, self._distance())
        return [
            make_certificate(
                upper_bound(float(scale**2) * model.square, value, margins, size), bound
            )
            for scale, value in zip(SCALES, losses, strict=False)
        ]

    def _distance(self) -> float:
        """Return how far the weights may be from those of the duals, if these were extrapolated.

        Duals and weights are moved one by one, with a few roundings each, and then the duals are
        made feasible.
        """
        model, found = self.model, self.found
        if model.share == 0.0:
            return 0.0
        moved = gamma(model.size.n + 4 * model.size.m + 16) * (model.mass + found.sums.mass)
        return 3.0 * moved + 2.0 * found.lost * found.sums.mass
