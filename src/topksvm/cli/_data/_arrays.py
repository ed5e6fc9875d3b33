"""NumPy arrays in files, SciPy's sparse ones, and svmlight."""

from __future__ import annotations

from typing import IO, Any

import numpy as np
import scipy.sparse as sp

from topksvm.cli._data._files import is_compressed, open_binary
from topksvm.cli._data._request import Array, Request, Table
from topksvm.cli._errors import UserError

_SPARSE_KEYS = {"format", "shape", "data"}
"""Arrays in the files of ``scipy.sparse.save_npz``."""


def read_npy(request: Request) -> Table:
    """Return the rows in a ``.npy`` file, mapped into memory unless it is compressed."""
    if request.wants_own_labels:
        raise UserError(
            f"{request.path} holds features only. Give the file of their labels with --labels "
            "(.npy, .txt, .csv or .tsv)."
        )
    if not is_compressed(request.path):
        return Table(np.load(request.path, mmap_mode="r", allow_pickle=False))
    with open_binary(request.path) as stream:
        return Table(np.load(stream, allow_pickle=False))


def read_npz(request: Request) -> Table:
    """Return the rows in a ``.npz`` file, dense or as ``scipy.sparse.save_npz`` writes them."""
    with open_binary(request.path) as stream:
        archive = np.load(stream, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise UserError(
                f"{request.path} is no .npz file but a .npy file. Rename it, or use --format npy."
            )
        is_sparse = request.features_key is None and set(archive.files) >= _SPARSE_KEYS
        key = "the sparse matrix" if is_sparse else request.features_key or "X"
        X = _sparse(stream) if is_sparse else _array(archive, key, "--features-key", request)
        if not request.wants_own_labels:
            return Table(X)
        name = request.labels_key or "y"
        labels = _array(archive, name, "--labels-key", request)
        return Table(X, labels, notes=(f"features from {key}, labels from {name}",))


def _sparse(stream: IO[bytes]) -> Any:
    stream.seek(0)
    X = sp.load_npz(stream)
    if X.format not in ("csr", "csc"):
        raise ValueError(f"a sparse matrix of format {X.format!r}; only csr and csc can be read")
    X.check_format(full_check=True)  # Wrong indices would lead out of the arrays.
    return sp.csr_matrix(X)


def _array(archive: Any, name: str, option: str, request: Request) -> Array:
    if name not in archive.files:
        found = ", ".join(archive.files) or "nothing"
        raise UserError(
            f"{request.path} has no array {name!r}. It has {found}; choose one of them with "
            f"{option}" + (", or give --labels FILE." if option == "--labels-key" else ".")
        )
    return np.asarray(archive[name])


def read_svmlight(request: Request) -> Table:
    """Return the rows as CSR; features are numbered from 1 unless a 0 occurs or is announced."""
    from sklearn.datasets import load_svmlight_file  # Slow to import, and seldom needed.

    with open_binary(request.path) as stream:
        X, labels = load_svmlight_file(stream, zero_based=True)
    if X.nnz == 0:
        raise UserError(
            f"{request.path} has no features; a line must be like: 3 1:0.5 7:1.2 (a label, then "
            "number:value)."
        )
    first = 0 if request.zero_based or X.indices.min() == 0 else 1
    found, n = int(X.indices.max()) + 1 - first, request.n_features
    if n is not None and found > n:
        raise UserError(
            f"{request.path} has a feature with number {found - 1 + first}, but the model was "
            f"trained on {n} features, numbers {first} to {n - 1 + first}. Use the features that "
            "it was trained on."
        )
    rows = sp.csr_matrix((X.data, X.indices - first, X.indptr), shape=(X.shape[0], n or found))
    return Table(rows, labels, notes=(f"features numbered from {first}",))
