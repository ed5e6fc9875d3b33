"""How often the true class is among the k best scores, for many k at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.utils.metadata_routing import MetadataRequest

from topksvm._scores_and_labels import (
    UNKNOWN,
    check_items,
    check_k,
    check_known_kinds,
    check_labels,
    check_nan,
    check_scores,
    check_weights,
    find_columns,
    match,
)

__all__ = ["TopKScorer", "topk_accuracy", "topk_ranks", "topk_scorer"]

Numbers = NDArray[Any]
Indices = NDArray[np.intp]

BLOCK_ENTRIES = 1 << 18
"""Entries of the scores that are compared at a time, which bounds the memory for temporaries."""


@overload
def topk_accuracy(
    y_true: ArrayLike,
    scores: ArrayLike,
    ks: int,
    labels: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
) -> float: ...


@overload
def topk_accuracy(
    y_true: ArrayLike,
    scores: ArrayLike,
    ks: Iterable[int] = ...,
    labels: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
) -> NDArray[np.float64]: ...


def topk_accuracy(
    y_true: ArrayLike,
    scores: ArrayLike,
    ks: int | Iterable[int] = (1, 2, 3, 4, 5, 10),
    labels: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
) -> float | NDArray[np.float64]:
    r"""Return the share of examples whose true class is among the k best scores, for all `ks`.

    .. math::
        \operatorname{acc}_k = \frac{\sum_i w_i [\operatorname{rank}_i \le k]}{\sum_i w_i},
        \qquad
        \operatorname{rank}_i = 1 + |\{ j \ne y_i : s_{ij} \ge s_{i y_i} \}|

    Ties are broken *against* the true class, so that a model that cannot tell the classes apart
    gains nothing from it: with all scores equal the accuracy is 0 for every k below the number of
    classes, not 1.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        The true labels, of any type.
    scores : array-like of shape (n_samples, n_classes) or (n_samples,)
        A score per class, larger is better; infinite scores are allowed, NaN is not. One number
        per example is the decision function ``s`` of two classes and stands for the columns
        ``-s, s``. (The probability of the second class is no decision function: pass both columns
        of it.) Scores are compared in their own dtype and never copied whole.
    ks : int or iterable of int
        Each k is between 1 and the number of classes, for which the accuracy is 1. With fewer than
        10 classes the default asks for too much, and `ks` must be given.
    labels : array-like of shape (n_classes,), optional
        The labels of the columns of `scores` in order, such as ``estimator.classes_``. By default
        the sorted different labels of `y_true`; necessary if some class is missing there, as can
        happen in the folds of a cross-validation.
    sample_weight : array-like of shape (n_samples,), optional
        The weights ``w`` of the examples, at least 0; equal by default.

    Returns
    -------
    accuracy : float or ndarray of shape (len(ks),)
        Fractions between 0 and 1 in the order of `ks`; a float if `ks` is a number.

    See Also
    --------
    topk_ranks : The ranks themselves.
    topk_scorer : The same for ``scoring=`` in scikit-learn.

    Notes
    -----
    One pass over the scores serves all k. Without ties the result is that of
    :func:`sklearn.metrics.top_k_accuracy_score`, which breaks ties by the order of the columns.

    Examples
    --------
    >>> from topksvm.metrics import topk_accuracy
    >>> scores = [[3.0, 2.0, 1.0], [3.0, 2.0, 1.0], [1.0, 3.0, 2.0], [0.0, 0.0, 0.0]]
    >>> topk_accuracy([0, 1, 2, 0], scores, ks=(1, 2, 3))
    array([0.25, 0.75, 1.  ])
    >>> topk_accuracy(["b", "b"], scores[:2], ks=2, labels=["a", "b", "c"])
    1.0
    """
    table = check_scores(scores)
    columns, n_classes = match(y_true, table, labels)
    if isinstance(ks, Iterable):
        numbers = [check_k(k) for k in ks]
        return _accuracies(table, columns, n_classes, numbers, sample_weight)
    return float(_accuracies(table, columns, n_classes, [check_k(ks)], sample_weight)[0])


def topk_ranks(y_true: ArrayLike, scores: ArrayLike, labels: ArrayLike | None = None) -> Indices:
    r"""Return the rank of the true class of each example, 1 for the best score.

    .. math:: \operatorname{rank}_i = 1 + |\{ j \ne y_i : s_{ij} \ge s_{i y_i} \}|

    Ties are broken against the true class. An example counts for the top-k accuracy if its rank is
    at most k.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        The true labels, of any type.
    scores : array-like of shape (n_samples, n_classes) or (n_samples,)
        A score per class, or the decision function of two classes; see :func:`topk_accuracy`.
    labels : array-like of shape (n_classes,), optional
        The labels of the columns of `scores` in order. By default the sorted different labels of
        `y_true`.

    Returns
    -------
    ranks : ndarray of shape (n_samples,)
        Whole numbers between 1 and ``n_classes``.

    See Also
    --------
    topk_accuracy : The share of ranks of at most k.

    Examples
    --------
    >>> from topksvm.metrics import topk_ranks
    >>> topk_ranks(["a", "b", "c"], [[3.0, 2.0, 1.0], [3.0, 2.0, 1.0], [0.0, 0.0, 0.0]])
    array([1, 2, 3])
    """
    table = check_scores(scores)
    columns, n_classes = match(y_true, table, labels)
    return _rank(table, columns, n_classes)


def topk_scorer(k: int) -> TopKScorer:
    """Return a scorer for ``scoring=`` in scikit-learn that measures the top-k accuracy.

    Parameters
    ----------
    k : int
        At least 1, and at most the number of classes the estimator has seen in training; beyond
        that, the call of the scorer is an error.

    Returns
    -------
    scorer : TopKScorer
        To be called as ``scorer(estimator, X, y, sample_weight=None)``; can be pickled and cloned.

    See Also
    --------
    topk_accuracy : What is measured, and how ties are broken.

    Notes
    -----
    The scores are those of the `decision_function` of the estimator, or of `predict_proba` if it
    has none, and ``estimator.classes_`` are the labels of their columns. So folds that lack some
    classes need no care. A label of `y` that the estimator has not seen in training is an error
    for every k, as no prediction could have been right: the rank of such a class is infinite.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    >>> from sklearn.model_selection import cross_val_score
    >>> from topksvm.metrics import topk_scorer
    >>> X, y = load_iris(return_X_y=True)
    >>> cross_val_score(LinearDiscriminantAnalysis(), X, y, scoring=topk_scorer(2))
    array([1., 1., 1., 1., 1.])
    """
    return TopKScorer(k)


class TopKScorer:
    """The top-k accuracy of an estimator, made by :func:`topk_scorer`.

    Parameters
    ----------
    k : int
        At least 1.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    >>> from topksvm.metrics import topk_scorer
    >>> X, y = load_iris(return_X_y=True)
    >>> scorer = topk_scorer(2)
    >>> scorer(LinearDiscriminantAnalysis().fit(X, y), X, y)
    1.0
    """

    def __init__(self, k: int) -> None:
        self.k = check_k(k)
        if self.k < 1:
            raise ValueError(f"k = {k} is not allowed; k must be at least 1.")
        self._request: bool | str | None = None

    def __call__(
        self, estimator: Any, X: Any, y: ArrayLike, *, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return the top-k accuracy of `estimator` on `X`, whose true labels are `y`.

        Parameters
        ----------
        estimator : fitted classifier
            With `decision_function` or `predict_proba`, and `classes_`.
        X : array-like of shape (n_samples, n_features)
            The examples.
        y : array-like of shape (n_samples,)
            The true labels; those unseen in training count as errors.
        sample_weight : array-like of shape (n_samples,), optional
            The weights of the examples, at least 0; equal by default.

        Returns
        -------
        accuracy : float
            Between 0 and 1.
        """
        name, scores = _scores_of(estimator, X)
        classes = check_labels("classes_", estimator.classes_)
        n_columns = 2 if scores.ndim == 1 else scores.shape[1]
        if n_columns != len(classes):
            raise ValueError(
                f"{type(estimator).__name__}.{name} returned scores of shape {scores.shape} for "
                f"{len(classes)} classes; one score per class is required. An SVC, for example, "
                "must be fitted with decision_function_shape='ovr'."
            )
        if self.k > len(classes):
            raise ValueError(
                f"k = {self.k} but there are {len(classes)} classes; k must be between 1 and "
                f"{len(classes)}. Choose a smaller k."
            )
        tally = tally_blocks([scores], len(scores), y, classes, sample_weight)
        return float(tally.accuracies([self.k])[0])

    def __repr__(self) -> str:
        return f"topk_scorer({self.k})"

    def set_score_request(self, *, sample_weight: bool | str | None) -> TopKScorer:
        """Say whether metadata routing passes `sample_weight` to this scorer.

        Only with ``sklearn.set_config(enable_metadata_routing=True)``; without it, the
        `GridSearchCV` of recent versions passes the `sample_weight` of its `fit` on by itself.

        Parameters
        ----------
        sample_weight : bool, str or None
            True to ask for it, False to ignore it, None for an error if it is given, or the name
            under which it is given.

        Returns
        -------
        self : TopKScorer
            The scorer.
        """
        if not get_config()["enable_metadata_routing"]:
            raise RuntimeError(
                "set_score_request has no effect while metadata routing is off. Switch it on first "
                "with sklearn.set_config(enable_metadata_routing=True)."
            )
        MetadataRequest(owner=self).score.add_request(param="sample_weight", alias=sample_weight)
        self._request = sample_weight
        return self

    def get_metadata_routing(self) -> MetadataRequest:
        """Return what this scorer asks of metadata routing.

        Returns
        -------
        request : sklearn.utils.metadata_routing.MetadataRequest
            The request for `sample_weight`.
        """
        request = MetadataRequest(owner=self)
        request.score.add_request(param="sample_weight", alias=self._request)
        return request

    def _accept_sample_weight(self) -> bool:
        """Tell scikit-learn, which asks each of several scorers, that weights are understood."""
        return True


