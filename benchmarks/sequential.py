"""Sequential SDCA as the paper prints it: one row at a time, all classes, no active passes.

Without the kernel below, ``solve(..., block_size=1, active=False)`` is the same algorithm, which
updates the weights of no other classes than those that have changed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from topksvm._numba import borrow, kernel
from topksvm.data import Problem, add_row, make_problem
from topksvm.losses import LOSSES
from topksvm.solvers import SDCA, Result, Run, SDCAOptions, Stopping
from topksvm.solvers._engine import Engine
from topksvm.solvers._passes import sequential_step

ONE_BY_ONE: dict[str, Any] = {"block_size": 1, "active": False}
"""Options of `solve` for one row at a time."""


class PrintedSDCA(SDCA):
    r"""Algorithm 1 of Lapin, Hein and Schiele (2015).

    For each example the scores :math:`W^\top x_i`, the exact step, and the rank-1 update
    :math:`W \gets W + x_i (a_i - a_i^{\text{old}})^\top`, all of them over all classes. The
    duality gap is computed when the losses of a pass say that it is small enough, not after every
    pass.
    """

    def __init__(self, loss: Any, problem: Problem) -> None:
        super().__init__(loss, problem, SDCAOptions(**ONE_BY_ONE))
        self.engine = PrintedEngine(loss, problem, 0, 1)


class PrintedEngine(Engine):
    """Passes with updates of all classes."""

    def full_pass(self, state: Any, order: Any, *_: Any, **__: Any) -> Any:
        """See the base class."""
        change = np.zeros(self.problem.m)

        def work(state: Any, part: slice) -> int:
            return printed_pass(self.loss, state, order[part], change)

        return self._in_segments(state, work, order.size)


@kernel
def printed_pass(loss, state, index, change):
    """Step on the examples `index` one by one as printed; return how many were done.

    `change` has room for that of an example, for all classes.
    """
    state = borrow(state)
    duals, changes = state.duals, state.changes
    for done in range(index.size):
        if duals.used[0] + change.size > duals.classes.size:
            return done
        i = index[done]
        end = sequential_step(loss, state, i)
        change[:] = 0.0
        for p in range(end):
            change[changes.classes[p]] = changes.values[p]
        for k in range(change.size):
            add_row(state.rows, state.weights, i, state.x, k, change[k])
    return index.size


def solve_as_printed(X: Any, y: Any, C: float, k: int, tol: float) -> Result:
    """Minimise the top-k hinge loss to a relative gap."""
    problem = make_problem(X, y, np.full(len(y), C), int(y.max()) + 1)
    loss: Any = LOSSES["topk_hinge_alpha"]
    return Run(PrintedSDCA(loss(k), problem), Stopping(tol, max_iter=100_000)).complete()
