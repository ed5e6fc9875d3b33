"""Trials in worker processes, one after the other until the time is over."""

from __future__ import annotations

import multiprocessing
import random
import time
from collections import Counter


def run_trials(trial, seed: int, end: float, jobs: int, tell) -> Counter:
    """Run ``trial(rng)``, which yields None or a failure for each thing tried, in all workers."""
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    left = end - time.monotonic()
    workers = [
        context.Process(target=_work, args=(trial, f"{seed} {number}", left, queue))
        for number in range(jobs)
    ]
    for worker in workers:
        worker.start()
    total, running = Counter(), jobs
    while running:
        count, failures, is_last = queue.get(timeout=900)
        total.update(count)
        running -= is_last
        for failure in failures:
            tell(failure)
    for worker in workers:
        worker.join()
    return total


def _work(trial, seed, seconds, queue):
    end, number = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        name = f"{seed} {number}"
        try:
            outcomes = list(trial(random.Random(name)))
        except Exception as error:
            outcomes = [f"{type(error).__name__}: {error}"]
        failures = [f"{name}: {outcome}" for outcome in outcomes if outcome]
        queue.put((Counter(tried=len(outcomes), failures=len(failures)), failures, False))
        number += 1
    queue.put((Counter(), [], True))
