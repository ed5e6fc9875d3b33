"""Full and active passes over the rows of a state: how they are cut up and who works on them.

A *full* pass looks at all classes of every example, by matrix products where X is dense. An
*active* pass looks at the classes in play. Both go in segments: after each of them a pass ends
early if Ctrl-C was pressed, and the log of the dual variables is given room.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm._interrupts import is_stop_requested
from topksvm._team import make_team, work_together
from topksvm._threads import n_threads
from topksvm.data import Problem, aligned_zeros, padded
from topksvm.solvers._duals import Duals, with_room
from topksvm.solvers._passes import (
    Blocks,
    active_pass,
    block_pass,
    choose_visits,
    sequential_pass,
)
from topksvm.solvers._steps import State, make_candidates, make_changes, make_scratch

Floats = NDArray[np.floating[Any]]
Indices = NDArray[np.int64]

SEGMENT = 8192
"""Examples between two chances for Ctrl-C, about: some milliseconds."""

SMALL_WEIGHTS = 1 << 13
"""Weights that the first cache holds: 32 KB in single precision."""

SMALL_SHARE = 1 << 20
"""Multiplications in the scores of a block below which another thread does not pay: that is some
20 microseconds, and to wait for one another three times takes about one."""

SMALL_PASS = 1 << 27
"""Multiplications in the scores of all examples below which it does not pay to start threads: some
milliseconds, of which starting and joining a thread takes a tenth."""

LARGE_STEP = 1 << 14
"""Weights that a step of an active pass reads at least, from which on two threads share them. With
fewer, on two cores, the step took longer than on one thread."""


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


def make_blocks(problem: Problem, size: int, slots: int) -> Blocks:
    """Return room for the rows of `slots` blocks."""
    x = aligned_zeros((slots * size, padded(problem.d, problem.dtype)), problem.dtype)
    return Blocks(size, x, np.empty((slots, size * size), problem.dtype))


class Engine:
    """Passes over states of one problem, or of windows of it.

    Parameters
    ----------
    loss : loss
        See :mod:`topksvm.losses`.
    problem : Problem
        The whole problem.
    n_candidates : int
        Classes in play for an example besides its support; 0 for all classes.
    block_size : int, optional
        Examples scored by one matrix product; by default a choice by the shape.
    """

    def __init__(
        self, loss: Any, problem: Problem, n_candidates: int, block_size: int | None = None
    ) -> None:
        self.loss, self.problem = loss, problem
        m, d = problem.m, 0 if problem.is_sparse else problem.d
        self.block_size = block_size or choose_block_size(m, problem.d)
        self.segment = self.block_size * max(1, SEGMENT // self.block_size)
        self.room = self.block_size * m
        self.n_candidates = n_candidates
        self.blocks: Blocks | None = None
        n_members, threads = np.count_nonzero(problem.examples.C), n_threads()
        per_block = 1 + m * self.block_size * d // SMALL_SHARE
        is_much = n_members * m * d >= SMALL_PASS
        self.team = make_team(min(threads, per_block, 1 + m // 32) if is_much else 1)
        is_large = (max(n_candidates, 1) + 1) * d >= LARGE_STEP
        self.active_team = make_team(min(threads, 2) if is_large else 1)
        # What threads other than the leader write on.
        self.own = [self._own_memory() for _ in range(self.active_team.size)]

    def _own_memory(self) -> dict[str, Any]:
        m, dtype = self.problem.m, self.problem.dtype
        x = aligned_zeros((1, self.width), dtype)[0]
        return {"scratch": make_scratch(m, dtype), "x": x}

    @property
    def width(self) -> int:
        """The length of a row of the weights, which zeros fill up to whole cache lines."""
        problem = self.problem
        return problem.m if problem.is_sparse else padded(problem.d, problem.dtype)

    def make_state(self, duals: Duals) -> State:
        """Return the state of the whole problem with weights of zero."""
        problem, m, dtype = self.problem, self.problem.m, self.problem.dtype
        return State(
            problem.rows,
            problem.examples,
            aligned_zeros((problem.shape[0], self.width), dtype),
            duals,
            make_candidates(problem.n, self.n_candidates),
            make_changes(self.block_size, m, dtype),
            **self.own[0],
            scores=np.empty(self.room, dtype),
            partial=np.empty((self.active_team.size, m), dtype),
            sums=np.zeros(2),
        )

    def full_pass(
        self, state: State, order: Indices, blocks: Blocks | None = None, *, gather: bool = True
    ) -> State:
        """Step on all classes of the examples `order`; return the state with its log of duals.

        With `blocks`, which others may have gathered, their rows are used.
        """
        if self.problem.is_sparse or self.block_size == 1:
            scores = state.scores[: self.problem.m]

            def one_by_one(state: State, part: slice) -> int:
                view = state._replace(scores=scores)
                return sequential_pass(self.loss, view, order[part])

            return self._in_segments(state, one_by_one, order.size)
        if blocks is None:
            self.blocks = blocks = self.blocks or make_blocks(self.problem, self.block_size, 2)

        def by_blocks(state: State, part: slice) -> int:
            index, begin = order[: part.stop], part.start

            def work(place: int) -> int:
                return block_pass(self.loss, state, blocks, index, begin, gather, self.team, place)

            return work_together(self.team, work) - begin

        return self._in_segments(state, by_blocks, order.size)

    def active_pass(
        self, state: State, members: Indices, seed: int, mean_gain: float = 0.0
    ) -> tuple[State, int]:
        """Step on the classes in play of `members`; return the state and the number of visits.

        Examples that gain more by their step than `mean_gain` will be visited more often.
        """
        order = np.empty(2 * members.size, np.int64)
        order = order[: choose_visits(members, state.candidates, seed, order)]

        def visit(state: State, part: slice) -> int:
            views = [state._replace(**own) for own in self.own]

            def work(place: int) -> int:
                return active_pass(
                    self.loss, views[place], order[part], mean_gain, self.active_team, place
                )

            return work_together(self.active_team, work)

        return self._in_segments(state, visit, order.size), order.size

    def _in_segments(self, state: State, work: Callable[[State, slice], int], size: int) -> State:
        """Call `work`, which returns how far it came before the log of the duals was full."""
        start = 0
        while start < size and not self.should_stop():
            state = self.make_room(state)
            start += work(state, slice(start, min(start + self.segment, size)))
        return state

    def should_stop(self) -> bool:
        """Return whether to end a pass here, where weights and dual variables belong together."""
        return is_stop_requested()

    def make_room(self, state: State) -> State:
        """Return the state with room for a segment in the log of its dual variables."""
        return state._replace(duals=with_room(state.duals, self.room))
