"""The exponential function in a form that the compiler turns into vector instructions.

``math.exp`` is a call for each number. Here ``exp(x) = 2^n exp(r)`` with an integer ``n`` and
``|r| <= log(2) / 2``, for which the Taylor polynomial of degree 13 is exact but for rounding
(Cody and Waite 1980, Software Manual for the Elementary Functions, chapter 6).
"""

from __future__ import annotations

import math

import numpy as np

from topksvm._numba import fusing_kernel, summing_kernel

__all__ = ["exponentials", "sum_of"]

LEAST = -708.0
"""``exp`` of it is next to the smallest normal number; below it we take 0."""

SHIFT = 1.5 * 2.0**52
"""A number plus this is rounded to an integer, which stands in its last bits."""

LOG2_HIGH, LOG2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
"""log(2) in two parts, the first with so few bits that ``n`` times it is exact."""

C2, C3, C4, C5, C6, C7, C8, C9, C10, C11, C12, C13 = (1 / math.factorial(j) for j in range(2, 14))
"""Coefficients of the polynomial. (A loop over them would not be unrolled in time.)"""

PER_LOG2 = 1.0 / math.log(2.0)


@fusing_kernel
def exponentials(row, base, top, out):
    """Write ``exp(row_j - base - top)``, for exponents up to 0, to `out`.

    Each is off by about one unit in the last place at most. NaN gives NaN.
    """
    for j in range(row.size):
        x = (np.float64(row[j]) - base) - top
        y = x if x > LEAST else LEAST
        shifted = y * PER_LOG2 + SHIFT
        n = shifted - SHIFT
        r = (y - n * LOG2_HIGH) - n * LOG2_LOW
        p = (((C13 * r + C12) * r + C11) * r + C10) * r + C9
        p = (((p * r + C8) * r + C7) * r + C6) * r + C5
        p = ((((p * r + C4) * r + C3) * r + C2) * r + 1.0) * r + 1.0
        # The bits of 2^n: its exponent, from the last bits of the shifted number.
        bits = (np.float64(shifted).view(np.int64) + np.int64(1023)) << np.int64(52)
        p *= np.int64(bits).view(np.float64)
        out[j] = p if x > LEAST else (0.0 if x <= LEAST else x)


@summing_kernel
def sum_of(values, n):
    """Return the sum of ``values[:n]``."""
    total = 0.0
    for j in range(n):
        total += values[j]
    return total
