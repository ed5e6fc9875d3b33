"""Rows of arrays, in memory or in a mapped file, read by the piece.

A page of a memory map beyond the end of its file ends the process with SIGBUS, and a file can
shrink at any time. So the rows of a map are read from the file itself, where they come back short
if it has shrunk, and a file that has changed since it was opened is an error.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import FileIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]


class ArraySource:
    """The rows of an array in memory; `name` is what errors call it."""

    def __init__(self, array: Any, name: str = "X") -> None:
        if array.ndim != 2 or not is_real(array.dtype):
            raise ValueError(
                f"{name} has shape {array.shape} and type {array.dtype}; it must be a table of "
                "floats: float16, bfloat16, float32 or float64."
            )
        if 0 in array.shape:
            raise ValueError(
                f"{name} has shape {array.shape}; it must have at least one row and one feature. "
                "Leave it out."
            )
        self.array: Any = array
        self.name = name
        self.stored = array.dtype
        self.shape = (int(array.shape[0]), int(array.shape[1]))
        self.dtype = np.dtype(np.float64 if array.dtype == np.float64 else np.float32)

    def pieces(self, size: int) -> list[tuple[int, int]]:
        """See the protocol."""
        n, d = self.shape
        rows = max(1, size // (d * self.stored.itemsize))
        return [(start, min(start + rows, n)) for start in range(0, n, rows)]

    def read(self, start: int, stop: int, out: Floats) -> None:
        """See the protocol."""
        np.copyto(out, self.array[start:stop], casting="unsafe")


class FileSource(ArraySource):
    """The rows of a C-contiguous memory map, which are read from its file.

    The map is not kept. The file is opened anew for every piece: data sets of thousands of shards
    are more than the files that a process may have open.
    """

    def __init__(self, array: Any, name: str, owner: np.memmap) -> None:
        super().__init__(array, name)
        self.path = str(owner.filename)
        self.begin = _offset_in_file(array, owner)
        self.row_bytes = self.shape[1] * self.stored.itemsize
        # The time of a file changes late, or never, when it is written through a map.
        self.is_timed = owner.mode == "r"
        with FileIO(self.path) as file:
            self.seen = _identify(file, self.is_timed)
        self._compare(array, owner)
        self.array = None

    def read(self, start: int, stop: int, out: Floats) -> None:
        """See the protocol."""
        if out.dtype == self.stored and out.flags.c_contiguous:
            self._read_stored(start, out)
            return
        rows = np.empty((stop - start, self.shape[1]), self.stored)
        self._read_stored(start, rows)
        np.copyto(out, rows, casting="unsafe")

    def _read_stored(self, start: int, out: NDArray[Any]) -> None:
        """Fill `out` with the rows from `start` on, as they are in the file."""
        with self._opened() as file:
            self._check(file)
            file.seek(self.begin + start * self.row_bytes)
            rest = out.reshape(-1).view(np.uint8).data
            while len(rest):
                count = file.readinto(rest)
                if not count:
                    break
                rest = rest[count:]
            self._check(file)
        if len(rest):
            raise changed(self.name, f"it ends {len(rest)} bytes too early")

    @contextmanager
    def _opened(self) -> Iterator[FileIO]:
        try:
            with FileIO(self.path) as file:
                yield file
        except FileNotFoundError as error:
            raise changed(self.name, "it was removed") from error
        except OSError as error:
            raise ValueError(f"cannot read {self.name}: {error.strerror}.") from error

    def _check(self, file: FileIO) -> None:
        now = _identify(file, self.is_timed)
        if now != self.seen:
            raise changed(self.name, _difference(self.seen, now))

    def _compare(self, array: Any, owner: Any) -> None:
        """Complain if another file is at the path by now than the one that was mapped."""
        size = owner._mmap.size()
        if size != self.seen.size:
            raise changed(self.name, "it was replaced by another file")
        if size < self.begin + self.shape[0] * self.row_bytes:
            raise changed(self.name, f"it shrank to {size} bytes")
        for row in (0, self.shape[0] - 1):
            rows = np.empty((1, self.shape[1]), self.stored)
            self._read_stored(row, rows)
            if rows.tobytes() != array[row : row + 1].tobytes():
                raise changed(self.name, "it was replaced by another file")


class MappedSource(ArraySource):
    """The rows of a memory map that cannot be read from its file.

    Those are maps in another order, or with changes that are not in the file, or whose file has no
    name any more. The size of the file is compared before a piece is read, so that a file that has
    shrunk is an error, unless it shrinks at that very moment.
    """

    def __init__(self, array: Any, name: str, owner: np.memmap) -> None:
        super().__init__(array, name)
        self.map: Any = owner._mmap  # type: ignore[attr-defined]
        self.size = _start_of_map(owner) + len(self.map)

    def read(self, start: int, stop: int, out: Floats) -> None:
        """See the protocol."""
        size = self.map.size()
        if size < self.size:
            raise changed(self.name, f"it shrank to {size} bytes")
        super().read(start, stop, out)


def array_source(array: Any, name: str = "X") -> ArraySource:
    """Return the source for an array in memory or, by the safest way, in a mapped file."""
    owner = _owner(array)
    if owner is None:
        return ArraySource(array, name)
    is_in_file = owner.mode in ("r", "r+", "w+") and array.flags.c_contiguous and array.size > 0
    if is_in_file and owner.filename is not None and os.access(owner.filename, os.R_OK):
        return FileSource(array, name, owner)
    return MappedSource(array, name, owner)


def file_of(array: Any) -> str | None:
    """Return the name of the file that an array is mapped from, if there is one."""
    name = getattr(_owner(array), "filename", None)
    return None if name is None else str(name)


def changed(name: str, what: str) -> ValueError:
    """Return the error about a file that is not as it was when it was opened."""
    return ValueError(
        f"{name} has changed since it was opened: {what}. Leave the file as it is until the fit or "
        "the prediction ends, and run it again."
    )


@dataclass(frozen=True)
class Identity:
    """By which a file is recognised."""

    device: int
    number: int
    size: int
    modified: int


def _identify(file: FileIO, is_timed: bool) -> Identity:
    found = os.fstat(file.fileno())
    modified = found.st_mtime_ns if is_timed else 0
    return Identity(found.st_dev, found.st_ino, found.st_size, modified)


def _difference(before: Identity, now: Identity) -> str:
    if (now.device, now.number) != (before.device, before.number):
        return "it was replaced by another file"
    if now.size != before.size:
        verb = "shrank" if now.size < before.size else "grew"
        return f"it {verb} from {before.size} to {now.size} bytes"
    return "it was written to"


def _owner(array: Any) -> Any:
    """Return the memory map that `array` is, or is a view of; None if it is in memory."""
    while array is not None:
        if isinstance(array, np.memmap) and getattr(array, "_mmap", None) is not None:
            return array
        array = getattr(array, "base", None)
    return None


def _start_of_map(owner: Any) -> int:
    # As in np.memmap: maps begin at a multiple of this.
    return int(owner.offset - owner.offset % mmap.ALLOCATIONGRANULARITY)


def _offset_in_file(array: Any, owner: Any) -> int:
    address = np.frombuffer(owner._mmap, np.uint8).ctypes.data
    return _start_of_map(owner) + int(array.ctypes.data - address)


def is_half(dtype: np.dtype) -> bool:
    """Return whether numbers are of 16 bits, to be widened."""
    return dtype.name in ("float16", "bfloat16") and dtype.isnative


def is_real(dtype: np.dtype) -> bool:
    """Return whether numbers can be trained on."""
    return is_half(dtype) or dtype in (np.float32, np.float64)
