"""Stochastic dual coordinate ascent: full passes that discover, active passes that polish.

A *full* pass looks at all classes of every example, by matrix products where X is dense. It finds
the classes in play, and the losses met on the way give an estimate of the gap for free. *Active*
passes then improve the duals of the classes in play at a fraction of the price, for as long as they
pay. When the estimate says that the goal is reached, the certificate decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topksvm._interrupts import raise_if_stopped
from topksvm._team import make_team, work_together
from topksvm._threads import n_threads
from topksvm.data import Problem, aligned_zeros, padded
from topksvm.solvers._certificate import (
    SCALES,
    Certificate,
    certify,
    rebuild_weights,
    sum_dual_values,
)
from topksvm.solvers._duals import Duals, empty_duals, with_room
from topksvm.solvers._extrapolation import Extrapolator
from topksvm.solvers._passes import (
    active_pass,
    block_pass,
    choose_visits,
    sequential_pass,
)
from topksvm.solvers._polish import Polish
from topksvm.solvers._result import Status
from topksvm.solvers._run import Report, Run
from topksvm.solvers._steps import make_candidates, make_changes, make_scratch

Floats = NDArray[np.floating[Any]]
Indices = NDArray[np.int64]

SEGMENT = 8192
"""Examples between two chances for Ctrl-C, about."""

TINY = float(np.finfo(float).tiny)

EXTRA_CANDIDATES = 2
"""Classes in play for an example besides its support and the k with the largest scores."""

HOPE = 0.75
"""The gap of the average of the weights against the one that a full pass estimates, at first."""

SMALL_WEIGHTS = 1 << 13
"""Weights that the first cache holds."""

SMALL_SHARE = 1 << 20
"""Multiplications in the scores of a block below which another thread does not pay."""

SMALL_PASS = 1 << 27
"""Multiplications in the scores of all examples below which it does not pay to start threads."""

LARGE_STEP = 1 << 14
"""Weights that a step of an active pass reads at least, from which on two threads share them."""


class Blocks(NamedTuple):
    """Room for the rows of several blocks, and for the products of the rows of each."""

    x: Floats
    grams: Floats


def make_blocks(problem: Problem, block: int, slots: int) -> Blocks:
    """Return room for `slots` blocks."""
    dtype = problem.dtype
    x = aligned_zeros((slots * block, padded(problem.d, dtype)), dtype)
    return Blocks(x, np.empty((slots, block * block), dtype))


@dataclass(frozen=True)
class SDCAOptions:
    """How to run the solver; see :func:`topksvm.solve`."""

    tol: float = 1e-3
    max_iter: int = 1000
    max_time: float = np.inf
    block_size: int | None = None
    active: bool = True
    max_active: int = 16
    seed: int = 0


def choose_block_size(m: int, d: int) -> int:
    """Return the number of rows to score together.

    The Gram matrix of a block costs ``B d`` per row where the scores cost ``m d``: well below `m`,
    yet large enough for the matrix product to run at full speed. Weights that stay in the first
    cache are multiplied as fast row by row.
    """
    if m * d <= SMALL_WEIGHTS:
        return 1
    if m < 32:
        return 16
    return 32 if m < 512 else 96


class SDCA(Run):
    """One run of the solver: its state, and one method per kind of pass.

    It starts from `duals`, which become its own, if they are given; see :mod:`._start`.
    """

    def __init__(
        self, loss: Any, problem: Problem, options: SDCAOptions, duals: Duals | None = None
    ) -> None:
        super().__init__(options.tol)
        self.loss = loss
        self.problem = problem
        self.options = options
        m, n, dtype = problem.m, problem.n, problem.dtype
        self.block = options.block_size or choose_block_size(m, problem.d)
        self.segment = self.block * max(1, SEGMENT // self.block)
        self.rng = np.random.default_rng(options.seed)
        self.members = np.flatnonzero(problem.examples.C > 0.0)
        self.changes = make_changes(self.block, m, dtype)
        self.scores = np.empty(self.block * m, dtype)
        wanted = min(getattr(loss, "k", 1) + EXTRA_CANDIDATES, m - 1)
        self.use_active = options.active and getattr(loss, "has_sparse_duals", False)
        self.candidates = make_candidates(n, wanted if self.use_active else 0)
        self.pace, self.due = np.ones(n), np.zeros(n)
        self.sums = np.zeros(2)  # Gain of the dual, and losses met, by the present full pass.
        self.n_visits = 0
        self.hope = HOPE if self.use_active else 1.0
        self.extrapolator = Extrapolator(loss, problem)
        self.last_check = 0
        self.has_failed = False  # Whether the last certificate was hoped to be within tol.
        self.is_warm = duals is not None
        self.room = self.block * m
        self._make_weights()
        self._make_teams(wanted)
        if duals is None:
            self.duals = empty_duals(n, 4 * n + self.room)
            self.dual = 0.0
        else:
            self.duals = duals
            exact = rebuild_weights(problem, duals)
            self.weights[...] = exact
            dual_sum = float(sum_dual_values(loss, problem.examples, duals)[0])
            self.dual = dual_sum - 0.5 * float(np.vdot(exact, exact))

    def _make_weights(self) -> None:
        """Make the weights: those of each class begin at a cache line, zeros fill the last one."""
        problem = self.problem
        width = problem.m if problem.is_sparse else padded(problem.d, problem.dtype)
        self.padded = aligned_zeros((problem.shape[0], width), problem.dtype)
        self.weights = self.padded[:, : problem.shape[1]]

    def _make_teams(self, wanted: int) -> None:
        """Decide how many threads work on a pass; on one each where that is not much work."""
        problem, threads = self.problem, n_threads()
        m, d = problem.m, 0 if problem.is_sparse else problem.d
        per_block = 1 + m * self.block * d // SMALL_SHARE
        is_much = self.members.size * m * d >= SMALL_PASS
        self.team = make_team(min(threads, per_block, 1 + m // 32) if is_much else 1)
        is_large = (wanted + 1) * d >= LARGE_STEP
        self.active_team = make_team(min(threads, 2) if is_large else 1)
        self.x = aligned_zeros((self.active_team.size, self.padded.shape[1]), problem.dtype)
        self.partial = np.empty((self.active_team.size, m), problem.dtype)
        self.scratches = [make_scratch(m, problem.dtype) for _ in range(self.active_team.size)]
        self.blocks: Blocks | None = None

    def full_pass(self) -> float:
        """Step on all classes of all examples; return an estimate of the primal objective."""
        self.part_of_full_pass(self.rng.permutation(self.members))
        return self.end_full_pass()

    def part_of_full_pass(self, order: Indices) -> float:
        """Step on all classes of the examples `order`; return the gain in the dual."""
        if self.problem.is_sparse or self.block == 1:
            return self._counted(lambda part: self._sequential(order[part]), order.size)
        if self.blocks is None:
            self.blocks = make_blocks(self.problem, self.block, 2)
        return self.step_on_blocks(self.blocks, order, gather=True)

    def step_on_blocks(self, blocks: Blocks, order: Indices, gather: bool) -> float:
        """Make a part of a full pass, on rows that may have been gathered; return the gain."""

        def work(part: slice) -> int:
            index = order[: part.stop]
            return self._blocks(blocks, index, part.start, gather) - part.start

        return self._counted(work, order.size)

    def _counted(self, work: Callable[[slice], int], size: int) -> float:
        """Do a part of a full pass; return the gain in the dual, which is added to it."""
        self.is_certified = False
        before = float(self.sums[0])
        with self._timed("full"):
            self._in_segments(work, size)
        gain = float(self.sums[0]) - before
        self.dual += gain
        return gain

    def end_full_pass(self) -> float:
        """Return an estimate of the primal objective after a pass over all examples."""
        losses, self.sums[...] = float(self.sums[1]), 0.0
        self.n_passes += 1
        return losses + 0.5 * float(np.vdot(self.padded, self.padded))

    def _in_segments(self, work: Callable[[slice], int], size: int) -> None:
        """Call `work`, which returns how far it came before the log of the duals was full."""
        start = 0
        while start < size:
            self.check_stop()
            self.make_room()
            start += work(slice(start, min(start + self.segment, size)))

    def check_stop(self) -> None:
        """Stop here if Ctrl-C was pressed: duals and weights belong together."""
        raise_if_stopped()

    def make_room(self) -> None:
        """See that the log of the duals has room for a block."""
        self.duals = with_room(self.duals, self.room)

    def _sequential(self, index: Indices) -> int:
        return sequential_pass(
            self.loss,
            self.problem.rows,
            self.padded,
            index,
            self.problem.examples,
            self.duals,
            self.candidates,
            self.changes,
            self.scratches[0],
            self.x[0],
            self.scores[: self.problem.m],
            self.sums,
        )

    def _blocks(self, blocks: Blocks, index: Indices, begin: int, gather: bool) -> int:
        def work(place: int) -> int:
            return block_pass(
                self.loss,
                self.problem.rows,
                index,
                begin,
                self.block,
                gather,
                blocks.x,
                blocks.grams,
                self.padded,
                self.scores,
                self.problem.examples,
                self.duals,
                self.candidates,
                self.changes,
                self.scratches[0],
                self.sums,
                self.team,
                place,
            )

        return work_together(self.team, work)

    @property
    def is_beginning(self) -> bool:
        """Whether it is too early for active passes.

        What the very first pass chose, from weights next to zero, will not stay in play.
        """
        return self.n_passes <= 1 and not self.is_warm

    def active_pass(self, usual: float = 0.0) -> float:
        """Step on the classes in play of all examples; return the gain in the dual.

        Examples that gain more by their step than is `usual` will be visited more often.
        """
        self.is_certified = False
        order = np.empty(2 * self.members.size, np.int64)
        seed = int(self.rng.integers(1, 1 << 62))
        self.n_visits = choose_visits(
            self.members, self.candidates.idle, self.pace, self.due, seed, order
        )
        order = order[: self.n_visits]
        sums = np.zeros(2)

        def work(index: Indices, place: int) -> int:
            return active_pass(
                self.loss,
                self.problem.rows,
                self.padded,
                index,
                self.problem.examples,
                self.duals,
                self.candidates,
                self.changes,
                self.scratches[place],
                self.x[place],
                self.partial,
                self.pace,
                usual,
                sums,
                self.active_team,
                place,
            )

        def work_on(part: slice) -> int:
            return work_together(self.active_team, lambda place: work(order[part], place))

        with self._timed("active"):
            self._in_segments(work_on, order.size)
        self.dual += float(sums[0])
        self.n_passes += 1
        return float(sums[0])

    def certify(self, average: Floats | None = None, scales: Floats = SCALES) -> Certificate:
        """Rebuild the weights from the duals and certify them, or the `average` in their stead.

        The dual objective converges before the primal one, which jumps about as the examples are
        visited: the average of the weights over the last passes is a better model for them.
        """
        problem = self.problem
        with self._timed("certificates"):
            certificate, model, self.weights[...] = certify(
                self.loss, problem, self.duals, average, scales
            )
        self.dual = certificate.dual
        self.last_check = self.n_passes
        self.record(problem.coefficients(model), certificate)
        return certificate

    def is_solved_by_start(self) -> bool:
        """Return whether the start is a solution, as where a smaller `C` bound no dual."""
        return self.is_warm and self.certify().is_within(self.tol)

    def _run(self, report: Report | None) -> Status:
        if self.is_solved_by_start():
            return Status.SOLVED
        while True:
            status = self.after_full_pass(self.full_pass(), report)
            if status is not None:
                return status

    def after_full_pass(self, primal: float, report: Report | None = None) -> Status | None:
        """Make active passes and certify if it is time to; return why to stop, or None to go on.

        `primal` is the estimate of the pass.
        """
        gap = primal - self.dual
        relative = gap / max(abs(primal), TINY)
        if report is not None:
            report(self.n_passes, self.elapsed, relative)
        polish = self._polish()
        while True:
            polish.go_on(self.tol / max(self.hope * relative, TINY))
            # The estimate knows nothing of larger weights, so look now and then in any case.
            is_near = self.hope * polish.relief * relative <= self.tol
            if is_near or self.n_passes > 1.5 * self.last_check + 100:
                is_first = is_near and not self.has_failed
                certificate = self.certify(polish.average, SCALES[:1] if is_first else SCALES)
                self.has_failed = is_near
                status = self.verdict(certificate)
                if status is not None:
                    return status
            if self.n_passes >= self.options.max_iter:
                return Status.MAX_ITER
            if self.elapsed >= self.options.max_time:
                return Status.MAX_TIME
            if not is_near:
                return None
            # It was too hopeful: ask for as much more as it was wrong by.
            wrong = 1.1 * certificate.gap / max(polish.relief * gap, TINY)
            self.hope = max(self.hope, min(4.0 * self.hope, wrong))
            if not polish.pays:
                return None

    def _polish(self) -> Polish:
        return Polish(self)

    def go_on_from(self, before: Duals) -> None:
        """Go on in the direction that has led here from `before`, if that raises the dual."""
        with self._timed("extrapolation"):
            self.dual += self.extrapolator.go_on(before, self.duals, self.padded)
