"""Several paths over one set of rows, walked together.

The full passes of all of them visit the examples in one order, so that a block of rows is gathered
(read from disk, where X is a memory map) and multiplied with itself once for all. Steps and active
passes are each path's own. A path that has reached one of its points goes on to the next without
waiting for the others.

The order depends on the number of the pass alone, and the products have the same shapes in any
company: a path comes out the same, to the last bit, whoever walks along.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from topksvm.data import Problem
from topksvm.solvers._path import adapt, at
from topksvm.solvers._result import Result, Status
from topksvm.solvers._sdca import SDCA, SDCAOptions, choose_block_size, make_blocks

GATHERED_BYTES = 1 << 22
"""Rows that are gathered at once: they should stay in a cache until the last run has used them."""

Point = tuple[float, Result]


@dataclass(frozen=True)
class Walk:
    """A path to walk: its loss, the growing values of C, and perhaps a solution to start from."""

    loss: Any
    Cs: Sequence[float]
    start: Point | None = None


def have_common_work(problem: Problem) -> bool:
    """Return whether full passes over `problem` go by blocks, which can be shared."""
    return not problem.is_sparse and choose_block_size(problem.m, problem.d) > 1


def trace_together(
    problem: Problem, walks: Sequence[Walk], options: SDCAOptions
) -> Iterator[tuple[int, float, Result]]:
    """Yield the number of a walk, a `C` and its solution, as they are reached."""
    members = np.flatnonzero(problem.examples.C > 0.0)
    paths = {i: _walk(walk, problem, options) for i, walk in enumerate(walks)}
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
        order = np.random.default_rng([options.seed, n_passes]).permutation(members)
        if waiting:
            first = n_passes % len(waiting)
            _full_pass(problem, waiting[first:] + waiting[:first], order)
        n_passes += 1


def _walk(
    walk: Walk, problem: Problem, options: SDCAOptions
) -> Generator[SDCA | Point, None, None]:
    """Yield the run whenever it needs a full pass, and each point when it is reached."""
    start = walk.start
    for C in walk.Cs:
        scaled = at(problem, C)
        duals = None
        if start is not None:
            duals = adapt(start[1], walk.loss, scaled, C / start[0]).duals
        run = SDCA(walk.loss, scaled, options, duals)
        status = Status.SOLVED if run.is_solved_by_start() else None
        while status is None:
            run.clock.pause()
            yield run
            run.clock.resume()
            status = run.after_full_pass(run.end_full_pass())
        start = C, run.finish(status)
        yield start


def _full_pass(problem: Problem, runs: list[SDCA], order: Any) -> None:
    """Make a full pass of every run, with what they have in common done once.

    The first run gathers the blocks. That is another one in each pass, so the time of a run holds
    its share of the common work.
    """
    block = runs[0].block
    row_bytes = problem.d * problem.dtype.itemsize
    slots = max(2, -(-min(GATHERED_BYTES // row_bytes, order.size) // block))
    blocks = make_blocks(problem, block, slots)
    for start in range(0, order.size, slots * block):
        for run in runs:
            run.clock.resume()
            run.step_on_blocks(blocks, order[start : start + slots * block], gather=run is runs[0])
            run.clock.pause()
