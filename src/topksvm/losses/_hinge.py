"""What the three top-k hinge losses share: everything but the set that their duals live in.

With the set ``Delta(r)`` of radius ``r``, the loss is the support function of ``Delta(1)``,
smoothed by ``gamma`` (Nesterov)::

    phi(h) = max { <h, x> - gamma/2 <x, x> : x in Delta(1) },      h = row - base + 1

so ``omega(x) = gamma/2 <x, x>`` on ``Delta(1)``. The dual step is a biased projection onto
``Delta(C)`` (Lapin, Hein, Schiele 2015, proposition on the update)::

    x = argmin 1/2 ||b - x||^2 + rho/2 <1, x>^2,    b = h / scale,  rho = norm / scale,
    scale = norm + gamma / C
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from topksvm._numba import dispatched, kernel
from topksvm.losses._contract import declare
from topksvm.projections import (
    gather_above,
    gather_guess,
    positions_above,
    put_largest_first,
    round_below,
)

__all__ = ["gather_largest", "hinge", "shifted_sum", "thresholds", "value_of_largest"]


@dispatched
def thresholds(loss, row, offset, r, rho, work):
    """Return ``(shift, t, u)``: ``clip(row - shift - t, 0, u)`` projects ``row + offset``."""
    return loss.thresholds(loss, row, offset, r, rho, work)


@dispatched
def value_of_largest(loss, c, offset):
    """Return the loss without smoothing, given the `k` largest ``h = c + offset``, the least last.

    No other ``h`` has a part in it.
    """
    return loss.value_of_largest(loss, c, offset)


@kernel
def step_below_caps(values, change, n, r, cap, share, limit):
    """Return the largest step that keeps ``0 <= x_j <= cap + share <1, x>`` and ``<1, x> <= r``.

    An entry that moves along its bound, but for rounding, is not held up by it.
    """
    total, slope, size = 0.0, 0.0, 0.0
    for j in range(n):
        total += values[j]
        slope += change[j]
        size = max(size, abs(change[j]))
    noise = 1e-12 * size + 1e-15 * r  # Small changes of large values are rounding of the values.
    step = limit
    if slope > noise:
        step = min(step, max(r - total, 0.0) / slope)
    for j in range(n):
        if change[j] < -noise:
            step = min(step, -values[j] / change[j])
        growth = change[j] - share * slope
        if growth > noise:
            step = min(step, max(cap + share * total - values[j], 0.0) / growth)
    return step


def hinge_value(loss, row, base, work):
    """Return ``phi(h)``."""
    offset = 1.0 - base
    if loss.smoothing == 0.0:
        gather_largest(row, loss.k, work)
        return value_of_largest(loss, work.entries, offset)
    shift, t, u = thresholds(loss, row, offset, loss.smoothing, 0.0, work)
    squares = 0.0
    for j in range(row.size):
        p = min(max((row[j] - shift) - t, 0.0), u)
        squares += p * p
    return smoothed_value(loss, row, offset, (shift, t, u), squares, work)


def hinge_gradient(loss, row, base, out, work):
    """Write the derivative of the smoothed loss, a point of ``Delta(1)``, to `out`."""
    offset, gamma = 1.0 - base, loss.smoothing
    shift, t, u = thresholds(loss, row, offset, gamma, 0.0, work)
    squares = 0.0
    for j in range(row.size):
        p = min(max((row[j] - shift) - t, 0.0), u)
        squares += p * p
        out[j] = p / gamma
    return smoothed_value(loss, row, offset, (shift, t, u), squares, work)


@kernel
def smoothed_value(loss, row, offset, clip, squares, work):
    """Return ``phi_0(h - p) + ||p||^2 / (2 gamma)`` for the projection ``p`` of ``h``.

    That is the Moreau envelope of the loss without smoothing, ``phi_0``: the minimum over all
    ``p``. So whatever rounding does to ``p``, the value is not below the loss. ``h - p`` has the
    order of ``h``, hence the same `k` largest entries.
    """
    shift, t, u = clip
    gather_largest(row, loss.k, work)
    c = work.entries
    for j in range(loss.k):
        c[j] -= min(max((c[j] - shift) - t, 0.0), u)
    return value_of_largest(loss, c, offset) + 0.5 * squares / loss.smoothing


def hinge_dual_value(loss, values, n, C):
    """Return ``<1, x> - gamma / (2 C) <x, x>``."""
    total, squares = 0.0, 0.0
    for j in range(n):
        total += values[j]
        squares += values[j] * values[j]
    return total - 0.5 * loss.smoothing * squares / C


def hinge_dual_step(loss, row, base, norm, C, work):
    """Project, as above; the problem is multiplied by ``scale``, so that `row` stays as it is."""
    scale = norm + loss.smoothing / C
    positions, values = work.positions, work.values
    if scale == 0.0:
        # A row of zeros: all scores are 0 and the dual is linear. Any k equal shares maximise it.
        for j in range(loss.k):
            positions[j] = j
            values[j] = C / loss.k
        return loss.k
    shift, t, u = thresholds(loss, row, 1.0 - base, C * scale, norm / scale, work)
    if u == 0.0:
        return 0
    n = positions_above(row, round_below(shift + t, work.lanes), positions)
    kept = 0
    for j in range(n):
        position = positions[j]
        value = min((row[position] - shift) - t, u) / scale
        if value > 0.0:
            positions[kept] = position
            values[kept] = value
            kept += 1
    return kept


def hinge(loss: type) -> type:
    """Give the loss, a NamedTuple with `k` and `smoothing`, what it shares with the others."""
    methods: dict[str, Callable[..., Any]] = {
        "value": hinge_value,
        "gradient": hinge_gradient,
        "dual_value": hinge_dual_value,
        "dual_step": hinge_dual_step,
    }
    for name, method in methods.items():
        setattr(loss, name, staticmethod(method))
    return declare(uses_smoothing=True, sparse_duals=True, has_feasible_step=True)(loss)


@kernel
def gather_largest(a, k, work):
    """Write the `k` largest entries of `a` to ``work.entries[:k]``, the least of them last.

    Examples
    --------
    >>> import numpy as np
    >>> from topksvm.losses import gather_largest
    >>> from topksvm.projections import make_workspace
    >>> a = np.array([1.0, 3.0, -2.0, 2.0])
    >>> work = make_workspace(a.size, a.dtype)
    >>> gather_largest(a, 2, work)
    >>> work.entries[:2]
    array([3., 2.])
    """
    lanes, c = work.lanes, work.entries
    n = gather_guess(a, k, lanes, c)
    put_largest_first(c, n, k, work.ranked)
    if n < a.size:
        # The k-th largest of a subset bounds the k-th largest of all from below.
        n = gather_above(a, round_below(c[k - 1], lanes), 0.0, c)
        put_largest_first(c, n, k, work.ranked)


@kernel
def shifted_sum(c, k, offset):
    """Return the sum of ``c[:k] + offset``, adding first: large scores may nearly cancel.

    Examples
    --------
    >>> import numpy as np
    >>> from topksvm.losses import shifted_sum
    >>> shifted_sum(np.array([3.0, 2.0, 1.0]), 2, 0.5)
    6.0
    """
    total = 0.0
    for j in range(k):
        total += c[j] + offset
    return total
