"""Thresholds of the (biased) projection onto a box cut by a budget: the quadratic knapsack.

The problem, for entries counted from the lower bound, whose sum is `base` when all are at it::

    min  1/2 ||a - x||^2 + rho/2 (<1, x> + base)^2    s.t.  0 <= x_j <= u,   <1, x> <= r  (or = r)

Its solution is ``x = clip(a - t, 0, u)``. With equality, ``t`` solves ``<1, x(t)> = r``. With the
inequality, ``t`` is the larger of that and of the solution of ``t = rho (<1, x(t)> + base)``, the
stationary point of a budget that does not bind. Both have the form::

    p * sum_j clip(a_j - t, 0, u) = q + w t          (p > 0, w >= 0)

and are solved by variable fixing (Kiwiel 2008, J. Optim. Theory Appl. 136): solve as if every free
entry were strictly between its bounds, see on which side the violations weigh more, fix the entries
violating there, repeat. Each round is linear in the number of free entries and fixes at least one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from topksvm._numba import kernel
from topksvm.projections._candidates import (
    gather_above,
    gather_guess,
    is_centred,
    is_precise,
    largest,
    round_below,
    smallest,
)


class Knapsack(NamedTuple):
    """The set ``0 <= x_j <= u``, ``base + <1, x> <= r``, and the bias of the projection onto it.

    Attributes
    ----------
    r, u : float
        The bounds on the sum, less `base`, and on each entry.
    rho : float
        The weight of the bias ``rho/2 (base + <1, x>)^2``.
    base : float
        A part of the sum that does not change.
    equality : bool
        Whether the sum must be equal to its bound.

    Examples
    --------
    >>> from topksvm.projections import Knapsack
    >>> Knapsack(r=1.0, u=0.5, rho=0.0, base=0.0, equality=False).u
    0.5
    """

    r: float
    u: float
    rho: float
    base: float
    equality: bool


@kernel
def knapsack_thresholds(a, offset, knapsack, work):
    """Return ``(shift, t, u)`` for ``a + offset``: its projection is ``clip(a - shift - t, 0, u)``.

    Guess the support, solve on the candidates, verify that no entry left out exceeds the threshold.
    Any subset of the entries bounds it from below, so one round is enough but for rounding.

    Parameters
    ----------
    a : ndarray of shape (d,)
        What to project, less `offset`.
    offset : float
        What is added to it, which may have other digits than it can hold.
    knapsack : Knapsack
        The set.
    work : Workspace
        Scratch memory.

    Returns
    -------
    shift, t, u : float
        In two parts, so that differences of large numbers keep their digits.

    Examples
    --------
    >>> import numpy as np
    >>> from topksvm.projections import Knapsack, knapsack_thresholds, make_workspace
    >>> a, knapsack = np.array([3.0, 2.5, -1.0]), Knapsack(1.0, 0.75, 0.0, 0.0, False)
    >>> shift, t, u = knapsack_thresholds(a, 0.0, knapsack, make_workspace(3, a.dtype))
    >>> np.clip(a - shift - t, 0.0, u)
    array([0.75, 0.25, 0.  ])
    """
    r, u = knapsack.r, knapsack.u
    if u >= r:  # No entry can exceed the budget: a bound that never binds, but is finite.
        u = 2.0 * r
    if u == 0.0:
        return 0.0, 0.0, 0.0
    lanes, c = work.lanes, work.entries
    n = gather_guess(a, int(min(r / u, a.size)), lanes, c)
    shift = threshold(c, n, a.size, u, knapsack, offset)
    if n == a.size and is_precise(largest(c, 0, n), shift, u):
        return 0.0, shift, u
    # A little lower than it seems needed: rounding must not force another round.
    floor = round_below(shift - 1e-3 * u, lanes)
    distance = np.inf
    while True:
        if shift == -np.inf:
            shift = a[0] + 0.0
        n = gather_above(a, floor, shift, c)
        t = threshold(c, n, a.size, u, knapsack, shift + offset)
        verified = not floor - shift > t  # True for NaN: never loop on it.
        if verified and (is_centred(t, u) or not abs(t) < distance):
            return shift, t, u
        shift += t
        if verified:
            distance = abs(t)
        else:
            floor = round_below(shift - 1e-3 * u, lanes)


@kernel
def threshold(c, n, size, u, knapsack, shift):
    """Return ``t`` for the candidates ``c[:n]``, relative to `shift`, of a row of `size`.

    If the candidates cannot use up the budget, it does not bind as far as they know.
    """
    r, _, rho, base, equality = knapsack
    if n * u >= r * (1.0 - 1e-14):
        t = fix_variables(c, n, u, 1.0, r, 0.0)
        if equality or t + shift >= rho * (r + base):
            return t
    elif equality:
        return smallest(c, 0, n) - u if n == size else -np.inf
    if rho > 1.0:  # Divided by rho, lest it overflow.
        return fix_variables(c, n, u, 1.0, shift / rho - base, 1.0 / rho)
    return fix_variables(c, n, u, rho, shift - rho * base, 1.0)


@kernel
def fix_variables(c, n, u, p, q, w):
    """Return the root ``t`` of ``p sum_j clip(c_j - t, 0, u) = q + w t``; reorders ``c[:n]``."""
    fixed = 0.0  # The sum of the entries fixed at the upper bound.
    free_sum = 0.0
    for j in range(n):
        free_sum += c[j]
    t = -q / w if w > 0.0 else 0.0
    while n > 0:
        t = (p * (free_sum + fixed) - q) / (p * n + w)
        n_below, n_above, total = sum_clipped(c, n, t, u)
        # The sum at t tells on which side of it the root is. It is taken over clipped entries: the
        # violations themselves may be so large that their difference is lost to rounding.
        excess = p * (total + fixed) - q - w * t
        if n_below > 0 and excess >= 0.0:
            n, free_sum = keep_between(c, n, t, np.inf)
        elif n_above > 0 and excess <= 0.0:
            kept, free_sum = keep_between(c, n, -np.inf, t + u)
            fixed += (n - kept) * u
            n = kept
        else:
            return t
    return (p * fixed - q) / w if w > 0.0 else t


@kernel
def sum_clipped(c, n, t, u):
    """Return how many of ``c[:n] - t`` are below 0 and above `u`, and the sum clipped to them."""
    n_below, n_above, total = 0, 0, 0.0
    for j in range(n):
        value = c[j] - t
        n_below += value < 0.0
        n_above += value > u
        total += min(max(value, 0.0), u)
    return n_below, n_above, total


@kernel
def keep_between(c, n, low, high):
    """Move the entries strictly between `low` and `high` to the front; return count and sum."""
    kept, total = 0, 0.0
    for j in range(n):
        value = c[j]
        if low < value < high:
            c[j] = c[kept]
            c[kept] = value
            kept += 1
            total += value
    return kept, total
