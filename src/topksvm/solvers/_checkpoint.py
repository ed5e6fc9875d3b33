"""The state of a long run in a file that is either complete and right, or not there.

A file is written beside the old one, flushed to disk and renamed; the one before is kept as well.
It begins with the SHA-256 of all that follows: what the data and parameters were, then arrays in
NumPy's own format, which runs no code when it is read.

A folder belongs to one run at a time: it is locked, by a lock that the system gives back when the
process ends, however it ends.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from topksvm._files import FolderLock, replacing

MAGIC = b"topksvm checkpoint 1\n"
CURRENT, PREVIOUS, LOCK = "checkpoint.topksvm", "previous.topksvm", "lock.topksvm"

MAX_HEADER = 1 << 28
"""Bytes of a header, at the very most: a history of millions of checks."""

Array = NDArray[Any]
Shape = tuple[int | None, ...]


@dataclass(frozen=True)
class State:
    """What a run needs to go on: numbers and texts, and arrays."""

    facts: dict[str, Any]
    arrays: dict[str, Array]


class CheckpointError(ValueError):
    """A checkpoint that cannot be used, and what to do about it."""


class CheckpointFolder:
    """A folder with the last checkpoint of a run on the data and parameters of `identity`.

    It is locked until :meth:`close`, or the end of a ``with`` block.
    """

    def __init__(self, folder: Any, identity: dict[str, Any]) -> None:
        self.folder = Path(folder)
        self.identity = json.loads(json.dumps(identity))
        self.has_warned = False
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.lock = FolderLock(self.folder / LOCK)
        except BlockingIOError as error:
            raise CheckpointError(
                f"{self.folder} is in use by another fit ({error}). Wait for it to end, or choose "
                "another folder."
            ) from None
        except OSError as error:
            raise CheckpointError(
                f"cannot use {self.folder} for checkpoints: {error.strerror}. Choose another."
            ) from error

    def __enter__(self) -> CheckpointFolder:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Let another run use the folder."""
        self.lock.release()

    def load(self) -> State | None:
        """Return the last state, or None if there is none; complain about any that is not ours.

        If the last checkpoint is damaged, that is the one before it, with a warning.
        """
        found = [path for name in (CURRENT, PREVIOUS) if (path := self.folder / name).exists()]
        damage: CheckpointError | None = None
        for path in found:
            try:
                identity, state = read_state(path)
            except CheckpointError as error:
                damage = damage or error
                continue
            self._check_identity(path, identity)
            if damage is not None:
                warnings.warn(
                    f"{damage} The checkpoint before it, {path.name}, is used instead.",
                    RuntimeWarning,
                    stacklevel=2,
                )
            return state
        if damage is not None:
            raise CheckpointError(f"{damage} Delete the folder to start anew.")
        return None

    def _check_identity(self, path: Path, identity: dict[str, Any]) -> None:
        for name in {**identity, **self.identity}:
            there, here = identity.get(name), self.identity.get(name)
            if there != here:
                raise CheckpointError(
                    f"{path} belongs to another run: its {name} is {there!r}, here it is {here!r}. "
                    "Use another folder, or delete this one to start anew."
                )

    def save(self, state: State) -> None:
        """Write the state; if that fails, the last good one stays, and a warning says so once."""
        path = self.folder / CURRENT
        try:
            with replacing(path) as temporary:
                write_state(temporary, self.identity, state)
                if path.exists():
                    with temporary.open("rb") as stream:
                        os.fsync(stream.fileno())
                    path.replace(self.folder / PREVIOUS)
        except OSError as error:
            if not self.has_warned:
                self.has_warned = True
                warnings.warn(
                    f"No checkpoint could be written to {self.folder}: {error.strerror}. Training "
                    "goes on; the last checkpoint that could be written is still there. Make room.",
                    RuntimeWarning,
                    stacklevel=2,
                )


