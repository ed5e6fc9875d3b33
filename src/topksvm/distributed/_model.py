"""What the contributions of all shards come to: a model, and where it stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm.distributed._shard import Contribution, Order
from topksvm.solvers._certificate import SCALES, Certificate

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Model:
    """The weights of all duals, rounded to the precision of X, and what is known of them.

    Attributes
    ----------
    weights : ndarray
        What the user would get, in the layout of the rows.
    half_square : float
        ``1/2 ||weights||^2``.
    dual : float
        The dual objective of the duals, from weights that are not rounded.
    share : float
        How far the duals went on in the direction of the last two rounds.
    passes, seconds : int, float
        See :class:`Contribution`.
    plain_dual : float
        The dual objective before they went on.
    gain : float
        By how much the shards have improved their own problems.
    """

    weights: Floats
    half_square: float
    dual: float
    share: float = 0.0
    passes: int = 0
    seconds: float = 0.0
    plain_dual: float = 0.0
    gain: float = 0.0

    def __sizeof__(self) -> int:
        """Return what Dask takes for the size: that of the weights."""
        return self.weights.nbytes

    def times(self, factor: float) -> Model:
        """Return the model with larger weights, for the same duals."""
        return _model(factor * self.weights.astype(np.float64), self.weights.dtype, self.dual)

    def standing(self, losses: Floats, seconds: float, n_bytes: int = 0) -> Standing:
        """Return where the round has led, given the losses at the weights."""
        return Standing(
            self.half_square,
            self.dual,
            losses,
            self.share,
            self.passes,
            self.seconds + seconds,
            n_bytes,
            plain_dual=self.plain_dual,
            gain=self.gain,
        )


def start_model(shape: tuple[int, int], dtype: Any) -> Model:
    """Return the model that belongs to no duals."""
    return Model(np.zeros(shape, dtype), 0.0, 0.0)


def _model(exact: Floats, dtype: Any, dual: float, *more: Any) -> Model:
    weights = exact.astype(dtype)
    wide = weights.astype(np.float64)
    return Model(weights, 0.5 * float(np.vdot(wide, wide)), dual, *more)


def conclude(total: Contribution, dtype: Any) -> Model:
    """Return the model for the sum of all contributions.

    Along the direction the dual is a parabola. Its examples can go that far and no farther, so at
    most the whole of it is added.
    """
    exact, share = total.weights, 0.0
    dual = plain = total.dual - 0.5 * float(np.vdot(exact, exact))
    if total.direction is not None:
        slope = total.slope - float(np.vdot(exact, total.direction))
        curvature = total.curvature + float(np.vdot(total.direction, total.direction))
        if slope > 0.0 and curvature > 0.0:
            share = min(1.0, slope / curvature)
            exact = exact + share * total.direction
            dual += share * (slope - 0.5 * share * curvature)
    return _model(exact, dtype, dual, share, total.passes, total.seconds, plain, total.gain)


@dataclass(frozen=True)
class Standing:
    """Where a round has led: a model without its weights, and the losses at `SCALES` times them."""

    half_square: float
    dual: float
    losses: Floats
    share: float = 0.0
    passes: int = 0
    computation: float = 0.0
    n_bytes: int = 0
    n_lost: int = 0
    plain_dual: float = 0.0
    gain: float = 0.0
    snapshot_bytes: int = 0

    def certificates(self) -> list[Certificate]:
        """Return a certificate for each scale; that of the first, 1, is exact."""
        primal = SCALES[: self.losses.size] ** 2 * self.half_square + self.losses
        return [Certificate(float(value), self.dual) for value in primal]


def bytes_of_round(size: int, dtype: Any, n_workers: int, order: Order) -> int:
    """Return what travels: float64 sums up the tree, and the `size` weights to all workers."""
    up = 8 * (2 if order.reach > 0.0 else 1)
    return (n_workers - 1) * size * (up + np.dtype(dtype).itemsize)
