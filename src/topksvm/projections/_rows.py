"""Row-wise projection: thresholds, then apply."""

from __future__ import annotations

from topksvm._numba import kernel
from topksvm.projections._knapsack import knapsack_thresholds
from topksvm.projections._topk import topk_thresholds


@kernel
def apply_thresholds(a, shift, t, lo, hi, out):
    """Write ``clip(lo + (a - shift) - t, lo, hi)`` to `out`, meeting the bounds exactly."""
    for j in range(a.size):
        value = (a[j] - shift) - t
        value = lo + value if value > 0.0 else lo
        out[j] = value if value < hi else hi


@kernel
def project_rows_knapsack(a, start, stop, lo, hi, knapsack, out, work):
    """Project the rows ``a[start:stop]`` onto the box ``[lo, hi]`` cut by a budget."""
    for i in range(start, stop):
        shift, t, u = knapsack_thresholds(a[i], -lo, knapsack, work)
        apply_thresholds(a[i], shift, t, lo, min(hi, lo + u), out[i])


@kernel
def project_rows_topk(a, start, stop, k, r, rho, out, work):
    """Project the rows ``a[start:stop]`` onto the top-k simplex of radius `r`."""
    for i in range(start, stop):
        shift, t, u = topk_thresholds(a[i], 0.0, k, r, rho, work)
        apply_thresholds(a[i], shift, t, 0.0, u, out[i])
