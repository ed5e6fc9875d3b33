"""Limited-memory BFGS whose own arithmetic is two matrix products per iteration.

The direction is ``-H g`` with Nocedal's two loops over the last steps ``s_i`` and changes of the
gradient ``y_i``. It is a combination of these vectors and ``g``, whose coefficients need nothing
but their inner products (Chen, Wang and Zhou 2014, Large-scale L-BFGS using MapReduce). So the
vectors are read twice, for the products with ``g`` and for the combination, in their own precision;
the loops run over numbers in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]
Evaluate = Callable[[Floats], tuple[float, Floats]]

PAIRS = 10
"""Steps that are remembered."""

MAX_TRIALS = 40
"""Evaluations in a search along a line."""

DECREASE, FLATTER = 1e-4, 0.9
"""Shares of the slope in Wolfe's conditions: that the value must fall by, and that may be left."""


class Memory:
    """The last steps and changes of the gradient, and their inner products.

    Parameters
    ----------
    size : int
        The length of the vectors.
    dtype : dtype
        Their precision.
    scale : float
        The step length along the gradient of someone who remembers nothing.
    """

    def __init__(self, size: int, dtype: np.dtype, scale: float) -> None:
        self.steps = np.zeros((PAIRS, size), dtype)
        self.changes = np.zeros((PAIRS, size), dtype)
        self.products = np.zeros((PAIRS, PAIRS))  # <s_i, y_j>, j no older than i.
        self.squares = np.zeros((PAIRS, PAIRS))  # <y_i, y_j>
        self.order: list[int] = []  # The oldest first; always the first rows of the arrays.
        self.scale = scale

    def add(self, step: Floats, change: Floats) -> None:
        """Remember a pair; one without positive curvature is of no use."""
        new = self.order.pop(0) if len(self.order) == PAIRS else len(self.order)
        self.steps[new], self.changes[new] = step, change
        used = len(self.order) + 1
        steps, changes = self.steps[:used], self.changes[:used]
        self.products[:used, new] = steps @ change
        self.squares[:used, new] = self.squares[new, :used] = changes @ change
        curvature, square = self.products[new, new], self.squares[new, new]
        if curvature > 0.0 and np.isfinite(square):
            self.order.append(new)
            self.scale = curvature / square
        else:
            self.forget()

    def forget(self) -> None:
        """Start again from the gradient alone."""
        self.order.clear()

    def direction(self, gradient: Floats) -> Floats:
        """Return ``-H g``."""
        order = self.order
        if not order:
            return np.asarray(-self.scale * gradient, gradient.dtype)
        used = len(order)
        steps, changes = self.steps[:used], self.changes[:used]
        products, squares = self.products[:used, :used], self.squares[:used, :used]
        by_steps = (steps @ gradient).astype(np.float64)
        by_changes = (changes @ gradient).astype(np.float64)
        on_steps, on_changes = np.zeros(used), np.zeros(used)
        for i in reversed(order):
            inner = by_steps[i] + products[i] @ on_changes
            on_changes[i] = -inner / products[i, i]
        alphas = -on_changes
        on_changes *= self.scale
        for i in order:
            inner = self.scale * by_changes[i] + squares[i] @ on_changes + on_steps @ products[:, i]
            on_steps[i] += alphas[i] - inner / products[i, i]
        dtype = gradient.dtype
        combined = on_steps.astype(dtype) @ steps + on_changes.astype(dtype) @ changes
        combined += dtype.type(self.scale) * gradient
        return np.negative(combined, out=combined)


def minimise(evaluate: Evaluate, x: Floats, scale: float) -> Iterator[None]:
    """Evaluate at better and better points; yield after each, and end if nothing better is found.

    Parameters
    ----------
    evaluate : callable
        Returns the objective and its gradient.
    x : ndarray of shape (size,)
        Where to start, in float64.
    scale : float
        The length of the first step, in gradients.
    """
    value, gradient = evaluate(x)
    yield
    memory = Memory(x.size, gradient.dtype, scale)
    while gradient.any():
        direction = memory.direction(gradient)
        found = yield from search(evaluate, x, direction, value, gradient)
        if found is None and not memory.order:
            return
        if found is None:
            memory.forget()
            continue
        length, value, new_gradient = found
        step = direction.dtype.type(length) * direction
        x = x + step
        memory.add(step, new_gradient - gradient)
        gradient = new_gradient


def search(
    evaluate: Evaluate, x: Floats, direction: Floats, value: float, gradient: Floats
) -> Generator[None, None, tuple[float, float, Floats] | None]:
    """Find a length along `direction`, and value and gradient there; None if there is none.

    The length meets Wolfe's conditions: the value falls (but for rounding), and the slope has lost
    a tenth at least, so that the curvature between the two points is positive. Between a length
    that is too short and one that is too long, the next is where a parabola has its minimum.
    """
    slope = float(np.vdot(gradient, direction))
    if not slope < 0.0:
        return None
    noise = float(np.finfo(gradient.dtype).eps) * abs(value)
    short, long, length = 0.0, np.inf, 1.0
    short_value, short_slope = value, slope
    for _ in range(MAX_TRIALS):
        new_value, new_gradient = evaluate(x + direction.dtype.type(length) * direction)
        yield
        new_slope = float(np.vdot(new_gradient, direction))
        if not new_value <= value + DECREASE * length * slope + noise:
            long = length
            width = long - short
            bend = new_value - short_value - width * short_slope
            best = -0.5 * short_slope * width / bend if 0.0 < bend < np.inf else 0.5
            length = short + width * min(max(best, 0.1), 0.9)
        elif new_slope < FLATTER * slope:
            short, short_value, short_slope = length, new_value, new_slope
            length = 2.0 * length if long == np.inf else 0.5 * (short + long)
        else:
            return length, new_value, new_gradient
    return None
