"""What the contributions of all shards come to: a model, and where it stands."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topksvm.distributed._shard import Contribution, Order
from topksvm.solvers import (
    SCALES,
    Bound,
    Certificate,
    DualSums,
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
        ``sum_i <1, x_i> ||x_i||`` of the duals before they went on.
    size : Size
        The lengths of the sums.
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
    square: float
    exact_square: float
    mass: float
    size: Size
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
        weights = (factor * self.weights.astype(np.float64)).astype(self.weights.dtype)
        return replace(self, weights=weights, square=_square(weights))

    def result(self, parts: Evaluated, seconds: float, n_bytes: int = 0) -> RoundResult:
        """Return where the round has led, given what the shards have found."""
        return RoundResult(
            self.square,
            lower_bound(parts.sums, self.exact_square, self.size, self._distance(parts)),
            parts.losses,
            self.size,
            self.share,
            self.passes,
            self.seconds + seconds,
            n_bytes,
            plain_dual=self.plain_dual,
            gain=self.gain,
        )

    def _distance(self, parts: Evaluated) -> float:
        """Return how far the weights may be from those of the duals, if they have gone on.

        Duals and weights are moved one by one, with a few roundings each, and then the duals are
        made feasible.
        """
        if self.share == 0.0:
            return 0.0
        moved = gamma(self.size.n + 4 * self.size.m + 16) * (self.mass + parts.sums.mass)
        return 3.0 * moved + 2.0 * parts.lost * parts.sums.mass


class Evaluated(NamedTuple):
    """What a shard, or several, have found at a model.

    Attributes
    ----------
    losses : ndarray
        Their sums at the scales of the weights, and how much larger they may be for rounding.
    sums : DualSums
        Those of the duals.
    lost : float
        The largest share that a dual has lost to become feasible after it was moved.
    """

    losses: Floats
    sums: DualSums
    lost: float

    def plus(self, other: Evaluated) -> Evaluated:
        """Return what both have found."""
        return Evaluated(
            self.losses + other.losses, self.sums.plus(other.sums), max(self.lost, other.lost)
        )


def start_model(shape: tuple[int, int], dtype: Any) -> Model:
    """Return the model that belongs to no duals."""
    return Model(np.zeros(shape, dtype), 0.0, 0.0, 0.0, Size(0, *shape))


def _square(weights: Floats) -> float:
    wide = weights.astype(np.float64, copy=False)
    return float(np.einsum("ij,ij->i", wide, wide).sum())


def conclude(total: Contribution, dtype: Any) -> Model:
    """Return the model for the sum of all contributions.

    Along the direction the dual is a parabola. Its examples can go that far and no farther, so at
    most the whole of it is added.
    """
    exact, share = total.weights, 0.0
    size = Size(total.n, *exact.shape)
    plain = total.sums.total - 0.5 * float(np.vdot(exact, exact))
    if total.direction is not None:
        slope = total.slope - float(np.vdot(exact, total.direction))
        curvature = total.curvature + float(np.vdot(total.direction, total.direction))
        if slope > 0.0 and curvature > 0.0:
            share = min(1.0, slope / curvature)
            exact = exact + share * total.direction
    weights = exact.astype(dtype)
    return Model(
        weights,
        _square(weights),
        _square(exact),
        total.sums.mass,
        size,
        share,
        total.passes,
        total.seconds,
        plain,
        total.gain,
    )


@dataclass(frozen=True)
class RoundResult:
    """Where a round has led: a model without its weights, and the losses at `SCALES` times them.

    The last of `losses` is how much larger they may be for rounding.
    """

    square: float
    bound: Bound
    losses: Floats
    size: Size
    share: float = 0.0
    passes: int = 0
    computation: float = 0.0
    n_bytes: int = 0
    n_lost: int = 0
    plain_dual: float = 0.0
    gain: float = 0.0
    snapshot_bytes: int = 0

    @property
    def dual(self) -> float:
        """The lower bound on the optimum."""
        return self.bound.value

    def certificates(self) -> list[Certificate]:
        """Return a certificate for each scale; that of the first, 1, is proven."""
        margins = float(self.losses[-1])
        return [
            make_certificate(
                upper_bound(float(scale**2) * self.square, float(value), margins, self.size),
                self.bound,
            )
            for scale, value in zip(SCALES, self.losses[:-1], strict=False)
        ]


def bytes_of_round(size: int, dtype: Any, n_workers: int, order: Order) -> int:
    """Return what travels: float64 sums up the tree, and the `size` weights to all workers."""
    up = 8 * (2 if order.reach > 0.0 else 1)
    return (n_workers - 1) * size * (up + np.dtype(dtype).itemsize)
