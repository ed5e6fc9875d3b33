"""Go on in the direction of the last pass.

Near the optimum a pass moves the duals by a little less than the one before, in nearly the same
direction: coordinate ascent converges linearly. The dual objective along ``E``, the change of the
last pass, is a parabola; its maximum is known from ``<1, E>``, ``<W, W_E>`` and ``||W_E||^2`` with
``W_E = sum_i e_i x_i'``. Each example goes as far as its constraints let it, which bends the
direction, so the parabola is taken along what remains of it. The dual never falls, and convex
combinations of feasible points are feasible.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topksvm._numba import borrow, inlined_kernel, kernel, summing_kernel
from topksvm.data import add_row, load_row
from topksvm.losses import feasible_step
from topksvm.solvers._duals import Duals

Floats = NDArray[np.floating[Any]]

FIRST_LIMIT, FARTHEST = 4.0, 20.0
"""How many passes may be anticipated at once, at first and at most. The limit adapts within a few
passes, so neither value matters much."""


class Line(NamedTuple):
    """The line from the duals on, in the direction of their last change ``E``.

    Attributes
    ----------
    steps : ndarray of shape (n,)
        How far each example can go.
    direction : ndarray
        ``W_E``, in the layout of the weights.
    sums : ndarray of shape (2,)
        Slope and curvature of the dual that do not come from the weights.
    dense : ndarray of shape (m,)
        Memory, all zeros.
    """

    steps: NDArray[np.float64]
    direction: Floats
    sums: NDArray[np.float64]
    dense: NDArray[np.float64]


@kernel
def find_direction(loss, rows, examples, before, duals, limit, line):
    """Find how far each example can go on from `duals`, at most `limit` times its last change.

    The `line` receives the steps, their sums, and, added to what is there, its direction.
    """
    rows, examples, before = borrow(rows), borrow(examples), borrow(before)
    duals, line = borrow(duals), borrow(line)
    steps, direction, sums, dense = line
    change = np.empty(dense.size)
    d = direction.shape[1]
    x = np.zeros(d, direction.dtype)
    for i in range(duals.start.size):
        steps[i] = 0.0
        start, count = duals.start[i], duals.count[i]
        if count == 0 or read_change(i, before, duals, dense, change) == 0.0:
            continue
        values, C = duals.values[start : start + count], examples.C[i]
        step = feasible_step(loss, values, change, count, C, limit)
        if step <= 0.0:
            continue
        steps[i] = step
        total = 0.0
        load_row(rows, i, x)
        for j in range(count):
            e = step * change[j]
            total += e
            sums[0] += e - loss.smoothing / C * values[j] * e
            sums[1] += loss.smoothing / C * e * e
            if e != 0.0:
                add_row(rows, direction, i, x, duals.classes[start + j], -e)
        if total != 0.0:
            add_row(rows, direction, i, x, examples.labels[i], total)


@inlined_kernel
def read_change(i, before, duals, dense, change):
    """Write how the duals of example `i` that are not zero have changed; return the largest."""
    first, old_count = before.start[i], before.count[i]
    for j in range(old_count):
        dense[before.classes[first + j]] = before.values[first + j]
    start, largest = duals.start[i], 0.0
    for j in range(duals.count[i]):
        change[j] = duals.values[start + j] - dense[duals.classes[start + j]]
        largest = max(largest, abs(change[j]))
    for j in range(old_count):
        dense[before.classes[first + j]] = 0.0
    return largest


@kernel
def move(before, duals, steps, share, dense):
    """Move each example by `share` of its step, in place."""
    before, duals, dense = borrow(before), borrow(duals), borrow(dense)
    change = np.empty(dense.size)
    for i in range(duals.start.size):
        if steps[i] > 0.0:
            read_change(i, before, duals, dense, change)
            start = duals.start[i]
            for j in range(duals.count[i]):
                value = duals.values[start + j] + share * steps[i] * change[j]
                duals.values[start + j] = max(value, 0.0)


@summing_kernel
def inner_products(weights, direction):
    """Return ``<W, W_E>`` and ``||W_E||^2``, summed in float64."""
    first = second = 0.0
    for i in range(weights.shape[0]):
        for j in range(weights.shape[1]):
            e = np.float64(direction[i, j])
            first += np.float64(weights[i, j]) * e
            second += e * e
    return first, second


class Extrapolator:
    """Memory for the line, and the search along it."""

    def __init__(self, loss: Any, problem: Any) -> None:
        self.loss, self.problem = loss, problem
        self.line: Line | None = None  # Allocated when first needed.
        self.limit = FIRST_LIMIT

    def extrapolate(self, before: Duals, duals: Duals, weights: Floats) -> float:
        """Move duals and weights along the change since `before`; return the gain in the dual."""
        if self.line is None:
            self.line = make_line(self.problem, np.empty_like(weights))
        line = self.line
        line.direction[...] = 0.0
        line.sums[...] = 0.0
        rows, examples = self.problem.rows, self.problem.examples
        find_direction(self.loss, rows, examples, before, duals, self.limit, line)
        product, square = inner_products(weights, line.direction)
        slope, curvature = float(line.sums[0]) - product, float(line.sums[1]) + square
        if not (slope > 0.0 and curvature > 0.0):
            return 0.0
        share = min(1.0, slope / curvature)
        self.limit = next_limit(self.limit, share, FARTHEST)
        move(before, duals, line.steps, share, line.dense)
        weights += weights.dtype.type(share) * line.direction
        return share * (slope - 0.5 * share * curvature)


def make_line(problem: Any, direction: Floats) -> Line:
    """Return room for a line with the `direction`."""
    return Line(np.empty(problem.n), direction, np.zeros(2), np.zeros(problem.m))


def next_limit(limit: float, share: float, farthest: float, growth: float = 1.3) -> float:
    """Return how far examples may go next time, after a step of `share` of the way.

    The farther they may go, the more of them are held up by their bounds, which bends the
    direction and makes the best share smaller.
    """
    limit *= growth if share == 1.0 else 0.8 if share < 0.6 else 1.0
    return min(max(limit, 1.0), farthest)
