"""The one place where dual variables from elsewhere enter a solver.

An earlier result, a checkpoint or a message may be about other examples, another loss, `k` or `C`,
or damaged. Here everything that a kernel would use as a position is checked, and the values are
brought into the domain of this problem and this loss, in which zero always is. What comes out is a
start like any other: however bad it is, the certificate at the end is right.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm._numba import borrow, kernel
from topksvm.data import Problem
from topksvm.losses import make_feasible
from topksvm.solvers._duals import Duals, empty_duals
from topksvm.solvers._result import Result

Floats = NDArray[np.floating[Any]]

DTYPES = Duals(
    *(np.dtype(kind) for kind in (np.int64, np.int32, np.int32, np.float64, np.int64))  # type: ignore[arg-type]
)


NO_LABELS = np.empty(0, np.int32)


def check_structure(duals: Any, n: int, m: int, labels: Any = NO_LABELS) -> None:
    """Raise ValueError unless `duals` are those of `n` examples and `m` classes, safe to read.

    If the `labels` are given, none may be a variable of the true class.
    """
    if not isinstance(duals, tuple) or len(duals) != len(Duals._fields):
        raise ValueError(f"the duals are a {type(duals).__name__}, not what a solver returns")
    for name, array, dtype in zip(Duals._fields, duals, DTYPES, strict=True):
        if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype != dtype:
            raise ValueError(f"{name} of the duals is no array of {dtype} with one dimension")
    start, count, classes, values, _ = duals
    if not start.size == count.size == n:
        raise ValueError(f"the duals are those of {start.size} rows, and here there are {n}")
    end = start + count
    if classes.size != values.size or not (
        (start >= 0).all() and (count >= 0).all() and (end >= start).all()
    ):
        raise ValueError("the places of the duals are damaged")
    if (end[count > 0] > classes.size).any():
        raise ValueError("the duals are incomplete")
    bad = int(find_bad(duals, m, labels))
    if bad >= 0:
        raise ValueError(
            f"the duals of row {bad} are damaged: wrong classes from 0 to {m - 1} are allowed, "
            "each once, with finite values of at least 0"
        )


def start_from_duals(
    duals: Duals, loss: Any, problem: Problem, old_C: Floats | None = None
) -> Duals:
    """Return duals to start from: those given, in the domain of this problem and loss, in a copy.

    Where the weight ``C_i`` of an example is now less than in `old_C`, its duals shrink with it.
    """
    check_structure(duals, problem.n, problem.m)
    C = problem.examples.C
    factors = np.ones(problem.n)
    if old_C is not None and old_C.shape == C.shape:
        shrunk = (old_C > C) & (old_C > 0.0)
        factors[shrunk] = C[shrunk] / old_C[shrunk]
    fresh = empty_duals(problem.n, int(duals.count.sum()) + 1)
    adopt(loss, problem.examples, duals, factors, fresh)
    return fresh


def start_duals(warm: Result | None, loss: Any, problem: Problem) -> Duals | None:
    """Return the duals of an earlier result to start dual coordinate ascent from."""
    if warm is None:
        return None
    _check_kind(warm)
    if warm.duals is None:
        raise ValueError(
            "warm has no dual variables, as it was solved by L-BFGS; dual coordinate ascent starts "
            "from those. Use solver='lbfgs', or leave warm out."
        )
    try:
        return start_from_duals(warm.duals, loss, problem, warm.C)
    except ValueError as error:
        raise ValueError(
            f"warm cannot be a start for this problem: {error}. Pass a result for the same rows "
            "and classes, or leave warm out."
        ) from None


def start_weights(warm: Result | None, problem: Problem) -> Floats | None:
    """Return the weights of an earlier result to start L-BFGS from."""
    if warm is None:
        return None
    _check_kind(warm)
    weights = np.asarray(warm.weights)
    if weights.shape != (problem.m, problem.d) or not np.isfinite(weights).all():
        raise ValueError(
            f"warm cannot be a start for this problem: it has weights of shape {weights.shape}; "
            f"finite ones of shape ({problem.m}, {problem.d}) are needed, for the classes and the "
            "features with the constant one. Pass a result for the same classes and features, or "
            "leave warm out."
        )
    return weights


def _check_kind(warm: Any) -> None:
    if not isinstance(warm, Result):
        raise TypeError(
            f"warm is of type {type(warm).__name__}; it must be a Result of topksvm.solve, or None."
        )


@kernel
def find_bad(duals, m, labels):
    """Return the first example whose classes or values are not allowed, -1 if there is none."""
    seen = np.full(m, -1, np.int64)
    for i in range(duals.start.size):
        if labels.size > 0:
            seen[labels[i]] = i
        for p in range(duals.start[i], duals.start[i] + duals.count[i]):
            k, x = duals.classes[p], duals.values[p]
            if k < 0 or k >= m or not (0.0 <= x < np.inf) or seen[k] == i:
                return i
            seen[k] = i
    return -1


@kernel
def adopt(loss, examples, source, factors, target):
    """Write ``factors[i]`` times the duals of each example, made feasible, to the empty `target`.

    A variable of what is now the true class is left out.
    """
    examples, source, target = borrow(examples), borrow(source), borrow(target)
    used = 0
    for i in range(source.start.size):
        begin = used
        for p in range(source.start[i], source.start[i] + source.count[i]):
            if source.classes[p] != examples.labels[i]:
                target.classes[used] = source.classes[p]
                target.values[used] = factors[i] * source.values[p]
                used += 1
        make_feasible(loss, target.values[begin:used], used - begin, examples.C[i])
        kept = begin
        for p in range(begin, used):
            if target.values[p] > 0.0:
                target.classes[kept], target.values[kept] = target.classes[p], target.values[p]
                kept += 1
        target.start[i], target.count[i] = begin, kept - begin
        used = kept
    target.used[0] = used
