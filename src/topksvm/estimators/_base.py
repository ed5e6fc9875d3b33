"""What the classifiers of this package share: their input, and what they make of their scores."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import column_or_1d, compute_class_weight
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from topksvm._threads import n_threads
from topksvm.estimators._topk_mixin import TopKMixin
from topksvm.metrics import topk_ranks
from topksvm.solvers._sources import is_out_of_core, open_source
from topksvm.solvers._windows import WindowReader

Array = NDArray[Any]

BLOCK_BYTES = 1 << 28
"""Memory for the rows and scores of a block when rows are read by the piece."""


def is_streamed(X: Any, memory_limit: int | None = None) -> bool:
    """Return whether `X` is to be read by the piece: not in memory, and too large for it."""
    if not isinstance(X, np.memmap) or X.ndim != 2:
        return is_out_of_core(X)
    limit = _physical_memory() // 2 if memory_limit is None else memory_limit
    return is_out_of_core(X) or X.nbytes > limit


def _physical_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


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
        best = [scores.argmax(axis=1) for scores in self._score_blocks(X)]
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
        check_is_fitted(self)
        if is_streamed(X):
            return np.concatenate(list(self._score_blocks(X)))
        X = validate_data(
            self,
            X,
            reset=False,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            accept_large_sparse=True,
        )
        return np.asarray(safe_sparse_dot(X, self.coef_.T, dense_output=True)) + self.intercept_

    def _score_blocks(self, X: Any) -> Iterator[Array]:
        if not is_streamed(X):
            yield self._scores(X)
            return
        check_is_fitted(self)
        source = open_source(X)
        d = source.shape[1]
        if d != self.n_features_in_:
            raise ValueError(
                f"X has {d} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input."
            )
        # Rows and scores of a block together stay within this.
        reader = WindowReader(source, max(1, BLOCK_BYTES // (8 * (d + self.classes_.size))))
        for window in reader.read(reader.plan(None)):
            yield window.x @ self.coef_.T + self.intercept_

    def score_topk(self, X: Any, y: Any, k: int | None = None, sample_weight: Any = None) -> float:
        """Return the share of rows whose true label is among the `k` best.

        Ties count against the true label, and so do labels that were not there in training.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            The rows. Those that do not fit in memory are read and scored by the piece.
        y : array-like of shape (n_samples,)
            Their labels.
        k : int, optional
            How many guesses; by default the `k` that the model was trained for.
        sample_weight : array-like of shape (n_samples,), optional
            The weights of the rows.

        Returns
        -------
        accuracy : float
            Between 0 and 1.
        """
        if not is_streamed(X):
            return super().score_topk(X, y, k, sample_weight)
        number, y = self._number_of_guesses(k), column_or_1d(y)
        ranks, start = [], 0
        for scores in self._score_blocks(X):
            stop = start + len(scores)
            ranks.append(topk_ranks(y[start:stop], scores, labels=self.classes_))
            start = stop
        if start != len(y):
            raise ValueError(f"X has {start} rows but y has {len(y)} labels; one for each.")
        return float(np.average(np.concatenate(ranks) <= number, weights=sample_weight))


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
