"""Starting a fit from the one before."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm.solvers import Result

Array = NDArray[Any]


@dataclass(frozen=True)
class Problem:
    """What must not change for the dual variables of one fit to be a start for the next.

    The duals are feasible for any X and any order of magnitude of the weights, once those are
    taken care of; but they belong to the examples and classes one by one.
    """

    loss: tuple[Any, ...]
    shape: tuple[int, int]
    classes: Array
    labels: Array

    def is_like(self, other: Problem) -> bool:
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

    problem: Problem
    weights: Array
    result: Result

    def start_for(self, problem: Problem, weights: Array) -> Result | None:
        """Return a start for `problem` with these weights of the examples, None if there is none.

        It is a copy: a solver works in place, and may yet fail.
        """
        if not self.problem.is_like(problem):
            return None
        duals = None
        if self.result.duals is not None:
            duals = copy.deepcopy(self.result.duals)
            shrink(duals, self.weights, weights)
        return replace(self.result, duals=duals)


def shrink(duals: Any, old: Array, new: Array) -> None:
    """Make the duals feasible, in place, where the weight of an example has shrunk.

    Those of example ``i`` lie in ``C_i`` times a convex set that contains 0, so they stay in it
    when ``C_i`` grows, and are scaled with it when it shrinks.
    """
    for i in np.flatnonzero(new < old):
        if new[i] == 0.0:
            duals.count[i] = 0
        part = slice(duals.start[i], duals.start[i] + duals.count[i])
        duals.values[part] *= new[i] / old[i]