def checked_arrays(state: State, wanted: Mapping[str, tuple[Any, Shape]]) -> dict[str, Array]:
    """Return the arrays of these names, of the given type and shape; None stands for any length."""
    arrays = {}
    for name, (dtype, shape) in wanted.items():
        array = state.arrays.get(name)
        if array is None or array.dtype != dtype or not _fits(array.shape, shape):
            found = "missing" if array is None else f"{array.dtype} of shape {array.shape}"
            raise CheckpointError(
                f"The checkpoint is damaged: {name} is {found}, expected {np.dtype(dtype)} of "
                f"shape {shape}. Delete it to start anew."
            )
        arrays[name] = array
    return arrays


def _fits(shape: tuple[int, ...], wanted: Shape) -> bool:
    return len(shape) == len(wanted) and all(
        w is None or s == w for s, w in zip(shape, wanted, strict=True)
    )


def checked_numbers(state: State, wanted: Mapping[str, type]) -> dict[str, Any]:
    """Return the numbers of these names: whole ones of at least 0, or finite ones."""
    numbers = {}
    for name, kind in wanted.items():
        value = state.facts.get(name)
        is_right = isinstance(value, int | float) and not isinstance(value, bool)
        if is_right and kind is int:
            is_right = isinstance(value, int) and value >= 0
        if not is_right or not math.isfinite(value):  # type: ignore[arg-type]
            raise CheckpointError(
                f"The checkpoint is damaged: {name} is {value!r}, which it cannot be. Delete it to "
                "start anew."
            )
        numbers[name] = value
    return numbers


class _Hashing:
    """A file that keeps the hash of what is written to it."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream = stream
        self.digest = hashlib.sha256()

    def write(self, data: Any) -> int:
        self.digest.update(data)
        return self.stream.write(data)


def write_state(path: Path, identity: dict[str, Any], state: State) -> None:
    """Write a state with its hash."""
    with path.open("wb") as stream:
        stream.write(MAGIC + bytes(32))
        body = _Hashing(stream)
        header = {"identity": identity, "facts": state.facts, "arrays": list(state.arrays)}
        text = json.dumps(header).encode()
        body.write(len(text).to_bytes(8, "little") + text)
        for array in state.arrays.values():
            np.lib.format.write_array(body, np.ascontiguousarray(array), allow_pickle=False)
        stream.seek(len(MAGIC))
        stream.write(body.digest.digest())


def read_state(path: Path) -> tuple[dict[str, Any], State]:
    """Return identity and state; complain unless every byte is as it was written."""
    try:
        with path.open("rb") as stream:
            _check_hash(path, stream)
            return _parse(stream)
    except CheckpointError:
        raise
    except (OSError, ValueError, LookupError, TypeError, MemoryError, EOFError) as error:
        raise CheckpointError(f"{path} cannot be read: {error or type(error).__name__}.") from error


def _check_hash(path: Path, stream: BinaryIO) -> None:
    """Go to the beginning of what the hash is about, which is as it was written."""
    if stream.read(len(MAGIC)) != MAGIC:
        raise CheckpointError(f"{path} is not a checkpoint of topksvm.")
    wanted, begin, digest = stream.read(32), stream.tell(), hashlib.sha256()
    while block := stream.read(1 << 22):
        digest.update(block)
    if digest.digest() != wanted:
        raise CheckpointError(f"{path} is damaged: its checksum is wrong.")
    stream.seek(begin)


def _parse(stream: BinaryIO) -> tuple[dict[str, Any], State]:
    size = int.from_bytes(stream.read(8), "little")
    if size > MAX_HEADER:
        raise ValueError(f"a header of {size} bytes")
    header = json.loads(stream.read(size))
    identity, facts, names = header["identity"], header["facts"], header["arrays"]
    if not (isinstance(identity, dict) and isinstance(facts, dict) and isinstance(names, list)):
        raise ValueError("a header of another form")
    arrays = {str(name): np.lib.format.read_array(stream, allow_pickle=False) for name in names}
    return identity, State(facts, arrays)
