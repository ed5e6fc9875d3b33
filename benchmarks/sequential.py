"""Sequential SDCA, the reference: one row at a time, all classes, no active passes.

It takes the library's kernels apart, and so needs its private modules.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm._numba import borrow, kernel
from topksvm.data import Problem, add_row, make_problem
from topksvm.losses import LOSSES
from topksvm.solvers import SDCA, Result, SDCAOptions
from topksvm.solvers._passes import sequential_step


class SequentialSDCA(SDCA):
    """Sequential SDCA that updates the weights of no other classes than those that have changed."""

    def __init__(self, loss: Any, problem: Problem, options: SDCAOptions) -> None:
        super().__init__(loss, problem, replace(options, active=False))

    def part_of_full_pass(self, order: NDArray[np.int64]) -> float:
        """See the base class."""
        return self._counted(lambda part: self._sequential(order[part]), order.size)


class PrintedSDCA(SequentialSDCA):
    r"""Algorithm 1 of Lapin, Hein and Schiele (2015).

    For each example the scores :math:`W^\top x_i`, the exact step, and the rank-1 update
    :math:`W \gets W + x_i (a_i - a_i^{\text{old}})^\top`, all of them over all classes. The
    duality gap is computed when the losses of a pass say that it is small enough, not after every
    pass.
    """

    def _sequential(self, index: NDArray[np.int64]) -> int:
        return printed_pass(
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
            np.zeros(self.problem.m),
            self.sums,
        )


@kernel
def printed_pass(
    loss, rows, weights, index, examples, duals, candidates, changes, scratch, x, scores, change,
    sums,
):  # fmt: skip
    """Step on the examples `index` one by one as printed; return how many were done.

    `change` has room for that of an example, for all classes.
    """
    rows, weights, examples, duals = borrow(rows), borrow(weights), borrow(examples), borrow(duals)
    candidates, changes, scratch = borrow(candidates), borrow(changes), borrow(scratch)
    x, scores = borrow(x), borrow(scores)
    for done in range(index.size):
        if duals.used[0] + scores.size > duals.classes.size:
            return done
        i = index[done]
        end = sequential_step(
            loss, rows, weights, i, examples, duals, candidates, changes, scratch, x, scores, sums
        )
        change[:] = 0.0
        for p in range(end):
            change[changes.classes[p]] = changes.values[p]
        for k in range(change.size):
            add_row(rows, weights, i, x, k, change[k])
    return index.size


def solve_sequentially(
    kind: type[SequentialSDCA], X: Any, y: Any, C: float, k: int, tol: float
) -> Result:
    """Minimise the top-k hinge loss to a relative gap."""
    problem = make_problem(X, y, np.full(len(y), C), int(y.max()) + 1)
    loss: Any = LOSSES["topk_hinge_alpha"]
    return kind(loss(k), problem, SDCAOptions(tol, max_iter=100_000)).run()
