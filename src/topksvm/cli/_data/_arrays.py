"""NumPy arrays in files, and SciPy's sparse ones."""

from __future__ import annotations

from typing import IO, Any

import numpy as np
import scipy.sparse as sp

from topksvm.cli._data._table import Array, Request, Table
from topksvm.cli._errors import UserError

_SPARSE_KEYS = {"format", "shape", "data"}


def read_npy(stream: IO[bytes] | None, request: Request) -> Table:
    """Return the rows in a ``.npy`` file, mapped into memory unless it is compressed."""
    if request.wants_own_labels:
        raise UserError(
            f"{request.path} holds features only. Give the file of their labels with --labels "
            "(.npy, .txt, .csv or .tsv)."
        )
    if stream is not None:
        return Table(np.load(stream, allow_pickle=False))
    return Table(np.load(request.path, mmap_mode="r", allow_pickle=False))


def read_npz(stream: IO[bytes], request: Request) -> Table:
    """Return the rows in a ``.npz`` file, dense or as ``scipy.sparse.save_npz`` writes them."""
    loaded = np.load(stream, allow_pickle=False)
    if not isinstance(loaded, np.lib.npyio.NpzFile):
        raise UserError(
            f"{request.path} is no .npz file but a .npy file. Rename it, or use --format npy."
        )
    with loaded as archive:
        is_sparse = request.features_key is None and set(archive.files) >= _SPARSE_KEYS
        key = "the sparse matrix" if is_sparse else request.features_key or "X"
        X = _sparse(archive) if is_sparse else _array(archive, key, "--features-key", request)
        if not request.wants_own_labels:
            return Table(X)
        name = request.labels_key or "y"
        labels = _array(archive, name, "--labels-key", request)
    return Table(X, labels, notes=(f"features from {key}, labels from {name}",))


def _sparse(archive: Any) -> Any:
    kind = archive["format"].item()
    kind = kind.decode() if isinstance(kind, bytes) else kind
    if kind not in ("csr", "csc"):
        raise ValueError(f"a sparse matrix of format {kind!r}; only csr and csc can be read")
    parts = (archive["data"], archive["indices"], archive["indptr"])
    make = sp.csr_matrix if kind == "csr" else sp.csc_matrix
    X = make(parts, shape=tuple(archive["shape"]))
    X.check_format(full_check=True)  # Wrong indices would lead out of the arrays.
    return X.tocsr()


def _array(archive: Any, name: str, option: str, request: Request) -> Array:
    if name not in archive.files:
        found = ", ".join(archive.files) or "nothing"
        raise UserError(
            f"{request.path} has no array {name!r}. It has {found}; choose one of them with "
            f"{option}" + (", or give --labels FILE." if option == "--labels-key" else ".")
        )
    return np.asarray(archive[name])
