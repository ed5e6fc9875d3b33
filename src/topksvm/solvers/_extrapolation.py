"""Go on in the direction of the last pass.

Near the optimum a pass moves the duals by a little less than the one before, in nearly the same
direction: coordinate ascent converges linearly. The dual objective along ``E``, the change of the
last pass, is a parabola; its maximum is known from ``<1, E>``, ``<W, W_E>`` and ``||W_E||^2`` with
``W_E = sum_i e_i x_i'``. Each example goes as far as its constraints let it, which bends the
direction, so the parabola is taken along what remains of it. The dual never falls, and convex
combinations of feasible points are feasible.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm._numba import borrow, inlined_kernel, kernel, summing_kernel
from topksvm.data import add_row, load_row
from topksvm.losses import feasible_step
from topksvm.solvers._duals import Duals

Floats = NDArray[np.floating[Any]]

FARTHEST = 20.0
"""The most passes to be anticipated at once."""


@kernel
def find_direction(loss, rows, examples, before, duals, limit, steps, direction, dense, sums):
    """Find how far each example can go on, at most `limit`, and add ``W_E`` to `direction`.

    ``sums`` receives the slope and the curvature of the dual that do not come from the weights.
    """
    rows, examples, before = borrow(rows), borrow(examples), borrow(before)
    duals, dense = borrow(duals), borrow(dense)
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
    """Memory for the direction, and the search along it."""

    def __init__(self, loss: Any, problem: Any) -> None:
        self.loss, self.problem = loss, problem
        self.direction = np.empty((0, 0))  # Allocated when first needed.
        self.steps = np.empty(problem.n)
        self.dense = np.zeros(problem.m)
        self.limit = 4.0

    def go_on(self, before: Duals, duals: Duals, weights: Floats) -> float:
        """Move duals and weights along the change since `before`; return the gain in the dual."""
        if self.direction.shape != weights.shape:
            self.direction = np.empty_like(weights)
        self.direction[...] = 0.0
        sums = np.zeros(2)
        find_direction(
            self.loss,
            self.problem.rows,
            self.problem.examples,
            before,
            duals,
            self.limit,
            self.steps,
            self.direction,
            self.dense,
            sums,
        )
        product, square = inner_products(weights, self.direction)
        slope, curvature = float(sums[0]) - product, float(sums[1]) + square
        if not (slope > 0.0 and curvature > 0.0):
            return 0.0
        share = min(1.0, slope / curvature)
        # The farther examples may go, the more of them are held up, which bends the direction.
        self.limit *= 1.3 if share == 1.0 else 0.8 if share < 0.6 else 1.0
        self.limit = min(max(self.limit, 1.0), FARTHEST)
        move(before, duals, self.steps, share, self.dense)
        weights += weights.dtype.type(share) * self.direction
        return share * (slope - 0.5 * share * curvature)
