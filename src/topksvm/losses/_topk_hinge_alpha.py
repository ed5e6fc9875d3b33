"""The top-k hinge loss of Lapin, Hein and Schiele, as their solver minimises it."""

from __future__ import annotations

from typing import NamedTuple

from topksvm.losses._domain import into_domain
from topksvm.losses._hinge import hinge, shifted_sum, step_below_caps
from topksvm.projections import topk_thresholds


@hinge
class TopKHingeAlpha(NamedTuple):
    """``phi(h) = max(0, mean of the k largest h_j)`` over the wrong classes.

    Its dual lives in the top-k simplex ``0 <= x_j <= <1, x> / k``, ``<1, x> <= r``.

    The loss printed as eq. (topk-loss) in the paper lets the true class take part with ``h = 0``;
    that is :class:`~topksvm.losses.TopKHingeFull`. The dual printed beside it, which the paper's
    algorithm solves, is the dual of this one (Kato and Hirohashi, ACML 2019).

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
    >>> from topksvm.losses import TopKHingeAlpha
    >>> from topksvm.projections import make_workspace
    >>> wrong, loss = np.array([-0.75, 3.0, -1.5]), TopKHingeAlpha(k=3)
    >>> float(loss.value(loss, wrong, 1.0, make_workspace(wrong.size, wrong.dtype)))
    0.25
    """

    k: int
    smoothing: float = 0.0

    @staticmethod
    def thresholds(loss, row, offset, r, rho, work):
        """Project onto the top-k simplex."""
        return topk_thresholds(row, offset, loss.k, r, rho, work)

    @staticmethod
    def feasible_step(loss, values, change, n, r, limit):
        """Stay in the top-k simplex."""
        return step_below_caps(values, change, n, r, 0.0, 1.0 / loss.k, limit)

    @staticmethod
    def make_feasible(loss, values, n, C):
        """Bring the duals into the top-k simplex."""
        return into_domain(values, n, C, C, loss.k)

    @staticmethod
    def value_of_largest(loss, c, offset):
        """Return ``max(0, mean of c + offset)``."""
        return max(0.0, shifted_sum(c, loss.k, offset) / loss.k)
