"""Writing files such that nothing is lost: beside, then rename; and folders with one user."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["FolderLock", "replacing"]


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path` that replaces it when the block ends without error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _create_beside(path)
    try:
        yield temporary
        with temporary.open("rb") as stream:
            os.fsync(stream.fileno())
        if path.exists():
            temporary.chmod(path.stat().st_mode & 0o777)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _create_beside(path: Path) -> Path:
    """Make an empty file with the permissions that the system gives to new files."""
    while True:
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}{path.suffix}")
        try:
            os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666))
        except FileExistsError:
            continue
        return temporary


class FolderLock:
    """A lock on a file, held until :meth:`release` or the end of the process.

    Raises BlockingIOError, which names the owner, if somebody else has it.
    """

    def __init__(self, path: Path) -> None:
        self.stream = path.open("a+")
        try:
            _lock(self.stream.fileno())
        except OSError:
            self.stream.seek(0)
            owner = self.stream.read().strip()
            self.stream.close()
            raise BlockingIOError(f"process {owner or 'unknown'}") from None
        self.stream.seek(0)
        self.stream.truncate()
        self.stream.write(f"{os.getpid()}\n")
        self.stream.flush()

    def release(self) -> None:
        """Give it back."""
        self.stream.close()  # Which unlocks it.


def _lock(handle: int) -> None:
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    else:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
