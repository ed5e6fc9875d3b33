"""What the classifiers of this package share: their input, and what they make of their scores."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import assert_all_finite, compute_class_weight
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from topksvm._threads import n_threads
from topksvm.data import WindowReader, file_of, is_out_of_core, is_real, open_source
from topksvm.estimators._topk_mixin import TopKMixin

Array = NDArray[Any]

BLOCK_BYTES = 1 << 28
"""Memory for the rows and scores of a block when rows are read by the piece."""

UNKNOWN_LIMIT = 1 << 32
"""Bytes above which a memory map is read by the piece where the memory is not known: 4 GiB."""


def is_streamed(X: Any, memory_limit: int | None = None) -> bool:
    """Return whether `X` is to be read by the piece: not in memory, and too large for it."""
    if not isinstance(X, np.memmap) or X.ndim != 2:
        return is_out_of_core(X)
    if memory_limit is None:
        memory = _physical_memory()
        memory_limit = UNKNOWN_LIMIT if memory is None else memory // 2
    return is_out_of_core(X) or X.nbytes > memory_limit


def _is_mapped(X: Any) -> bool:
    """Return whether `X` is a table of floats in a file, which can be read without the map."""
    return isinstance(X, np.memmap) and X.ndim == 2 and is_real(X.dtype) and file_of(X) is not None


def _physical_memory() -> int | None:
    """Return the memory of the machine in bytes, or None where the system does not say."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf, others lack a name.
        return None
    return memory if memory > 0 else None


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
            X,
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


class TopKClassifier(ScoringClassifier):
    """A classifier with parameters `k`, `C`, `class_weight` and `dtype`."""

    k: int
    C: float
    class_weight: Any
    dtype: Any

    def _validate_examples(self, X: Any, y: Any, accept_sparse: Any = "csr") -> tuple[Any, Array]:
        if self.dtype is not None and np.dtype(self.dtype) not in (np.float32, np.float64):
            raise ValueError(
                f"dtype = {self.dtype!r} is not supported; it must be float32, float64, or None "
                "for that of X."
            )
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse=accept_sparse,
            dtype=[np.float64, np.float32] if self.dtype is None else np.dtype(self.dtype),
            order="C",
            accept_large_sparse=True,
        )
        if y.dtype.kind not in "biu":  # Whole numbers are labels without a doubt.
            check_classification_targets(y)
        return without_duplicates(X), y

    def _check_classes(self, classes: Array) -> None:
        check_two_classes(classes)
        m = classes.size
        if self.k >= m:
            raise ValueError(
                f"k = {self.k} but there are {m} classes; k must be between 1 and {m - 1}. Choose "
                "a smaller k."
            )

    def _weights_of_examples(
        self, X: Any, y: Array, classes: Array, labels: Array, sample_weight: Any
    ) -> Array:
        """Return ``C * sample_weight * class_weight``."""
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        factors = self._weights_of_classes(y, classes, labels, weights)
        with np.errstate(over="ignore"):
            weights = self.C * weights * factors[labels]
        if not np.isfinite(weights).all():
            raise ValueError(
                f"C * sample_weight * class_weight is not finite, at C = {self.C:g}. Choose "
                "smaller values."
            )
        if not weights.any():
            raise ValueError(
                "The weights of all examples are zero; sample_weight and class_weight must leave "
                "at least one that is positive."
            )
        return weights

    def _weights_of_classes(self, y: Array, classes: Array, labels: Array, weights: Array) -> Array:
        if self.class_weight is None:
            return np.ones(classes.size)
        if isinstance(self.class_weight, str):
            # By hand, as a class may have lost all its weight, which must not divide by zero.
            sizes = np.bincount(labels, weights, minlength=classes.size)
            return np.divide(
                sizes.sum(), classes.size * sizes, out=np.zeros(classes.size), where=sizes > 0
            )
        factors = np.asarray(compute_class_weight(self.class_weight, classes=classes, y=y))
        if not (factors >= 0).all():
            worst = classes[np.argmin(np.where(factors >= 0, np.inf, -1))]
            raise ValueError(
                f"class_weight of class {worst!r} is {self.class_weight[worst]!r}; class weights "
                "must be at least 0."
            )
        return factors


def check_two_classes(classes: Array) -> None:
    """Raise an error unless there is something to tell apart."""
    if classes.size < 2:
        raise ValueError(
            f"The data has {classes.size} class, {classes.tolist()}; at least 2 classes are "
            "needed. Add examples of another class."
        )


def threads(n_jobs: int | None) -> int | None:
    """Return the number of threads; negative `n_jobs` count down from all, as in joblib."""
    return max(1, n_threads() + 1 + n_jobs) if n_jobs is not None and n_jobs < 0 else n_jobs


def without_duplicates(X: Any) -> Any:
    """Return CSR rows with one entry per feature, which the norms of the rows rely on."""
    if not sp.issparse(X) or X.has_canonical_format:
        return X
    X = X.copy()
    X.sum_duplicates()
    return X


def print_progress(passes: int, seconds: float, gap: float) -> None:
    print(f"pass {passes}: relative gap about {gap:.2e} after {seconds:.1f} s", file=sys.stderr)
