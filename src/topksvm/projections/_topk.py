"""Thresholds of the biased projection onto the top-k cone and the top-k simplex.

The problem, with ``r = inf`` for the cone::

    min  1/2 ||a - x||^2 + rho/2 <1, x>^2    s.t.  0 <= x_j <= <1, x> / k,   <1, x> <= r

Its solution is ``x = clip(a - t, 0, u)`` with ``u = <1, x> / k``. Let ``T = t + u``, split the
entries into the ``k`` largest (*top*) and the *rest*, and let ``sigma`` be the sum over *top*.
Since ``t <= a_[k+1]`` and ``a_[k] <= T`` whenever some entry lies strictly between the bounds, the
optimality conditions (Lapin, Hein, Schiele 2015, lemmas on the top-k cone and simplex) become a
balance of two excesses::

    e = sum_rest max(0, a_j - t) = sum_top max(0, T - a_j)
    u = T - t = min( (sigma + e) / (k (1 + rho k)),  r / k )

The first sum is convex and decreasing in ``t``, the second convex and increasing in ``T``, so the
width ``T - t`` that belongs to an excess ``e`` is concave and increasing in ``e``. Newton's method
replaces both sums by tangents, which lie below them; the excess it returns therefore never exceeds
the solution, and as the next tangents touch where these have met, the excesses grow monotonically.
It ends after finitely many steps at the exact partition, cannot cycle, and needs no tolerance: in
floating point it ends as soon as the excess stops growing.

Two corollaries are used. The projection is zero if *and only if* ``sigma <= 0``, for every ``rho``
(the paper's lemma has "only if" for ``rho = 0`` alone). And leaving out entries other than the
``k`` largest can only lower ``t``, which makes the search among candidates exact.
"""

from __future__ import annotations

import numpy as np

from topksvm._numba import kernel
from topksvm.projections._candidates import (
    SORT_LIMIT,
    gather_above,
    gather_guess,
    is_centred,
    is_precise,
    largest,
    put_largest_first,
    round_below,
    smallest,
)


@kernel
def topk_thresholds(a, offset, k, r, rho, work):
    """Return ``(shift, t, u)`` for ``a + offset``: its projection is ``clip(a - shift - t, 0, u)``.

    Guess the support, solve on the candidates, verify that no entry left out exceeds the threshold;
    otherwise add those that do and solve again.

    Parameters
    ----------
    a : ndarray of shape (d,)
        What to project, less `offset`.
    offset : float
        What is added to it, which may have other digits than it can hold.
    k : int
        No entry of the projection is above a k-th of their sum.
    r : float
        The radius; infinite for the cone.
    rho : float
        The weight of the bias.
    work : Workspace
        Scratch memory.

    Returns
    -------
    shift, t, u : float
        In two parts, so that differences of large numbers keep their digits.

    Examples
    --------
    >>> import numpy as np
    >>> from topksvm.projections import make_workspace, topk_thresholds
    >>> a = np.array([3.0, 1.0, -2.0])
    >>> shift, t, u = topk_thresholds(a, 0.0, 2, np.inf, 0.0, make_workspace(3, a.dtype))
    >>> np.clip(a - shift - t, 0.0, u)
    array([2., 2., 0.])
    """
    lanes, c, ranked = work.lanes, work.entries, work.ranked
    n = gather_guess(a, k, lanes, c)
    t, u = balance_excess(c, n, k, r, rho, offset, ranked)
    if n == a.size and is_precise(largest(c, 0, k), t, u):
        return 0.0, t, u
    shift = min(t, c[k - 1])
    # A little lower than it seems needed: rounding must not force another round.
    floor = round_below(shift - 1e-3 * u, lanes)
    distance = np.inf
    while True:
        n = gather_above(a, floor, shift, c)
        t, u = balance_excess(c, n, k, r, rho, shift + offset, ranked)
        verified = u == 0.0 or not floor - shift > t  # True for NaN: never loop on it.
        if verified and (is_centred(t, u) or not abs(t) < distance):
            return shift, t, u
        shift += t
        if verified:
            distance = abs(t)
        else:
            floor = round_below(shift - 1e-3 * u, lanes)


