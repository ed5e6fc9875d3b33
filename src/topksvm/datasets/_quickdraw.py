"""Quick, Draw!: 345 classes of sketches, shipped with the package."""

from __future__ import annotations

from importlib.resources import files
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from topksvm.datasets._dataset import Dataset
from topksvm.datasets._hog import describe_gradients, to_unit_norm
from topksvm.datasets._packing import LEVELS, unpack_images

__all__ = ["load_quickdraw"]

SIDE = 28
PER_CLASS = {"train": 70, "val": 10, "test": 20}
FEATURES = ("pixels", "hog")

DESCRIPTION = """\
Quick, Draw! sketches: 345 classes x 100 drawings, 28 x 28 pixels, here in 4 gray levels.
Very ambiguous: a dozen strokes in twenty seconds, one label each.
Source: "The Quick, Draw! Dataset" by Google, https://github.com/googlecreativelab/quickdraw-dataset,
made available under the Creative Commons Attribution 4.0 International licence (CC BY 4.0,
https://creativecommons.org/licenses/by/4.0/). Changed: a choice of drawings, rounded to 4 levels.
"""


@overload
def load_quickdraw(*, features: str = ..., return_X_y: Literal[False] = ...) -> Dataset: ...
@overload
def load_quickdraw(
    *, features: str = ..., return_X_y: Literal[True]
) -> tuple[NDArray[np.float32], NDArray[np.int64]]: ...
def load_quickdraw(*, features: str = "pixels", return_X_y: bool = False) -> Any:
    """Load 34,500 sketches of 345 classes from the game Quick, Draw!.

    They come with the package: nothing is downloaded. Each class has 100 drawings, of which 70 are
    for training, 10 for validation and 20 for testing. Rows go round the classes in turn: row r has
    class ``r % 345``, so that the first ``345 * j`` rows of a split are a smaller balanced set.

    Parameters
    ----------
    features : {"pixels", "hog"}
        ``"pixels"``: 784 gray values, divided by their Euclidean norm. ``"hog"``: 1152 directions
        of edges (8 orientations, cells of 4 x 4 pixels, normalised blocks of 2 x 2 cells;
        Dalal and Triggs, CVPR 2005), of unit norm too; a linear classifier does twice as well.
    return_X_y : bool
        Return all rows as ``X, y`` instead: training, validation, test, in this order.

    Returns
    -------
    Dataset
        Features in float32, pictures and the names of the classes, in fixed splits.

    Notes
    -----
    The Quick, Draw! Dataset is by Google, licensed CC BY 4.0,
    https://github.com/googlecreativelab/quickdraw-dataset. This is a choice of it, rounded to four
    gray levels. Whoever shows the drawings has to say so; `Dataset.description` does.

    Examples
    --------
    >>> from topksvm.datasets import load_quickdraw
    >>> data = load_quickdraw()
    >>> data
    Dataset('quickdraw-pixels': 345 classes, 784 features, 24150 train, 3450 val, 6900 test)
    >>> data.class_names[data.y_test[4]], data.images("test")[4].shape
    ('airplane', (28, 28))
    """
    if features not in FEATURES:
        raise ValueError(
            f"features={features!r} is not known. Choose one of {', '.join(FEATURES)}."
        )
    class_names = tuple(_data("quickdraw_classes.txt").decode().splitlines())
    levels = _levels(len(class_names))
    X = _pixels(levels) if features == "pixels" else describe_gradients(levels, LEVELS)
    y = np.arange(len(X), dtype=np.int64) % len(class_names)
    if return_X_y:
        return X, y
    images = levels * np.uint8(255 // (LEVELS - 1))
    parts: dict[str, Any] = {}
    stop = 0
    for split, per_class in PER_CLASS.items():
        rows = slice(stop, stop := stop + per_class * len(class_names))
        parts |= {f"X_{split}": X[rows], f"y_{split}": y[rows], f"images_{split}": images[rows]}
    return Dataset(
        f"quickdraw-{features}", class_names=class_names, description=DESCRIPTION, **parts
    )


def _levels(n_classes: int) -> NDArray[np.uint8]:
    """Return the pictures; in the file they go class by class."""
    levels = unpack_images(_data("quickdraw.xz"), SIDE)
    by_class = levels.reshape(n_classes, -1, SIDE, SIDE)
    return np.ascontiguousarray(by_class.swapaxes(0, 1)).reshape(-1, SIDE, SIDE)


def _pixels(levels: NDArray[np.uint8]) -> NDArray[np.float32]:
    return to_unit_norm(levels.reshape(len(levels), -1).astype(np.float32))


def _data(name: str) -> bytes:
    return files("topksvm.datasets").joinpath("data", name).read_bytes()
