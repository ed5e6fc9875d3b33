r"""Elementary symmetric polynomials of exponentials, and their derivatives, at any scores.

With ``e_i(a) = sum_{|S| = i} exp(sum_{j in S} a_j)``, the recursion over the scores

.. math:: e_i(a_1, \dots, a_j) = e_i(a_1, \dots, a_{j-1}) + e^{a_j} e_{i-1}(a_1, \dots, a_{j-1})

has positive terms only, so it loses no digits; but its numbers leave the range of floats. We divide
``e_i`` by its largest term, the product of the i largest exponentials. If the k largest scores come
first, in descending order, then all factors of the recursion that meet a number other than 0,

.. math:: w_{ji} = \exp(a_j - a_{(i)}), \quad i \le j,

are at most 1, and the results lie between 1 and the number of subsets. No logarithm is needed
before the end, and few exponentials: ``m + k^2`` instead of ``m k``.
"""

from __future__ import annotations

import numpy as np

from topksvm._numba import borrow, kernel


@kernel
def largest_first(a, index, k):
    """Move the `k` largest of `a` to its front, in descending order, and `index` along with it."""
    for i in range(k):
        best = i
        for j in range(i + 1, a.size):
            if a[j] > a[best]:
                best = j
        a[i], a[best] = a[best], a[i]
        index[i], index[best] = index[best], index[i]


@kernel
def fill_factors(a, k, w):
    """Set ``w[j, i]`` to the factor of score `j` from degree i to i + 1, 0 where i > j.

    `a` is as :func:`largest_first` leaves it, so no factor is larger than 1.
    """
    for j in range(k):
        for i in range(k):
            w[j, i] = np.exp(a[j] - a[i]) if i <= j else 0.0
    for j in range(k, a.size):
        share = np.exp(a[j] - a[k - 1])
        for i in range(k):
            w[j, i] = share * w[k - 1, i]


@kernel
def fill_table(w, table):
    """Set ``table[j, i]`` to ``e_i(a_1, ..., a_j)`` over the product of the i largest exponentials.

    For i > j it is 0.
    """
    table[0, :] = 0.0
    table[0, 0] = 1.0
    for j in range(w.shape[0]):
        table[j + 1, 0] = 1.0
        for i in range(w.shape[1]):
            table[j + 1, i + 1] = table[j, i + 1] + w[j, i] * table[j, i]


@kernel
def log_ratio(a, index, w, table, adjoint, out):
    """Return ``log e_k(a) - log e_{k-1}(a)``, and its derivative by ``a_j`` in ``out[index[j]]``.

    Reorders `a` and `index`; `w` has k columns. The derivatives sum to 1. Each is the chance of j
    to be in a random set of k less that to be in one of k - 1, so it is exact to rounding relative
    to 1.
    """
    k, last = w.shape[1], a.size
    largest_first(a, index, k)
    fill_factors(a, k, w)
    fill_table(w, table)
    adjoint[:] = 0.0
    adjoint[k] = 1.0 / table[last, k]
    adjoint[k - 1] = -1.0 / table[last, k - 1]
    for j in range(last - 1, -1, -1):
        derivative = 0.0
        for i in range(k):
            pulled = w[j, i] * adjoint[i + 1]
            derivative += pulled * table[j, i]
            adjoint[i] += pulled
        out[index[j]] = derivative
    return a[k - 1] + np.log(table[last, k] / table[last, k - 1])


@kernel
def n_choose_k_losses(scores, labels, k):
    """Return the sum of ``-log p``, and replace the rows of `scores` by its derivatives by them."""
    m = scores.shape[1]
    a, index, w = np.empty(m - 1), np.empty(m - 1, np.int64), np.empty((m - 1, k))
    table, adjoint = np.empty((m, k + 1)), np.empty(k + 1)
    total = 0.0
    for row in range(scores.shape[0]):
        out, label = borrow(scores[row]), labels[row]
        for j in range(m - 1):
            index[j] = j if j < label else j + 1
            a[j] = out[index[j]]
        excess = log_ratio(a, index, w, table, adjoint, out) - out[label]
        # log(1 + exp(excess)) and its derivative, without overflow.
        small = np.exp(-abs(excess))
        total += max(excess, 0.0) + np.log1p(small)
        share = 1.0 / (1.0 + small) if excess >= 0.0 else small / (1.0 + small)
        for j in range(m):
            out[j] *= share
        out[label] = -share
    return total
