"""Copies of mapped files, for what works on rows in memory.

A page of a map beyond the end of its file ends the process with SIGBUS, and kernels touch rows in
any order, for as long as a fit takes. So a map is copied, by reading its file, before anything
touches it; whatever becomes of the file after that changes nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from topksvm.data._array_sources import (
    FileReader,
    MapReader,
    address_of_map,
    check_unchanged,
    is_in_its_file,
    owner_of,
)
from topksvm.data._guarded import read_view
from topksvm.data._memory import physical_memory

JOBLIB = "joblib_memmapping_folder_"
"""How the folders begin in which joblib shares arrays with its processes. Those files are its own,
and a copy in every process is what they are there to avoid."""

BLOCK = 1 << 24
"""Bytes that are copied at a time."""


def in_memory(X: Any) -> Any:
    """Return an array or CSR matrix without any that is mapped from a file: that is copied."""
    if sp.issparse(X):
        return _sparse_in_memory(X)
    owner = owner_of(X) if isinstance(X, np.ndarray) else None
    if owner is None or X.ndim == 0 or X.size == 0 or _is_of_joblib(owner):
        return X
    name = "A map" if owner.filename is None else str(owner.filename)
    memory = physical_memory()
    if memory is not None and X.nbytes > memory:
        raise ValueError(
            f"{name} is mapped into memory, and {X.nbytes} bytes of it are needed at the same "
            f"time, but the machine has {memory}. Take fewer rows, or train a TopKLinearSVC by "
            "dual coordinate ascent, which reads a map by the piece."
        )
    return _copy(X, owner, name)


def _sparse_in_memory(X: Any) -> Any:
    if X.format not in ("csr", "csc"):
        return X
    parts = (X.data, X.indices, X.indptr)
    copies = tuple(in_memory(part) for part in parts)
    if all(copy is part for copy, part in zip(copies, parts, strict=True)):
        return X
    return type(X)(copies, shape=X.shape)


def _copy(X: NDArray[Any], owner: np.memmap, name: str) -> NDArray[Any]:
    reader, origin = _reader(X, owner, name), address_of_map(owner)
    view, out = np.asarray(X), np.empty(X.shape, X.dtype)
    step = max(1, BLOCK * len(X) // X.nbytes)
    for start in range(0, len(X), step):
        read_view(view[start : start + step], out[start : start + step], reader, origin)
    return out


def _reader(X: NDArray[Any], owner: np.memmap, name: str) -> FileReader | MapReader:
    """Return what reads the map fastest: from its file, unless that is another one by now."""
    mapped = MapReader(name, owner)
    if not is_in_its_file(owner):
        return mapped
    try:
        reader = FileReader(name, owner)
        check_unchanged(X, owner, reader)
    except ValueError:
        return mapped  # Which complains if rows of X are gone.
    return reader


def _is_of_joblib(owner: np.memmap) -> bool:
    return owner.filename is not None and Path(owner.filename).parent.name.startswith(JOBLIB)
