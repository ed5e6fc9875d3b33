"""The top-k entropy loss of Lapin, Hein and Schiele (CVPR 2016).

The conjugate is that of softmax, restricted to the top-k simplex::

    phi(h) = max { <h, b> - omega(b) : 0 <= b_j <= S / k,  S = <1, b> <= 1 },    h = row - base
    omega(b) = sum_j b_j log b_j + (1 - S) log(1 - S)

Let ``b = S q``. Then ``omega(b) = S sum_j q_j log q_j + S log S + (1 - S) log(1 - S)``: the best
``q`` is the same for every ``S``, and ``S`` is a problem of its own::

    E(h) = max { <h, q> - sum_j q_j log q_j : 0 <= q_j <= 1/k,  <1, q> = 1 }
    phi(h) = max { S E - S log S - (1 - S) log(1 - S) } = log(1 + exp(E)),    S = 1 / (1 + exp(-E))

The ``q`` are ``q_j = min(exp(h_j) (1 - r/k) / Z, 1/k)``: the ``r < k`` largest are clipped, and
``Z`` is the sum of ``exp(h_j)`` over the rest. Insert this to get::

    E = (sum of the r largest)/k + (r/k) log k + (1 - r/k) (log Z - log(1 - r/k))

A number ``r`` leaves no entry above the clip if ``(k - r) exp(h_[r+1]) <= Z``. If this holds for
``r`` it holds for ``r + 1``, and it holds for ``k - 1``; the right ``r`` is the smallest one. For
``k = 1`` that is 0, and the loss is softmax.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from topksvm._numba import kernel
from topksvm.losses._contract import declare
from topksvm.losses._domain import into_domain
from topksvm.losses._hinge import gather_largest
from topksvm.losses._softmax import scaled_entropy


@declare(smooth=True, has_dual_step=False, margin=0.0)
class TopKEntropy(NamedTuple):
    """Softmax whose dual variables are at most ``1/k`` of their sum; ``h = row - base``.

    There is no dual step: the loss is for solvers that use the gradient.

    Parameters
    ----------
    k : int
        The number of guesses to train for; 1 is softmax.

    Examples
    --------
    The value, from the scores of the wrong classes and that of the true one, and scratch memory:

    >>> import numpy as np
    >>> from topksvm.losses import TopKEntropy
    >>> from topksvm.projections import make_workspace
    >>> wrong, loss = np.array([0.5, 2.0, -1.0]), TopKEntropy(k=2)
    >>> value = loss.value(loss, wrong, 1.0, make_workspace(wrong.size, wrong.dtype))
    >>> print(f"{value:.4f}")
    1.3455
    """

    k: int

    @staticmethod
    def value(loss, row, base, work):
        """Return ``phi(h) = log(1 + exp(E))``."""
        log_odds, _, _ = clip_largest(row, base, loss.k, work)
        return max(log_odds, 0.0) + math.log1p(math.exp(-abs(log_odds)))

    @staticmethod
    def gradient(loss, row, base, out, work):
        """Write the maximiser ``b = S q`` to `out`."""
        log_odds, level, density = clip_largest(row, base, loss.k, work)
        S = math.exp(min(log_odds, 0.0)) / (1.0 + math.exp(-abs(log_odds)))
        for j in range(row.size):
            q = 1.0 / loss.k
            if row[j] <= level:
                q = density * math.exp(np.float64(row[j]) - level)
            out[j] = S * q
        return max(log_odds, 0.0) + math.log1p(math.exp(-abs(log_odds)))

    @staticmethod
    def dual_value(loss, values, n, C):  # noqa: ARG004 (the contract's signature)
        """Return ``-C omega(x / C)``."""
        return scaled_entropy(values, n, C)

    @staticmethod
    def make_feasible(loss, values, n, C):
        """Bring the duals into the top-k simplex."""
        return into_domain(values, n, C, C, loss.k)


@kernel
def clip_largest(row, base, k, work):
    """Return ``E``, the largest score not clipped, and its ``q``.

    All exponentials are relative to that score, so they neither overflow nor all underflow.
    """
    gather_largest(row, k, work)
    c = work.entries
    c[:k].sort()
    Z = 1.0 + sum_below_largest(row, k, c[0])
    n_free = 1  # Of the k largest, the smallest ones: c[:n_free]. Then r = k - n_free.
    while n_free < k:
        extended = 1.0 + Z * math.exp(c[n_free - 1] - c[n_free])
        if n_free + 1 > extended:
            break
        Z = extended
        n_free += 1
    level = c[n_free - 1]
    clipped_sum = 0.0
    for j in range(n_free, k):
        clipped_sum += c[j] - level
    free = n_free / k
    log_odds = (level - base) + (
        (clipped_sum + (k - n_free) * math.log(k)) / k + free * math.log(Z / free)
    )
    return log_odds, level, free / Z


@kernel
def sum_below_largest(row, k, kth):
    """Return the sum of ``exp(row_j - kth)`` over all but the `k` largest; `kth` is their least."""
    total = 0.0
    n_largest = 0
    for j in range(row.size):
        if row[j] >= kth:
            n_largest += 1
        else:
            total += math.exp(row[j] - kth)
    return total + (n_largest - k)  # The k-th largest may occur more than once.
