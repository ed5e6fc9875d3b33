"""Certificates of generated problems, judged in exact arithmetic."""

from __future__ import annotations

import multiprocessing
import time
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool

BATCH = 50
PATIENCE = 600.0
"""Seconds for a batch; its first problems compile."""


def run(seed: int, end: float, jobs: int, tell) -> Counter:
    """Judge problems until the time is over."""
    total = Counter()
    starts = iter(range(seed * 10**7, (seed + 1) * 10**7, BATCH))
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        running = {pool.submit(judge_batch, next(starts)) for _ in range(jobs)}
        while running:
            done, running = wait(running, PATIENCE, FIRST_COMPLETED)
            if not done:
                total["failures"] += 1
                tell(f"a batch took more than {PATIENCE:.0f} s")
                for process in list(pool._processes.values()):
                    process.kill()
                break
            for future in done:
                _add(total, future, tell)
                if time.monotonic() < end and not future.exception():
                    running.add(pool.submit(judge_batch, next(starts)))
    return total


def _add(total, future, tell):
    try:
        count, failures = future.result()
    except BrokenProcessPool as error:
        count, failures = Counter(failures=1), [f"a worker died: {error}"]
    total.update(count)
    for failure in failures:
        tell(failure)


def judge_batch(start: int) -> tuple[Counter, list[str]]:
    """Judge some problems; return counts and what failed."""
    from exact.judge import Refused, examine
    from exact.problems import make_problem

    count, failures = Counter(), []
    for seed in range(start, start + BATCH):
        problem = make_problem(seed)
        count["tried"] += 1
        try:
            verdict = examine(problem)
        except Refused:
            count["refused"] += 1
        except Exception as error:
            failures.append(f"{problem}: {type(error).__name__}: {error}")
        else:
            if verdict.violations:
                failures.append(f"{problem}: {verdict}")
    count["failures"] = len(failures)
    return count, failures