def _accuracies(
    scores: Numbers,
    columns: Indices,
    n_classes: int,
    ks: list[int],
    sample_weight: ArrayLike | None,
) -> NDArray[np.float64]:
    """Return the accuracy for each of `ks`, with an error for each column `UNKNOWN`."""
    for k in ks:
        if not 1 <= k <= n_classes:
            raise ValueError(
                f"k = {k} but there are {n_classes} classes; k must be between 1 and {n_classes}. "
                f"Choose a {'larger' if k < 1 else 'smaller'} k."
            )
    if not ks:
        raise ValueError("ks is empty; at least one k is required, for example ks=(1, 5).")
    weights = None if sample_weight is None else check_weights(sample_weight, len(columns))
    return Tally.of_ranks(_rank(scores, columns, n_classes), weights, n_classes).accuracies(ks)


@dataclass(frozen=True)
class Tally:
    """The weight of the examples of each rank, from 0 to ``n_classes + 1``, in units of `unit`."""

    by_rank: NDArray[Any]
    unit: float = 1.0

    @staticmethod
    def of_ranks(ranks: Indices, weights: NDArray[np.float64] | None, n_classes: int) -> Tally:
        """Count the ranks, each with its weight."""
        if weights is None:
            return Tally(np.bincount(ranks, minlength=n_classes + 2))
        unit = float(weights.max(initial=0.0)) or 1.0  # So that no sum can overflow.
        return Tally(np.bincount(ranks, weights / unit, minlength=n_classes + 2), unit)

    def __add__(self, other: Tally) -> Tally:
        unit = max(self.unit, other.unit)
        a, b = (tally.by_rank * (tally.unit / unit) for tally in (self, other))
        return Tally(a + b, unit)

    def accuracies(self, ks: list[int]) -> NDArray[np.float64]:
        """Return the share of the examples of rank k at most, for each of `ks`."""
        at_most = np.cumsum(self.by_rank)
        if at_most[-1] == 0:
            raise ValueError("sample_weight is 0 for all examples; at least one must be positive.")
        return np.asarray(at_most[ks] / at_most[-1], dtype=np.float64)


