"""Starting a fit from the one before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm.solvers import Result

Array = NDArray[Any]


@dataclass(frozen=True)
class FitKey:
    """What must not change for the dual variables of one fit to be a start for the next.

    The duals are feasible for any X and any order of magnitude of the weights, once those are
    taken care of; but they belong to the examples and classes one by one.
    """

    loss: tuple[Any, ...]
    shape: tuple[int, int]
    classes: Array
    labels: Array

    def is_like(self, other: FitKey) -> bool:
        """Whether the duals of the one mean something to the other."""
        return (
            self.loss == other.loss
            and self.shape == other.shape
            and np.array_equal(self.classes, other.classes)
            and np.array_equal(self.labels, other.labels)
        )


@dataclass(frozen=True)
class LastFit:
    """A finished fit, kept to start the next one from."""

    key: FitKey
    result: Result

    def start_for(self, key: FitKey, solver: str) -> Result | None:
        """Return a start for that fit by ``"sdca"`` or ``"lbfgs"``, None if there is none."""
        if not self.key.is_like(key) or (solver == "sdca" and self.result.duals is None):
            return None
        return self.result
