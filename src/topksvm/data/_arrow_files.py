"""The files behind an Arrow data set, which must stay as they are while they are read."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from topksvm.data._identity import Identity, difference, identity_of


class WatchedFile:
    """The file of a fragment; parts of a data set that is in memory have none.

    Arrow keeps what it has read of a file, such as the places of the row groups, with the fragment,
    and a fragment may be older than the file. So `fragment` is a new one that knows nothing.
    """

    def __init__(self, fragment: Any) -> None:
        self.name = str(getattr(fragment, "path", None) or "the Arrow data set")
        self.place = None if _is_in_memory(fragment) else _place(fragment)
        self.seen = self._identify()
        self.fragment = fragment if self.place is None else _anew(fragment, *self.place)

    def check(self) -> None:
        """Complain if the file has changed since it was opened."""
        now = self._identify()
        if now != self.seen:
            what = "it was removed" if now is None else difference(self.seen or now, now)
            raise ValueError(
                f"cannot read {self.name}: it has changed since it was opened, {what}. Leave it as "
                "it is until the fit or the prediction ends, and run it again."
            )

    def folder_keys(self) -> set[str]:
        """Return the names of the columns that stand for the folders of the file."""
        expression = getattr(self.fragment, "partition_expression", None)
        if expression is None:
            return set()
        return set(import_module("pyarrow.dataset").get_partition_keys(expression))

    def _identify(self) -> Identity | None:
        if self.place is None:
            return None
        filesystem, path = self.place
        fs = import_module("pyarrow.fs")
        if isinstance(filesystem, fs.LocalFileSystem):
            try:
                return identity_of(Path(path).stat())
            except FileNotFoundError:
                return None
        found = filesystem.get_file_info(path)
        if found.type == fs.FileType.NotFound:
            return None
        return Identity(0, 0, found.size or 0, found.mtime_ns or 0)


def _is_in_memory(fragment: Any) -> bool:
    return not hasattr(fragment, "path") or getattr(fragment, "buffer", None) is not None


def _place(fragment: Any) -> tuple[Any, str]:
    """Return the file system and the path of a fragment."""
    fs = import_module("pyarrow.fs")
    filesystem, path = fragment.filesystem, str(fragment.path)
    while isinstance(filesystem, fs.SubTreeFileSystem):
        path = filesystem.base_path.rstrip("/") + "/" + path.lstrip("/")
        filesystem = filesystem.base_fs
    if isinstance(filesystem, fs.LocalFileSystem):
        # Never mapped into memory: a file that shrinks would end the process.
        filesystem = fs.LocalFileSystem()
    return filesystem, path


def _anew(fragment: Any, filesystem: Any, path: str) -> Any:
    make = fragment.format.make_fragment
    found = make(path, filesystem, partition_expression=fragment.partition_expression)
    chosen = getattr(fragment, "row_groups", None)
    if chosen is None or len(chosen) == fragment.metadata.num_row_groups:
        return found
    return found.subset(row_group_ids=[group.id for group in chosen])