def tally_blocks(
    blocks: Iterable[Numbers], n: int, y: ArrayLike, classes: ArrayLike, sample_weight: Any
) -> Tally:
    """Return how often which rank occurs among the true labels `y` of `n` examples.

    This is what `score_topk` is made of for arrays, streams and the parts of a dask collection:
    labels that are not among the `classes` of the model count as errors, and those that cannot be
    labels of it, bad weights and wrong lengths are refused before the first block is asked for.

    Parameters
    ----------
    blocks : iterable of ndarray of shape (n_block, n_classes)
        The scores of the examples, in order.
    n : int
        The number of examples.
    y : array-like of shape (n,)
        Their labels.
    classes : array-like of shape (n_classes,)
        The labels of the columns of scores.
    sample_weight : array-like of shape (n,), optional
        Weights, at least 0.
    """
    labels, _ = check_items("y", y)
    if not labels:
        raise ValueError("y is empty; at least one example is required.")
    if len(labels) != n:
        raise ValueError(
            f"y has {len(labels)} labels but X has {n} rows; one for each is required."
        )
    known = check_labels("classes_", classes)
    check_known_kinds("y", labels, known)
    columns = find_columns(labels, known)
    weights = None if sample_weight is None else check_weights(sample_weight, n)
    ranks, start = np.empty(n, dtype=np.intp), 0
    for scores in blocks:
        stop = start + len(scores)
        ranks[start:stop] = _rank(scores, columns[start:stop], len(known), start)
        start = stop
    if start != n:
        raise RuntimeError(f"{start} rows of scores for {n} examples; please report this bug.")
    return Tally.of_ranks(ranks, weights, len(known))


def _rank(scores: Numbers, columns: Indices, n_classes: int, first: int = 0) -> Indices:
    """Return the ranks of `columns` in the rows, ``n_classes + 1`` for those `UNKNOWN`.

    The rows are counted from `first` on in what errors say.
    """
    ranks = np.empty(len(columns), dtype=np.intp)
    step = max(1, BLOCK_ENTRIES // n_classes)
    for start in range(0, len(columns), step):
        rows = slice(start, start + step)
        block = scores[rows]
        check_nan(block, first + start)
        if block.ndim == 1:
            block = np.stack((-block, block), axis=1)
        true_scores = np.take_along_axis(block, columns[rows, np.newaxis], axis=1)
        # The true class itself is counted as well, and is the 1 of the definition.
        ranks[rows] = np.count_nonzero(block >= true_scores, axis=1)
    ranks[columns == UNKNOWN] = n_classes + 1
    return ranks


def _scores_of(estimator: Any, X: Any) -> tuple[str, Numbers]:
    """Return the method of `estimator` that has scores, and the scores of `X`."""
    for name in ("decision_function", "predict_proba"):
        method = getattr(estimator, name, None)
        if method is not None:
            return name, check_scores(method(X))
    raise TypeError(
        f"{type(estimator).__name__} has neither decision_function nor predict_proba; the top-k "
        "accuracy needs a score per class. Use a classifier that has one of them."
    )
