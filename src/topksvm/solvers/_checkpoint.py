"""The state of a long run in a file that is either complete and right, or not there.

A file is written beside the old one, flushed to disk and renamed; the one before is kept as well,
and used if the last one turns out to be damaged. It begins with the SHA-256 of all that follows:
what the data and parameters were, then arrays in NumPy's own format, which runs no code when it is
read. One process at a time may use a folder.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray

from topksvm._files import replacing
from topksvm.solvers._lock import FolderLock, LockedError

MAGIC = b"topksvm checkpoint 1\n"
CURRENT, PREVIOUS = "checkpoint.topksvm", "previous.topksvm"

Array = NDArray[Any]
Kind = Literal["count", "finite", "number"]

LARGEST_COUNT = 1 << 53
"""More than any run can count to, and still exact as a float."""

KINDS: dict[Kind, str] = {
    "count": "a whole number of at least 0",
    "finite": "a finite number",
    "number": "a number, possibly infinite",
}
"""What :func:`checked_numbers` can ask for."""


@dataclass(frozen=True)
class Snapshot:
    """What a run needs to resume: numbers and texts, and arrays."""

    facts: dict[str, Any]
    arrays: dict[str, Array]


class CheckpointError(ValueError):
    """A checkpoint that cannot be used, and what to do about it."""


class CheckpointFolder:
    """A folder with the last checkpoints of a run on the data and parameters of `identity`.

    It is locked against all others until it is closed, by :meth:`close`, at the end of a ``with``
    block, as garbage, or by the end of the process, however it ends.

    Parameters
    ----------
    folder : path
        Made if it is not there.
    identity : dict
        What JSON can hold. A checkpoint with another identity is refused.
    """

    def __init__(self, folder: Any, identity: dict[str, Any]) -> None:
        self.folder = Path(folder)
        self.identity = json.loads(json.dumps(identity))
        self.has_warned = False
        # Only a good one may take the place of the previous one, which may be the only good one.
        self.current_is_good = False
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.lock = FolderLock(self.folder)
        except LockedError as error:
            raise CheckpointError(
                f"the checkpoint folder {self.folder} is in use by {error.owner}. Wait until that "
                "fit has ended, or use another folder."
            ) from None
        except OSError as error:
            raise CheckpointError(
                f"cannot use {self.folder} for checkpoints: {error.strerror}. Choose another."
            ) from error
        self._remove_remains()

    def __enter__(self) -> CheckpointFolder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let others use the folder; more than once does no harm."""
        self.lock.close()

    def _remove_remains(self) -> None:
        """Remove what a process that was killed had begun to write; the lock says it is gone."""
        for path in self.folder.glob(f".{CURRENT}.*"):
            with suppress(OSError):  # It only takes up room.
                path.unlink(missing_ok=True)

    def load(self, use: Callable[[Snapshot], None] | None = None) -> Snapshot | None:
        """Return the last state that can be read and used, or None if there is none.

        Parameters
        ----------
        use : callable, optional
            Called with a state that was read. Where it raises a `CheckpointError` the state is like
            one that is damaged.

        Raises
        ------
        CheckpointError
            If there are checkpoints but none that can be read, or it is of another run.
        """
        failures: list[CheckpointError] = []
        for name in (CURRENT, PREVIOUS):
            path = self.folder / name
            # Without a current one, the process died between two renames.
            if not os.path.lexists(path):
                continue
            try:
                identity, state = read_state(path)
            except CheckpointError as error:
                failures.append(error)
                continue
            self._check_identity(path, identity)
            try:
                if use is not None:
                    use(state)
            except CheckpointError as error:
                failures.append(CheckpointError(f"{path}: {error}"))
                continue
            self.current_is_good = name == CURRENT
            if failures:
                message = f"{failures[0]} The earlier checkpoint {path} is used instead."
                warnings.warn(message, RuntimeWarning, stacklevel=2)
            return state
        if failures:
            reasons = " ".join(str(error) for error in failures)
            raise CheckpointError(
                f"{reasons} There is no other checkpoint. Delete {self.folder} to start anew, or "
                "use another folder."
            ) from failures[0]
        return None

    def _check_identity(self, path: Path, identity: dict[str, Any]) -> None:
        for name in {**identity, **self.identity}:
            there, here = identity.get(name), self.identity.get(name)
            if there != here:
                raise CheckpointError(
                    f"{path} belongs to another run: its {name} is {there!r}, here it is {here!r}. "
                    "Use another folder, or delete this one to start anew."
                )

    def save(self, state: Snapshot) -> None:
        """Write the state; the last checkpoint stays until the new one is safe on disk.

        If it cannot be written, the first time there is a warning, and the run can go on.
        """
        path = self.folder / CURRENT
        try:
            with replacing(path) as temporary:
                write_state(temporary, self.identity, state)
                if self.current_is_good and path.exists():
                    with temporary.open("rb") as stream:
                        os.fsync(stream.fileno())
                    path.replace(self.folder / PREVIOUS)
        except OSError as error:
            self._warn(error)
        else:
            self.current_is_good = True

    def _warn(self, error: OSError) -> None:
        """Say once what has failed, and what there is to resume from."""
        # If the last rename failed, the checkpoint before is the previous one already.
        self.current_is_good = self.current_is_good and (self.folder / CURRENT).exists()
        if self.has_warned:
            return
        self.has_warned = True
        last = self.folder / (CURRENT if self.current_is_good else PREVIOUS)
        kept = f"The last one, {last}, is kept" if last.exists() else "None has been written yet"
        warnings.warn(
            f"cannot write a checkpoint to {self.folder}: {error.strerror or error}. {kept}; the "
            "fit goes on and tries again later, without a further warning. Make room or give "
            "permission, or a fit that is stopped loses its progress since then.",
            RuntimeWarning,
            stacklevel=3,
        )


