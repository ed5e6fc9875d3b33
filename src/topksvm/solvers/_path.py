"""One problem for growing weights of the loss, each start from the solution before.

Duals that are feasible for ``C`` are feasible for every larger one, and times ``C' / C`` as well,
as those of an example lie in ``C_i`` times a convex set that holds 0. Where most examples are at
their bounds the solution grows with ``C``; where few are, it hardly changes. The best factor in
between maximises the dual objective, a parabola in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm._interrupts import StopRequested, is_stop_requested
from topksvm.data import (
    Problem,
    check_budget,
    check_labels,
    check_rows,
    check_weights,
    make_problem,
)
from topksvm.solvers._certificate import lower_duals, rebuild_weights, sum_dual_values
from topksvm.solvers._choice import loss_for
from topksvm.solvers._duals import Duals
from topksvm.solvers._result import Result, Status
from topksvm.solvers._run import Stopping
from topksvm.solvers._sdca import SDCAOptions
from topksvm.solvers._start import start_from_duals
from topksvm.solvers._train import Setup, run_fit, run_solver, warn_unless_solved

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Path:
    """The solutions for several weights of the loss.

    Attributes
    ----------
    Cs : ndarray
        The weights, in the order asked for; those that were reached, if the path was interrupted.
    results : list of Result
        The solution for each, with its own certificate.

    See Also
    --------
    topksvm.path : What makes one.

    Examples
    --------
    It has a length, and goes through pairs of a weight and its solution.

    >>> import numpy as np, topksvm
    >>> X, y = np.eye(4), np.array([0, 1, 2, 2])
    >>> points = topksvm.path(X, y, Cs=[1.0, 0.1])
    >>> len(points), points.Cs
    (2, array([1. , 0.1]))
    >>> [(C, result.status.name) for C, result in points]
    [(1.0, 'SOLVED'), (0.1, 'SOLVED')]
    """

    Cs: Floats
    results: list[Result]

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[tuple[float, Result]]:
        return iter(zip(self.Cs.tolist(), self.results, strict=True))


def path(
    X: Any,
    y: Any,
    loss: str = "topk_hinge_alpha",
    Cs: Any = 10,
    *,
    k: int = 1,
    smoothing: float = 0.0,
    sample_weight: Any = None,
    n_classes: int | None = None,
    solver: str = "auto",
    bias: float = 0.0,
    tol: float = 1e-3,
    max_iter: int = 1000,
    max_time: float | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
) -> Path:
    r"""Train for several `C`, each from the solution for the one before.

    .. math::
        W(C) = \arg\min_W \; \tfrac12 \|W\|_F^2 + C \sum_i w_i \, \phi(W x_i, y_i)

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d), float32 or float64
        The rows, as for :func:`topksvm.solve`.
    y : array of shape (n,)
        Labels from 0 to ``n_classes - 1``.
    loss : str
        A name from :data:`topksvm.losses.LOSSES`.
    Cs : int or array of shape (n_points,)
        The weights of the loss, or how many of them to take from 1e-5 to 1e3, the grid of the
        paper. They are visited from the smallest to the largest.
    k, smoothing : int, float
        Parameters of the loss.
    sample_weight : array of shape (n,), optional
        The weights ``w_i`` of the examples.
    n_classes, solver, bias, tol : int, str, float, float
        As for :func:`topksvm.solve`.
    max_iter, max_time : int, float
        The budget of each point. A point that is not solved within it is a ``ConvergenceWarning``
        that names its `C`, and the path goes on. After Ctrl-C it ends with the points that it has.
    seed, n_jobs : int
        As for :func:`topksvm.solve`.

    Returns
    -------
    Path
        The results in the order of `Cs`, each with its certificate.

    Examples
    --------
    >>> import numpy as np, topksvm
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 5))
    >>> y = X[:, :3].argmax(axis=1)
    >>> points = topksvm.path(X, y, "topk_hinge_alpha", [0.01, 0.1, 1.0])
    >>> [bool(result.certificate.relative_gap <= 1e-3) for C, result in points]
    [True, True, True]
    """
    X = check_rows(X)
    labels, m = check_labels(y, X.shape[0], n_classes)
    weights = check_weights(1.0 if sample_weight is None else sample_weight, X.shape[0])
    check_budget(tol, max_iter, max_time)
    grid = check_grid(Cs)
    limit = np.inf if max_time is None else float(max_time)
    setup = Setup(solver, Stopping(tol, max_iter, limit), SDCAOptions(seed=seed))
    parts = loss_for(m, loss, k, smoothing)
    order = np.argsort(grid, kind="stable")

    def work() -> list[tuple[float, Result]]:
        problem = make_problem(X, labels, weights, m, bias)
        points: list[tuple[float, Result]] = []
        try:
            points.extend(solve_path(problem, parts, grid[order].tolist(), setup))
        except StopRequested:
            if not points:
                raise
        return points

    points = run_fit(work, n_jobs)
    for C, result in points:
        warn_unless_solved(result, tol, what=f"At C = {C:g}: not")
    # After Ctrl-C there are fewer; they stay in the order asked for.
    reached = sorted(zip(order.tolist(), points, strict=False), key=lambda pair: pair[0])
    return Path(grid[[place for place, _ in reached]], [point[1] for _, point in reached])


def check_grid(Cs: Any) -> Floats:
    """Return the weights of the loss; complain unless they are positive and finite."""
    if isinstance(Cs, int | np.integer) and not isinstance(Cs, bool):
        if Cs < 1:
            raise ValueError(f"Cs = {Cs}; a number of points must be at least 1.")
        return np.logspace(-5.0, 3.0, int(Cs))
    grid = np.asarray(Cs, dtype=np.float64)
    if grid.ndim != 1 or grid.size == 0:
        raise ValueError(f"Cs has shape {grid.shape}; it must be a list of numbers, or how many.")
    if not (np.isfinite(grid) & (grid > 0.0)).all():
        bad = grid[~(np.isfinite(grid) & (grid > 0.0))][0]
        raise ValueError(f"Cs holds {bad}; every C must be above 0 and finite.")
    return grid


def solve_path(
    problem: Problem,
    loss: Any,
    Cs: Sequence[float],
    setup: Setup,
    start: tuple[float, Result] | None = None,
) -> Iterator[tuple[float, Result]]:
    """Yield the solution of `problem` for each of the growing `Cs` times its own weights."""
    for C in Cs:
        scaled = at(problem, C)
        warm = None if start is None else adapt(start[1], loss, scaled, C / start[0])
        start = C, run_solver(loss, scaled, setup, warm)
        yield start
        if start[1].status is Status.INTERRUPTED or is_stop_requested():
            return


def at(problem: Problem, C: float) -> Problem:
    """Return the problem with its weights of examples times `C`."""
    return replace(problem, examples=problem.examples._replace(C=C * problem.examples.C))


def adapt(result: Result, loss: Any, problem: Problem, ratio: float) -> Result:
    """Return `result` as a start for weights that are `ratio`, at least 1, times as large."""
    if result.duals is None:
        return result
    duals = start_from_duals(result.duals, loss, problem, result.C)
    exact = rebuild_weights(problem, duals)
    norm = float(np.vdot(exact, exact))
    total = float(sum_of_values(duals))
    best = min(ratio, total / norm) if norm > 0.0 else ratio
    longer = times(duals, max(1.0, best))
    lower_duals(loss, problem.examples, longer)

    def dual(candidate: Duals, factor: float) -> float:
        part = float(sum_dual_values(loss, problem.examples, candidate)[0])
        return part - 0.5 * factor * factor * norm

    is_better = dual(longer, max(1.0, best)) > dual(duals, 1.0)
    return replace(result, duals=longer if is_better else duals, C=problem.examples.C)


def times(duals: Duals, factor: float) -> Duals:
    """Return `factor` times the duals."""
    values = duals.values.copy()
    values[: duals.used[0]] *= factor  # What comes after is not in use, and may be anything.
    return duals._replace(values=values)


def sum_of_values(duals: Duals) -> float:
    """Return the sum of all dual variables."""
    live = np.repeat(duals.start, duals.count)
    within = np.arange(live.size) - np.repeat(np.cumsum(duals.count) - duals.count, duals.count)
    return float(duals.values[live + within].sum())