@kernel
def balance_excess(c, n, k, r, rho, shift, ranked):
    """Return ``(t, u)`` for the entries ``c[:n]``, given relative to `shift`; reorders them."""
    put_largest_first(c, n, k, ranked)
    sigma = k * shift
    for j in range(k):
        sigma += c[j]
    if sigma <= 0.0:
        return 0.0, 0.0
    inv_scale = 1.0 / (k * (1.0 + rho * k))
    cap = r / k
    u = min(sigma * inv_scale, cap)
    if n == k or u <= c[k - 1] - c[k]:
        return c[k - 1] - u, u
    if n <= SORT_LIMIT:
        return sweep_sorted(c, n, k, sigma, inv_scale, cap)
    return newton_unsorted(c, n, k, sigma, inv_scale, cap)


@kernel
def solve_tangents(n_top, top_sum, n_rest, rest_sum, sigma, inv_scale, cap):
    """Return ``(e, u)`` where the tangents of the two sums of excesses balance.

    The tangents are ``e = n_top T - top_sum`` and ``e = rest_sum - n_rest t``.
    """
    width = n_top * rest_sum - n_rest * top_sum
    slope = float(n_top + n_rest)
    product = float(n_top * n_rest)
    excess = (sigma * inv_scale * product + width) / (slope - product * inv_scale)
    u = (sigma + excess) * inv_scale
    if u > cap:
        return (cap * product + width) / slope, cap
    return excess, u


@kernel
def sweep_sorted(c, n, k, sigma, inv_scale, cap):
    """Solve the balance for sorted entries, growing the middle set outwards from ``a_[k]``.

    The excess of the tangents never exceeds the solution, so the entries between the thresholds
    that belong to it are between the final ones too. The set only grows: at most `n` steps.
    """
    n_top, n_rest = 1, 1
    top_sum, rest_sum = c[k - 1], c[k]
    while True:
        excess, u = solve_tangents(n_top, top_sum, n_rest, rest_sum, sigma, inv_scale, cap)
        old_size = n_top + n_rest
        while k + n_rest < n and c[k + n_rest] * n_rest > rest_sum - excess:
            rest_sum += c[k + n_rest]
            n_rest += 1
        while n_top < k and c[k - 1 - n_top] * n_top < top_sum + excess:
            top_sum += c[k - 1 - n_top]
            n_top += 1
        if n_top + n_rest == old_size:
            return (rest_sum - excess) / n_rest, u


@kernel
def newton_unsorted(c, n, k, sigma, inv_scale, cap):
    """Solve the balance by Newton's method; see `put_largest_first` for the order of entries."""
    kth, next_largest = c[k - 1], c[k]
    level, t, u = largest(c, 0, k), smallest(c, k, n), cap
    last_excess = -np.inf
    while True:
        n_top, top_sum = sum_at_most(c, 0, k, level)
        n_rest, rest_sum = sum_at_least(c, k, n, t)
        excess, new_u = solve_tangents(n_top, top_sum, n_rest, rest_sum, sigma, inv_scale, cap)
        # Rounding could undo the last digits for ever; in exact arithmetic the excess only grows.
        if not excess > last_excess:
            return t, u
        if excess > 0.0:
            t = min((rest_sum - excess) / n_rest, next_largest)
            level = max((top_sum + excess) / n_top, kth)
            u = new_u
        else:
            excess, t, level, u = 0.0, next_largest, kth, min(sigma * inv_scale, cap)
        last_excess = excess


@kernel
def sum_at_most(c, start, stop, bound):
    """Return count and sum of the entries ``<= bound`` of ``c[start:stop]``."""
    count, total = 0, 0.0
    for j in range(start, stop):
        if c[j] <= bound:
            count += 1
            total += c[j]
    return count, total


@kernel
def sum_at_least(c, start, stop, bound):
    """Return count and sum of the entries ``>= bound`` of ``c[start:stop]``."""
    count, total = 0, 0.0
    for j in range(start, stop):
        if c[j] >= bound:
            count += 1
            total += c[j]
    return count, total