class _Hashing:
    """A file that keeps the hash of what is written to it."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream = stream
        self.digest = hashlib.sha256()

    def write(self, data: Any) -> int:
        self.digest.update(data)
        return self.stream.write(data)


def write_state(path: Path, identity: dict[str, Any], state: Snapshot) -> None:
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


def read_state(path: Path) -> tuple[dict[str, Any], Snapshot]:
    """Return identity and state.

    Raises
    ------
    CheckpointError
        Unless every byte is as it was written, whatever else may be in the file.
    """
    try:
        with path.open("rb") as stream:
            if stream.read(len(MAGIC)) != MAGIC:
                raise CheckpointError(f"{path} is not a checkpoint of topksvm, or damaged.")
            _check_hash(path, stream)
            return _read_body(path, stream)
    except CheckpointError:
        raise
    except OSError as error:
        raise CheckpointError(f"cannot read {path}: {error.strerror or error}.") from error
    except Exception as error:  # What JSON and NumPy may raise is no list to rely on.
        raise CheckpointError(f"{path} is damaged: {error or type(error).__name__}.") from error


def _check_hash(path: Path, stream: BinaryIO) -> None:
    """Compare the hash with that of all that follows, and go back to where that begins."""
    wanted = stream.read(32)
    begin = stream.tell()
    digest = hashlib.sha256()
    while block := stream.read(1 << 22):
        digest.update(block)
    if digest.digest() != wanted:
        raise CheckpointError(f"{path} is damaged: its checksum is wrong.")
    stream.seek(begin)


def _read_body(path: Path, stream: BinaryIO) -> tuple[dict[str, Any], Snapshot]:
    size = int.from_bytes(stream.read(8), "little")
    left = os.fstat(stream.fileno()).st_size - stream.tell()
    if size > left:
        raise CheckpointError(f"{path} is damaged: a header of {size} bytes, but {left} are left.")
    header = json.loads(stream.read(size))
    identity, facts, names = header["identity"], header["facts"], header["arrays"]
    if not (isinstance(identity, dict) and isinstance(facts, dict) and isinstance(names, list)):
        raise CheckpointError(f"{path} is damaged: its header has values of the wrong types.")
    arrays = {name: np.lib.format.read_array(stream, allow_pickle=False) for name in names}
    return identity, Snapshot(facts, arrays)


def checked_arrays(
    state: Snapshot, spec: Mapping[str, tuple[Any, Sequence[int | None]]]
) -> dict[str, Array]:
    """Return the arrays of a state in C order, having checked each against its specification.

    Parameters
    ----------
    state : Snapshot
        As it was read.
    spec : dict
        For each name a dtype and a shape, in which None stands for any length.

    Raises
    ------
    CheckpointError
        If an array is missing, or its dtype or shape is another.
    """
    arrays = {}
    for name, (dtype, shape) in spec.items():
        array = state.arrays.get(name)
        if array is None:
            raise _unusable(f"it has no array {name!r}")
        if array.dtype != np.dtype(dtype):
            raise _unusable(f"its array {name!r} is {array.dtype}, not {np.dtype(dtype)}")
        if not _has_shape(array, shape):
            wanted = ", ".join("any" if length is None else str(length) for length in shape)
            raise _unusable(f"its array {name!r} has the shape {array.shape}, not ({wanted})")
        arrays[name] = np.ascontiguousarray(array)
    return arrays


def _has_shape(array: Array, shape: Sequence[int | None]) -> bool:
    if array.ndim != len(shape):
        return False
    return all(
        wanted is None or wanted == found for wanted, found in zip(shape, array.shape, strict=True)
    )


def checked_numbers(state: Snapshot, spec: Mapping[str, Kind]) -> dict[str, Any]:
    """Return numbers among the facts of a state, having checked the kind of each.

    Parameters
    ----------
    state : Snapshot
        As it was read.
    spec : dict
        For each name ``"count"`` (a whole number of at least 0), ``"finite"`` (a finite number) or
        ``"number"`` (a number, which may be infinite, but not NaN).

    Raises
    ------
    CheckpointError
        If a number is missing, or is of another kind.
    """
    numbers = {}
    for name, kind in spec.items():
        if name not in state.facts:
            raise _unusable(f"it has no {name}")
        if not _is_kind(state.facts[name], kind):
            raise _unusable(f"its {name} is {state.facts[name]!r}, not {KINDS[kind]}")
        numbers[name] = state.facts[name]
    return numbers


def _is_kind(value: Any, kind: Kind) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    if kind == "count":
        return isinstance(value, int) and 0 <= value <= LARGEST_COUNT
    return math.isfinite(value) if kind == "finite" else not math.isnan(value)


def _unusable(what: str) -> CheckpointError:
    return CheckpointError(
        f"the checkpoint cannot be used: {what}. Delete it to start anew, or use another folder."
    )
