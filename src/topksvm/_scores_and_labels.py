"""What the metrics are given: scores and labels, checked and matched."""

from __future__ import annotations

from collections import Counter
from numbers import Integral, Number
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Numbers = NDArray[Any]
Indices = NDArray[np.intp]

UNKNOWN = -1
"""The column of a label that has none."""


def match(y_true: ArrayLike, scores: Numbers, labels: ArrayLike | None) -> tuple[Indices, int]:
    """Return the columns of `scores` that belong to `y_true`, and the number of classes."""
    y = check_y(y_true, scores)
    known = sorted_labels(y) if labels is None else check_labels("labels", labels)
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
    columns = find_columns(y, known)
    if columns.min() == UNKNOWN:
        unknown = list(dict.fromkeys(y[i] for i in np.flatnonzero(columns == UNKNOWN)))
        raise ValueError(
            f"y_true contains {some(unknown)}, which labels does not. It has {some(known)}; add "
            "what is missing, with its column of scores, or leave these examples out."
        )
    return columns, len(known)


def check_known_kinds(name: str, y: list[Any], classes: list[Any]) -> None:
    """Complain about labels of a type that no class has, such as tuples where those are numbers.

    A label that was not there in training is an error of the model. One that could not have been
    there is an error of the caller.
    """
    known = {_kind(label) for label in classes}
    for i, label in enumerate(y):
        if _kind(label) not in known:
            raise ValueError(
                f"{name} contains {label!r} of type {type(label).__name__} (entry {i}), but the "
                f"classes of the model are {some(classes)}; labels must be of the same type."
            )


def _kind(label: Any) -> str:
    if isinstance(label, Number):
        return "number"
    return "string" if isinstance(label, str) else type(label).__name__


def find_columns(y: list[Any], labels: list[Any]) -> Indices:
    """Return the positions of `y` in `labels`, `UNKNOWN` for those that are not there."""
    position = {label: i for i, label in enumerate(labels)}
    return np.array([position.get(label, UNKNOWN) for label in y], dtype=np.intp)


def sorted_labels(y: list[Any]) -> list[Any]:
    try:
        return sorted(set(y))
    except TypeError as error:
        raise TypeError(
            f"The labels of y_true cannot be sorted ({error}). Pass labels=, the labels of the "
            "columns of scores in order, for example labels=estimator.classes_."
        ) from error


def check_y(y: ArrayLike, scores: Numbers) -> list[Any]:
    """Return `y` as a list if there is one label for each row of `scores`."""
    items, _ = check_items("y_true", y)
    if len(items) != len(scores):
        raise ValueError(
            f"y_true has {len(items)} labels but scores has {len(scores)} rows; one row per label "
            "is required."
        )
    if not items:
        raise ValueError("y_true is empty; at least one example is required.")
    return items


def check_labels(name: str, labels: ArrayLike) -> list[Any]:
    """Return `labels` as a list if no two are equal."""
    items, different = check_items(name, labels)
    if len(different) < len(items):
        repeated = [item for item, times in Counter(items).items() if times > 1]
        raise ValueError(
            f"{name} contains {some(repeated)} more than once; each column of scores needs a "
            "label of its own."
        )
    return items


def check_items(name: str, values: Any) -> tuple[list[Any], set[Any]]:
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


def check_scores(scores: Any) -> Numbers:
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


def check_nan(block: Numbers, start: int) -> None:
    bad = np.isnan(block)
    if bad.any():
        row, *column = np.argwhere(bad)[0]
        where = f"row {start + row}" + "".join(f", column {j}" for j in column)
        raise ValueError(
            f"scores contains nan ({where}); NaN has no rank. Remove such examples first, or find "
            "out why the model gives no score."
        )


def check_k(k: Any) -> int:
    """Return `k` as an int if it is a whole number."""
    if not isinstance(k, Integral) or isinstance(k, (bool, np.bool_)):
        raise TypeError(f"k is {k!r} of type {type(k).__name__}; it must be a whole number.")
    return int(k)


def check_weights(sample_weight: Any, n_samples: int) -> NDArray[np.float64]:
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
    return weights


def some(items: list[Any], most: int = 5) -> str:
    """Return the first few of `items` in words."""
    listed = ", ".join(repr(item) for item in items[:most])
    return listed if len(items) <= most else f"{listed} and {len(items) - most} more"
