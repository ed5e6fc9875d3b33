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
"""The C of every method in the race to an accuracy; written by ``python -m benchmarks choose``."""

RIVALS = (
    ("topksvm hinge", "hinge-5"),
    ("topksvm softmax", "softmax"),
    ("LogisticRegression lbfgs", "softmax"),
    ("Cyanure", "softmax"),
    ("LinearSVC one-vs-rest", "own"),
    ("SGDClassifier hinge", "own"),
    ("SGDClassifier log_loss", "own"),
)
"""Who races to an accuracy, with which loss; ``own`` is one that nobody else minimises."""

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
    """One measurement.

    Parameters
    ----------
    kind : {"objective", "accuracy", "choice", "latency", "products"}
        A race to an objective; one to an accuracy; the choice of C for it; the time of predictions;
        the time of the two matrix products of a pass.
    data, solver, objective : str
        Names.
    C : float
        The strength of the loss.
    threads : int
        For all libraries alike.
    budget : float
        Seconds of fitting, after which it is stopped.
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
        """For people."""
        return f"{self.kind}: {self.data}, {self.objective}, C = {self.C:g}, {self.solver}"


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
    for name, objective in RIVALS:
        if item.grid and name in solvers and name in chosen:
            yield Job("accuracy", item.name, name, objective, chosen[name], count, budget)


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
    """Yield the jobs that choose the C of each objective; the C of such a job has no meaning.

    Solvers of the same objective have the same optimum, so that the first of them chooses for all.
    """
    for item in data:
        chosen = set()
        for name, objective in RIVALS:
            if item.grid and name in solvers and objective not in chosen:
                yield Job("choice", item.name, name, objective, 0.0, threads, budget)
                if objective != "own":
                    chosen.add(objective)


def followers(job: Job) -> list[str]:
    """Return the solvers that take over the C that a job has chosen, its own included."""
    if job.objective == "own":
        return [job.solver]
    return [name for name, objective in RIVALS if objective == job.objective]


def read_chosen() -> dict[str, Any]:
    """Return the C by data set and solver."""
    return json.loads(CHOSEN.read_text()) if CHOSEN.is_file() else {}
