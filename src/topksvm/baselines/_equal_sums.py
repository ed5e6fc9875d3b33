r"""The projection of TopPush: two non-negative vectors with equal sums.

.. math::
    \min_{\alpha, \beta \ge 0} \tfrac12 \|\alpha - a\|^2 + \tfrac12 \|\beta - b\|^2
    \quad \text{with} \quad \sum \alpha = \sum \beta

With the multiplier ``t`` of the constraint, ``alpha = max(0, a - t)`` and ``beta = max(0, b + t)``,
so ``sum alpha - sum beta`` falls with ``t``, by as much as entries are positive. Its zero is found
by Newton's method between bounds: each step is linear, and a few are enough.

N. Li, R. Jin, Z.-H. Zhou, "Top Rank Optimization in Linear Time", NIPS 2014, section 3.2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm._numba import kernel

Floats = NDArray[np.floating[Any]]

EPS = 1e-15


def project_equal_sums(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return the projection of the pair of vectors."""
    t = equal_sums_multiplier(a, -b, 0.0)
    return np.maximum(a - t, 0.0), np.maximum(b + t, 0.0)


@kernel
def equal_sums_multiplier(a, minus_b, guess):
    """Return ``t`` with ``sum max(0, a - t) = sum max(0, t - minus_b)``; starts from `guess`."""
    low, high = minus_b[0] * 1.0, a[0] * 1.0  # The sums are equal, both 0, if low >= high.
    for j in range(minus_b.size):
        low = min(low, np.float64(minus_b[j]))
    for i in range(a.size):
        high = max(high, np.float64(a[i]))
    if low >= high:
        return 0.5 * (low + high)
    t = min(max(guess, low), high)
    while True:
        excess, count = 0.0, 0
        for i in range(a.size):
            more = max(np.float64(a[i]) - t, 0.0)
            excess += more
            count += more > 0.0
        for j in range(minus_b.size):
            more = max(t - np.float64(minus_b[j]), 0.0)
            excess -= more
            count += more > 0.0
        if excess > 0.0:
            low = t
        else:
            high = t
        if count == 0:
            return t
        new = t + excess / count
        if abs(new - t) <= EPS * (abs(t) + abs(new)) or high - low <= EPS * (abs(low) + abs(high)):
            return new
        # The sum bends both ways, so Newton's step may leave the bounds.
        t = new if low < new < high else 0.5 * (low + high)
