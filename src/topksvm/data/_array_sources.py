"""Rows of arrays, in memory or in a mapped file, read by the piece.

A page of a memory map beyond the end of its file ends the process with SIGBUS, and a file can
shrink at any time. So no page of a map is touched: rows are read from the file itself, where they
come back short if it has shrunk, or copied by the system. A file that has changed since it was
opened is an error.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm.data._guarded import MapShrankError, copy_from_map, read_view, span_of
from topksvm.data._identity import Identity, changed, difference, identity_of

Floats = NDArray[np.floating[Any]]

AT_ONCE = 1 << 24
"""Bytes that are read from a file before Ctrl-C is looked for."""

SAMPLES, SAMPLE = 8, 4096
"""Places at which a map is compared with the file of its name, and how many bytes there."""

REPLACED = "it was replaced by another file"


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


class FileReader:
    """Reads parts of a memory map from its file, which is opened anew for every part.

    Data sets of thousands of shards are more than the files that a process may have open.
    """

    def __init__(self, name: str, owner: np.memmap) -> None:
        self.name = name
        self.path = str(owner.filename)
        self.begin = _start_of_map(owner)
        # The time of a file changes late, or never, when it is written through a map.
        self.is_timed = owner.mode == "r"
        with self._opened() as file:
            self.seen = _identify(file, self.is_timed)

    def read(self, place: int, out: memoryview) -> None:
        """Fill `out` with the bytes from a place in the map on."""
        with self._opened() as file:
            self._check(file)
            file.seek(self.begin + place)
            while len(out):
                count = file.readinto(out[:AT_ONCE])
                if not count:
                    break
                out = out[count:]
            self._check(file)
        if len(out):
            raise changed(self.name, f"it ends {len(out)} bytes too early")

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
            raise changed(self.name, difference(self.seen, now))


class MapReader:
    """Reads parts of a memory map itself, whatever has become of its file."""

    def __init__(self, name: str, owner: np.memmap) -> None:
        self.name = name
        self.map: Any = owner._mmap  # type: ignore[attr-defined]
        self.size = _start_of_map(owner) + len(self.map)

    def read(self, place: int, out: memoryview) -> None:
        """Fill `out` with the bytes from a place in the map on."""
        size = self.map.size()
        if size < self.size:
            raise changed(self.name, f"it shrank to {size} bytes")
        try:
            copy_from_map(self.map, place, out)
        except MapShrankError:
            raise changed(self.name, "it shrank while it was read") from None


class FileSource(ArraySource):
    """The rows of a C-contiguous memory map, which are read from its file; the map is not kept."""

    def __init__(self, array: Any, name: str, owner: np.memmap) -> None:
        super().__init__(array, name)
        self.reader = FileReader(name, owner)
        self.begin = int(array.ctypes.data) - address_of_map(owner)
        self.row_bytes = self.shape[1] * self.stored.itemsize
        check_unchanged(array, owner, self.reader)
        self.array = None

    @property
    def seen(self) -> Identity:
        """The file as it was when it was opened."""
        return self.reader.seen

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
        place = self.begin + start * self.row_bytes
        self.reader.read(place, out.reshape(-1).view(np.uint8).data)


class MappedSource(ArraySource):
    """The rows of a memory map that cannot be read from its file.

    Those are maps in another order, or with changes that are not in the file, or whose file has no
    name any more.
    """

    def __init__(self, array: Any, name: str, owner: np.memmap) -> None:
        super().__init__(array, name)
        self.reader = MapReader(name, owner)
        self.origin = address_of_map(owner)

    def read(self, start: int, stop: int, out: Floats) -> None:
        """See the protocol."""
        read_view(self.array[start:stop], out, self.reader, self.origin)


def array_source(array: Any, name: str = "X") -> ArraySource:
    """Return the source for an array in memory or, by the safest way, in a mapped file."""
    owner = owner_of(array)
    if owner is None:
        return ArraySource(array, name)
    if array.flags.c_contiguous and array.size > 0 and is_in_its_file(owner):
        return FileSource(array, name, owner)
    return MappedSource(array, name, owner)


def is_in_its_file(owner: np.memmap) -> bool:
    """Return whether all of a map is in its file, which can be read."""
    if owner.mode not in ("r", "r+", "w+") or owner.filename is None:
        return False
    return os.access(owner.filename, os.R_OK)


def file_of(array: Any) -> str | None:
    """Return the name of the file that an array is mapped from, if there is one."""
    name = getattr(owner_of(array), "filename", None)
    return None if name is None else str(name)


def check_unchanged(array: Any, owner: Any, reader: FileReader) -> None:
    """Complain if another file is at the path by now than the one that was mapped."""
    size = owner._mmap.size()
    if size != reader.seen.size:
        raise changed(reader.name, REPLACED)
    start, stop = (address - address_of_map(owner) for address in span_of(array))
    if size < reader.begin + stop:
        raise changed(reader.name, f"it shrank to {size} bytes")
    length, mapped = min(SAMPLE, stop - start), MapReader(reader.name, owner)
    for place in np.linspace(start, stop - length, SAMPLES).astype(int).tolist():
        found = [np.empty(length, np.uint8) for _ in range(2)]
        reader.read(place, found[0].data)
        mapped.read(place, found[1].data)
        if not np.array_equal(*found):
            raise changed(reader.name, REPLACED)


def _identify(file: FileIO, is_timed: bool) -> Identity:
    return identity_of(os.fstat(file.fileno()), is_timed)


def owner_of(array: Any) -> Any:
    """Return the memory map that `array` is, or is a view of; None if it is in memory."""
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap) and getattr(array, "_mmap", None) is not None:
            return array
        array = array.base
    return None


def _start_of_map(owner: Any) -> int:
    # As in np.memmap: maps begin at a multiple of this.
    return int(owner.offset - owner.offset % mmap.ALLOCATIONGRANULARITY)


def address_of_map(owner: Any) -> int:
    """Return where in memory a map begins."""
    return int(np.frombuffer(owner._mmap, np.uint8).ctypes.data)


def is_half(dtype: np.dtype) -> bool:
    """Return whether numbers are of 16 bits, to be widened."""
    return dtype.name in ("float16", "bfloat16") and dtype.isnative


def is_real(dtype: np.dtype) -> bool:
    """Return whether numbers can be trained on."""
    return is_half(dtype) or dtype in (np.float32, np.float64)
