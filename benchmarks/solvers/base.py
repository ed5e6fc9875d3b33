"""What a solver is to the benchmarks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from benchmarks.objectives import Objective


class MissingError(Exception):
    """A solver cannot take part, mostly as its package is not installed; the message says why."""


@dataclass(frozen=True)
class Fit:
    """Weights of shape (m, d), and a proven lower bound on the optimum if the solver has one."""

    weights: NDArray[np.floating[Any]]
    dual: float | None = None


class Solver(ABC):
    """A method with its settings from loose to exact.

    A solver is made for one problem. `prepare` puts the rows into the form that the method reads
    (not timed), `fit` is timed, and `weights_of` takes the weights from the model (not timed).
    """

    name: ClassVar[str]
    """As in the tables."""
    package: ClassVar[str]
    """What to install from PyPI."""
    module: ClassVar[str]
    """What to import."""
    cheap: ClassVar[Any]
    """The setting that is good enough to choose C by."""
    losses: ClassVar[tuple[str, ...]] = ()
    """Names of the objectives that it minimises; empty for a race to an accuracy only."""
    settings: ClassVar[tuple[Any, ...]]
    """Settings of the stopping rule, each a fit of its own."""
    usual: ClassVar[Any]
    """The one of them that users would take, near the solver's default."""
    is_ours: ClassVar[bool] = False
    is_for_large: ClassVar[bool] = True
    """Whether to try it on data of a hundred thousand rows."""
    uses_threads: ClassVar[bool] = False
    """Whether more threads make it faster."""

    def __init__(self, objective: Objective, C: float, threads: int) -> None:
        self.objective = objective
        self.C = C
        self.threads = threads

    @classmethod
    def check(cls) -> None:
        """Raise :class:`MissingError` with the reason if the package cannot be used."""
        try:
            import_module(cls.module)
        except Exception as error:  # A broken binary raises whatever it likes.
            raise MissingError(
                f"{cls.package} is not installed, or does not load: "
                f"{type(error).__name__}: {error}. Try: pip install {cls.package}"
            ) from error

    @classmethod
    def is_installed(cls) -> bool:
        """Whether the package is there, without loading it."""
        return find_spec(cls.module.split(".")[0]) is not None

    def prepare(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Return rows and labels as the method wants them; nothing is gained by being quick."""
        return X, y

    @abstractmethod
    def fit(self, X: Any, y: Any, setting: Any) -> Any:
        """Train from nothing with one of the settings; return the model."""

    def guess(self, model: Any, X: Any, k: int) -> Any:
        """Return the k best classes of each row, best first; as a user of the method has to."""
        scores = model.decision_function(X)
        best = np.argpartition(scores, -k, axis=1)[:, -k:]
        order = np.argsort(-np.take_along_axis(scores, best, axis=1), axis=1)
        return model.classes_[np.take_along_axis(best, order, axis=1)]

    def weights_of(self, model: Any) -> Fit:
        """Return the weights of a model."""
        return Fit(model.coef_)
