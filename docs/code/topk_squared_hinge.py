"""The squared top-k hinge, half the square of the top-k hinge of Lapin, Hein and Schiele.

Its conjugate grows with the sum of the dual variables, which need no radius any more::

    phi(h) = 1/2 max(0, mean of the k largest h_j)^2,       h = row - base + 1
    omega(b) = 1/2 <1, b>^2    on the top-k cone    0 <= b_j <= <1, b> / k

The dual step maximises ``<h, x> - <1, x>^2 / (2 C) - norm/2 (<x, x> + <1, x>^2)`` over the cone.
Divide by ``norm`` to see that it is the biased projection of ``h / norm``::

    x = argmin 1/2 ||h / norm - x||^2 + rho/2 <1, x>^2,     rho = 1 + 1 / (norm C)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from topksvm.losses import declare, gather_largest, into_domain, shifted_sum
from topksvm.projections import topk_thresholds


@declare(sparse_duals=True)
class TopKSquaredHinge(NamedTuple):
    """``phi(h) = 1/2 max(0, mean of the k largest h_j)^2`` over the wrong classes.

    There is no gradient where the k-th largest ``h_j`` are tied, hence no method of that name:
    the loss is for solvers that take dual steps.
    """

    k: int

    @staticmethod
    def value(loss, row, base, work):
        """Return ``phi(h)``."""
        gather_largest(row, loss.k, work)
        mean = shifted_sum(work.entries, loss.k, 1.0 - base) / loss.k
        return 0.5 * max(0.0, mean) ** 2

    @staticmethod
    def dual_value(loss, values, n, C):  # noqa: ARG004 (the contract's signature)
        """Return ``<1, x> - C omega(x / C)``."""
        total = 0.0
        for j in range(n):
            total += values[j]
        return total - 0.5 * total * total / C

    @staticmethod
    def make_feasible(loss, values, n, C):  # noqa: ARG004
        """Bring the duals into the top-k cone, which has no radius."""
        return into_domain(values, n, np.inf, np.inf, loss.k)

    @staticmethod
    def dual_step(loss, row, base, norm, C, work):
        """Project ``h / norm``; multiplied by ``norm``, so that `row` stays as it is."""
        positions, values = work.positions, work.values
        if norm == 0.0:
            # A row of zeros: all scores are 0. Any k equal shares of the sum C are best.
            for j in range(loss.k):
                positions[j] = j
                values[j] = C / loss.k
            return loss.k
        rho = 1.0 + 1.0 / (norm * C)
        shift, t, u = topk_thresholds(row, 1.0 - base, loss.k, np.inf, rho, work)
        kept = 0
        for j in range(row.size):
            x = min((row[j] - shift) - t, u) / norm
            if x > 0.0:
                positions[kept] = j
                values[kept] = x
                kept += 1
        return kept
