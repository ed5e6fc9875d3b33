"""One job, inside a process of its own: the measurements, sent to the parent one by one."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.datasets import DATASETS, Splits, restore
from benchmarks.jobs import Job
from benchmarks.memory import watch
from benchmarks.objectives import Objective, objective_named, suboptimality, topk_accuracy
from benchmarks.solvers import SOLVERS, MissingError, Solver

GOAL = 1e-3
"""The relative sub-optimality that is raced for."""

REPEATS = 5
SHORT = 0.3
"""Fits are repeated up to so many times or seconds, and the fastest counts: they are alike."""

K = 5
"""The guesses that the accuracy is for."""

Send = Callable[[str, dict[str, Any]], None]


def run(job: Job, folder: Path, bound: float | None, connection: Any) -> None:
    """Do the job; send ``(event, facts)`` for each step, ``("done", ...)`` in the end."""

    def send(event: str, facts: dict[str, Any]) -> None:
        connection.send((event, facts))

    warnings.simplefilter("ignore")  # Fits that stop early are the point; errors still are errors.
    try:
        data = restore(folder)
        if job.kind == "products":
            send("point", measure_products(data))
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
        _climb(job, solver, data, bound, send)


def _warm_up(solver: Solver, data: Splits) -> float:
    """Fit a few rows, so that everything is compiled and loaded; return the seconds."""
    start = time.perf_counter()
    X, y = _few_rows(data, n_classes=30)
    solver.fit(*solver.prepare(X, y), solver.ladder[0])
    return time.perf_counter() - start


def _few_rows(data: Splits, n_classes: int, per_class: int = 3) -> tuple[Any, Any]:
    """Return the first rows of some classes, and labels without gaps."""
    order = np.argsort(data.y_train, kind="stable")
    _, first, counts = np.unique(data.y_train[order], return_index=True, return_counts=True)
    parts = [
        order[a : a + min(per_class, c)]
        for a, c in zip(first[:n_classes], counts[:n_classes], strict=True)
    ]
    rows = np.sort(np.concatenate(parts))
    return data.X_train[rows], np.unique(data.y_train[rows], return_inverse=True)[1]


def _climb(job: Job, solver: Solver, data: Splits, bound: float | None, send: Send) -> None:
    """Go up the ladder of settings until the goal is reached with some room, or all is done."""
    X, y = solver.prepare(data.X_train, data.y_train)
    bound = -np.inf if bound is None else bound
    ladder = solver.ladder
    if DATASETS[job.data].is_large:
        ladder = ladder[::2]
    if job.kind == "accuracy":  # Nobody would wait for more than the usual.
        ladder = ladder[: ladder.index(solver.usual) + 1]
    for setting in ladder:
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
    with watch() as peak:
        while len(times) < REPEATS and sum(times) < SHORT:
            model = None  # Two models at once would count as memory of the fit.
            start = time.perf_counter()
            model = solver.fit(X, y, setting)
            times.append(time.perf_counter() - start)
    facts = {
        "setting": setting,
        "seconds": min(times),
        "fitting_seconds": sum(times),
        "megabytes": peak.megabytes,
    }
    return facts, solver.weights_of(model)


def _choose(job: Job, kind: type[Solver], objective: Objective, data: Splits, send: Send) -> None:
    """Measure the accuracy on the validation rows for each C of the grid."""
    for C in DATASETS[job.data].grid:
        solver = kind(objective, C, job.threads)
        X, y = solver.prepare(data.X_train, data.y_train)
        send("start", {"setting": C})
        start = time.perf_counter()
        fit = solver.weights_of(solver.fit(X, y, kind.cheap))
        seconds = time.perf_counter() - start
        send("fitted", {"seconds": seconds})
        accuracy = topk_accuracy(fit.weights, data.X_val, data.y_val, K)
        send("point", {"setting": C, "seconds": seconds, "accuracy": accuracy})


def measure_latency(solver: Solver, data: Splits) -> dict[str, float]:
    """Return the seconds to the five best guesses for 1 and for 10,000 rows."""
    X, y = _few_rows(data, n_classes=data.shape[2])
    model = solver.fit(*solver.prepare(X, y), solver.ladder[0])
    many = np.resize(data.X_test, (10_000, data.X_test.shape[1]))
    return {
        f"seconds_{n}": min(_times(partial(solver.guess, model, many[:n], K), repeats))
        for n, repeats in ((1, 200), (10_000, 5))
    }


def measure_products(data: Splits, rows: int = 8192, repeats: int = 5) -> dict[str, float]:
    """Return the seconds of ``X W'`` and ``A' X`` for all rows: what one pass has to do at least.

    On some thousands of rows, times their share.
    """
    n, d, m = data.shape
    X = data.X_train[:rows]
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((d, m), dtype=np.float32)
    duals = rng.standard_normal((X.shape[0], m), dtype=np.float32)
    back = sp.csr_matrix(X.T) if sp.issparse(X) else X.T
    seconds = min(_times(lambda: (X @ weights, back @ duals), repeats))
    return {"seconds": seconds * n / X.shape[0]}


def _times(work: Callable[[], Any], repeats: int) -> Iterator[float]:
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        yield time.perf_counter() - start
