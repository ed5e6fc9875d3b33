"""Several models of the same examples, trained side by side.

Every full pass visits the examples in one order for all models, a segment at a time, so a row is
read once for all of them, and the Gram matrices of its blocks are computed once. Between full
passes each model goes its own way; one that is solved drops out.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from topksvm.solvers._result import Result, Status
from topksvm.solvers._sdca import SDCA, SEGMENT


def run_together(runs: Sequence[SDCA]) -> list[Result]:
    """Run until each is solved or its budget is used up, or Ctrl-C; return the results in order.

    All must be of the same rows, with weights above zero for the same examples. The order of the
    examples does not depend on which models are trained together.
    """
    statuses = [Status.INTERRUPTED] * len(runs)
    live = list(range(len(runs)))
    first = runs[0]
    rng = np.random.default_rng(first.options.seed)
    rows = SEGMENT // first.block * first.block
    grams = np.empty((rows // first.block, first.block, first.block), first.problem.dtype)
    with suppress(KeyboardInterrupt):
        while live:
            order = rng.permutation(first.members)
            sums = {number: np.zeros(2) for number in live}
            for start in range(0, order.size, rows):
                part = order[start : start + rows]
                for number in live:
                    runs[number].part_of_full_pass(part, sums[number], grams, number != live[0])
            for number in list(live):
                run = runs[number]
                status = run.after_full_pass(run.end_full_pass(sums[number]))
                if status is not None:
                    statuses[number] = status
                    live.remove(number)
    return [run.finish(status) for run, status in zip(runs, statuses, strict=True)]
