"""The search behind :class:`~topksvm.TopKLinearSVCCV`: paths over C on the folds, and the choice.

A fold is the whole of X with the weights of the rows held out set to zero, so the rows to train on
are not copied.
Paths on one fold that have work in common are solved side by side, in groups. Each group is one
piece of work for one thread. A path is the same in any group, so the result does not depend on the
number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm._threads import map_tasks, thread_limit
from topksvm.data import Problem
from topksvm.estimators._progress import Progress
from topksvm.solvers import (
    PathTask,
    Result,
    Setup,
    Status,
    choose_solver,
    have_common_work,
    run_fit,
    solve_path,
    solve_paths,
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
class FoldPath:
    """The path of one loss and training k on one fold, which can be made longer."""

    loss: str
    k: int
    parts: Any
    problem: Problem
    held_out: Array
    points: dict[float, Point] = field(default_factory=dict)
    last: tuple[float, Result] | None = None

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


@dataclass(frozen=True)
class Search:
    """How to extend paths.

    Attributes
    ----------
    setup : Setup
        How to solve.
    n_jobs : int
        Groups of paths at a time, each on one thread.
    judge : callable
        See :data:`Judge`.
    progress : Progress
        What counts the solutions.
    """

    setup: Setup
    n_jobs: int
    judge: Judge
    progress: Progress

    def extend(self, paths: list[FoldPath], Cs: Sequence[float]) -> None:
        """Solve for `Cs` on all paths, several groups of them at a time.

        An error in one group ends the others at their next solution.
        """
        has_failed = Event()

        def extend(group: list[FoldPath]) -> None:
            if has_failed.is_set():
                return
            try:
                with thread_limit(1):
                    for path, C, result in self._solutions(group, sorted(Cs)):
                        path.add(C, result, self.judge)
                        self.progress.step()
                        if has_failed.is_set():
                            return
            except BaseException:
                has_failed.set()
                raise

        groups = self._divide(paths)
        run_fit(lambda: map_tasks(extend, groups, self.n_jobs), self.n_jobs)

    def _divide(self, paths: list[FoldPath]) -> list[list[FoldPath]]:
        """Return groups of paths: those of a fold with common work, if need be in parts, or one."""
        folds: dict[int, list[FoldPath]] = {}
        alone = []
        for path in paths:
            if self._shares_work(path):
                folds.setdefault(id(path.problem), []).append(path)
            else:
                alone.append([path])
        wanted = GROUPS_PER_THREAD * self.n_jobs if self.n_jobs > 1 else 1
        groups = []
        for fold in folds.values():
            n_parts = min(-(-wanted // len(folds)), len(fold))
            groups += [fold[i::n_parts] for i in range(n_parts)]
        return groups + alone

    def _shares_work(self, path: FoldPath) -> bool:
        """Return whether others on the same fold can do a part of the work for this path."""
        chosen = choose_solver(self.setup.solver, path.parts)
        return chosen == "sdca" and have_common_work(path.problem)

    def _solutions(
        self, group: list[FoldPath], Cs: Sequence[float]
    ) -> Iterator[tuple[FoldPath, float, Result]]:
        """Yield a path, a C and its solution, for all paths of a group and the growing `Cs`."""
        first = group[0]
        if self._shares_work(first):  # Even if alone, as it may not be with other n_jobs.
            tasks = [PathTask(path.parts, Cs, path.start_for(Cs[0])) for path in group]
            for i, C, result in solve_paths(first.problem, tasks, self.setup):
                yield group[i], C, result
            return
        start = first.start_for(Cs[0])
        for C, result in solve_path(first.problem, first.parts, Cs, self.setup, start):
            yield first, C, result


def candidates(paths: list[FoldPath]) -> list[tuple[str, int]]:
    """Return the pairs of loss and training k, in the order of the search."""
    return list(dict.fromkeys((path.loss, path.k) for path in paths))


def fold_scores(paths: list[FoldPath], loss: str, k: int, C: float, wanted: int) -> Array:
    """Return the scores of one set of parameters on the folds."""
    chosen = [path for path in paths if (path.loss, path.k) == (loss, k)]
    return np.array([path.points[C].scores[wanted] for path in chosen])


def choose(paths: list[FoldPath], Cs: Sequence[float], wanted: int) -> Choice:
    """Return the best parameters for `wanted`; of equal ones the smallest C, then the first."""
    best: Choice | None = None
    for C in sorted(Cs):
        for loss, k in candidates(paths):
            score = float(fold_scores(paths, loss, k, C, wanted).mean())
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


def tabulate(paths: list[FoldPath], Cs: Sequence[float], ks: Sequence[int]) -> dict[str, Any]:
    """Return the results as a dict of columns, as scikit-learn's searches do."""
    rows = [(loss, k, C) for loss, k in candidates(paths) for C in sorted(Cs)]
    table: dict[str, Any] = {
        "param_loss": np.array([loss for loss, _, _ in rows], dtype=object),
        "param_k": np.array([k for _, k, _ in rows]),
        "param_C": np.array([C for _, _, C in rows]),
        "params": [{"loss": loss, "k": k, "C": C} for loss, k, C in rows],
    }
    points = [
        [path.points[C] for path in paths if (path.loss, path.k) == (loss, k)]
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
