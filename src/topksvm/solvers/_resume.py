"""Checkpoints of a run: when to write them, and what of the run they hold besides its solver."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any, Protocol

import numpy as np

from topksvm._clock import Clock
from topksvm.solvers._checkpoint import (
    LARGEST_COUNT,
    CheckpointError,
    CheckpointFolder,
    Snapshot,
    checked_numbers,
)
from topksvm.solvers._result import Check

CHECKPOINT_SECONDS = 60.0
"""Time between two checkpoints: what may be lost, against a write of all duals."""


class Resumable(Protocol):
    """A solver whose state can be written down."""

    clock: Clock

    def snapshot(self) -> Snapshot:
        """Return what is needed to resume."""

    def restore(self, snapshot: Snapshot) -> None:
        """Resume; complain about a snapshot that cannot be of this problem."""


class Checkpoints:
    """Writes the state of a run to a folder now and then.

    Parameters
    ----------
    folder : CheckpointFolder
        Open, for this problem.
    seconds : float, default=CHECKPOINT_SECONDS
        The least time between two of them.
    """

    def __init__(self, folder: CheckpointFolder, seconds: float = CHECKPOINT_SECONDS) -> None:
        self.folder, self.seconds = folder, seconds
        self.last = time.monotonic()

    def restore(self, solver: Resumable) -> list[Check]:
        """Restore the solver from the last checkpoint, if there is one; return the history."""
        history: list[Check] = []

        def use(snapshot: Snapshot) -> None:
            elapsed = checked_numbers(snapshot, {"elapsed": "finite"})["elapsed"]
            seconds = snapshot.facts.get("seconds")
            names: Any = seconds if isinstance(seconds, dict) else {}
            seconds = checked_numbers(Snapshot(names, {}), dict.fromkeys(names, "finite"))
            restored = _restored_history(snapshot.facts.get("history"))
            solver.restore(snapshot)
            solver.clock.set(elapsed)
            solver.clock.seconds.update(seconds)
            history[:] = restored

        self.folder.load(use)
        return history

    def save_if_due(self, solver: Resumable, history: list[Check]) -> None:
        """Write a checkpoint if the last one is old."""
        if time.monotonic() - self.last >= self.seconds:
            self.save(solver, history)

    def save(self, solver: Resumable, history: list[Check]) -> None:
        """Write a checkpoint."""
        snapshot = solver.snapshot()
        run = {
            "elapsed": solver.clock.elapsed,
            "seconds": dict(solver.clock.seconds),
            "history": [asdict(check) for check in history],
        }
        self.folder.save(Snapshot({**snapshot.facts, **run}, snapshot.arrays))
        self.last = time.monotonic()


def _restored_history(checks: Any) -> list[Check]:
    try:
        history = [_restored_check(check) for check in checks]
    except (TypeError, ValueError, KeyError, OverflowError):
        raise CheckpointError(
            "the checkpoint is damaged: its history. Delete it to start anew."
        ) from None
    return history


def _restored_check(fields: Any) -> Check:
    epoch = int(fields["epoch"])
    seconds, primal, dual, gap = (
        float(fields[name]) for name in ("seconds", "primal", "dual", "gap")
    )
    if not (0 <= epoch <= LARGEST_COUNT and np.isfinite([seconds, primal, dual, gap]).all()):
        raise ValueError("a number that is not finite")
    if gap != primal - dual or gap < 0.0:
        raise ValueError("a gap that is not that of its bounds")
    return Check(epoch, seconds, primal, dual, gap)
