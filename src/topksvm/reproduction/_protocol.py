"""The protocol of the paper for one row: choose on validation data, train, test.

The parameter with the best top-1 accuracy on the validation rows is taken, the smaller of equal
ones; the paper does not say which accuracy it chose by, and this is the one that gives its numbers.
Where the best value is the first or last of the grid, the grid is made longer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from topksvm._clock import Clock
from topksvm.datasets import Dataset
from topksvm.estimators import best_columns
from topksvm.metrics import topk_ranks
from topksvm.reproduction._candidates import (
    ENOUGH_ROWS,
    FINAL_TOL,
    QUICK_TOL,
    REPEATS,
    TOL,
    Candidate,
    Method,
    Training,
)
from topksvm.reproduction._store import Row

Array = NDArray[Any]

BLOCK = 1 << 23
"""Scores that are held at a time."""

KEPT = 10
"""Guesses that are kept for every test row."""

MAX_EXTENSIONS = 3


@dataclass(frozen=True)
class Guesses:
    """The ranks of the true classes, and the best classes with their scores."""

    ranks: Array
    classes: Array
    scores: Array

    def accuracy(self, k: int) -> float:
        """Return the top-k accuracy in per cent."""
        return 100.0 * float(np.mean(self.ranks <= k))


def run_row(
    method: Method,
    data: Dataset,
    values: tuple[float, ...],
    *,
    quick: bool = False,
    seed: int = 0,
    split: int = 0,
) -> tuple[Row, Guesses]:
    """Return the row of one method on one split of the data, with the best of `values`."""
    clock = Clock()
    seeds = min(REPEATS, max(1, ENOUGH_ROWS // len(data.y_train)))
    exactness = (QUICK_TOL, 1) if quick else (TOL, seeds)
    whole = Training(data.X_train, data.y_train, data.n_classes, seed, *exactness)
    best, validation = _best(method, whole, data, values, extend=method.extends and not quick)
    guesses = guess(best.weights, data.X_test, data.y_test)
    row = Row(
        dataset=data.name,
        split=split,
        method=method.name,
        parameter=method.parameter,
        value=best.value,
        accuracy=_accuracies(best, guesses, data),
        seconds=clock.elapsed,
        relative_gap=best.relative_gap,
        validation=validation,
        history=best.history,
        note="; ".join(filter(None, (best.note, _edge_note(method, best, values, quick=quick)))),
    )
    return row, guesses


def _accuracies(best: Candidate, guesses: Guesses, data: Dataset) -> dict[int, float]:
    """Return the test accuracies for every k, the mean over all seeds."""
    all_guesses = [guesses, *(guess(W, data.X_test, data.y_test) for W in best.replicas)]
    return {
        k: float(np.mean([each.accuracy(k) for each in all_guesses]))
        for k in range(1, min(20, data.n_classes) + 1)
    }


def _edge_note(method: Method, best: Candidate, values: tuple[float, ...], *, quick: bool) -> str:
    """Return a warning if a quick run stopped at an end of its grid: better may lie beyond."""
    if not (quick and method.extends and len(values) > 1):
        return ""
    if best.value not in (min(values), max(values)):
        return ""
    return (
        f"the best {method.parameter} ends the small grid of a quick run; a full run looks further"
    )


def _best(
    method: Method, whole: Training, data: Dataset, values: tuple[float, ...], *, extend: bool
) -> tuple[Candidate, dict[float, float]]:
    """Return the model to be tested, and the validation accuracy of each value."""
    final_tol = TOL if whole.tol > TOL else FINAL_TOL
    if len(values) == 1 and method.finish is not None:  # There is nothing to choose.
        return method.finish(whole, values[0], final_tol), {}
    if data.X_val is None or data.y_val is None:
        training, held_out = _hold_out(whole)
    else:
        training, held_out = whole, (data.X_val, data.y_val)
    best, validation = _choose(method, training, held_out, values, extend=extend)
    if method.finish is not None:
        best = method.finish(whole, best.value, final_tol)
    elif training is not whole:
        best = next(iter(method.candidates(whole, [best.value])))
    return best, validation


def _choose(
    method: Method,
    training: Training,
    held_out: tuple[Any, Array],
    values: tuple[float, ...],
    *,
    extend: bool,
) -> tuple[Candidate, dict[float, float]]:
    """Return the best candidate and the validation accuracy of each value."""
    scores: dict[float, float] = {}
    best: Candidate | None = None
    grid, more = list(values), list(values)
    for _ in range(1 + MAX_EXTENSIONS * extend):
        for candidate in method.candidates(training, more):
            models = (candidate.weights, *candidate.replicas)
            accuracy = float(np.mean([guess(W, *held_out).accuracy(1) for W in models]))
            scores[candidate.value] = accuracy
            if best is None or (-accuracy, candidate.value) < (-scores[best.value], best.value):
                best = candidate
        assert best is not None
        more = _beyond(sorted(grid), best.value)
        if not more:
            break
        grid += more
    assert best is not None
    return best, dict(sorted(scores.items()))


def _beyond(values: list[float], best: float) -> list[float]:
    """Return the next value beyond an edge of the grid at which the best one lies."""
    if len(values) < 2:
        return []
    if best == values[0]:
        return [values[0] ** 2 / values[1]]
    return [values[-1] ** 2 / values[-2]] if best == values[-1] else []


def _hold_out(whole: Training) -> tuple[Training, tuple[Any, Array]]:
    """Return four fifths of the rows of every class for training, and the rest."""
    try:
        train, rest = train_test_split(
            np.arange(len(whole.labels)),
            test_size=0.2,
            stratify=whole.labels,
            random_state=whole.seed,
        )
    except ValueError as error:
        raise ValueError(
            f"{len(whole.labels)} training rows of {whole.m} classes are too few to hold out a "
            "fifth for the choice of parameters; it takes two of each class, five on average. Add "
            "rows, or validation rows."
        ) from error
    train.sort(), rest.sort()
    part = replace(whole, X=whole.X[train], labels=whole.labels[train])
    return part, (whole.X[rest], whole.labels[rest])


def guess(weights: Array, X: Any, labels: Array) -> Guesses:
    """Return what the linear model guesses, a block of rows at a time."""
    m = weights.shape[0]
    step = max(1, BLOCK // m)
    parts = []
    for begin in range(0, len(labels), step):
        rows = slice(begin, begin + step)
        scores = np.asarray(X[rows] @ weights.T)
        best = best_columns(scores, min(KEPT, m))
        ranks = topk_ranks(labels[rows], scores, labels=np.arange(m))
        parts.append((ranks, best, np.take_along_axis(scores, best, axis=1)))
    ranks, classes, values = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return Guesses(ranks, classes, values)
