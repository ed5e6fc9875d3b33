r"""The projection of TopPush: two non-negative vectors with equal sums.

.. math::
    \min_{\alpha, \beta \ge 0} \tfrac12 \sum_i c_i (\alpha_i - a_i)^2
    + \tfrac12 \sum_j c_j (\beta_j - b_j)^2 \quad \text{with} \quad \sum \alpha = \sum \beta

With the multiplier ``t`` of the constraint, ``alpha_i = max(0, a_i - t / c_i)`` and ``beta_j =
max(0, b_j + t / c_j)``. Let ``u_i = c_i a_i`` and ``u_j = -c_j b_j``. A variable of alpha is
positive if ``u > t``, one of beta if ``u < t``, and each that is adds ``(u - t) / c`` to ``sum
alpha - sum beta``, which falls with ``t`` and must be 0. As in the selection of a median, a pivot
tells for all entries on one side of it whether they are positive: linear time on average.

N. Li, R. Jin, Z.-H. Zhou, "Top Rank Optimization in Linear Time", NIPS 2014, section 3.2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm._numba import kernel

Floats = NDArray[np.float64]


def project_equal_sums(point: Floats, signs: Floats, metric: Floats) -> Floats:
    """Return the projection of `point`: alpha where `signs` is 1, beta where it is -1."""
    turns = signs * metric * point
    order = np.arange(turns.size)
    t = equal_sums_multiplier(turns, signs, metric, order)
    # From the turning points, so that exactly those found to be positive are.
    return np.maximum(signs * (turns - t), 0.0) / metric


@kernel
def equal_sums_multiplier(turns: Any, signs: Any, metric: Any, undecided: Any) -> float:
    """Return ``t``; `undecided` are the numbers of all entries, and is overwritten."""
    total, weight, t = 0.0, 0.0, 0.0
    first, last = 0, undecided.size
    while first < last:
        t = turns[undecided[(first + last) // 2]]
        excess = total - t * weight
        for p in range(first, last):
            e = undecided[p]
            if signs[e] * (turns[e] - t) > 0.0:
                excess += (turns[e] - t) / metric[e]
        if excess == 0.0:
            return t
        # The multiplier is on this side of the pivot, so the other side is decided.
        side = 1.0 if excess > 0.0 else -1.0
        left = first
        for p in range(first, last):
            e = undecided[p]
            if side * (turns[e] - t) > 0.0:
                undecided[left] = e
                left += 1
            elif signs[e] != side:
                total += turns[e] / metric[e]
                weight += 1.0 / metric[e]
        last = left
    return total / weight if weight > 0.0 else t
