"""Dual variables that are provably in the domain of their loss.

Every domain here is ``0 <= x_j <= cap``, ``x_j <= <1, x> / k``, ``<1, x> <= r`` with a `cap`, a `k`
or a radius ``r`` that may say nothing. A dual objective is a lower bound on the optimum at points
of the domain and nowhere else, so rounding must not leave them outside by a single bit:
inequalities are checked with room for the rounding of their own evaluation, so that they hold in
exact arithmetic.
"""

from __future__ import annotations

import math

from topksvm._numba import kernel

__all__ = ["into_domain"]

UNIT = 2.0**-53
"""The unit roundoff of float64."""


@kernel
def into_domain(values, n, r, cap, k):
    """Lower ``values[:n]`` until they are in the domain; return the largest share that one lost.

    Nothing is lost, or a few units in the last place, by points that are feasible but for rounding.
    NaN, infinite and negative values become 0, and have lost all.

    Parameters
    ----------
    values : ndarray of float64
        The dual variables of one example; zeros may be left out.
    n : int
        How many there are.
    r, cap : float
        The bounds on the sum and on each entry; infinity for none.
    k : int
        No entry may be above ``1/k`` of the sum; 1 for no bound.

    Returns
    -------
    lost : float
        Between 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> from topksvm.losses import into_domain
    >>> values = np.array([0.5, 0.25, -1.0])
    >>> into_domain(values, 3, 1.0, 0.375, 1)
    1.0
    >>> values
    array([0.375, 0.25 , 0.   ])
    """
    lost, total, most = 0.0, 0.0, cap * (1.0 - 4.0 * UNIT)
    for j in range(n):
        x = values[j]
        if not (0.0 <= x < math.inf):
            values[j] = 0.0
            lost = 1.0
        elif x > most:
            values[j] = most
            lost = max(lost, 1.0 - most / x)
        total += values[j]
    room = 1.0 - 2.0 * (n + 4.0) * UNIT
    if total > r * room:
        factor = r * room / total * room
        lost = max(lost, 1.0 - factor)
        for j in range(n):
            values[j] *= factor
    if k > 1:
        lost = max(lost, lower_largest(values, n, k))
    return lost


@kernel
def lower_largest(values, n, k):
    """Lower the largest of ``values[:n]`` until none is above ``<1, x> / k``.

    Let `top` be the largest value, held by `ties` entries, and `rest` the sum of the others. No
    entry is above ``(ties * top + rest) / k`` if ``(k - ties) top <= rest``. Otherwise the entries
    at the top come down: to where that holds, or to the next largest value, which joins them.
    """
    highest = 0.0
    for j in range(n):
        highest = max(highest, values[j])
    top = highest
    room = 1.0 - 2.0 * (n + 4.0) * UNIT
    while top > 0.0:
        ties, rest, following = 0, 0.0, 0.0
        for j in range(n):
            if values[j] >= top:
                ties += 1
            else:
                rest += values[j]
                following = max(following, values[j])
        if ties >= k or (k - ties) * top <= rest * room:
            break
        new = max(following, rest * room * room / (k - ties))
        for j in range(n):
            values[j] = min(values[j], new)
        if new == top:  # No further: rounding stands in the way.
            values[:n] = 0.0
            new = 0.0
        top = new
    return 1.0 - top / highest if highest > 0.0 else 0.0
