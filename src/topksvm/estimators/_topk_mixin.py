"""What every classifier with scores can do with the best k of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from topksvm.metrics import Tally, tally_blocks

Array = NDArray[Any]


class TopKMixin(ABC):
    """`predict_topk` and `score_topk`, from the scores of all classes."""

    classes_: Array

    @abstractmethod
    def _scores(self, X: Any) -> Array:
        """Return the scores of all classes ``(n, n_classes)``."""

    def _score_blocks(self, X: Any) -> tuple[int, Iterable[Array]]:
        """Return the number of rows, and the scores of a block of them at a time; here of all."""
        scores = self._scores(X)
        return len(scores), [scores]

    def predict_topk(
        self, X: Any, k: int | None = None, return_scores: bool = False
    ) -> Array | tuple[Array, Array]:
        """Return the `k` best labels of each row, best first; of equal ones, the first class.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            The rows.
        k : int, optional
            How many; by default the `k` that the model was trained for.
        return_scores : bool
            Return their scores as well.

        Returns
        -------
        labels : ndarray of shape (n_samples, k)
            The labels.
        scores : ndarray of shape (n_samples, k)
            Their scores, if asked for.
        """
        number = self._number_of_guesses(k)
        classes, values = [], []
        for scores in self._score_blocks(X)[1]:
            best = best_columns(scores, number)
            classes.append(best)
            values.append(np.take_along_axis(scores, best, axis=1))
        labels = self.classes_[np.concatenate(classes)]
        return (labels, np.concatenate(values)) if return_scores else labels

    def score_topk(self, X: Any, y: Any, k: int | None = None, sample_weight: Any = None) -> float:
        """Return the share of rows whose true label is among the `k` best.

        Ties count against the true label, and so do labels that were not there in training. Labels
        of a type that no class has are refused.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            The rows. Those that do not fit in memory are read and scored by the piece.
        y : array-like of shape (n_samples,)
            Their labels.
        k : int, optional
            How many guesses; by default the `k` that the model was trained for.
        sample_weight : array-like of shape (n_samples,), optional
            The weights of the rows, finite and at least 0.

        Returns
        -------
        accuracy : float
            Between 0 and 1.
        """
        number = self._number_of_guesses(k)
        return float(self._tally(X, y, sample_weight).accuracies([number])[0])

    def _tally(self, X: Any, y: Any, sample_weight: Any = None) -> Tally:
        """Return how often the true label has which rank."""
        n, blocks = self._score_blocks(X)
        return tally_blocks(blocks, n, y, self.classes_, sample_weight)

    def _number_of_guesses(self, k: int | None) -> int:
        check_is_fitted(self)
        number: Any = getattr(self, "k", 1) if k is None else k
        if isinstance(number, bool) or not isinstance(number, Integral):
            raise TypeError(
                f"k is {number!r} of type {type(number).__name__}; it must be a whole number."
            )
        number, m = int(number), self.classes_.size
        if not 1 <= number <= m:
            raise ValueError(
                f"k = {number} but the model has {m} classes; k must be between 1 and {m}."
            )
        return number


def best_columns(scores: Array, k: int) -> NDArray[np.intp]:
    """Return the columns of the `k` largest entries of each row, best first.

    Of equal entries the first is the better one, as for ``argmax``.
    """
    m = scores.shape[1]
    best = np.argpartition(scores, m - k, axis=1)[:, m - k :]
    least = np.take_along_axis(scores, best, axis=1).min(axis=1, keepdims=True)
    # Which of several entries equal to the least are found is chance: sort those rows in full.
    tied = np.count_nonzero(scores >= least, axis=1) > k
    if tied.any():
        best[tied] = np.argsort(-scores[tied], axis=1, kind="stable")[:, :k]
    best.sort(axis=1)
    order = np.argsort(-np.take_along_axis(scores, best, axis=1), axis=1, kind="stable")
    return np.take_along_axis(best, order, axis=1)
