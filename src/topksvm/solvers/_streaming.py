"""Dual coordinate ascent on rows that do not fit in memory.

A pass reads windows of rows. On each window it makes the full pass that it would make in memory,
and active passes while they pay: rows that have been read are used well. The kernels are those for
rows in memory: a window has a state of its own, whose dual variables are in the one log of all.

Memory: weights, duals, two windows, a few numbers per example; see :func:`memory_needed`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm._interrupts import raise_if_stopped_again
from topksvm.data import Examples, StreamedProblem, Window
from topksvm.solvers._certificate import (
    BLOCK_ENTRIES,
    Certificate,
    certificate_threads,
    make_duals_feasible,
)
from topksvm.solvers._checkpoint import (
    CheckpointError,
    Kind,
    Snapshot,
    checked_arrays,
    checked_numbers,
)
from topksvm.solvers._duals import Duals, snapshot, with_room
from topksvm.solvers._engine import Engine
from topksvm.solvers._run import Estimate, Stopping
from topksvm.solvers._sdca import SDCA, SDCAOptions
from topksvm.solvers._start import check_structure
from topksvm.solvers._steps import Candidates, State

Floats = NDArray[np.floating[Any]]

FACTS: dict[str, Kind] = {
    "n_passes": "count",
    "windows_done": "count",
    "last_certificate": "count",
    "dual": "finite",
    "gap_correction": "finite",
    "has_failed": "count",
}
"""The numbers of a checkpoint."""

MAX_ACTIVE = 5
"""Active passes over a window, at most. More make the duals of a window fit its rows alone."""

WORTHWHILE = 0.3
"""Share of the gain of the pass before below which an active pass was the last on a window: a pass
over the next window gains more."""

LARGEST_SCORE = 2.0**-8
"""Share of the largest number of a precision that a score of restored weights may be, at most: sums
of scores and changes of the duals stay finite."""

AVERAGE_FACTOR = 0.4
"""The gap of the average over the windows against the one that the pass estimates, about."""


def memory_needed(n: int, d: int, m: int, k: int, dtype: np.dtype) -> int:
    """Return about how many bytes a run needs besides its windows.

    Weights: those in training, their average, and in float64 for certificates. Examples: label,
    weight, norm, candidates, visits, and duals for about ``2 k + 10`` classes in a log that has
    half as much room again. Certificates widen blocks of rows, one for each thread.
    """
    weights = m * d * (dtype.itemsize + 4 * 8)
    per_example = 4 + 8 + 8 + 4 * (k + 3) + 1 + 16 + 12 + 1.5 * 12 * min(m, 2 * k + 10)
    block = BLOCK_ENTRIES // max(m, d) + 1
    widened = 8 * (m + d) * min(n, certificate_threads() * block)
    return int(weights + n * per_example + widened)


@dataclass(frozen=True)
class PassAverage:
    """The average of the weights over the windows of a pass, in the place of an active phase."""

    average: Floats | None
    expected_gap_factor: float = AVERAGE_FACTOR
    pays: bool = False


class WindowEngine(Engine):
    """Passes over the states of windows, whose dual variables are in the log of the whole."""

    whole: State
    index: NDArray[np.int64]

    def enter(self, whole: State, window: Window, problem: StreamedProblem) -> State:
        """Return the state of a window."""
        self.whole, self.index = whole, window.index
        return whole._replace(
            rows=problem.rows_of(window.x),
            examples=Examples._make(array[window.index] for array in whole.examples),
            candidates=Candidates._make(array[window.index] for array in whole.candidates),
            duals=self._duals_of_window(),
        )

    def leave(self, part: State) -> State:
        """Return the state of the whole after work on a window."""
        self._write_back(part)
        for name in ("classes", "idle"):
            getattr(self.whole.candidates, name)[self.index] = getattr(part.candidates, name)
        return self.whole

    def should_stop(self) -> bool:
        """Never inside a window, after which a checkpoint can be written; a second wish raises."""
        raise_if_stopped_again()
        return False

    def make_room(self, part: State) -> State:
        """See that the one log has room; its live entries belong to all windows."""
        if part.duals.used[0] + self.room <= part.duals.classes.size:
            return part
        self._write_back(part)
        self.whole = self.whole._replace(duals=with_room(self.whole.duals, self.room))
        return part._replace(duals=self._duals_of_window())

    def _duals_of_window(self) -> Duals:
        duals = self.whole.duals
        return duals._replace(start=duals.start[self.index], count=duals.count[self.index])

    def _write_back(self, part: State) -> None:
        self.whole.duals.start[self.index] = part.duals.start
        self.whole.duals.count[self.index] = part.duals.count


class StreamedSDCA:
    """The solver for rows on disk: an update works on a window.

    Between windows its state is that of the solver for rows in memory, `whole`, which judges it.
    """

    def __init__(self, loss: Any, problem: StreamedProblem, options: SDCAOptions) -> None:
        self.whole = SDCA(loss, problem, options)
        self.problem, self.seed = problem, options.seed
        self.engine = WindowEngine(loss, problem, self.whole.engine.n_candidates)
        self.clock = self.whole.clock
        self.windows_done = 0
        self.windows: Iterator[Window] | None = None
        self.n_windows = 0
        self.total = np.zeros(self.whole.weights.shape)
        self.drift = 0.0

    @property
    def n_passes(self) -> int:
        """Passes over all rows."""
        return self.whole.n_passes

    @property
    def duals(self) -> Duals:
        """The dual variables."""
        return self.whole.duals

    def update(self, stopping: Stopping) -> Estimate | None:
        """Work on the next window; after the last one of a pass, estimate the gap."""
        # Seeded by the pass, so that a run can be resumed from any window.
        seeds = [self.seed, self.n_passes]
        if self.windows is None:
            plan = self.problem.reader.plan(np.random.default_rng(seeds))
            self.n_windows = len(plan)
            self.windows = self.problem.reader.read(plan[self.windows_done :])
        self._work_on(next(self.windows), np.random.default_rng([*seeds, self.windows_done]))
        # The later windows see a better model: their average is one that does not jump about.
        later = self.n_windows // 2
        if self.windows_done >= later:
            self.total += self.whole.weights
        self.windows_done += 1
        if self.windows_done < self.n_windows:
            return None
        self.whole.end_full_pass()
        self.whole.phase = PassAverage(self.total / (self.n_windows - later))
        self._begin_pass()
        return self.whole.estimate(stopping.tol)

    def _begin_pass(self) -> None:
        self.stop_reading()
        self.windows_done = 0
        self.total[...] = 0.0

    def stop_reading(self) -> None:
        """End the reading ahead, whose buffers others want to use."""
        if self.windows is not None:
            self.windows.close()  # type: ignore[attr-defined]
            self.windows = None

    def _work_on(self, window: Window, rng: np.random.Generator) -> None:
        whole, engine = self.whole, self.engine
        part = engine.enter(whole.state, window, self.problem)
        members = np.flatnonzero(part.examples.C > 0.0)
        before = float(part.sums[0])
        with self.clock.timed("full"):
            part = engine.full_pass(part, rng.permutation(members))
        gain = float(part.sums[0]) - before
        whole.dual += gain
        with self.clock.timed("active"):
            for _ in range(MAX_ACTIVE if whole.use_active else 0):
                last, losses = gain, part.sums.copy()
                part.sums[...] = 0.0
                part, _ = engine.active_pass(part, members, int(rng.integers(1, 1 << 62)))
                gain, part.sums[...] = float(part.sums[0]), losses
                whole.dual += gain
                if gain <= WORTHWHILE * last:
                    break
        whole.state = engine.leave(part)

    def certify(self) -> tuple[Floats, Certificate]:
        """Certify the average over the last windows, or the weights in the middle of a pass."""
        self.stop_reading()
        if self.windows_done > 0:
            self.whole.phase = PassAverage(None)
        before = self.whole.weights.copy()
        try:
            certified = self.whole.certify()
        except BaseException:
            self.whole.weights[...] = before  # As the last checkpoint has them.
            raise
        size = float(np.linalg.norm(self.whole.weights))
        moved = float(np.linalg.norm(self.whole.weights - before))
        self.drift = moved / size if size else 0.0  # How far rounding had carried the weights.
        return certified

    def snapshot(self) -> Snapshot:
        """Return what is needed to resume after the last window."""
        whole = self.whole
        state, used = whole.state, int(whole.duals.used[0])
        facts = {name: getattr(whole, name) for name in FACTS if name != "windows_done"}
        facts["has_failed"] = int(whole.has_failed)
        arrays = {
            "weights": whole.weights,
            "start": state.duals.start,
            "count": state.duals.count,
            "classes": state.duals.classes[:used],
            "values": state.duals.values[:used],
            "sums": state.sums,
            "total": self.total,
        }
        return Snapshot({**facts, "windows_done": self.windows_done}, arrays)

    def restore(self, saved: Snapshot) -> None:
        """Resume from a snapshot of the same problem; complain about one that cannot be its own."""
        whole, state = self.whole, self.whole.state
        facts = checked_numbers(saved, FACTS)
        n, shape = self.problem.n, whole.weights.shape
        arrays = checked_arrays(
            saved,
            {
                "weights": (whole.weights.dtype, shape),
                "start": (np.int64, (n,)),
                "count": (np.int32, (n,)),
                "classes": (np.int32, (None,)),
                "values": (np.float64, (None,)),
                "sums": (np.float64, (2,)),
                "total": (np.float64, shape),
            },
        )
        # Candidates are none of it: the full pass over a window finds them before they are used.
        self._check_numbers(arrays)
        duals = self._restored_duals(arrays)
        if facts["windows_done"] > len(self.problem.reader.pieces):
            raise _damaged("more windows than there are rows for")
        self.windows_done = facts.pop("windows_done")
        for name, value in facts.items():
            setattr(whole, name, value)
        whole.weights[...] = arrays["weights"]
        state.sums[...] = arrays["sums"]
        self.total[...] = arrays["total"]
        whole.state = state._replace(duals=duals)

    def _restored_duals(self, arrays: dict[str, NDArray[Any]]) -> Duals:
        used, room = arrays["classes"].size, self.engine.room
        if arrays["values"].size != used:
            raise _damaged("values")
        classes, values = np.empty(used + room, np.int32), np.empty(used + room)
        classes[:used], values[:used] = arrays["classes"], arrays["values"]
        duals = Duals(arrays["start"], arrays["count"], classes, values, np.array([used]))
        try:
            check_structure(duals, self.problem.n, self.problem.m, self.problem.examples.labels)
            # A copy, as the duals resume as they were, with rounding that certificates remove.
            make_duals_feasible(self.whole.loss, self.problem.examples, snapshot(duals))
        except (ValueError, RuntimeError) as error:
            raise _damaged(str(error).split(". ")[0]) from None
        return duals

    def _check_numbers(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Complain about weights that a score could overflow with, and sums that are none."""
        most = float(np.finfo(self.whole.weights.dtype).max)
        longest = float(np.sqrt(self.problem.examples.norms.max(initial=1.0)))
        for name in ("weights", "total"):
            largest = float(np.abs(arrays[name]).max(initial=0.0))
            if not largest * np.sqrt(self.problem.d) * longest < LARGEST_SCORE * most:
                raise _damaged(f"{name} that are not finite, or too large")
        if not np.isfinite(arrays["sums"]).all():
            raise _damaged("sums that are not finite")


def _damaged(what: str) -> CheckpointError:
    return CheckpointError(f"the checkpoint is damaged: {what}. Delete it to start anew.")
