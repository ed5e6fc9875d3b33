"""What the explorer of ambiguity shows: classes that are taken for each other, and guesses."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm.datasets import Dataset
from topksvm.report._sprites import COLUMNS, sprite_sheet

Array = NDArray[Any]

GUESSES = 5
MAX_ROWS = 600
MAX_PAIRS = 24


def explore(data: Dataset, guesses: dict[str, dict[str, Array]], reference: str) -> dict[str, Any]:
    """Return the content of the explorer; pairs are those of the model `reference`."""
    m = len(data.class_names)
    rows = choose_rows(data.y_test, m)
    content = {
        "classes": [str(name) for name in data.class_names],
        "pairs": confusable_pairs(data.y_test, guesses[reference], m),
        "reference": reference,
        "truth": data.y_test[rows].tolist(),
        "models": {
            name: {
                "classes": found["classes"][rows, :GUESSES].tolist(),
                "scores": [list(map(_short, row)) for row in found["scores"][rows, :GUESSES]],
                "ranks": found["ranks"][rows].tolist(),
            }
            for name, found in guesses.items()
        },
    }
    return content | pictures(data, rows)


def _short(score: float) -> float:
    """Return four significant digits: scores may be of any size, and the page should be small."""
    return float(f"{score:.4g}")


def choose_rows(labels: Array, m: int, most: int = MAX_ROWS) -> Array:
    """Return up to `most` rows in their order, as many of each class as there is room for."""
    turn = np.zeros(len(labels), np.int64)  # The how-manieth row of its class it is.
    for c in range(m):
        own = np.flatnonzero(labels == c)
        turn[own] = np.arange(own.size)
    return np.sort(np.argsort(turn, kind="stable")[:most])


def confusable_pairs(labels: Array, found: dict[str, Array], m: int) -> list[list[float]]:
    """Return ``[a, b, share]``: how often a or b is the truth and the other is preferred to it.

    The share is of all test rows of the two classes; what counts is a place before the truth and
    among the first five guesses.
    """
    counts = np.zeros((m, m))
    for place in range(min(GUESSES, found["classes"].shape[1])):
        guess = found["classes"][:, place]
        preferred = (place + 1 < found["ranks"]) & (guess != labels)
        np.add.at(counts, (labels[preferred], guess[preferred]), 1)
    sizes = np.bincount(labels, minlength=m)
    shares = (counts + counts.T) / np.maximum(1, sizes[:, None] + sizes[None, :])
    first, second = np.triu_indices(m, 1)
    order = np.argsort(-shares[first, second], kind="stable")[:MAX_PAIRS]
    return [
        [int(first[i]), int(second[i]), round(float(shares[first[i], second[i]]), 3)]
        for i in order
        if shares[first[i], second[i]] > 0
    ]


def pictures(data: Dataset, rows: Array) -> dict[str, Any]:
    """Return one picture per class and one per row, if the data has pictures."""
    if data.images_train is None or data.images_test is None:
        return {"sprites": None}
    _, examples = np.unique(data.y_train, return_index=True)
    images = np.concatenate([data.images_train[examples], data.images_test[rows]])
    return {
        "sprites": {
            "uri": sprite_sheet(images),
            "columns": COLUMNS,
            "height": int(images.shape[1]),
            "width": int(images.shape[2]),
        }
    }
