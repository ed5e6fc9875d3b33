"""Labels: numbers stay numbers, text stays text, and a model's labels are found again."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm.cli._data._request import Array
from topksvm.cli._errors import UserError

UNSEEN = -1
"""The position of a label that the model does not know."""

_WHOLE = re.compile(r"-?(0|[1-9][0-9]*)(\.0*)?")


def labels_to_train_on(labels: Array, source: Any) -> Array:
    """Return whole numbers if all labels are such, text otherwise."""
    if labels.dtype.kind in "iub":
        return labels
    if labels.dtype.kind == "f":
        return _whole_numbers(labels, source)
    texts = [str(label) for label in labels]
    # 007 is a code, not a number: it would not be found again as 7.
    if all(_WHOLE.fullmatch(text) for text in texts):
        return np.array([int(text.partition(".")[0]) for text in texts])
    numbers = [_number(text) for text in texts]
    if not any(number is None for number in numbers) and not any(t.startswith("0") for t in texts):
        return _whole_numbers(np.array(numbers, dtype=np.float64), source)
    return np.array(texts, dtype=object)


def match_labels(labels: Array, classes: Array) -> tuple[NDArray[np.intp], list[str]]:
    """Return the positions of `labels` in `classes`, and the labels that are not there.

    Text and numbers are compared as they are written, so the labels ``"3"`` of a file are the
    classes ``3`` of a model, and the other way round.
    """
    is_text = classes.dtype.kind not in "iufb"
    position = {_written(label, is_text): i for i, label in enumerate(classes.tolist())}
    written = [_written(label, is_text) for label in labels.tolist()]
    found = np.array([position.get(text, UNSEEN) for text in written], dtype=np.intp)
    unseen = dict.fromkeys(text for text in written if text not in position)
    return found, list(unseen)


def _written(label: Any, is_text: bool) -> str:
    if isinstance(label, str) and not is_text:
        number = _number(label)
        label = label if number is None else number
    if isinstance(label, float) and label.is_integer():
        label = int(label)
    return str(label)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _whole_numbers(values: Array, source: Any) -> Array:
    bad = np.flatnonzero(~np.isfinite(values) | (values != np.floor(values)))
    if len(bad):
        value = float(values[bad[0]])
        what = "is no whole number" if math.isfinite(value) else "is no label"
        raise UserError(
            f"{source}, row {bad[0]} (counted from 0): the label {value:g} {what}. Labels must be "
            "text or whole numbers; choose another column or array, or write classes."
        )
    return values.astype(np.int64)
