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

    `length` is the largest finite number that entries of the result must reach because of the set
    (a bound, or a radius that must be met).
    """
    rows = check_entries(a)
    result = check_out(out, rows) if out is not None else np.empty_like(rows)
    _check_fits(length, rows.dtype)
    shape = (1, rows.size) if rows.ndim == 1 else rows.shape
    rows_2d = rows.reshape(shape)
    extreme = find_extreme_rows(rows_2d, length)
    extreme_rows = rows_2d[extreme].astype(np.float64)  # A copy: `out` may be `a`.

    direct = result.flags.c_contiguous and (result is a or not np.may_share_memory(result, rows))
    target = result.reshape(shape) if direct else np.empty(shape, rows.dtype)
    source = _read_only(rows_2d)
    map_row_ranges(lambda i, j: project(source, i, j, target, 1.0), *shape)
    for i, row in zip(extreme, extreme_rows, strict=True):
        target[i] = _project_scaled(row, project, length)
    if not direct:
        result[...] = target.reshape(rows.shape)
    return result


def _project_scaled(row: Floats, project: RowProjection, length: float) -> Floats:
    """Project a row of extreme magnitude.

    Projections are homogeneous, so it is brought to a safe scale by a power of two, which is exact,
    and back.
    """
    scale = 2.0**-300 if max(np.abs(row).max(), length) > LARGE else 2.0**300
    scaled: Floats = np.empty((1, row.size))
    project(_read_only((row * scale)[None, :]), 0, 1, scaled, scale)
    scaled /= scale
    return scaled[0]


def _read_only(rows: Floats) -> Floats:
    """Return a read-only view: one compiled kernel serves read-only and ordinary arrays."""
    view = rows.view()
    view.flags.writeable = False
    return view


def _check_fits(length: float, dtype: np.dtype) -> None:
    largest = float(np.finfo(dtype).max)
    if length > largest:
        raise ValueError(
            f"a has dtype {dtype}, but the set asks for entries of the size of {length:g}, "
            f"which is more than {largest:.3g}. Pass a.astype(float)."
        )


def check_entries(a: ArrayLike) -> Floats:
    """Return `a` as a C-ordered float32 or float64 array of one or two dimensions."""
    if hasattr(a, "toarray"):
        raise TypeError(
            f"a is a sparse matrix of type {type(a).__name__}; projections are dense. Pass "
            "a.toarray() if it fits into memory."
        )
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
    if shape and shape[-1] == 0:
        raise ValueError(f"a is empty, shape {shape}; at least one entry is required.")
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
    try:
        number = float(value)
    except OverflowError:  # An integer beyond the range of floating-point numbers.
        number = np.inf
    if isnan(number) or number < minimum or not (infinite or isfinite(number)):
        allowed = "a number" if infinite else "a finite number"
        bound = f" of at least {minimum:g}" if isfinite(minimum) else ""
        raise ValueError(f"{name} = {value} is not allowed; it must be {allowed}{bound}.")
    return number


def check_flag(name: str, value: Any) -> bool:
    """Return `value` as a bool if it is one."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} is {value!r} of type {type(value).__name__}; it must be a bool.")
    return bool(value)


def find_extreme_rows(rows: Floats, length: float) -> NDArray[np.intp]:
    """Return which rows need to be scaled, and complain about NaN and infinity."""
    parts = map_row_ranges(lambda i, j: count_extremes(rows[i:j]), *rows.shape)
    large, ordinary = (np.concatenate(counts) for counts in zip(*parts, strict=True))
    if large.any():
        _check_finite(rows)
    if rows.dtype == np.float32:
        return np.empty(0, np.intp)  # Computed in float64, which has room to spare.
    if length > LARGE:
        return np.arange(len(rows))
    tiny = ordinary == 0
    tiny[tiny] = rows[tiny].any(axis=1) & (length < SMALL)
    return np.flatnonzero((large > 0) | tiny)


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
def count_extremes(rows):
    """Count, per row, the entries above LARGE in magnitude, NaN included, and above SMALL."""
    large = np.zeros(rows.shape[0], np.int64)
    ordinary = np.zeros(rows.shape[0], np.int64)
    for i in range(rows.shape[0]):
        row = rows[i]
        n_large, n_ordinary = 0, 0
        for j in range(row.size):
            size = abs(row[j])
            n_large += 0 if size <= LARGE else 1
            n_ordinary += 1 if size > SMALL else 0
        large[i], ordinary[i] = n_large, n_ordinary
    return large, ordinary
