"""Run jobs one after the other, each in a process with a budget, and keep what comes back."""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import worker
from benchmarks.jobs import Job
from benchmarks.solvers import SOLVERS
from benchmarks.timing import print_progress, threads

TIMEOUT = 300.0
"""Seconds for what is not budgeted: imports, compilation, evaluation."""


@dataclass
class Outcome:
    """What is known about a job.

    The status is ``"done"``, ``"stopped"`` if the budget was used up, ``"skipped"`` or
    ``"failed"``. `points` are measurements, one per setting; `compile_seconds` are those of the
    first, small fit.
    """

    job: Job
    status: str = "failed"
    reason: str = ""
    points: list[dict[str, Any]] = field(default_factory=list)
    compile_seconds: float = 0.0


class Store:
    """The outcomes in a file of JSON lines: what was finished stays, whatever happens then."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.outcomes: dict[str, Outcome] = {}
        if path.is_file():
            for line in path.read_text().splitlines():
                try:
                    facts = json.loads(line)
                except ValueError:
                    continue  # The line that was being written when the run was killed.
                job = Job(**facts.pop("job"))
                self.outcomes[job.key] = Outcome(job, **facts)

    def add(self, outcome: Outcome) -> None:
        """Append an outcome."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as stream:
            # First ends a line that was cut off by a kill; empty lines do no harm.
            stream.write(f"\n{json.dumps(asdict(outcome))}\n".encode())
            stream.flush()
            os.fsync(stream.fileno())
        self.outcomes[outcome.job.key] = outcome

    def bound(self, job: Job) -> float | None:
        """Return the best proven lower bound on the optimum of the job's problem."""
        same = [o for o in self.outcomes.values() if problem_of(o.job) == problem_of(job)]
        duals = [point.get("dual") for outcome in same for point in outcome.points]
        return max((dual for dual in duals if dual is not None), default=None)


def problem_of(job: Job) -> tuple[str, str, str, float]:
    """Return what jobs that minimise the same thing have in common."""
    return job.kind, job.data, job.objective, job.C


def run_jobs(jobs: Iterable[Job], store: Store, data: Path) -> None:
    """Run the jobs that are not in the store yet, on the files in the folder `data`."""
    for job in jobs:
        if job.key in store.outcomes:
            continue
        if job.solver in SOLVERS and not SOLVERS[job.solver].is_installed():
            package = SOLVERS[job.solver].package
            outcome = Outcome(job, "skipped", f"not installed; try: pip install {package}")
        else:
            outcome = run_job(job, data / job.data, store.bound(job))
        store.add(outcome)
        print_progress(f"{job.title}: {_in_words(outcome)}")


def _in_words(outcome: Outcome) -> str:
    words = f"{outcome.status}, {outcome.reason}" if outcome.reason else outcome.status
    if not outcome.points:
        return words
    last = [f"{k} {v:.6g}" for k, v in outcome.points[-1].items() if isinstance(v, float)]
    return f"{words}; {len(outcome.points)} points, the last with {', '.join(last)}"


def run_job(job: Job, file: Path, bound: float | None = None) -> Outcome:
    """Run a job in a new process, and end it when the budget is used up."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=worker.run, args=(job, file, bound, theirs))
    with threads(job.threads):
        process.start()
    theirs.close()
    try:
        return _listen(job, ours)
    finally:
        process.kill()
        process.join()
        ours.close()


def _listen(job: Job, connection: Any) -> Outcome:
    """Collect events; only the time between start and end of a fit counts for the budget."""
    outcome = Outcome(job)
    spent, started = 0.0, None
    while True:
        if started is None:
            limit = TIMEOUT
        else:
            limit = max(0.0, job.budget - spent - (time.perf_counter() - started))
        if not connection.poll(limit):
            outcome.status = "stopped"
            is_fitting = started is not None
            outcome.reason = f"not reached in {job.budget:g} s" if is_fitting else "no answer"
            return outcome
        try:
            event, facts = connection.recv()
        except EOFError:
            outcome.reason = "the process died, perhaps for lack of memory"
            return outcome
        if event == "ready":
            outcome.compile_seconds = facts["compile_seconds"]
        elif event == "start":
            started = time.perf_counter()
        elif event == "fitted":
            spent, started = spent + facts["seconds"], None
        elif event == "point":
            started = None
            outcome.points.append(facts)
        else:
            outcome.status, outcome.reason = event, facts.get("reason", "")
            return outcome
