"""How often the true class is among the k best scores, for many k at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from numbers import Integral
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.utils.metadata_routing import MetadataRequest

__all__ = ["TopKScorer", "topk_accuracy", "topk_ranks", "topk_scorer"]

Numbers = NDArray[Any]
Indices = NDArray[np.intp]

BLOCK_ENTRIES = 1 << 18
"""Entries of the scores that are compared at a time, which bounds the memory for temporaries."""

_UNKNOWN = -1
"""The column of a label that has none."""


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
    table = _check_scores(scores)
    columns, n_classes = _match(y_true, table, labels)
    if isinstance(ks, Iterable):
        numbers = [_check_k(k) for k in ks]
        return _accuracies(table, columns, n_classes, numbers, sample_weight)
    return float(_accuracies(table, columns, n_classes, [_check_k(ks)], sample_weight)[0])


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
    table = _check_scores(scores)
    columns, n_classes = _match(y_true, table, labels)
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
        self.k = _check_k(k)
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
        classes = _check_labels("classes_", estimator.classes_)
        n_columns = 2 if scores.ndim == 1 else scores.shape[1]
        if n_columns != len(classes):
            raise ValueError(
                f"{type(estimator).__name__}.{name} returned scores of shape {scores.shape} for "
                f"{len(classes)} classes; one score per class is required. An SVC, for example, "
                "must be fitted with decision_function_shape='ovr'."
            )
        columns = _find_columns(_check_y(y, scores), classes)
        return float(_accuracies(scores, columns, len(classes), [self.k], sample_weight)[0])

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
    """Return the accuracy for each of `ks`, with an error for each column `_UNKNOWN`."""
    for k in ks:
        if not 1 <= k <= n_classes:
            raise ValueError(
                f"k = {k} but there are {n_classes} classes; k must be between 1 and {n_classes}. "
                f"Choose a {'larger' if k < 1 else 'smaller'} k."
            )
    if not ks:
        raise ValueError("ks is empty; at least one k is required, for example ks=(1, 5).")
    weights = None if sample_weight is None else _check_weights(sample_weight, len(columns))
    ranks = _rank(scores, columns, n_classes)
    at_most = np.cumsum(np.bincount(ranks, weights, minlength=n_classes + 2))
    return np.asarray(at_most[ks] / at_most[-1], dtype=np.float64)


def _rank(scores: Numbers, columns: Indices, n_classes: int) -> Indices:
    """Return the ranks of `columns` in the rows, ``n_classes + 1`` for those `_UNKNOWN`."""
    ranks = np.empty(len(columns), dtype=np.intp)
    step = max(1, BLOCK_ENTRIES // n_classes)
    for start in range(0, len(columns), step):
        rows = slice(start, start + step)
        block = scores[rows]
        _check_nan(block, start)
        if block.ndim == 1:
            block = np.stack((-block, block), axis=1)
        true_scores = np.take_along_axis(block, columns[rows, np.newaxis], axis=1)
        # The true class itself is counted as well, and is the 1 of the definition.
        ranks[rows] = np.count_nonzero(block >= true_scores, axis=1)
    ranks[columns == _UNKNOWN] = n_classes + 1
    return ranks


def _scores_of(estimator: Any, X: Any) -> tuple[str, Numbers]:
    """Return the method of `estimator` that has scores, and the scores of `X`."""
    for name in ("decision_function", "predict_proba"):
        method = getattr(estimator, name, None)
        if method is not None:
            return name, _check_scores(method(X))
    raise TypeError(
        f"{type(estimator).__name__} has neither decision_function nor predict_proba; the top-k "
        "accuracy needs a score per class. Use a classifier that has one of them."
    )


def _match(y_true: ArrayLike, scores: Numbers, labels: ArrayLike | None) -> tuple[Indices, int]:
    """Return the columns of `scores` that belong to `y_true`, and the number of classes."""
    y = _check_y(y_true, scores)
    known = _sorted_labels(y) if labels is None else _check_labels("labels", labels)
    if scores.ndim == 1:
        n_columns, found = 2, f"shape {scores.shape}, the decision function of 2 classes"
    else:
        n_columns, found = scores.shape[1], f"{scores.shape[1]} columns"
    if labels is None and len(known) != n_columns:
        raise ValueError(
            f"y_true has {len(known)} different labels but scores has {found}. Pass labels=, the "
            "labels of the columns in order, for example labels=estimator.classes_."
        )
    if len(known) != n_columns:
        raise ValueError(
            f"labels has {len(known)} entries but scores has {found}; labels must name each column "
            "once, in order."
        )
    columns = _find_columns(y, known)
    if columns.min() == _UNKNOWN:
        unknown = list(dict.fromkeys(y[i] for i in np.flatnonzero(columns == _UNKNOWN)))
        raise ValueError(
            f"y_true contains {_some(unknown)}, which labels does not. It has {_some(known)}; add "
            "what is missing, with its column of scores, or leave these examples out."
        )
    return columns, len(known)


def _find_columns(y: list[Any], labels: list[Any]) -> Indices:
    """Return the positions of `y` in `labels`, `_UNKNOWN` for those that are not there."""
    position = {label: i for i, label in enumerate(labels)}
    return np.array([position.get(label, _UNKNOWN) for label in y], dtype=np.intp)


def _sorted_labels(y: list[Any]) -> list[Any]:
    try:
        return sorted(set(y))
    except TypeError as error:
        raise TypeError(
            f"The labels of y_true cannot be sorted ({error}). Pass labels=, the labels of the "
            "columns of scores in order, for example labels=estimator.classes_."
        ) from error


def _check_y(y: ArrayLike, scores: Numbers) -> list[Any]:
    """Return `y` as a list if there is one label for each row of `scores`."""
    items, _ = _check_items("y_true", y)
    if len(items) != len(scores):
        raise ValueError(
            f"y_true has {len(items)} labels but scores has {len(scores)} rows; one row per label "
            "is required."
        )
    if not items:
        raise ValueError("y_true is empty; at least one example is required.")
    return items


def _check_labels(name: str, labels: ArrayLike) -> list[Any]:
    """Return `labels` as a list if no two are equal."""
    items, different = _check_items(name, labels)
    if len(different) < len(items):
        repeated = [item for item, times in Counter(items).items() if times > 1]
        raise ValueError(
            f"{name} contains {_some(repeated)} more than once; each column of scores needs a "
            "label of its own."
        )
    return items


def _check_items(name: str, values: Any) -> tuple[list[Any], set[Any]]:
    """Return the labels `values` as a list and as a set."""
    if isinstance(values, (list, tuple)):
        # An array would make strings of a mixture of numbers and strings.
        items = [item.item() if isinstance(item, np.generic) else item for item in values]
    else:
        array = np.asarray(values)
        if array.ndim != 1:
            raise ValueError(
                f"{name} has shape {array.shape}; it must have one dimension. If it is a column, "
                f"pass {name}.ravel()."
            )
        items = array.tolist()
    try:
        different = set(items)
    except TypeError as error:
        raise TypeError(
            f"{name} contains an entry that cannot be a label ({error}); it must be a list or "
            "array of one dimension, with entries such as numbers or strings."
        ) from error
    if any(isinstance(item, (float, np.floating)) and item != item for item in different):
        raise ValueError(f"{name} contains NaN, which is no label. Remove it first.")
    return items, different


def _check_scores(scores: Any) -> Numbers:
    """Return `scores` as an array of real numbers of one or two dimensions."""
    array = np.asarray(scores)
    if array.dtype.kind not in "fiub":
        raise TypeError(
            f"scores is of type {type(scores).__name__} with dtype {array.dtype}; it must be a "
            "dense array of real numbers. Convert it first, for example with scores.astype(float) "
            "or scores.toarray()."
        )
    if array.ndim not in (1, 2):
        raise ValueError(
            f"scores has {array.ndim} dimensions, shape {array.shape}; it must be of shape "
            "(n_samples, n_classes), or (n_samples,) for the decision function of two classes."
        )
    if array.ndim == 1 and array.dtype.kind != "f":
        return array.astype(np.float64)  # Its negative is needed, which unsigned numbers lack.
    return array


def _check_nan(block: Numbers, start: int) -> None:
    bad = np.isnan(block)
    if bad.any():
        row, *column = np.argwhere(bad)[0]
        where = f"row {start + row}" + "".join(f", column {j}" for j in column)
        raise ValueError(
            f"scores contains nan ({where}); NaN has no rank. Remove such examples first, or find "
            "out why the model gives no score."
        )


def _check_k(k: Any) -> int:
    """Return `k` as an int if it is a whole number."""
    if not isinstance(k, Integral) or isinstance(k, (bool, np.bool_)):
        raise TypeError(f"k is {k!r} of type {type(k).__name__}; it must be a whole number.")
    return int(k)


def _check_weights(sample_weight: Any, n_samples: int) -> NDArray[np.float64]:
    given = np.asarray(sample_weight)
    if given.dtype.kind not in "fiub":
        raise TypeError(f"sample_weight has dtype {given.dtype}; it must have real numbers.")
    if given.shape != (n_samples,):
        raise ValueError(
            f"sample_weight has shape {given.shape} but there are {n_samples} examples; it must "
            f"have shape ({n_samples},)."
        )
    weights: NDArray[np.float64] = given.astype(np.float64)
    bad = np.flatnonzero(~((weights >= 0) & (weights < np.inf)))
    if len(bad):
        raise ValueError(
            f"sample_weight contains {weights[bad[0]]} (entry {bad[0]}); weights must be finite "
            "and at least 0."
        )
    if not weights.any():
        raise ValueError("sample_weight is 0 for all examples; at least one must be positive.")
    weights /= weights.max()  # So that their sum cannot overflow.
    return weights


def _some(items: list[Any], most: int = 5) -> str:
    """Return the first few of `items` in words."""
    listed = ", ".join(repr(item) for item in items[:most])
    return listed if len(items) <= most else f"{listed} and {len(items) - most} more"
