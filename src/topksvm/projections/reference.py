"""The projections as the paper prints them: sort, then search all partitions.

Slow, short and written for reading, these are what the fast kernels are tested against. They
compute in NumPy's widest floating-point type. (M. Lapin, M. Hein, B. Schiele, "Top-k Multiclass
SVM", NIPS 2015, section 4.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["knapsack", "topk_cone", "topk_simplex"]

Floats = NDArray[np.floating[Any]]


def knapsack(
    a: ArrayLike,
    r: float,
    lo: float = 0.0,
    hi: float | np.longdouble = 1.0,
    *,
    equality: bool = False,
    rho: float = 0.0,
) -> Floats:
    """Project the vector `a` onto the box ``[lo, hi]`` cut by ``<1, x> <= r`` (or ``= r``).

    The sum ``s(t)`` of ``clip(a - t, lo, hi)`` is piecewise linear and decreasing. Find the piece
    on which it meets ``r``, or ``t / rho`` if the budget does not bind.

    Parameters
    ----------
    a : array-like of shape (d,)
        The vector to project.
    r, lo, hi : float
        The budget for the sum of the entries, and the bounds of each entry.
    equality : bool
        Require ``<1, x> = r``.
    rho : float
        The weight of the bias, as in :func:`topksvm.projections.project_knapsack`.

    Returns
    -------
    ndarray of shape (d,)
        The projection, in extended precision.

    Examples
    --------
    >>> from topksvm.projections import reference
    >>> reference.knapsack([0.9, 0.8, 0.1], r=1.0, hi=0.5).astype(float)
    array([0.5, 0.5, 0. ])
    """
    a = _widest(a)
    breakpoints = np.sort(np.concatenate([a - lo, a - hi] if np.isfinite(hi) else [a - lo]))
    if not np.isfinite(hi):  # To the left of all breakpoints the sum grows without bound.
        breakpoints = np.insert(breakpoints, 0, breakpoints[0] - abs(r) - 1)
    sums = np.array([np.clip(a - t, lo, hi).sum() for t in breakpoints])

    def x_where(values: Floats) -> Floats:
        """Return x for the root of the decreasing piecewise linear function with `values`."""
        i = min(int(np.count_nonzero(values > 0)), len(values) - 1)
        if values[i] >= 0 or i == 0:
            return _clip(a - breakpoints[i], lo, hi)
        share = values[i - 1] / (values[i - 1] - values[i])
        t = breakpoints[i - 1] + share * (breakpoints[i] - breakpoints[i - 1])
        return _clip(a - t, lo, hi)

    if equality:
        return x_where(sums - r)
    if rho == 0:
        free = np.clip(a, lo, hi)
    else:
        slack = rho * sums - breakpoints
        if slack[-1] > 0:  # All entries are at `lo`.
            free = np.full_like(a, lo)
        elif slack[0] < 0:  # All entries are at `hi`, or there are no upper bounds.
            free = (
                np.full_like(a, hi) if np.isfinite(hi) else a - rho * a.sum() / (1 + rho * a.size)
            )
        else:
            free = x_where(slack)
    return free if free.sum() <= r else x_where(sums - r)


def topk_cone(a: ArrayLike, k: int, *, rho: float = 0.0) -> Floats:
    """Project the vector `a` onto the top-k cone.

    Each partition of the sorted entries into U (at the upper bound), M (between) and L (zero) gives
    thresholds ``(t, u)`` in closed form. In exact arithmetic one partition satisfies the
    constraints of the paper's lemma; in floating point take the one that violates them least.

    Parameters
    ----------
    a : array-like of shape (d,)
        The vector to project.
    k : int
        Each entry is at most ``1 / k`` of the sum.
    rho : float
        The weight of the bias, as in :func:`topksvm.projections.project_topk_cone`.

    Returns
    -------
    ndarray of shape (d,)
        The projection, in extended precision.

    Examples
    --------
    >>> from topksvm.projections import reference
    >>> reference.topk_cone([3.0, 1.0, -9.0], k=2).astype(float)
    array([2., 2., 0.])
    """
    a = _widest(a)
    order = np.argsort(-a, kind="stable")
    sorted_a = a[order]
    total = np.concatenate([np.zeros(1, a.dtype), np.cumsum(sorted_a)])
    if total[k] <= 0:
        return np.zeros_like(a)
    padded = np.concatenate([[np.inf], sorted_a, [-np.inf]]).astype(a.dtype)

    # Case 2: M is empty, U holds the k largest.
    best_u = total[k] / (k + rho * k**2)
    best_t = padded[k] - best_u
    least = padded[k + 1] - best_t

    # Case 3: |U| = n_upper < k and |U| + |M| = n_positive >= k.
    n_upper = np.arange(k)[:, None]
    n_positive = np.arange(k, a.size + 1)[None, :]
    n_middle = n_positive - n_upper
    sum_upper, sum_middle = total[n_upper], total[n_positive] - total[n_upper]
    determinant = (k - n_upper) ** 2 + (n_upper + rho * k**2) * n_middle
    u = (n_middle * sum_upper + (k - n_upper) * sum_middle) / determinant
    t = (
        n_upper * (1 + rho * k) * sum_middle - (k - n_upper + rho * k * n_middle) * sum_upper
    ) / determinant + rho * u * k
    violation = np.max(
        np.broadcast_arrays(
            padded[n_positive + 1] - t,
            t - padded[n_positive],
            padded[n_upper + 1] - (t + u),
            (t + u) - padded[n_upper],
            -u,
        ),
        axis=0,
    )
    where = np.unravel_index(np.argmin(violation), violation.shape)
    if violation[where] < least:
        best_t, best_u = t[where], u[where]
    return _clip(a - best_t, 0, best_u)


def topk_simplex(a: ArrayLike, k: int, r: float = 1.0, *, rho: float = 0.0) -> Floats:
    """Project the vector `a` onto the top-k simplex of radius `r`.

    It is the knapsack problem with ``u = r / k`` if the multiplier of ``<1, x> <= r`` there is not
    negative, and the projection onto the cone otherwise.

    Parameters
    ----------
    a : array-like of shape (d,)
        The vector to project.
    k : int
        Each entry is at most ``1 / k`` of the sum.
    r : float
        The largest sum.
    rho : float
        The weight of the bias, as in :func:`topksvm.projections.project_topk_simplex`.

    Returns
    -------
    ndarray of shape (d,)
        The projection, in extended precision.

    Examples
    --------
    >>> from topksvm.projections import reference
    >>> reference.topk_simplex([3.0, 1.0, 0.0], k=2, r=1.0).astype(float)
    array([0.5, 0.5, 0. ])
    """
    a = _widest(a)
    u = np.longdouble(r) / k
    x = knapsack(a, r, 0.0, u, equality=True)
    # lambda = t + p / k - rho r with p = sum_U (a - t - u) and a - t = x elsewhere, so that no
    # threshold is needed: k u = r = <1, x>.
    middle = (x > 0) & (x < u)
    upper = x >= u
    t = (a - x)[middle].mean() if middle.any() else (a[upper] - u).min()
    multiplier = t + np.maximum(a - t - u, 0).sum() / k - rho * r
    return x if multiplier >= 0 else topk_cone(a, k, rho=rho)


def _widest(a: ArrayLike) -> Floats:
    return np.asarray(a, dtype=np.longdouble)


def _clip(a: Floats, lo: float | np.longdouble, hi: float | np.longdouble) -> Floats:
    return np.minimum(np.maximum(a, lo), hi)
