"""Dual coordinate ascent on rows that do not fit in memory.

A pass reads windows of rows (`_windows.py`). On each window it makes the full pass that it would
make in memory, and active passes while they pay: rows that have been read are used well. The
kernels are those for rows in memory: they see the window as a problem of its own, whose duals point
into the one log of all duals.

Memory: weights, duals, two windows, a few numbers per example; see :func:`memory_needed`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm._clock import Clock
from topksvm._interrupts import raise_if_abandoned, raise_if_stopped
from topksvm.data import (
    DenseRows,
    Examples,
    Problem,
    RowSource,
    Window,
    WindowReader,
    check_norms,
    read_only,
    squared_norms,
)
from topksvm.solvers._certificate import BLOCK_ENTRIES, SCALES, Certificate, certificate_threads
from topksvm.solvers._checkpoint import (
    CheckpointError,
    Kind,
    State,
    checked_arrays,
    checked_numbers,
)
from topksvm.solvers._duals import Duals, with_room
from topksvm.solvers._polish import Polish
from topksvm.solvers._result import Check
from topksvm.solvers._sdca import SDCA, SDCAOptions
from topksvm.solvers._start import check_structure
from topksvm.solvers._steps import Candidates

Floats = NDArray[np.floating[Any]]
Hook = Callable[["StreamedSDCA"], None]

FACTS: dict[str, Kind] = {
    "n_passes": "count",
    "windows_done": "count",
    "last_check": "count",
    "dual": "finite",
    "hope": "finite",
    "elapsed": "finite",
}
"""The numbers of a checkpoint."""

MAX_ACTIVE = 5
"""Active passes over a window, at most."""

WORTHWHILE = 0.3
"""Share of the gain of the pass before below which an active pass was the last on a window."""


@dataclass(frozen=True)
class StreamedProblem(Problem):
    """A problem whose rows are read by the piece; `rows` holds none, only type and bias."""

    reader: WindowReader

    def pieces(self, duals: Duals) -> Iterator[tuple[Any, Examples, Duals]]:
        """Yield all rows in order, a window at a time."""
        for window in self.reader.read(self.reader.plan(None)):
            part = slice(int(window.index[0]), int(window.index[-1]) + 1)
            yield (
                DenseRows(read_only(window.x), self.rows.bias),
                Examples._make(array[part] for array in self.examples),
                duals._replace(start=duals.start[part], count=duals.count[part]),
            )


def make_streamed_problem(
    source: RowSource,
    labels: NDArray[np.integer[Any]],
    C: Floats,
    m: int,
    bias: float,
    window_rows: int,
) -> StreamedProblem:
    """Return the problem after one look at all rows, for their norms and for bad values."""
    reader = WindowReader(source, window_rows)
    n, d = source.shape
    norms = np.empty(n)
    for window in reader.read(reader.plan(None)):
        raise_if_stopped()
        part = norms[window.index[0] : window.index[-1] + 1]
        rows = DenseRows(read_only(window.x), bias)
        squared_norms(rows, np.int64(0), np.int64(len(window.x)), part)
        check_norms(part, source.dtype, int(window.index[0]))
    rows = DenseRows(read_only(np.empty((0, d), source.dtype)), bias)
    examples = Examples(labels.astype(np.int32), np.ascontiguousarray(C, np.float64), norms)
    return StreamedProblem(rows, examples, m, d + (bias != 0.0), reader)


def memory_needed(n: int, d: int, m: int, k: int, dtype: np.dtype) -> int:
    """Return about how many bytes a run needs besides its windows.

    Weights: those in training, their average, and in float64 for certificates. Examples: label,
    weight, norm, candidates, pace, and duals for about ``2 k + 10`` classes in a log that has half
    as much room again. Certificates widen blocks of rows, one for each thread.
    """
    weights = m * d * (dtype.itemsize + 4 * 8)
    per_example = 4 + 8 + 8 + 4 * (k + 3) + 1 + 16 + 12 + 1.5 * 12 * min(m, 2 * k + 10)
    block = BLOCK_ENTRIES // max(m, d) + 1
    widened = 8 * (m + d) * min(n, certificate_threads() * block)
    return int(weights + n * per_example + widened)


RELIEF = 0.4
"""The gap of the average over the windows against the one that the pass estimates, about."""


class StreamedSDCA(SDCA):
    """A run over windows; after each of them `after_window` is called, for checkpoints."""

    problem: StreamedProblem

    def __init__(
        self,
        loss: Any,
        problem: StreamedProblem,
        options: SDCAOptions,
        after_window: Hook | None = None,
    ) -> None:
        super().__init__(loss, problem, options)
        self.whole, self.all_duals, self.all_candidates = problem, self.duals, self.candidates
        self.after_window = after_window
        self.windows_done = 0
        self.total = np.zeros(self.weights.shape)
        self.average: Floats | None = None
        self.drift = 0.0

    def full_pass(self) -> float:
        """Step on all examples, window by window; return an estimate of the primal objective."""
        self.is_certified = False
        # Seeded by the pass, so that a run can go on from any window.
        seeds = [self.options.seed, self.n_passes]
        plan = self.problem.reader.plan(np.random.default_rng(seeds))
        later = len(plan) // 2
        for window in self.problem.reader.read(plan[self.windows_done :]):
            self.rng = np.random.default_rng([*seeds, self.windows_done])
            self._enter(window)
            try:
                self._work_on_window()
            except BaseException:
                self._see_the_whole()
                raise
            self._leave()
            # The later windows see a better model: their average is one that does not jump about.
            if self.windows_done >= later:
                self.total += self.weights
            self.windows_done += 1
            if self.after_window is not None:
                self.after_window(self)
            raise_if_stopped()
        self.average = self.total / (len(plan) - later)
        self.windows_done = 0
        self.total[...] = 0.0
        return self.end_full_pass()

    def _work_on_window(self) -> None:
        gain, passes = self.part_of_full_pass(self.rng.permutation(self.members)), self.n_passes
        for _ in range(MAX_ACTIVE if self.use_active else 0):
            before, gain = gain, self.active_pass()
            if gain <= WORTHWHILE * before:
                break
        self.n_passes = passes  # Those over windows are part of the one.

    def _enter(self, window: Window) -> None:
        """Make the window the problem that kernels see; the log of the duals stays the one."""
        whole = self.whole
        self.index = window.index
        examples = Examples._make(array[window.index] for array in whole.examples)
        rows = DenseRows(read_only(window.x), whole.rows.bias)
        self.problem = StreamedProblem(rows, examples, whole.m, whole.d, whole.reader)
        self.members = np.flatnonzero(examples.C > 0.0)
        self.due[: window.index.size] = 0.0  # What was due to the rows of another window.
        self.candidates = Candidates._make(array[self.index] for array in self.all_candidates)
        self._take_duals()

    def _leave(self) -> None:
        self._write_back()
        self._see_the_whole()

    def _see_the_whole(self) -> None:
        self.problem, self.duals, self.candidates = self.whole, self.all_duals, self.all_candidates
        self.members = np.flatnonzero(self.whole.examples.C > 0.0)

    def check_stop(self) -> None:
        """Stop here only if nobody waits for a result: duals and weights are those of a window."""
        raise_if_abandoned()

    def _take_duals(self) -> None:
        duals = self.all_duals
        self.duals = duals._replace(start=duals.start[self.index], count=duals.count[self.index])

    def _write_back(self) -> None:
        self.all_duals.start[self.index] = self.duals.start
        self.all_duals.count[self.index] = self.duals.count
        self.all_candidates.classes[self.index] = self.candidates.classes
        self.all_candidates.idle[self.index] = self.candidates.idle

    def make_room(self) -> None:
        """See that the one log has room; its live entries belong to all windows."""
        if self.duals.used[0] + self.room > self.duals.classes.size:
            self._write_back()
            self.all_duals = with_room(self.all_duals, self.room)
            self._take_duals()

    def certify(self, average: Floats | None = None, scales: Floats = SCALES) -> Certificate:
        """See the base class; notes how far rounding had carried the weights from the duals."""
        before = self.weights.copy()
        try:
            certificate = super().certify(average, scales)
        except BaseException:
            self.weights[...] = before  # As the last checkpoint has them.
            raise
        size = float(np.linalg.norm(self.weights))
        self.drift = float(np.linalg.norm(self.weights - before)) / size if size else 0.0
        return certificate

    def _polish(self) -> Polish:
        # The active passes were made window by window.
        polish = Polish(self)
        polish.pays, polish.relief = False, RELIEF
        polish.total, polish.share = self.average, 1.0
        return polish

    def state(self) -> State:
        """Return what is needed to go on from after the present window."""
        used = int(self.all_duals.used[0])
        facts = {
            "dual": self.dual,
            "n_passes": self.n_passes,
            "windows_done": self.windows_done,
            "last_check": self.last_check,
            "hope": self.hope,
            "elapsed": self.elapsed,
            "seconds": dict(self.seconds),
            "history": [asdict(check) for check in self.history],
        }
        arrays = {
            "weights": self.weights,
            "start": self.all_duals.start,
            "count": self.all_duals.count,
            "classes": self.all_duals.classes[:used],
            "values": self.all_duals.values[:used],
            "candidates": self.all_candidates.classes,
            "idle": self.all_candidates.idle,
            "sums": self.sums,
            "total": self.total,
        }
        return State(facts, arrays)

    def restore(self, state: State) -> None:
        """Go on from a state of the same problem; complain about one that cannot be its own."""
        facts = checked_numbers(state, FACTS)
        n, shape, wanted = self.whole.n, self.weights.shape, self.all_candidates.classes.shape[1]
        arrays = checked_arrays(
            state,
            {
                "weights": (self.weights.dtype, shape),
                "start": (np.int64, (n,)),
                "count": (np.int32, (n,)),
                "classes": (np.int32, (None,)),
                "values": (np.float64, (None,)),
                "candidates": (np.int32, (n, wanted)),
                "idle": (np.bool_, (n,)),
                "sums": (np.float64, (2,)),
                "total": (np.float64, shape),
            },
        )
        duals, candidates = self._restored_duals(arrays), arrays["candidates"]
        if candidates.size and not 0 <= candidates.min() <= candidates.max() < self.whole.m:
            raise CheckpointError("The checkpoint is damaged: candidates. Delete it to start anew.")
        seconds = state.facts.get("seconds")
        names: Any = seconds if isinstance(seconds, dict) else {}
        seconds = checked_numbers(State(names, {}), dict.fromkeys(names, "finite"))
        self.history = _restored_history(state.facts.get("history"))
        for name in ("dual", "n_passes", "windows_done", "last_check", "hope"):
            setattr(self, name, facts[name])
        self.clock = Clock(facts["elapsed"])
        self.seconds.update(seconds)
        self.weights[...] = arrays["weights"]
        self.all_duals, self.all_candidates = duals, Candidates(candidates, arrays["idle"])
        self.duals, self.candidates = self.all_duals, self.all_candidates
        self.sums[...] = arrays["sums"]
        self.total[...] = arrays["total"]

    def _restored_duals(self, arrays: dict[str, NDArray[Any]]) -> Duals:
        used = arrays["classes"].size
        if arrays["values"].size != used:
            raise CheckpointError("The checkpoint is damaged: values. Delete it to start anew.")
        log = np.empty(used + self.room, np.int32), np.empty(used + self.room)
        log[0][:used], log[1][:used] = arrays["classes"], arrays["values"]
        duals = Duals(arrays["start"], arrays["count"], *log, np.array([used]))
        try:
            check_structure(duals, self.whole.n, self.whole.m, self.whole.examples.labels)
        except ValueError as error:
            raise CheckpointError(
                f"The checkpoint is damaged: {error}. Delete it to start anew."
            ) from None
        return duals


CHECKED = ("seconds", "primal", "dual", "gap")


def _restored_history(checks: Any) -> list[Check]:
    try:
        return [
            Check(int(check["epoch"]), *(float(check[name]) for name in CHECKED))
            for check in checks
        ]
    except (TypeError, ValueError, KeyError, OverflowError):
        raise CheckpointError(
            "The checkpoint is damaged: history. Delete it to start anew."
        ) from None
