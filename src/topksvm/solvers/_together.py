"""Several paths over one set of rows, solved side by side.

The full passes of all of them visit the examples in one order, so that a block of rows is gathered
(read from disk, where X is a memory map) and multiplied with itself once for all. Steps and active
passes are each path's own. A path that has reached one of its points goes on to the next without
waiting for the others.

The order depends on the number of the pass alone, and the products have the same shapes in any
company: a path comes out the same, to the last bit, whatever else is solved beside it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from topksvm.data import Problem
from topksvm.solvers._engine import choose_block_size, make_blocks
from topksvm.solvers._path import adapt, at
from topksvm.solvers._result import Result, Status
from topksvm.solvers._run import Run
from topksvm.solvers._sdca import SDCA
from topksvm.solvers._train import Setup

GATHERED_BYTES = 1 << 22
"""Rows that are gathered at once: they should stay in a cache until the last run has used them."""

Point = tuple[float, Result]


@dataclass(frozen=True)
class PathTask:
    """A path to solve: its loss, the growing values of C, and perhaps a solution to start from."""

    loss: Any
    Cs: Sequence[float]
    start: Point | None = None


def have_common_work(problem: Problem) -> bool:
    """Return whether full passes over `problem` go by blocks, which can be shared."""
    return not problem.is_sparse and choose_block_size(problem.m, problem.d) > 1


def solve_paths(
    problem: Problem, tasks: Sequence[PathTask], setup: Setup
) -> Iterator[tuple[int, float, Result]]:
    """Yield the number of a task, a `C` and its solution, as they are reached."""
    members = np.flatnonzero(problem.examples.C > 0.0)
    paths = {i: _solve_one(task, problem, setup) for i, task in enumerate(tasks)}
    n_passes = 0
    while paths:
        waiting: list[SDCA] = []
        for i, path in list(paths.items()):
            for event in path:
                if isinstance(event, SDCA):
                    waiting.append(event)
                    break
                yield i, *event
            else:
                del paths[i]
        order = np.random.default_rng([setup.options.seed, n_passes]).permutation(members)
        if waiting:
            first = n_passes % len(waiting)
            _full_pass(problem, waiting[first:] + waiting[:first], order)
        n_passes += 1


def _solve_one(
    task: PathTask, problem: Problem, setup: Setup
) -> Generator[SDCA | Point, None, None]:
    """Yield the solver whenever it needs a full pass, and each point when it is reached."""
    start = task.start
    for C in task.Cs:
        scaled = at(problem, C)
        duals = None
        if start is not None:
            duals = adapt(start[1], task.loss, scaled, C / start[0]).duals
        solver = SDCA(task.loss, scaled, setup.options, duals)
        run = Run(solver, setup.stopping)
        status: Status | None = None
        while status is None:
            if solver.needs_full_pass:
                solver.clock.pause()
                yield solver
                solver.clock.resume()
                solver.end_full_pass()
            status = run.advance()
        start = C, run.finish(status)
        yield start


def _full_pass(problem: Problem, solvers: list[SDCA], order: Any) -> None:
    """Make a full pass of every solver, with what they have in common done once.

    The first one gathers the blocks. That is another one in each pass, so the time of a run holds
    its share of the common work.
    """
    size = solvers[0].engine.block_size
    row_bytes = problem.d * problem.dtype.itemsize
    slots = max(2, -(-min(GATHERED_BYTES // row_bytes, order.size) // size))
    blocks = make_blocks(problem, size, slots)
    for start in range(0, order.size, slots * size):
        part = order[start : start + slots * size]
        for solver in solvers:
            solver.clock.resume()
            solver.full_pass(part, blocks, gather=solver is solvers[0])
            solver.clock.pause()
