"""Writing files such that nothing is lost: beside, then rename."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["replacing"]

NEW_FILE = 0o666
"""What a program asks for when it makes a file; the system takes away what the umask forbids."""

NO_TRANSLATION = getattr(os, "O_BINARY", 0)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path` that replaces it when the block ends without error.

    The permissions are those of the file that is replaced, or else those of any new file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = _mode(path)
    temporary = _make_beside(path, NEW_FILE if mode is None else mode)
    try:
        yield temporary
        with temporary.open("rb") as stream:
            os.fsync(stream.fileno())
        if mode is not None and _mode(temporary) != mode:
            temporary.chmod(mode)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _mode(path: Path) -> int | None:
    """Return the permissions of a file, or None if there is no such file."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return None


def _make_beside(path: Path, mode: int) -> Path:
    """Make an empty file of a new name, which its owner can write whatever `mode` says.

    The umask belongs to the whole process, so it is left to the system to apply it: to set it, if
    only to read it, would change what other threads write meanwhile.
    """
    flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | NO_TRANSLATION
    while True:
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}{path.suffix}")
        try:
            os.close(os.open(temporary, flags, mode | stat.S_IRUSR | stat.S_IWUSR))
        except FileExistsError:
            continue
        return temporary
