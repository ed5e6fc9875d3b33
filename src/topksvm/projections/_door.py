"""What every projection does at its door: check the arguments, make rows, run, hand back."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite, isnan
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from topksvm._numba import kernel
from topksvm._threads import map_row_ranges

Floats = NDArray[np.floating[Any]]
RowProjection = Callable[[Floats, int, int, Floats, float], None]
"""``project(rows, start, stop, out, scale)``: project ``rows[start:stop]`` with all lengths of the
set (radius, bounds) multiplied by `scale`."""

LARGE, SMALL = 1e200, 1e-200
"""Magnitudes beyond which sums of entries could overflow or lose digits to underflow."""


def project_rows(a: ArrayLike, project: RowProjection, length: float, out: Floats | None) -> Floats:
    """Project each row of `a`, which passes the checks, and return the result.

    `length` is the largest finite length of the set. Projections are homogeneous, so rows of
    extreme magnitude are brought to a safe scale by a power of two, which is exact, and back.
    """
    rows = check_entries(a)
    result = check_out(out, rows) if out is not None else np.empty_like(rows)
    shape = (1, rows.size) if rows.ndim == 1 else rows.shape
    rows_2d = rows.reshape(shape)
    scale = choose_scale(rows_2d, length)
    if scale != 1.0:
        rows_2d = rows_2d * scale
    rows_2d = rows_2d.view()
    rows_2d.flags.writeable = False  # One compiled kernel for read-only and ordinary arrays.

    direct = result.flags.c_contiguous and (result is a or not np.may_share_memory(result, rows))
    target = result.reshape(shape) if direct else np.empty(shape, rows.dtype)
    map_row_ranges(
        lambda start, stop: project(rows_2d, start, stop, target, scale), shape[0], shape[1]
    )
    if scale != 1.0:
        target /= scale
    if not direct:
        result[...] = target.reshape(rows.shape)
    return result


def check_entries(a: ArrayLike) -> Floats:
    """Return `a` as a C-ordered float32 or float64 array of one or two dimensions."""
    array = np.asarray(a)
    if array.dtype.kind in "iub":
        array = array.astype(np.float64)
    elif array.dtype == np.float16:
        array = array.astype(np.float32)
    elif array.dtype.newbyteorder("=") not in (np.float32, np.float64):
        raise TypeError(
            f"a has dtype {array.dtype}; the entries must be real numbers, float32 or float64. "
            "Convert them first, for example with a.astype(float)."
        )
    if array.ndim not in (1, 2):
        raise ValueError(
            f"a has {array.ndim} dimensions, shape {array.shape}; it must be one vector of shape "
            "(d,) or rows of shape (n, d)."
        )
    if array.size == 0:
        raise ValueError(f"a is empty, shape {array.shape}; at least one entry is required.")
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))


def check_out(out: Any, rows: Floats) -> Floats:
    """Return `out` if the projection of `rows` can be written to it."""
    if not isinstance(out, np.ndarray):
        raise TypeError(f"out is of type {type(out).__name__}; it must be a NumPy array or None.")
    if out.shape != rows.shape or out.dtype != rows.dtype:
        raise ValueError(
            f"out has shape {out.shape} and dtype {out.dtype}; the result has shape {rows.shape} "
            f"and dtype {rows.dtype}, and out must match."
        )
    if not out.flags.writeable:
        raise ValueError("out is read-only; pass an array that can be written.")
    return out


def check_k(k: Any, a: ArrayLike) -> int:
    """Return `k` as an int if it is a whole number between 1 and the length of the rows."""
    if not isinstance(k, Integral) or isinstance(k, (bool, np.bool_)):
        raise TypeError(f"k is {k!r} of type {type(k).__name__}; it must be a whole number.")
    number = int(k)
    shape = np.shape(a)
    if shape and not 1 <= number <= shape[-1]:
        raise ValueError(
            f"k = {k} but the vectors have {shape[-1]} entries; k must be between 1 and "
            f"{shape[-1]}."
        )
    return number


def check_number(
    name: str, value: Any, *, minimum: float = -np.inf, infinite: bool = False
) -> float:
    """Return `value` as a float if it is a number of at least `minimum`, finite if so asked."""
    if not isinstance(value, Real) or isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} is {value!r} of type {type(value).__name__}; it must be a number.")
    number = float(value)
    if isnan(number) or number < minimum or not (infinite or isfinite(number)):
        allowed = "a number" if infinite else "a finite number"
        bound = f" of at least {minimum:g}" if isfinite(minimum) else ""
        raise ValueError(f"{name} = {value} is not allowed; it must be {allowed}{bound}.")
    return number


def choose_scale(rows: Floats, length: float) -> float:
    """Return the power of two to multiply `rows` by, and complain about NaN and infinity."""
    parts = map_row_ranges(lambda i, j: count_extremes(rows[i:j].ravel()), *rows.shape)
    large = any(n_large for n_large, _ in parts)
    if large:
        _check_finite(rows)
    if rows.dtype == np.float32:
        return 1.0  # Computed in float64, which has room to spare.
    if large or length > LARGE:
        return 2.0**-300
    if not any(n_ordinary for _, n_ordinary in parts) and length < LARGE * 2.0**-300:
        return 2.0**300
    return 1.0


def _check_finite(rows: Floats) -> None:
    bad = np.argwhere(~np.isfinite(rows))
    if len(bad):
        row, column = bad[0]
        where = f"entry {column}" if rows.shape[0] == 1 else f"row {row}, entry {column}"
        raise ValueError(
            f"a contains {rows[row, column]} ({where}); all entries must be finite. Remove or "
            "replace such values first."
        )


@kernel
def count_extremes(a):
    """Count the entries above LARGE in magnitude, NaN and infinity included, and above SMALL."""
    n_large, n_ordinary = 0, 0
    for i in range(a.size):
        size = abs(a[i])
        n_large += 0 if size <= LARGE else 1
        n_ordinary += 1 if size > SMALL else 0
    return n_large, n_ordinary
