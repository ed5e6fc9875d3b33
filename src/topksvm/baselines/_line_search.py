"""Exact line search for a quadratic plus a convex, piecewise linear function."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

MAX_TRIALS = 6


class Tangent(NamedTuple):
    """Where a convex function of one variable was looked at, its value and a slope there."""

    at: float
    value: float
    slope: float

    def __call__(self, t: float) -> float:
        """Return the bound at `t`."""
        return self.value + self.slope * (t - self.at)


class Line(NamedTuple):
    """``f(t) = constant + linear t + square t^2 / 2 + C risk(t)``, of which risk is convex."""

    constant: float
    linear: float
    square: float
    C: float

    def value(self, t: float, risk: float) -> float:
        """Return ``f(t)`` for the risk at `t`."""
        return self.constant + t * (self.linear + 0.5 * t * self.square) + self.C * risk

    def slope(self, tangent: Tangent) -> float:
        """Return a slope of f where the tangent touches."""
        return self.linear + tangent.at * self.square + self.C * tangent.slope

    def minimiser(self, slope: float) -> float:
        """Return where f is smallest if risk has this slope everywhere."""
        steepness = -(self.linear + self.C * slope)
        if self.square <= 0.0:
            return float("inf") if steepness > 0.0 else float("-inf")
        return steepness / self.square


def search_line(
    line: Line, left: Tangent, risk: Callable[[float], Tangent], first: float, tol: float
) -> float:
    """Return the best `t` in [0, 1] of those tried, 0 if none is better than that.

    Two tangents that enclose the minimum bound f from below; their minimum is tried next, until
    it is within `tol` of the best value found.
    """
    right: Tangent | None = None
    best, smallest = left.at, line.value(left.at, left.value)
    if line.slope(left) >= 0.0:
        return best
    t = first
    for _ in range(MAX_TRIALS):
        tangent = risk(t)
        if (value := line.value(t, tangent.value)) < smallest:
            best, smallest = t, value
        if line.slope(tangent) > 0.0:
            right = tangent
        elif t >= 1.0:
            break
        else:
            left = tangent
        t, bound = _minimum_of_bounds(line, left, right)
        if smallest - bound <= tol or t <= left.at or (right is not None and t >= right.at):
            break
    return best


def _minimum_of_bounds(line: Line, left: Tangent, right: Tangent | None) -> tuple[float, float]:
    """Return where the quadratic plus the larger tangent is smallest, and its value there."""
    if right is None:
        t = min(1.0, max(left.at, line.minimiser(left.slope)))
        return t, line.value(t, left(t))
    difference = right.slope - left.slope
    crossing = left.at if difference <= 0.0 else (left(0.0) - right(0.0)) / difference
    crossing = min(max(crossing, left.at), right.at)
    t = min(max(crossing, line.minimiser(right.slope)), right.at)
    if (before := line.minimiser(left.slope)) < crossing:
        t = max(before, left.at)
    return t, line.value(t, max(left(t), right(t)))
