"""LIBSVM's format, also called svmlight: ``label number:value number:value ...``."""

from __future__ import annotations

from typing import IO

import scipy.sparse as sp

from topksvm.cli._data._table import Request, Table
from topksvm.cli._errors import UserError


def read_svmlight(stream: IO[bytes], request: Request) -> Table:
    """Return the rows as CSR; features are numbered from 1 unless a 0 occurs or is announced."""
    from sklearn.datasets import load_svmlight_file  # Slow to import, and seldom needed.

    X, labels = load_svmlight_file(stream, zero_based=True)
    if X.nnz == 0:
        raise UserError(
            f"{request.path} has no features; a line must be like: 3 1:0.5 7:1.2 (a label, then "
            "number:value)."
        )
    is_zero_based = request.zero_based or X.indices.min() == 0
    indices = X.indices if is_zero_based else X.indices - 1
    largest = int(indices.max()) + 1
    if request.n_features is not None and largest > request.n_features:
        first = 0 if is_zero_based else 1
        raise UserError(
            f"{request.path} has a feature with number {largest - 1 + first}, but the model was "
            f"trained on {request.n_features} features, numbers {first} to "
            f"{request.n_features - 1 + first}. Use the features that it was trained on."
        )
    shape = (X.shape[0], request.n_features or largest)
    return Table(
        sp.csr_matrix((X.data, indices, X.indptr), shape=shape),
        labels,
        notes=(f"features numbered from {0 if is_zero_based else 1}",),
    )
