"""Files of compiled kernels that are used only if every byte is as it was written.

Numba unpickles whatever it finds in its cache, and runs the machine code in it: a file that was cut
short by a full disk raises an error, or crashes the process. Here each file begins with a SHA-256
of the rest, of Numba's version and of the sources, and holds the key of its entry, as two processes
that compile at the same time may take the same file. Whatever is wrong with a file, the kernel is
compiled again and the file replaced.

What was compiled for a class from outside the package, a loss of the user's, is in files of its
own: a program that cannot import the class could not read the index of the others, and the code
must not outlive the module that it came from.
"""

from __future__ import annotations

import hashlib
import pickle
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from numba.core import caching

DIGEST = 32
"""Bytes of a SHA-256."""


class CheckedFiles(caching.IndexDataCacheFile):
    """The index and the data files of a kernel."""

    def save(self, key: Any, data: Any) -> None:
        """Save an entry."""
        files = self._files_for(key)
        if files is not None:
            super(CheckedFiles, files).save(key, (key, data))  # type: ignore[no-untyped-call]

    def load(self, key: Any) -> Any:
        """Return an entry, or None if there is none that can be used."""
        files = self._files_for(key)
        if files is None:
            return None
        found = super(CheckedFiles, files).load(key)  # type: ignore[no-untyped-call]
        return found[1] if found is not None and found[0] == key else None

    def _files_for(self, key: Any) -> CheckedFiles | None:
        """Return the files for an entry, those of the modules of its classes; None for no files."""
        modules = sorted(set(_foreign_modules(key[0])))
        if not modules:
            return self
        if "__main__" in modules:  # Another class in each process.
            return None
        names, sources = hashlib.sha256(), hashlib.sha256(self._source_stamp.encode())
        for module in modules:
            names.update(f"{module} ".encode())
            try:
                sources.update(Path(str(sys.modules[module].__file__)).read_bytes())
            except (KeyError, AttributeError, OSError):  # As in a notebook.
                return None
        base = f"{Path(self._index_name).stem}.{names.hexdigest()[:8]}"
        return CheckedFiles(self._cache_path, base, sources.hexdigest())

    def _load_index(self) -> dict[Any, Any]:
        return self._read(self._index_path) or {}

    def _save_index(self, overloads: dict[Any, Any]) -> None:
        self._write(self._index_path, overloads)

    def _load_data(self, name: str) -> Any:
        return self._read(self._data_path(name))

    def _save_data(self, name: str, data: Any) -> None:
        self._write(self._data_path(name), data)

    def _digest(self, payload: bytes) -> bytes:
        origin = f"{self._version} {self._source_stamp} ".encode()
        return hashlib.sha256(origin + payload).digest()

    def _write(self, path: str, content: Any) -> None:
        payload = self._dump(content)
        with self._open_for_write(path) as stream:
            stream.write(self._digest(payload) + payload)

    def _read(self, path: str) -> Any:
        """Return the content of a file, or None if it is not there or not as it was written."""
        try:
            stored = Path(path).read_bytes()
            if stored[:DIGEST] != self._digest(stored[DIGEST:]):
                return None
            return pickle.loads(stored[DIGEST:])
        except Exception:  # A class that has moved, for one: there is no list of what can fail.
            return None


def _foreign_modules(kinds: Any) -> Iterator[str]:
    """Yield the modules outside of the package that named tuples among the types are from."""
    for kind in kinds:
        module = getattr(getattr(kind, "instance_class", None), "__module__", "topksvm")
        if module.partition(".")[0] != "topksvm":
            yield module
        yield from _foreign_modules(getattr(kind, "types", ()))


def check_cache(dispatcher: Any, stamp: str) -> None:
    """Have the entries of a kernel checked, and used only with sources of this stamp."""
    cache: Any = getattr(dispatcher, "_cache", None)
    plain: Any = getattr(cache, "_cache_file", None)
    # Numba has no public way to do this. If its internals move, its own files stay in use.
    if type(plain) is not caching.IndexDataCacheFile:
        return
    base = Path(plain._index_name).stem
    cache._cache_file = CheckedFiles(plain._cache_path, base, stamp)
    cache.load_overload = _none_if_it_fails(cache.load_overload)
    cache.save_overload = _unless_it_cannot_be_written(cache.save_overload)


def _none_if_it_fails(load: Callable[..., Any]) -> Callable[..., Any]:
    """Take an entry that cannot be brought back to life for one that is not there."""

    def load_overload(*args: Any) -> Any:
        try:
            return load(*args)
        except Exception:
            return None

    return load_overload


def _unless_it_cannot_be_written(save: Callable[..., Any]) -> Callable[..., Any]:
    """Let a kernel that is compiled be used although the disk is full."""

    def save_overload(*args: Any) -> None:
        with suppress(OSError):
            save(*args)

    return save_overload
