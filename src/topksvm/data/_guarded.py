"""Copies of mapped memory that cannot end the process.

Python is ended by SIGBUS when it touches a page of a map beyond the end of the file. The system is
not: told to write such a page, it returns an error. So bytes are written to a pipe and read back,
at about a gigabyte per second.
"""

from __future__ import annotations

import errno
import mmap
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

CHUNK = 1 << 16
"""Bytes that a pipe can hold."""

WORTHWHILE = 1 << 12
"""Bytes that are read in the time that one more call takes."""


class MapShrankError(Exception):
    """A page of a map has no file behind it any more."""


def copy_from_map(mapped: mmap.mmap, place: int, out: memoryview) -> None:
    """Copy the bytes from `place` on to `out`; raise `MapShrankError` if some are gone."""
    source = memoryview(mapped)[place : place + len(out)]
    if os.name != "posix":  # Windows lets nobody shorten a file that is mapped.
        out[:] = source
        return
    reader, writer = os.pipe()
    try:
        os.set_blocking(writer, False)  # A pipe that holds less takes a part.
        done = 0
        while done < len(out):
            count = os.write(writer, source[done : done + CHUNK])
            while count:
                got = os.readv(reader, [out[done : done + count]])
                done, count = done + got, count - got
    except OSError as error:
        if error.errno != errno.EFAULT:
            raise
        raise MapShrankError from None
    finally:
        os.close(reader)
        os.close(writer)


def read_view(view: NDArray[Any], out: NDArray[Any], reader: Any, origin: int) -> None:
    """Write the entries of a view of mapped memory, none of which is touched, to `out`.

    ``reader.read(place, bytes)`` reads the bytes from a place, counted from the address `origin`.
    Entries that lie far from each other are read in parts, others with what is between them.
    """
    start, stop = span_of(view)
    steps = [abs(step) if n > 1 else 0 for n, step in zip(view.shape, view.strides, strict=True)]
    axis = int(np.argmax(steps)) if any(steps) else None
    if view.flags.c_contiguous and out.flags.c_contiguous and out.dtype == view.dtype:
        reader.read(start - origin, out.reshape(-1).view(np.uint8).data)
    elif axis is not None and stop - start > view.shape[axis] * (_part(view, axis) + WORTHWHILE):
        for i in range(view.shape[axis]):
            some = (slice(None),) * axis + (slice(i, i + 1),)
            read_view(view[some], out[some], reader, origin)
    else:
        found = np.empty(stop - start, np.uint8)
        reader.read(start - origin, found.data)
        offset = int(view.ctypes.data) - start
        rows: NDArray[Any] = np.ndarray(view.shape, view.dtype, found.data, offset, view.strides)
        np.copyto(out, rows, casting="unsafe")


def span_of(view: NDArray[Any]) -> tuple[int, int]:
    """Return the addresses of the first byte of a view and of that after the last."""
    start = stop = int(view.ctypes.data)
    for n, step in zip(view.shape, view.strides, strict=True):
        start += min(0, (n - 1) * step)
        stop += max(0, (n - 1) * step)
    return start, stop + view.itemsize


def _part(view: NDArray[Any], axis: int) -> int:
    """Return the bytes between the first and the last entry along the other axes."""
    start, stop = span_of(view[(slice(None),) * axis + (slice(0, 1),)])
    return stop - start
