"""What a method of the tables is: candidates for values of a parameter.

Every method ends in a linear model, so a candidate is its weights ``(m, d)`` and the value of the
one parameter that is chosen on validation data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]

TOL = 1e-3
"""Relative duality gap of every point of a grid."""

QUICK_TOL = 1e-2
"""The same for baselines that are slow to converge, in a quick run."""

FINAL_TOL = 1e-5
"""Relative duality gap of the model that is tested: below it no test image changes its place."""

MAX_ITER = 1000

REPEATS = 10
"""Most seeds of a method whose results are a matter of chance; a quick run has one."""

ENOUGH_ROWS = 50_000
"""Training rows after which, all seeds together, no other is tried: more data leave less to chance.
"""

POWERS = tuple(10.0**e for e in range(-5, 4))
"""The grid of the paper."""


@dataclass(frozen=True)
class Training:
    """What to train on, and how exactly; labels are numbers ``0 ... m - 1``.

    Methods whose results are a matter of chance run with `repeats` seeds, the first being `seed`.
    """

    X: Any
    labels: Array
    m: int
    seed: int
    tol: float = TOL
    repeats: int = 1


@dataclass(frozen=True)
class Candidate:
    """A trained model; `relative_gap` is None for methods without a certificate.

    Accuracies are means over it and its `replicas`, the weights from other seeds.
    """

    value: float
    weights: Array
    relative_gap: float | None = None
    history: list[dict[str, float]] = field(default_factory=list)
    note: str = ""
    replicas: tuple[Array, ...] = ()


Candidates = Callable[[Training, Sequence[float]], Iterator[Candidate]]
Finish = Callable[[Training, float, float], Candidate]


@dataclass(frozen=True)
class Method:
    """A row of a table: models for values of `parameter`, and the grid to choose from.

    `candidates` trains a model for each value, and may leave out hopeless ones; `finish`, if there
    is one, trains the chosen one again, to a given gap.
    The grid `extends` where the best value lies at its edge; for rows twice as long, values count
    as if they were ``4 ** scaling`` times as large, and if the parameter weighs a `mean` over
    rows and classes, with twice as many of either as if they were half as large. Data with fewer
    than `least_classes` has no such row.
    """

    name: str
    candidates: Candidates
    grid: tuple[float, ...] = POWERS
    quick_grid: tuple[float, ...] = (1e-3, 1e-2, 1e-1)
    parameter: str = "C"
    extends: bool = True
    scaling: int = 1
    mean: bool = False
    finish: Finish | None = None
    least_classes: int = 2
