"""The softmax loss: multinomial logistic regression.

The conjugate is the negative entropy of ``b`` and of what it leaves to the true class::

    phi(h) = log(1 + sum_j exp(h_j)),    h = row - base    (no margin)
    omega(b) = sum_j b_j log b_j + (1 - S) log(1 - S),     b >= 0,   S = <1, b> <= 1

With ``x = C b`` and ``K = norm C``, the dual step (Lapin, Hein, Schiele, CVPR 2016) has the
optimality conditions::

    K b_j + log b_j = h_j - tau,       tau = K S - log(1 - S)

The first gives ``b_j(tau) = W(log K + h_j - tau) / K`` with the Wright omega function ``W``, the
solution of ``W(z) + log W(z) = z``. The second, solved for ``S``, has the same form: the true class
takes part as an entry with ``h = K``. What remains is one equation::

    F(tau) = sum_j b_j(tau) - S(tau) = 0

`W` is convex and increasing, so ``F`` is convex and decreasing. Newton's method from a point on the
left of the root, where ``F >= 0``, therefore moves to the right only and never beyond the root: it
cannot cycle, and it ends where rounding stops it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from topksvm._numba import kernel
from topksvm.losses._contract import declare
from topksvm.losses._domain import into_domain
from topksvm.losses._exp import exponentials, sum_of
from topksvm.projections import MIN_LANES, lane_maxima, largest

__all__ = ["Softmax", "scaled_entropy"]


@declare(uses_k=False, smooth=True, margin=0.0)
class Softmax(NamedTuple):
    """``phi(h) = log(1 + sum_j exp(h_j))`` over the wrong classes, ``h = row - base``.

    It has no parameters. A ``NamedTuple`` without fields is a type of its own to Numba, and kernels
    compiled for it are found in the cache like any other. It is an empty tuple, hence false: ask
    ``loss is None``, not ``not loss``.

    Examples
    --------
    The value, from the scores of the wrong classes and that of the true one, and scratch memory:

    >>> import numpy as np
    >>> from topksvm.losses import Softmax
    >>> from topksvm.projections import make_workspace
    >>> wrong, loss = np.array([0.5, 2.0, -1.0]), Softmax()
    >>> value = loss.value(loss, wrong, 1.0, make_workspace(wrong.size, wrong.dtype))
    >>> print(f"{value:.4f}, {np.log(1 + np.exp(wrong - 1.0).sum()):.4f}")
    1.4952, 1.4952
    """

    @staticmethod
    def value(loss, row, base, work):  # noqa: ARG004 (the contract's signature)
        """Return ``phi(h)``."""
        return probabilities(row, base, work.lanes, work.entries)

    @staticmethod
    def gradient(loss, row, base, out, work):  # noqa: ARG004
        """Write the probabilities of the wrong classes to `out`."""
        return probabilities(row, base, work.lanes, out)

    @staticmethod
    def dual_value(loss, values, n, C):  # noqa: ARG004
        """Return ``-C omega(x / C)``."""
        return scaled_entropy(values, n, C)

    @staticmethod
    def make_feasible(loss, values, n, C):  # noqa: ARG004
        """Bring the sum of the duals below `C`."""
        return into_domain(values, n, C, C, 1)

    @staticmethod
    def dual_step(loss, row, base, norm, C, work):  # noqa: ARG004
        """Solve the optimality conditions above; all classes but those that underflow take part."""
        K = norm * C
        b, positions, values = work.entries, work.positions, work.values
        if K == 0.0:
            probabilities(row, base, work.lanes, b)
        else:
            regularised_probabilities(row, base, K, b)
        kept = 0
        for j in range(row.size):
            values[kept] = C * b[j]
            positions[kept] = j
            kept += values[kept] > 0.0
        return kept


@kernel
def scaled_entropy(values, n, C):
    """Return ``-C omega(x / C) = -sum_j x_j log(x_j / C) - (C - <1, x>) log(1 - <1, x> / C)``."""
    total, negative_entropy = 0.0, 0.0
    for j in range(n):
        b = values[j] / C
        if b > 0.0:
            negative_entropy += b * math.log(b)
            total += b
    if total < 1.0:  # Otherwise it is 1 but for rounding.
        negative_entropy += (1.0 - total) * math.log1p(-total)
    return -C * negative_entropy


@kernel
def probabilities(row, base, lanes, out):
    """Write ``exp(h_j) / (1 + sum_l exp(h_l))`` to `out`; return the log of the denominator."""
    top = max(0.0, np.float64(largest_of(row, lanes)) - base)
    exponentials(row, base, top, out)
    others = sum_of(out, row.size)
    total = others + math.exp(-top)
    share = 1.0 / total
    for j in range(row.size):
        out[j] *= share
    # The first keeps the digits of a small loss.
    return math.log1p(others) if top == 0.0 else top + math.log(total)


@kernel
def largest_of(row, lanes):
    """Return the largest entry."""
    if row.size < 2 * MIN_LANES:
        return largest(row, 0, row.size)
    lane_maxima(row, MIN_LANES, lanes)
    return largest(lanes, 0, MIN_LANES)


@kernel
def regularised_probabilities(row, base, K, b):
    """Write the maximiser of ``<h, b> - omega(b) - K/2 (<b, b> + <1, b>^2)``, ``K > 0``, to `b`."""
    first = np.argmax(row)
    # All is relative to the largest entry: differences of large scores have no rounding errors.
    highest = np.float64(row[first])
    Z = 0.0
    for j in range(row.size):
        b[j] = row[j] - highest
        Z += math.exp(b[j])
    top = highest - base
    log_K = math.log(K)
    # S >= 0, hence tau >= 0. And b_j >= exp(d_j) b_first, hence b_first <= 1 / Z.
    sigma = max(-top, math.log(Z) - K / Z)
    # For the same reason the root for Z times the largest entry is a bound too, and it is cheap.
    sigma = raise_threshold(b[first : first + 1], Z, top, K, log_K, sigma)
    sigma = raise_threshold(b[: row.size], 1.0, top, K, log_K, sigma)
    for j in range(row.size):
        b[j] = probability(b[j] - sigma, K, log_K)


@kernel
def raise_threshold(d, weight, top, K, log_K, sigma):
    """Return the root ``sigma = tau - top`` of ``weight sum_j b_j = S`` for ``h_j = d_j + top``.

    Newton's method from the given `sigma`, which is not above the root.
    """
    while True:
        total, slope = 0.0, 0.0
        for j in range(d.size):
            b = probability(d[j] - sigma, K, log_K)
            total += b
            slope += b / (1.0 + K * b)
        S, S_slope = total_allowed(top + sigma, K, log_K)
        following = sigma + (weight * total - S) / (weight * slope + S_slope)
        if not following > sigma:  # At the root, or NaN.
            return sigma
        sigma = following


@kernel
def total_allowed(tau, K, log_K):
    """Return the solution ``S`` of ``tau = K S - log(1 - S)``, ``tau >= 0``, and its derivative."""
    rest = probability(K - tau, K, log_K)
    slope = rest / (1.0 + K * rest)
    S = 1.0 - rest
    if rest > 0.5:
        # One step of Newton's method gives a small S the digits that the difference has lost.
        S += (tau - (K * S - math.log1p(-S))) * slope
    return S, slope


@kernel
def probability(v, K, log_K):
    """Return the solution ``b`` of ``K b + log b = v``."""
    z = v + log_K
    if z < -50.0:  # K b < 1e-21. And W(z) could underflow where b does not.
        return math.exp(v)
    return wright_omega(z) / K


@kernel
def wright_omega(z):
    """Return the solution ``w`` of ``w + log w = z`` for ``z >= -50``.

    The iteration of Fritsch, Shafer and Crowley, of order four, with the starting points and the
    bound on the error of Lawrence, Corless and Jeffrey (2012), ACM Trans. Math. Softw. 38(3),
    Algorithm 917. Two rounds give full precision; often one does.
    """
    if z < -2.0:
        w = math.exp(z)
    elif z < 1.0:
        w = math.exp(2.0 * (z - 1.0) / 3.0)
    else:
        w = math.log(z)
        w = z - w + w / z
    for _ in range(2):
        r = z - (w + math.log(w))
        u = 1.0 + w
        q = u * (u + 2.0 / 3.0 * r)
        error = abs(2.0 * w * w - 8.0 * w - 1.0) * r**4
        w *= 1.0 + r / u * (q - 0.5 * r) / (q - r)
        if error < 1e-14 * u**6:  # 72 times the unit roundoff.
            break
    return w
