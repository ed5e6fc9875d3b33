"""Streamed fits that are killed and resumed: the model must be the same, bit by bit."""

from __future__ import annotations

import signal
import tempfile
from collections import Counter

import numpy as np

from fuzzing.streamed_fit import fit, fit_and_kill, undisturbed
from fuzzing.workers import run_trials


def run(seed: int, end: float, jobs: int, tell) -> Counter:
    """Kill fits until the time is over."""
    return run_trials(trial, seed, end, jobs, tell)


def trial(rng):
    """Kill a fit several times, then let it finish; yield an outcome per kill."""
    wanted, seconds = undisturbed()
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rng.randint(1, 8)):
            code = fit_and_kill(folder, rng.uniform(0, 1.1 * seconds))
            yield None if code in (0, -signal.SIGKILL) else f"exit code {code}"
        same = np.array_equal(fit(folder), wanted)
        yield None if same else "the resumed model differs from the undisturbed one"
