"""One job, inside a process of its own: the measurements, sent to the parent one by one."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.datasets import DATASETS, Splits, restore
from benchmarks.jobs import Job
from benchmarks.memory import with_memory
from benchmarks.objectives import Objective, objective_named, suboptimality, topk_accuracy
from benchmarks.solvers import SOLVERS, MissingError, Solver
from benchmarks.timing import fastest, time_products, timed

GOAL = 1e-3
"""The relative sub-optimality that is raced for."""

REPEATS = 5
SHORT = 0.3
"""Fits are repeated up to so many times or seconds, and the fastest counts: they are alike."""

K = 5
"""The guesses that the accuracy is for."""

Send = Callable[[str, dict[str, Any]], None]


def run(job: Job, file: Path, bound: float | None, connection: Any) -> None:
    """Do the job; send ``(event, facts)`` for each step, ``("done", ...)`` in the end."""

    def send(event: str, facts: dict[str, Any]) -> None:
        connection.send((event, facts))

    warnings.simplefilter("ignore")  # Fits that stop early are the point; errors still are errors.
    try:
        data = restore(file)
        if job.kind == "products":
            send("point", {"seconds": time_products(data.X_train, data.shape[2])})
        else:
            _run_solver(job, data, bound, send)
        send("done", {})
    except MissingError as error:
        send("skipped", {"reason": str(error)})
    except Exception as error:  # A peer may fail in any way; the others go on.
        send("failed", {"reason": f"{type(error).__name__}: {error}"})


def _run_solver(job: Job, data: Splits, bound: float | None, send: Send) -> None:
    kind = SOLVERS[job.solver]
    kind.check()
    objective = objective_named(job.objective)
    if objective.k >= data.shape[2]:
        raise MissingError(f"k = {objective.k} is too large for {data.shape[2]} classes")
    solver = kind(objective, job.C, job.threads)
    send("ready", {"compile_seconds": _warm_up(kind(objective, 1.0, job.threads), data)})
    if job.kind == "latency":
        send("start", {})
        send("point", measure_latency(solver, data))
    elif job.kind == "choice":
        _choose(job, kind, objective, data, send)
    else:
        _race(job, solver, data, bound, send)


def _warm_up(solver: Solver, data: Splits) -> float:
    """Fit a few rows, so that everything is compiled and loaded; return the seconds."""
    X, y = _few_rows(data, n_classes=30)
    return timed(lambda: solver.fit(*solver.prepare(X, y), solver.settings[0]))[0]


def _few_rows(data: Splits, n_classes: int, per_class: int = 3) -> tuple[Any, Any]:
    """Return the first rows of some classes, and labels without gaps."""
    classes = np.unique(data.y_train)[:n_classes]
    rows = np.concatenate([np.flatnonzero(data.y_train == c)[:per_class] for c in classes])
    rows.sort()
    return data.X_train[rows], np.unique(data.y_train[rows], return_inverse=True)[1]


def _race(job: Job, solver: Solver, data: Splits, bound: float | None, send: Send) -> None:
    """Go through the settings until the goal is reached with some room, or all is done."""
    X, y = solver.prepare(data.X_train, data.y_train)
    bound = -np.inf if bound is None else bound
    settings = solver.settings
    if DATASETS[job.data].is_large:
        settings = settings[::2]
    if job.kind == "accuracy":  # Nobody would wait for more than the usual.
        settings = settings[: settings.index(solver.usual) + 1]
    for setting in settings:
        send("start", {"setting": setting})
        point, fit = _measure(solver, X, y, setting)
        send("fitted", {"seconds": point["fitting_seconds"]})
        start = time.perf_counter()
        if job.kind == "accuracy":
            accuracy = topk_accuracy(fit.weights, data.X_test, data.y_test, K)
            point["accuracy"] = accuracy
        else:
            primal = solver.objective.value(fit.weights, data.X_train, data.y_train, job.C)
            bound = max(bound, -np.inf if fit.dual is None else fit.dual)
            point |= {"primal": primal, "dual": fit.dual}
        point["evaluation_seconds"] = time.perf_counter() - start
        send("point", point)
        if job.kind == "objective" and suboptimality(primal, bound) <= GOAL / 5:
            return


def _measure(solver: Solver, X: Any, y: Any, setting: Any) -> tuple[dict[str, Any], Any]:
    times: list[float] = []

    def fits() -> Any:
        model = None
        while len(times) < REPEATS and sum(times) < SHORT:
            del model  # Two models at once would count as memory of the fit.
            seconds, model = timed(partial(solver.fit, X, y, setting))
            times.append(seconds)
        return model

    megabytes, model = with_memory(fits)
    facts = {
        "setting": setting,
        "seconds": min(times),
        "fitting_seconds": sum(times),
        "megabytes": megabytes,
    }
    return facts, solver.weights_of(model)


def _choose(job: Job, kind: type[Solver], objective: Objective, data: Splits, send: Send) -> None:
    """Measure the accuracy on the validation rows for each C of the grid."""
    for C in DATASETS[job.data].grid:
        solver = kind(objective, C, job.threads)
        X, y = solver.prepare(data.X_train, data.y_train)
        send("start", {"setting": C})
        seconds, model = timed(partial(solver.fit, X, y, kind.cheap))
        send("fitted", {"seconds": seconds})
        weights = solver.weights_of(model).weights
        accuracy = topk_accuracy(weights, data.X_val, data.y_val, K)
        send("point", {"setting": C, "seconds": seconds, "accuracy": accuracy})


def measure_latency(solver: Solver, data: Splits) -> dict[str, float]:
    """Return the seconds to the five best guesses for 1 and for 10,000 rows."""
    X, y = _few_rows(data, n_classes=data.shape[2])
    model = solver.fit(*solver.prepare(X, y), solver.settings[0])
    many = np.resize(data.X_test, (10_000, data.X_test.shape[1]))
    return {
        f"seconds_{n}": fastest(partial(solver.guess, model, many[:n], K), turns)
        for n, turns in ((1, 200), (10_000, 5))
    }
