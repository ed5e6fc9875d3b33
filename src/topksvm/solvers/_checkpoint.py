"""The state of a long run in a file that is either complete and right, or not there.

A file is written beside the old one, flushed to disk and renamed; the one before is kept as well.
It begins with the SHA-256 of all that follows: what the data and parameters were, then arrays in
NumPy's own format, which runs no code when it is read.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from topksvm._files import replacing

MAGIC = b"topksvm checkpoint 1\n"
CURRENT, PREVIOUS = "checkpoint.topksvm", "previous.topksvm"

Array = NDArray[Any]


@dataclass(frozen=True)
class State:
    """What a run needs to go on: numbers and texts, and arrays."""

    facts: dict[str, Any]
    arrays: dict[str, Array]


class CheckpointError(ValueError):
    """A checkpoint that cannot be used, and what to do about it."""


class CheckpointFolder:
    """A folder with the last checkpoint of a run on the data and parameters of `identity`."""

    def __init__(self, folder: Any, identity: dict[str, Any]) -> None:
        self.folder = Path(folder)
        self.identity = json.loads(json.dumps(identity))
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CheckpointError(
                f"cannot use {self.folder} for checkpoints: {error.strerror}. Choose another."
            ) from error

    def load(self) -> State | None:
        """Return the last state, or None if there is none; complain about any that is not ours."""
        path = self.folder / CURRENT
        if not path.exists():
            path = self.folder / PREVIOUS  # The process died between two renames.
        if not path.exists():
            return None
        identity, state = read_state(path)
        for name in {**identity, **self.identity}:
            there, here = identity.get(name), self.identity.get(name)
            if there != here:
                raise CheckpointError(
                    f"{path} belongs to another run: its {name} is {there!r}, here it is {here!r}. "
                    "Use another folder, or delete this one to start anew."
                )
        return state

    def save(self, state: State) -> None:
        """Write the state; the last checkpoint stays until the new one is safe on disk."""
        path = self.folder / CURRENT
        try:
            with replacing(path) as temporary:
                write_state(temporary, self.identity, state)
                if path.exists():
                    with temporary.open("rb") as stream:
                        os.fsync(stream.fileno())
                    path.replace(self.folder / PREVIOUS)
        except OSError as error:
            raise CheckpointError(
                f"cannot write {path}: {error.strerror}. The last good checkpoint is still there; "
                "make room, or choose another folder."
            ) from error


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
    with path.open("rb") as stream:
        if stream.read(len(MAGIC)) != MAGIC:
            raise CheckpointError(f"{path} is not a checkpoint of topksvm. Choose another folder.")
        wanted = stream.read(32)
        begin = stream.tell()
        digest = hashlib.sha256()
        while block := stream.read(1 << 22):
            digest.update(block)
        if digest.digest() != wanted:
            raise CheckpointError(
                f"{path} is damaged: its checksum is wrong. Delete it to go on from the checkpoint "
                f"before it, {PREVIOUS}, if there is one, or to start anew."
            )
        stream.seek(begin)
        size = int.from_bytes(stream.read(8), "little")
        header = json.loads(stream.read(size))
        arrays = {
            name: np.lib.format.read_array(stream, allow_pickle=False) for name in header["arrays"]
        }
    return header["identity"], State(header["facts"], arrays)
