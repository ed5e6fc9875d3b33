"""The search behind :class:`~topksvm.TopKLinearSVCCV`: paths over C on the folds, and the choice.

A fold is the whole of X with the weights of the rows held out set to zero, so the rows to train on
are not copied.
Paths on one fold that have work in common are walked together, in groups. Each group is one piece
of work for one thread. A path is the same in any group, so the result does not depend on the number
of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm._interrupts import stoppable
from topksvm._threads import map_tasks, one_blas_thread, thread_limit
from topksvm.data import Problem
from topksvm.estimators._progress import Progress
from topksvm.solvers import (
    Result,
    SDCAOptions,
    Status,
    Walk,
    choose_solver,
    have_common_work,
    loss_for,
    trace,
    trace_together,
)

Array = NDArray[Any]
Judge = Callable[[Result, str, int, Array], dict[int, float]]
"""From a solution, its loss and k, and the rows held out: the score for each k wanted."""

GROUPS_PER_THREAD = 4
"""So many, if there are several threads, that none is idle for long while others end their last."""


@dataclass(frozen=True)
class Point:
    """What was found on one fold for one `C`."""

    scores: dict[int, float]
    seconds: float
    relative_gap: float
    is_solved: bool


@dataclass
class Trail:
    """The path of one loss and training k on one fold, which can be made longer."""

    loss: str
    k: int
    smoothing: float
    problem: Problem
    held_out: Array
    points: dict[float, Point] = field(default_factory=dict)
    last: tuple[float, Result] | None = None

    def make_loss(self) -> Any:
        """Return the loss as the solvers take it."""
        return loss_for(self.problem, self.loss, self.k, self.smoothing)

    def start_for(self, C: float) -> tuple[float, Result] | None:
        """Return the last solution, with its own C, if that is smaller."""
        return self.last if self.last is not None and self.last[0] < C else None

    def add(self, C: float, result: Result, judge: Judge) -> None:
        """Keep what was found for `C`."""
        self.points[C] = Point(
            judge(result, self.loss, self.k, self.held_out),
            result.history[-1].seconds,
            result.certificate.relative_gap,
            result.status is Status.SOLVED,
        )
        if result.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        if self.last is None or self.last[0] < C:
            self.last = C, result


@dataclass(frozen=True)
class Choice:
    """The parameters with the best mean score for one k."""

    C: float
    k: int
    loss: str
    score: float


def extend_all(
    trails: list[Trail],
    Cs: Sequence[float],
    n_jobs: int,
    solver: str,
    options: SDCAOptions,
    judge: Judge,
    progress: Progress,
) -> None:
    """Solve for `Cs` on all trails, several groups of them at a time, each on one thread."""

    def extend(group: list[Trail]) -> None:
        with thread_limit(1):
            for trail, C, result in solutions(group, sorted(Cs), solver, options):
                trail.add(C, result, judge)
                progress.step()

    groups = divide(trails, solver, n_jobs)
    with one_blas_thread():
        stoppable(lambda: map_tasks(extend, groups, n_jobs))


def divide(trails: list[Trail], solver: str, n_jobs: int) -> list[list[Trail]]:
    """Return groups of trails: those of a fold with common work, if need be in parts, or one."""
    folds: dict[int, list[Trail]] = {}
    alone = []
    for trail in trails:
        if shares_work(trail, solver):
            folds.setdefault(id(trail.problem), []).append(trail)
        else:
            alone.append([trail])
    wanted = GROUPS_PER_THREAD * n_jobs if n_jobs > 1 else 1
    groups = []
    for fold in folds.values():
        n_parts = min(-(-wanted // len(folds)), len(fold))
        groups += [fold[i::n_parts] for i in range(n_parts)]
    return groups + alone


def shares_work(trail: Trail, solver: str) -> bool:
    """Return whether others on the same fold can do a part of the work for this trail."""
    chosen = choose_solver(solver, trail.loss, trail.make_loss())
    return chosen == "sdca" and have_common_work(trail.problem)


def solutions(
    group: list[Trail], Cs: Sequence[float], solver: str, options: SDCAOptions
) -> Iterator[tuple[Trail, float, Result]]:
    """Yield a trail, a C and its solution, for all trails of a group and the growing `Cs`."""
    first = group[0]
    if shares_work(first, solver):  # Even if it is alone, as it may not be with other n_jobs.
        walks = [Walk(trail.make_loss(), Cs, trail.start_for(Cs[0])) for trail in group]
        for i, C, result in trace_together(first.problem, walks, options):
            yield group[i], C, result
        return
    grid, start = np.asarray(Cs, dtype=np.float64), first.start_for(Cs[0])
    for C, result in trace(
        first.problem, first.loss, grid, first.k, first.smoothing, solver, options, start
    ):
        yield first, C, result


def candidates(trails: list[Trail]) -> list[tuple[str, int]]:
    """Return the pairs of loss and training k, in the order of the search."""
    return list(dict.fromkeys((trail.loss, trail.k) for trail in trails))


def fold_scores(trails: list[Trail], loss: str, k: int, C: float, wanted: int) -> Array:
    """Return the scores of one set of parameters on the folds."""
    chosen = [trail for trail in trails if (trail.loss, trail.k) == (loss, k)]
    return np.array([trail.points[C].scores[wanted] for trail in chosen])


def choose(trails: list[Trail], Cs: Sequence[float], wanted: int) -> Choice:
    """Return the best parameters for `wanted`; of equal ones the smallest C, then the first."""
    best: Choice | None = None
    for C in sorted(Cs):
        for loss, k in candidates(trails):
            score = float(fold_scores(trails, loss, k, C, wanted).mean())
            if best is None or score > best.score:
                best = Choice(C, k, loss, score)
    assert best is not None
    return best


def beyond_the_edge(Cs: Sequence[float], chosen: set[float]) -> list[float]:
    """Return what the grid lacks if the best C lies at its edge: one value more on that side."""
    grid = sorted(Cs)
    if len(grid) < 2:
        return []
    more = []
    if grid[0] in chosen:
        more.append(grid[0] * grid[0] / grid[1])
    if grid[-1] in chosen:
        more.append(grid[-1] * grid[-1] / grid[-2])
    # Short numbers: 10, not 10.000000000000002.
    return [float(f"{C:.12g}") for C in more if 0.0 < C < np.inf]


def tabulate(trails: list[Trail], Cs: Sequence[float], ks: Sequence[int]) -> dict[str, Any]:
    """Return the results as a dict of columns, as scikit-learn's searches do."""
    rows = [(loss, k, C) for loss, k in candidates(trails) for C in sorted(Cs)]
    table: dict[str, Any] = {
        "param_loss": np.array([loss for loss, _, _ in rows], dtype=object),
        "param_k": np.array([k for _, k, _ in rows]),
        "param_C": np.array([C for _, _, C in rows]),
        "params": [{"loss": loss, "k": k, "C": C} for loss, k, C in rows],
    }
    points = [
        [trail.points[C] for trail in trails if (trail.loss, trail.k) == (loss, k)]
        for loss, k, C in rows
    ]
    table["mean_fit_time"] = np.array([np.mean([p.seconds for p in row]) for row in points])
    table["std_fit_time"] = np.array([np.std([p.seconds for p in row]) for row in points])
    table["max_relative_gap"] = np.array([max(p.relative_gap for p in row) for row in points])
    for wanted in ks:
        scores = np.array([[p.scores[wanted] for p in row] for row in points])
        for fold in range(scores.shape[1]):
            table[f"split{fold}_test_top{wanted}"] = scores[:, fold]
        mean = scores.mean(axis=1)
        table[f"mean_test_top{wanted}"] = mean
        table[f"std_test_top{wanted}"] = scores.std(axis=1)
        table[f"rank_test_top{wanted}"] = 1 + (mean[None, :] > mean[:, None]).sum(axis=1)
    return table
