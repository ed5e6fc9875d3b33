"""A lock on a folder that the system gives back when its owner ends, however it ends."""

from __future__ import annotations

import errno
import os
import sys
import warnings
import weakref
from contextlib import suppress
from pathlib import Path

LOCK = "lock.topksvm"
"""The file that is locked. It stays: to remove it would let two processes lock two files."""

TAKEN = {errno.EACCES, errno.EAGAIN, errno.EWOULDBLOCK, errno.EDEADLK}
"""Errors that say that somebody else has the lock; others, that there are no locks here."""


class LockedError(Exception):
    """The folder is in use; `owner` says by whom."""

    def __init__(self, owner: str) -> None:
        super().__init__(f"in use by {owner}")
        self.owner = owner


class FolderLock:
    """The lock, taken when this is made, until it is closed or garbage or the process has ended.

    Two of them conflict in one process as well.
    """

    def __init__(self, folder: Path) -> None:
        path = folder / LOCK
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        self._release = weakref.finalize(self, os.close, handle)
        try:
            _lock(handle)
        except OSError as error:
            if error.errno in TAKEN:
                self.close()
                raise LockedError(_owner(path)) from None
            warnings.warn(
                f"{folder} is on a file system without locks: {error.strerror}. See to it that no "
                "other process uses this folder.",
                RuntimeWarning,
                stacklevel=3,
            )
        with suppress(OSError):  # On a full disk; the name of the owner is only for the message.
            os.ftruncate(handle, 0)
            os.write(handle, str(os.getpid()).encode())
        _HELD.add(self)

    def close(self) -> None:
        """Give the lock back."""
        # Closed, not unlocked: in a child process, which has a copy, that would unlock the parent.
        self._release()


_HELD: weakref.WeakSet[FolderLock] = weakref.WeakSet()


def _forget_locks() -> None:
    """Close the copies that a child process has, so that it does not outlive its parent's lock."""
    for lock in list(_HELD):
        lock.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_locks)


def _owner(path: Path) -> str:
    """Say who has the lock, which is what its owner has written there."""
    try:
        pid = int(path.read_text())
    except (OSError, ValueError):  # It may be about to write it.
        return "another process"
    return "another fit of this process" if pid == os.getpid() else f"process {pid}"


if sys.platform == "win32":
    import msvcrt

    BEYOND = 1 << 30
    """The byte that is locked: beyond the text, as nobody else could read that."""

    def _lock(handle: int) -> None:
        os.lseek(handle, BEYOND, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        os.lseek(handle, 0, os.SEEK_SET)

else:
    import fcntl

    def _lock(handle: int) -> None:
        # Not lockf: that is per process, and lost when any copy of the file is closed.
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
