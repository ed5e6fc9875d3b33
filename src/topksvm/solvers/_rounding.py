r"""Bounds on the rounding errors of a certificate, which is evaluated in float64.

A sum of ``n`` products, in whatever order it is taken, is off by at most :math:`\gamma_n` times the
sum of the absolute products, :math:`\gamma_n = n u / (1 - n u)` with the unit roundoff
:math:`u = 2^{-53}` (Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 3.1).

*Primal.* So a score is off by at most :math:`\gamma_d \|v_j\| \|x_i\|`, and a margin ``h_j`` by
twice that and the rounding of its own subtraction. A loss does not fall when its margins rise:
evaluated at margins that are larger by the bound, it is an upper bound.

*Dual.* The values of feasible variables are sums whose absolute terms are known. The weights
:math:`W_A = \sum_i a_i x_i^\top` are off by at most
:math:`\gamma_{n+m} \sum_i \|a_i\| \|x_i\|` in norm, and
:math:`\|a_i\| \le \sqrt 2 \, \langle 1, x_i \rangle`.

The constants added to the numbers of terms are for the few operations around the sums.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

UNIT = 2.0**-53
"""The unit roundoff of float64."""

Floats = NDArray[np.floating[Any]]


def gamma(n: float) -> float:
    """Return a bound on the relative error of a sum of `n` products."""
    return n * UNIT / (1.0 - n * UNIT)


class Slack(NamedTuple):
    """How far a margin of example ``i`` may be off: ``unit * (1 + size * ||x_i||)``."""

    unit: float
    size: float


def slack_of_margins(terms: int, m: int, size: float) -> Slack:
    """Return it for scores that are sums of so many `terms`, over `m` classes.

    `size` times the norm of a row bounds the sum of the absolute terms. The evaluation of a loss
    from its margins adds one rounding for each class at most.
    """
    return Slack(2.02 * gamma(terms + m + 24), size)


class DualSums(NamedTuple):
    """Sums over the examples, at feasible duals.

    Attributes
    ----------
    total : float
        The loss part of the dual objective.
    magnitude : float
        The sum of the absolute terms in it.
    mass : float
        ``sum_i <1, x_i> ||x_i||``, of which the rounding of the weights is a small part.
    """

    total: float
    magnitude: float
    mass: float

    def plus(self, other: DualSums) -> DualSums:
        """Return the sums over the examples of both."""
        return DualSums(
            self.total + other.total, self.magnitude + other.magnitude, self.mass + other.mass
        )

    def over(self, sigma: float) -> DualSums:
        """Return the sums for duals that are `sigma` times as small."""
        return DualSums(self.total / sigma, self.magnitude / sigma, self.mass / sigma)


class Bound(NamedTuple):
    """A value that holds in exact arithmetic, and how much of it is room for rounding."""

    value: float
    rounding: float


class Size(NamedTuple):
    """The numbers of examples, classes and features, which are the lengths of the sums."""

    n: int
    m: int
    d: int


def largest_norm(weights: Floats, axis: int) -> tuple[float, float]:
    """Return the largest norm of a class, and ``||W||^2``; classes are summed along `axis`."""
    squares = np.einsum("ij,ij->i" if axis == 1 else "ij,ij->j", weights, weights)
    return math.sqrt(float(squares.max(initial=0.0))) * (1.0 + 1e-9), float(squares.sum())


def upper_bound(square: float, losses: float, margins: float, size: Size) -> Bound:
    """Return a bound on ``1/2 ||V||^2 + losses``.

    `losses` are at margins raised by their slack, which has raised them by at most `margins`.
    """
    rounding = 0.5 * square * gamma(size.d + size.m + 8) + losses * gamma(size.n + size.m + 40)
    return Bound(0.5 * square + losses + rounding, rounding + margins)


def lower_bound(sums: DualSums, square: float, size: Size, moved: float = 0.0) -> Bound:
    """Return a bound on the dual objective; `square` is ``||W_A||^2`` as computed.

    The weights may differ from the sum over the examples by `moved` in norm, besides rounding.
    """
    # The logarithm of an entropy next to its bound multiplies the rounding of a sum by up to 40.
    values = sums.magnitude * gamma(size.n + 40 * (size.m + 8))
    norm = math.sqrt(square) * (1.0 + gamma(size.d + size.m + 8))
    norm += 1.5 * gamma(size.n + size.m + 8) * sums.mass + moved
    value = sums.total - values - 0.5 * norm * norm
    return Bound(value, sums.total - 0.5 * square - value)
