"""The parts of the data that cross-validation holds out in turn."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm.cli._errors import UserError
from topksvm.cli._output import some, warn


def stratified_folds(folds: int, y: NDArray[Any], seed: int) -> list[tuple[Any, Any]]:
    """Return stratified folds of shuffled rows, as files are often sorted by their labels."""
    from sklearn.model_selection import StratifiedKFold

    classes, sizes = np.unique(y, return_counts=True)
    if sizes.max() < folds:
        raise UserError(
            f"--folds {folds}, but no class has more than {sizes.max()} rows. Choose fewer folds, "
            "at least 2, or give more rows."
        )
    small = classes[sizes < folds].tolist()
    if small:
        warn(f"classes with fewer rows than there are folds, {folds}: {some(small)}")
    splitter = StratifiedKFold(folds, shuffle=True, random_state=seed)
    return _split_quietly(splitter, y)


def _split_quietly(splitter: Any, y: NDArray[Any]) -> list[tuple[Any, Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # Small classes were named already.
        return list(splitter.split(np.zeros(len(y)), y))
