"""Dual coordinate ascent on rows that do not fit in memory.

A pass reads windows of rows (`_windows.py`). On each window it makes the full pass that it would
make in memory, and active passes while they pay: rows that have been read are used well. The
kernels are those for rows in memory: they see the window as a problem of its own, whose duals point
into the one log of all duals.

Memory: weights, duals, two windows; a few numbers per example.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm.solvers._certificate import Certificate
from topksvm.solvers._duals import Duals
from topksvm.solvers._problem import Problem
from topksvm.solvers._result import Status
from topksvm.solvers._rows import DenseRows, squared_norms
from topksvm.solvers._run import Report
from topksvm.solvers._sdca import SDCA, SDCAOptions
from topksvm.solvers._sources import RowSource
from topksvm.solvers._steps import Candidates, Examples
from topksvm.solvers._windows import Window, WindowReader

Floats = NDArray[np.floating[Any]]
Indices = NDArray[np.int64]

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
                DenseRows(_read_only(window.x), self.rows.bias),
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
        part = norms[window.index[0] : window.index[-1] + 1]
        squared_norms(DenseRows(_read_only(window.x), bias), 0, len(window.x), part)
        if not np.isfinite(part).all():
            row = int(window.index[0] + np.argmin(np.isfinite(part)))
            raise ValueError(
                f"Row {row} of X holds NaN or infinity, or its squares overflow; every value must "
                "be a finite number. Remove the row or mend its values."
            )
    rows = DenseRows(_read_only(np.empty((0, d), source.dtype)), bias)
    examples = Examples(labels.astype(np.int32), np.ascontiguousarray(C, np.float64), norms)
    return StreamedProblem(rows, examples, m, d + (bias != 0.0), reader)


class StreamedSDCA(SDCA):
    """A run over windows; after each of them `after_window` is called, for checkpoints."""

    problem: StreamedProblem

    def __init__(
        self,
        loss: Any,
        problem: StreamedProblem,
        options: SDCAOptions,
        after_window: Callable[[StreamedSDCA], None] | None = None,
    ) -> None:
        super().__init__(loss, problem, options)
        self.whole = problem, self.duals, self.candidates
        self.after_window = after_window
        self.windows_done = 0
        self.sums = np.zeros(2)
        self.total = np.zeros(self.weights.shape)
        self.drift = 0.0

    def full_pass(self) -> float:
        """Step on all examples, window by window; return an estimate of the primal objective."""
        # Seeded by the pass, so that a run can go on from any window.
        seeds = [self.options.seed, self.n_passes]
        plan = self.problem.reader.plan(np.random.default_rng(seeds))
        for window in self.problem.reader.read(plan[self.windows_done :]):
            self.rng = np.random.default_rng([*seeds, self.windows_done])
            self._enter(window)
            try:
                self._work_on_window()
            finally:
                self._leave(window)
            self.windows_done += 1
            # The later windows see a better model: their average is one that does not jump about.
            if self.windows_done > len(plan) // 2:
                self.total += self.weights
            if self.after_window is not None:
                self.after_window(self)
        self.average = self.total / (len(plan) - len(plan) // 2)
        sums, self.sums = self.sums, np.zeros(2)
        self.windows_done = 0
        self.total[...] = 0.0
        self.n_passes += 1
        return float(sums[1]) + 0.5 * float(np.vdot(self.weights, self.weights))

    def _work_on_window(self) -> None:
        sums = np.zeros(2)
        self.part_of_full_pass(self.rng.permutation(self.members), sums)
        self.dual += float(sums[0])
        self.sums += sums
        gain, passes = float(sums[0]), self.n_passes
        for _ in range(MAX_ACTIVE if self.use_active else 0):
            before, gain = gain, self.active_pass()
            if gain <= WORTHWHILE * before:
                break
        self.n_passes = passes  # Those over windows count as one.

    def _enter(self, window: Window) -> None:
        """Make the window the problem that kernels see; the log of the duals stays the one."""
        problem, duals, candidates = self.whole
        self.index = window.index
        examples = Examples._make(array[window.index] for array in problem.examples)
        rows = DenseRows(_read_only(window.x), problem.rows.bias)
        self.problem = StreamedProblem(rows, examples, problem.m, problem.d, problem.reader)
        self.members = np.flatnonzero(examples.C > 0.0)
        self.duals = duals._replace(start=duals.start[self.index], count=duals.count[self.index])
        self.candidates = Candidates._make(array[self.index] for array in candidates)

    def _leave(self, window: Window) -> None:  # noqa: ARG002
        self._write_back()
        self.problem, self.duals, _ = self.whole

    def _write_back(self) -> None:
        problem, duals, candidates = self.whole
        duals.start[self.index] = self.duals.start
        duals.count[self.index] = self.duals.count
        candidates.classes[self.index] = self.candidates.classes
        candidates.idle[self.index] = self.candidates.idle
        self.whole = problem, duals, candidates

    def make_room(self) -> None:
        """See that the one log has room; its live entries belong to all windows."""
        if self.duals.used[0] + self.room <= self.duals.classes.size:
            return
        self._write_back()
        problem, duals, candidates = self.whole
        duals = _compact(duals, self.room)
        self.whole = problem, duals, candidates
        self.duals = duals._replace(start=duals.start[self.index], count=duals.count[self.index])

    def certify(self, average: Floats | None = None, scales: Any = None) -> Certificate:
        """See the base class; notes how far the weights had drifted from the duals by rounding."""
        before = self.weights.copy()
        options = {} if scales is None else {"scales": scales}
        certificate = super().certify(average, **options)
        size = float(np.linalg.norm(self.weights))
        self.drift = float(np.linalg.norm(self.weights - before)) / size if size else 0.0
        return certificate

    def _active_passes(self) -> Floats | None:
        # They were made window by window.
        return self.average

    def _run(self, report: Report | None) -> Status:
        return super()._run(report)


def _compact(duals: Duals, room: int) -> Duals:
    from topksvm.solvers._duals import with_room

    return with_room(duals, room)


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view
