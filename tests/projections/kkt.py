"""How far a point is from satisfying the optimality conditions of its projection.

Only the point, not the thresholds that led to it, is taken from the code under test. The residuals
are in the units of `a`: divide by the scale of the input.
"""

from __future__ import annotations

import numpy as np


def _thresholds(a, x, lo, u, wanted):
    """Return thresholds t that may explain ``x = clip(a - t, lo, u)``, the `wanted` one if any."""
    at_lo, at_u = x <= lo, x >= u
    middle = ~at_lo & ~at_u
    if middle.any():
        t = (a - x)[middle]
        return [t[0], t.min(), t.max()]
    low = (a[at_lo] - lo).max() if at_lo.any() else -np.inf
    high = (a[at_u] - u).min() if at_u.any() else np.inf
    return [np.clip(wanted, min(low, high), high)]


# Rounding may leave an entry an ulp off its bound: count it as bound if that explains it better.
SNAPS = (0.0, 4 * np.finfo(np.float64).eps, 4 * np.finfo(np.float32).eps)


def _least(residuals, enough):
    """Return the least of the residuals, or the first that is not above `enough`."""
    least = np.inf
    for residual in residuals:
        least = min(least, residual)
        if least <= enough:
            break
    return least


def knapsack_residual(a, x, r, lo=0.0, hi=1.0, *, equality=False, rho=0.0, enough=0.0):
    a, x = a.astype(np.longdouble), x.astype(np.longdouble)
    s = x.sum()

    def residuals():
        for snap in SNAPS:
            snapped = np.where(x >= hi - snap * abs(hi), hi, x) if np.isfinite(hi) else x
            snapped = np.where(x <= lo + snap * abs(lo), lo, snapped)
            for t in _thresholds(a, snapped, lo, hi, rho * s):
                multiplier = t - rho * s
                budget = 0.0 if equality else max(-multiplier, min(multiplier, r - s))
                yield max(np.abs(x - np.clip(a - t, lo, hi)).max(), budget)

    infeasible = max(lo - x.min(), x.max() - hi, abs(s - r) if equality else s - r)
    return float(max(infeasible, _least(residuals(), enough)))


def topk_residual(a, x, k, r=np.inf, *, rho=0.0, enough=0.0):
    a, x = a.astype(np.longdouble), x.astype(np.longdouble)
    s = x.sum()
    infeasible = max(-x.min(), x.max() - s / k, s - r)
    if not x.any():
        top_sum = np.sort(a)[-k:].sum()
        return float(max(infeasible, 0.0 if r == 0 else min(top_sum / k, r)))
    u = s / k

    def residuals():
        for snap in SNAPS:
            for t in _thresholds(a, np.where(x >= u * (1 - snap), u, x), 0.0, u, np.inf):
                multiplier = t - rho * s + np.maximum(a - t - u, 0).sum() / k
                budget = max(-multiplier, min(multiplier, r - s))
                yield max(np.abs(x - np.clip(a - t, 0, u)).max(), budget)

    return float(max(infeasible, _least(residuals(), enough)))
