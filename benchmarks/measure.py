"""Run jobs one after the other, each in a process with a budget, and keep what comes back."""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import worker
from benchmarks.jobs import Job
from benchmarks.solvers import SOLVERS

PATIENCE = 300.0
"""Seconds for what is not budgeted: imports, compilation, evaluation."""

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "TOPKSVM_NUM_THREADS",
)


@dataclass
class Outcome:
    """What is known about a job.

    Parameters
    ----------
    job : Job
        What was asked for.
    status : {"done", "stopped", "skipped", "failed"}
        ``"stopped"``: the budget was used up; the points from before count.
    reason : str
        Why it was stopped or skipped, or how it failed.
    points : list of dict
        One measurement per setting.
    compile_seconds : float
        What the first, small fit took.
    """

    job: Job
    status: str = "failed"
    reason: str = ""
    points: list[dict[str, Any]] = field(default_factory=list)
    compile_seconds: float = 0.0

    def to_json(self) -> str:
        """Return one line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, line: str) -> Outcome:
        """Read a line."""
        facts = json.loads(line)
        return cls(**facts | {"job": Job(**facts["job"])})


class Store:
    """The outcomes in a file of JSON lines: what was finished stays, whatever happens then."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.outcomes: dict[str, Outcome] = {}
        if path.is_file():
            for line in path.read_text().splitlines():
                try:
                    outcome = Outcome.from_json(line)
                except (ValueError, TypeError, KeyError):
                    continue  # The line that was being written when the run was killed.
                self.outcomes[outcome.job.key] = outcome

    def add(self, outcome: Outcome) -> None:
        """Append an outcome."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a+b") as stream:
            # A line that was cut off by a kill must not swallow this one.
            is_cut = stream.tell() > 0 and _last_byte(stream) != b"\n"
            stream.write(("\n" * is_cut + outcome.to_json() + "\n").encode())
            stream.flush()
            os.fsync(stream.fileno())
        self.outcomes[outcome.job.key] = outcome

    def bound(self, job: Job) -> float | None:
        """Return the best proven lower bound on the optimum of the job's problem."""
        duals = [
            point["dual"]
            for outcome in self.outcomes.values()
            if problem_of(outcome.job) == problem_of(job)
            for point in outcome.points
            if point.get("dual") is not None
        ]
        return max(duals, default=None)


def _last_byte(stream: Any) -> bytes:
    stream.seek(-1, os.SEEK_END)
    return stream.read(1)


def problem_of(job: Job) -> tuple[str, str, str, float]:
    """Return what jobs that minimise the same thing have in common."""
    return job.kind, job.data, job.objective, job.C


def run_jobs(
    jobs: Iterable[Job],
    store: Store,
    folder_of: Callable[[str], Path],
    say: Callable[[str], None] = print,
) -> None:
    """Run the jobs that are not in the store yet; say how each one went."""
    for job in jobs:
        if job.key in store.outcomes:
            continue
        if job.solver in SOLVERS and not SOLVERS[job.solver].is_installed():
            package = SOLVERS[job.solver].package
            outcome = Outcome(job, "skipped", f"not installed; try: pip install {package}")
        else:
            outcome = run_job(job, folder_of(job.data), store.bound(job))
        store.add(outcome)
        say(f"{job.title}: {_in_words(outcome)}")


def _in_words(outcome: Outcome) -> str:
    words = f"{outcome.status}, {outcome.reason}" if outcome.reason else outcome.status
    if not outcome.points:
        return words
    last = {k: f"{v:.6g}" for k, v in outcome.points[-1].items() if isinstance(v, float)}
    return f"{words}; {len(outcome.points)} points, the last with " + ", ".join(
        f"{name} {value}" for name, value in last.items()
    )


def run_job(
    job: Job, folder: Path, bound: float | None = None, patience: float = PATIENCE
) -> Outcome:
    """Run a job in a new process, and end it when the budget is used up."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=worker.run, args=(job, folder, bound, theirs))
    with _threads(job.threads):
        process.start()
    theirs.close()
    try:
        return _listen(job, ours, patience)
    finally:
        process.kill()
        process.join()
        ours.close()


def _listen(job: Job, connection: Any, patience: float) -> Outcome:
    """Collect events; only the time between start and end of a fit counts for the budget."""
    outcome = Outcome(job)
    spent, started = 0.0, None
    while True:
        if started is None:
            limit = patience
        else:
            limit = max(0.0, job.budget - spent - (time.perf_counter() - started))
        if not connection.poll(limit):
            outcome.status = "stopped"
            is_fitting = started is not None
            outcome.reason = f"not reached in {job.budget:g} s" if is_fitting else "no sign of life"
            return outcome
        try:
            event, facts = connection.recv()
        except EOFError:
            outcome.reason = "the process died, perhaps for want of memory"
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


@contextmanager
def _threads(count: int) -> Iterator[None]:
    """Set what the libraries of a new process read when they are loaded."""
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(count)))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
