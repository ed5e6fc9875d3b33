"""Examples whose rows are read from a source."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from topksvm.data import RowSource, in_memory, open_source


def open_examples(X: Any, y: Any, dtype: Any) -> tuple[RowSource, NDArray[Any]]:
    """Return the rows as a source that computes in `dtype`, if there is one, and checked labels."""
    source = open_source(X)
    if dtype is not None:
        source.dtype = np.dtype(dtype)
    y = column_or_1d(in_memory(y), warn=True)
    if len(y) != source.shape[0]:
        raise ValueError(
            f"X has {source.shape[0]} rows but y has {len(y)} labels; there must be one for each."
        )
    check_classification_targets(y)
    return source, y
