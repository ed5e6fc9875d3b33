"""The top-k hinge loss of Usunier, Buffoni and Gallinari (2009)."""

from __future__ import annotations

from typing import NamedTuple

from topksvm.losses._domain import into_domain
from topksvm.losses._hinge import hinge, step_below_caps
from topksvm.projections import Knapsack, knapsack_thresholds


@hinge
class TopKHingeBeta(NamedTuple):
    """``phi(h) = mean of the k largest max(0, h_j)`` over the wrong classes.

    Its dual lives in ``0 <= x_j <= r / k``, ``<1, x> <= r``.

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
    >>> from topksvm.losses import TopKHingeBeta
    >>> from topksvm.projections import make_workspace
    >>> wrong, loss = np.array([-0.75, 3.0, -1.5]), TopKHingeBeta(k=3)
    >>> float(loss.value(loss, wrong, 1.0, make_workspace(wrong.size, wrong.dtype)))
    1.0
    """

    k: int
    smoothing: float = 0.0

    @staticmethod
    def thresholds(loss, row, offset, r, rho, work):
        """Project onto the simplex with entries of at most ``r / k``."""
        return knapsack_thresholds(row, offset, Knapsack(r, r / loss.k, rho, 0.0, False), work)

    @staticmethod
    def feasible_step(loss, values, change, n, r, limit):
        """Stay in the simplex with entries of at most ``r / k``."""
        return step_below_caps(values, change, n, r, r / loss.k, 0.0, limit)

    @staticmethod
    def make_feasible(loss, values, n, C):
        """Bring the duals into the simplex with entries of at most ``C / k``."""
        return into_domain(values, n, C, C / loss.k, 1)

    @staticmethod
    def value_of_largest(loss, c, offset):
        """Return the mean of ``max(0, c + offset)``."""
        total = 0.0
        for j in range(loss.k):
            total += max(0.0, c[j] + offset)
        return total / loss.k
