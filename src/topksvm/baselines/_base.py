"""What the baselines share: their input, and that they are linear in the end."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from topksvm.data import in_memory
from topksvm.estimators import LinearClassifier, check_two_classes, without_duplicates

Array = NDArray[Any]


class Baseline(LinearClassifier):
    """A classifier with the scores ``X coef_.T``, without intercept as in the paper."""

    def _start(self, X: Any, y: Any) -> tuple[Any, NDArray[np.intp]]:
        """Return the examples and their labels as numbers ``0 ... m - 1``; set ``classes_``."""
        self._validate_params()
        X, y = validate_data(
            self,
            in_memory(X),
            in_memory(y),
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            order="C",
            accept_large_sparse=True,
        )
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        check_two_classes(self.classes_)
        return without_duplicates(X), labels

    def _store(self, weights: Array, dtype: Any) -> None:
        """Set ``coef_`` and ``intercept_`` from the weights ``(m, d)``, in the type of the data."""
        self.coef_ = np.ascontiguousarray(weights, dtype=dtype)
        self.intercept_ = np.zeros(self.classes_.size, dtype)
