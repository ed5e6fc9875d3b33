"""Fetch a file once, check it, keep it."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

from topksvm._files import replacing

__all__ = ["VARIABLE", "data_folder", "download", "sha256"]

VARIABLE = "TOPKSVM_DATA"
_CHUNK = 1 << 16
_TIMEOUT = 30.0  # Seconds without a byte.


def data_folder() -> Path:
    """Return where downloaded data are kept: ``TOPKSVM_DATA``, else the user's cache."""
    if given := os.environ.get(VARIABLE):
        return Path(given).expanduser()
    # The XDG specification says to ignore a relative path.
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (cache if cache.is_absolute() else Path.home() / ".cache") / "topksvm"


def sha256(path: Path) -> str:
    """Return the checksum of a file, in hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def download(url: str, path: Path, checksum: str, advice: str) -> None:
    """Fetch `url` to `path`, which appears only when all of it is there and is as expected."""
    from http.client import HTTPException

    try:
        with replacing(path) as temporary:
            _fetch(url, temporary)
            found = sha256(temporary)
            if found != checksum:
                raise ValueError(
                    f"what {url} sent is not the file expected: sha256 {found} instead of "
                    f"{checksum}. Nothing was kept. {advice}"
                )
    except (OSError, HTTPException) as error:
        raise ConnectionError(f"cannot download {url} to {path}: {error}. {advice}") from error


def _fetch(url: str, path: Path) -> None:
    from urllib.request import urlopen

    with urlopen(url, timeout=_TIMEOUT) as response, path.open("wb") as stream:
        total = int(response.headers.get("Content-Length") or 0)
        done = 0
        while chunk := response.read(_CHUNK):
            stream.write(chunk)
            done += len(chunk)
            _show_progress(url, done, total)
    _clear_progress()
    if done < total:
        raise ConnectionError(f"the connection ended after {done} of {total} bytes")


def _show_progress(url: str, done: int, total: int) -> None:
    if not sys.stderr.isatty():
        return
    part = min(done / total, 1.0) if total else 0.0
    bar = f"[{'#' * round(30 * part):30}] {part:4.0%} " if total else ""
    line = f"{url.rsplit('/', 1)[-1]} {bar}{done / 1e6:.1f} MB"
    print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)


def _clear_progress() -> None:
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
