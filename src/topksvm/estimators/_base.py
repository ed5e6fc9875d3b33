"""What the classifiers of this package share: their input, and what they make of their scores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import assert_all_finite
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data

from topksvm.data import WindowReader, file_of, in_memory, is_real, is_streamed, open_source
from topksvm.estimators._topk_mixin import TopKMixin

Array = NDArray[Any]

BLOCK_BYTES = 1 << 28
"""Memory for the rows and scores of a block when rows are read by the piece."""


def _is_mapped(X: Any) -> bool:
    """Return whether `X` is a table of floats in a file, which can be read without the map."""
    return file_of(X) is not None and X.ndim == 2 and is_real(X.dtype)


def check_finite_rows(X: Any, first: int = 0) -> None:
    """Complain about NaN and infinity in rows, the first of which is number `first` of all."""
    if get_config()["assume_finite"]:
        return
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            assert_all_finite(X)
    except ValueError as error:
        bad = np.flatnonzero(~np.isfinite(X.data if sp.issparse(X) else X).ravel())[0]
        row = (
            np.searchsorted(X.indptr, bad, side="right") - 1
            if sp.issparse(X)
            else bad // X.shape[1]
        )
        raise ValueError(
            f"Input X contains NaN or infinity (inf), in row {first + int(row)}; every value must "
            "be a finite number. Remove the row or correct it."
        ) from error


def check_finite_scores(scores: Array, first: int = 0) -> None:
    """Complain about scores that are too large for their type, as their order is lost."""
    is_finite = np.isfinite(scores).all(axis=1)
    if is_finite.all():
        return
    row = np.argmin(is_finite)
    raise ValueError(
        f"The scores of row {first + int(row)} of X are too large for {scores.dtype}. Scale the "
        "row as those of the training were, or remove it."
    )


class ScoringClassifier(TopKMixin, ClassifierMixin, BaseEstimator):
    """A classifier with a score for every class."""

    def decision_function(self, X: Any) -> Array:
        """Return the scores of the classes.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
            For two classes, the score of the second less that of the first.
        """
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if self.classes_.size == 2 else scores

    def predict(self, X: Any) -> Array:
        """Return the label with the best score of each row, the first of several.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            The labels.
        """
        best = [scores.argmax(axis=1) for scores in self._score_blocks(X)[1]]
        return self.classes_[np.concatenate(best)]


class LinearClassifier(ScoringClassifier):
    """A classifier with the scores ``X coef_.T + intercept_``."""

    coef_: Array
    intercept_: Array

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _scores(self, X: Any) -> Array:
        _, blocks = self._score_blocks(X)
        scores = list(blocks)
        return scores[0] if len(scores) == 1 else np.concatenate(scores)

    def _score_blocks(self, X: Any) -> tuple[int, Iterable[Array]]:
        check_is_fitted(self)
        if is_streamed(X) or _is_mapped(X):
            source = open_source(X)
            self._check_features(source)
            return source.shape[0], self._scores_of_source(source)
        X = validate_data(
            self,
            in_memory(X),
            reset=False,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            accept_large_sparse=True,
            ensure_all_finite=False,
        )
        return X.shape[0], [self._scores_of_rows(X, 0)]

    def _check_features(self, source: Any) -> None:
        """Let scikit-learn compare the number of features, and their names if there are any."""
        names = getattr(source, "names", None) if hasattr(self, "feature_names_in_") else None
        rows: Any = np.empty((0, source.shape[1]))
        if names is not None:
            rows = import_module("pyarrow").table(dict.fromkeys(names, rows[:, 0]))
        validate_data(self, rows, reset=False, skip_check_array=True)

    def _scores_of_source(self, source: Any) -> Iterator[Array]:
        # Rows and scores of a block together stay within this.
        n_bytes = 8 * (source.shape[1] + self.classes_.size)
        reader = WindowReader(source, max(1, BLOCK_BYTES // n_bytes))
        for window in reader.read(reader.plan(None)):
            yield self._scores_of_rows(window.x, int(window.index[0]))

    def _scores_of_rows(self, X: Any, first: int) -> Array:
        """Return the scores of rows in memory, the first of which is number `first` of all."""
        check_finite_rows(X, first)
        # What overflows is an error below, which says more than a warning.
        with np.errstate(over="ignore", invalid="ignore"):
            scores = np.asarray(safe_sparse_dot(X, self.coef_.T, dense_output=True))
            scores = scores + self.intercept_
        check_finite_scores(scores, first)
        return scores


def check_two_classes(classes: Array) -> None:
    """Raise an error unless there is something to tell apart."""
    if classes.size < 2:
        raise ValueError(
            f"The data has {classes.size} class, {classes.tolist()}; at least 2 classes are "
            "needed. Add examples of another class."
        )


def without_duplicates(X: Any) -> Any:
    """Return CSR rows with one entry per feature, which the norms of the rows rely on."""
    if not sp.issparse(X) or X.has_canonical_format:
        return X
    X = X.copy()
    X.sum_duplicates()
    return X
