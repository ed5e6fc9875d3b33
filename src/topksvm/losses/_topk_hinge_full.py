"""The top-k hinge loss as printed in the paper: the true class takes part."""

from __future__ import annotations

from typing import NamedTuple

from topksvm.losses._domain import into_domain
from topksvm.losses._hinge import hinge, shifted_sum, step_below_caps
from topksvm.projections import Knapsack, knapsack_thresholds, topk_thresholds


@hinge
class TopKHingeFull(NamedTuple):
    """``phi(h) = max(0, mean of the k largest of h_j and 0)``, the 0 being the true class's own h.

    This is eq. (topk-loss) of Lapin, Hein and Schiele (2015) as printed. Its dual lives in
    ``0 <= x_j <= min(<1, x> / (k - 1), r / k)``, ``<1, x> <= r`` (Kato and Hirohashi, ACML 2019).

    The projection is the one onto the beta set if that leaves ``<1, x> >= (k - 1) r / k``, where
    the first bound is implied by the second. Otherwise the second is implied by the first, and it
    is the projection onto the top-(k - 1) simplex of radius ``(k - 1) r / k``.

    Parameters
    ----------
    k : int
        The number of guesses to train for.
    smoothing : float
        How much to smooth the kinks; 0 leaves them.

    Examples
    --------
    The value, from the scores of the wrong classes and that of the true one, and scratch memory:

    >>> import numpy as np
    >>> from topksvm.losses import TopKHingeFull
    >>> from topksvm.projections import make_workspace
    >>> wrong, loss = np.array([-0.75, 3.0, -1.5]), TopKHingeFull(k=3)
    >>> float(loss.value(loss, wrong, 1.0, make_workspace(wrong.size, wrong.dtype)))
    0.75
    """

    k: int
    smoothing: float = 0.0

    @staticmethod
    def thresholds(loss, row, offset, r, rho, work):
        """Project onto the set above."""
        k = loss.k
        shift, t, u = knapsack_thresholds(row, offset, Knapsack(r, r / k, rho, 0.0, False), work)
        if k == 1:
            return shift, t, u
        total = 0.0
        for j in range(row.size):
            total += min(max((row[j] - shift) - t, 0.0), u)
        if total >= (k - 1) * r / k:
            return shift, t, u
        return topk_thresholds(row, offset, k - 1, (k - 1) * r / k, rho, work)

    @staticmethod
    def feasible_step(loss, values, change, n, r, limit):
        """Stay within both bounds."""
        step = step_below_caps(values, change, n, r, r / loss.k, 0.0, limit)
        if loss.k == 1:
            return step
        return step_below_caps(values, change, n, r, 0.0, 1.0 / (loss.k - 1), step)

    @staticmethod
    def make_feasible(loss, values, n, C):
        """Bring the duals below both bounds."""
        return into_domain(values, n, C, C / loss.k, max(loss.k - 1, 1))

    @staticmethod
    def value_of_largest(loss, c, offset):
        """Return ``max(0, mean of c + offset and of the 0 of the true class)``."""
        # The k-th largest gives its place to the true class if its h is negative.
        last = min(0.0, c[loss.k - 1] + offset)
        return max(0.0, shifted_sum(c, loss.k, offset) - last) / loss.k
