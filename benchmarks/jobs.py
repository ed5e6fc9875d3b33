"""What is measured: a job is one solver on one problem, in a process of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.datasets import DataSet
from benchmarks.objectives import OBJECTIVES
from benchmarks.solvers import SOLVERS, Solver

CHOSEN = Path(__file__).with_name("chosen.json")
"""Loss and C of every method in the race to an accuracy, by ``python -m benchmarks choose``."""

RIVALS: dict[str, tuple[str, ...]] = {
    "topksvm hinge": ("hinge-5", "hinge-1", "hinge-10", "hinge-20"),
    "topksvm softmax": ("softmax",),
    "LogisticRegression lbfgs": ("softmax",),
    "Cyanure": ("softmax",),
    "LinearSVC one-vs-rest": ("own",),
    "SGDClassifier hinge": ("own",),
    "SGDClassifier log_loss": ("own",),
}
"""Who races to an accuracy, with which losses to choose from; of equals, the first is taken.

``own`` is a loss that nobody else minimises.
"""

PREDICTORS = ("topksvm hinge", "LogisticRegression lbfgs", "Cyanure")
"""Whose predictions are timed; those of the other linear models of scikit-learn are the same."""

SCALING = ("quickdraw", "probe")
"""Data on which the first race is run again with more threads."""

BOUND_SHARE = 5.0
"""What ours may take for a bound on the optimum, in budgets of a peer."""

QUICK = ("digits", "banking77", "caltech")
"""Data of a quick run."""


@dataclass(frozen=True)
class Job:
    """One measurement, on so many `threads` for all libraries, stopped after `budget` seconds.

    The `kind` is a race to an ``"objective"`` or to an ``"accuracy"``, the ``"choice"`` of C for
    the latter, the ``"latency"`` of predictions, or the two matrix ``"products"`` of a pass.
    """

    kind: str
    data: str
    solver: str
    objective: str
    C: float
    threads: int
    budget: float

    @property
    def key(self) -> str:
        """What makes it another job: all but the budget."""
        return json.dumps({k: v for k, v in asdict(self).items() if k != "budget"})

    @property
    def title(self) -> str:
        """The job in words."""
        words = (self.data, self.objective, f"C = {self.C:g}" if self.C else "", self.solver)
        return f"{self.kind}: {', '.join(filter(None, words))}"


def plan(
    data: Sequence[DataSet],
    solvers: Sequence[str],
    threads: Sequence[int],
    *,
    quick: bool = False,
    budget: float = 30.0,
) -> Iterator[Job]:
    """Yield all jobs, ours before the peers on each problem."""
    for item in data:
        count = max(threads) if item.is_large else threads[0]
        yield Job("products", item.name, "", "", 0.0, count, budget)
        yield from _objective_jobs(item, solvers, count, budget, quick)
        if not quick:
            yield from _accuracy_jobs(item, solvers, count, 2 * budget)
        if item.name in SCALING and not quick:
            yield from _scaling_jobs(item, solvers, threads[1:], budget)
        for name in PREDICTORS:
            if name in solvers and not item.is_large and item.name not in QUICK:
                objective = SOLVERS[name].losses[0]
                yield Job("latency", item.name, name, objective, 1.0, count, budget)


def _objective_jobs(
    item: DataSet, solvers: Sequence[str], count: int, budget: float, quick: bool
) -> Iterator[Job]:
    for objective in ("hinge-1", "softmax") if quick or item.is_large else OBJECTIVES:
        for C in _strengths(item, objective, quick):
            for solver in _entrants(item, objective, solvers):
                yield _objective_job(item, solver, objective, C, count, budget)


def _strengths(item: DataSet, objective: str, quick: bool = False) -> tuple[float, ...]:
    """Return the C to race at: LIBLINEAR is another rival at every C, else one is enough."""
    if objective == "softmax":
        return (item.softmax_strength,)
    return item.strengths if objective == "hinge-1" and not quick else item.strengths[:1]


def _objective_job(
    item: DataSet, solver: type[Solver], objective: str, C: float, count: int, budget: float
) -> Job:
    # The most exact of our fits is for the bound that all are judged by: it is not raced.
    seconds = BOUND_SHARE * budget if solver.is_ours else budget
    return Job("objective", item.name, solver.name, objective, C, count, seconds)


def _entrants(item: DataSet, objective: str, solvers: Sequence[str]) -> list[type[Solver]]:
    return [
        SOLVERS[name]
        for name in solvers
        if objective in SOLVERS[name].losses and (SOLVERS[name].is_for_large or not item.is_large)
    ]


def _accuracy_jobs(
    item: DataSet, solvers: Sequence[str], count: int, budget: float
) -> Iterator[Job]:
    chosen = read_chosen().get(item.name, {})
    for name in RIVALS:
        if item.grid and name in solvers and name in chosen:
            objective, C = chosen[name]["objective"], chosen[name]["C"]
            yield Job("accuracy", item.name, name, objective, C, count, budget)


def _scaling_jobs(
    item: DataSet, solvers: Sequence[str], threads: Sequence[int], budget: float
) -> Iterator[Job]:
    for count in threads:
        yield Job("products", item.name, "", "", 0.0, count, budget)
        for objective in ("hinge-1", "softmax"):
            for solver in _entrants(item, objective, solvers):
                if solver.uses_threads:
                    C = _strengths(item, objective)[0]
                    yield _objective_job(item, solver, objective, C, count, budget)


def plan_choice(
    data: Sequence[DataSet], solvers: Sequence[str], threads: int, budget: float
) -> Iterator[Job]:
    """Yield the jobs that choose the C for each loss; the C of such a job has no meaning.

    Solvers of the same loss have the same optimum, so that the first of them chooses for all.
    """
    for item in data:
        seen = set()
        for name, objectives in RIVALS.items():
            for objective in objectives:
                if item.grid and name in solvers and objective not in seen:
                    yield Job("choice", item.name, name, objective, 0.0, threads, budget)
                    if objective != "own":
                        seen.add(objective)


Points = list[dict[str, Any]]


def choose_among(points: dict[tuple[str, str], Points], solver: str) -> dict[str, Any] | None:
    """Return the loss and the C with which a solver is most accurate; None if nothing is known.

    `points` are those of the jobs that choose, by solver and objective. Of equal C the middle one
    is the safest.
    """
    best: dict[str, Any] | None = None
    most = -1.0
    for objective in RIVALS[solver]:
        first = next((s for s, o in points if o == objective and objective != "own"), solver)
        for_loss = points.get((first, objective), [])
        highest = max((point["accuracy"] for point in for_loss), default=-1.0)
        if highest > most:
            equal = sorted(p["setting"] for p in for_loss if p["accuracy"] == highest)
            best = {"objective": objective, "C": equal[(len(equal) - 1) // 2]}
            most = highest
    return best


def read_chosen() -> dict[str, Any]:
    """Return loss and C by data set and solver."""
    return json.loads(CHOSEN.read_text()) if CHOSEN.is_file() else {}
