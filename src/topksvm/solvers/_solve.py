"""One entry to all solvers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from topksvm._interrupts import stoppable
from topksvm._threads import fit_threads
from topksvm.data import (
    Problem,
    check_budget,
    check_labels,
    check_rows,
    check_weights,
    make_problem,
)
from topksvm.losses import LOSSES
from topksvm.solvers._lbfgs import LBFGS
from topksvm.solvers._result import Result, Status
from topksvm.solvers._sdca import SDCA, SDCAOptions
from topksvm.solvers._start import start_duals, start_weights

Floats = NDArray[np.floating[Any]]

SOLVERS = ("auto", "sdca", "lbfgs")


def make_loss(name: str, k: int = 1, smoothing: float = 0.0) -> Any:
    """Return the loss of that name; complain about parameters that it does not have."""
    if name not in LOSSES:
        raise ValueError(f"loss = {name!r} is not known; it must be one of {', '.join(LOSSES)}.")
    kind: Any = LOSSES[name]
    if "k" not in kind._fields and k != 1:
        raise ValueError(f"k = {k} has no meaning for loss = {name!r}; leave it at 1.")
    if "smoothing" not in kind._fields and smoothing != 0.0:
        raise ValueError(
            f"smoothing = {smoothing} has no meaning for loss = {name!r}, which is smooth already; "
            "leave it at 0."
        )
    parameters = {"k": int(k), "smoothing": float(smoothing)}
    return kind(**{field: parameters[field] for field in kind._fields if field in parameters})


def choose_solver(solver: str, name: str, loss: Any) -> str:
    """Return ``"sdca"`` or ``"lbfgs"``; complain if the one asked for cannot solve the loss."""
    if solver not in SOLVERS:
        raise ValueError(f"solver = {solver!r} is not known; it must be one of {SOLVERS}.")
    has_step = hasattr(type(loss), "dual_step")
    is_smooth = hasattr(type(loss), "gradient") and getattr(loss, "smoothing", 1.0) > 0.0
    if solver == "lbfgs" and not is_smooth:
        raise ValueError(
            f"solver = 'lbfgs' needs a smooth loss, and {name!r} has kinks; use solver='sdca', or "
            "smoothing > 0."
        )
    if solver == "sdca" and not has_step:
        raise ValueError(
            f"solver = 'sdca' needs a dual step, which {name!r} does not have; use solver='lbfgs'."
        )
    if solver != "auto":
        return solver
    # Smooth losses have dense duals: all classes are always in play.
    return "lbfgs" if is_smooth else "sdca"


def solve(
    X: Any,
    y: Any,
    loss: str = "topk_hinge_alpha",
    C: float | Floats = 1.0,
    *,
    k: int = 1,
    smoothing: float = 0.0,
    n_classes: int | None = None,
    solver: str = "auto",
    bias: float = 0.0,
    tol: float = 1e-3,
    max_iter: int = 1000,
    max_time: float | None = None,
    block_size: int | None = None,
    active: bool = True,
    seed: int = 0,
    n_jobs: int | None = None,
    warm: Result | None = None,
    report: Any = None,
) -> Result:
    r"""Train without an estimator: minimise the objective to a proven gap.

    .. math::
        \min_W \; \tfrac12 \|W\|_F^2 + \sum_i C_i \, \phi(W x_i, y_i)

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d), float32 or float64
        Never written; copied only if it is in Fortran order or has repeated CSR entries.
    y : array of shape (n,)
        Labels from 0 to ``n_classes - 1``.
    loss : str
        A name from :data:`topksvm.losses.LOSSES`.
    C : float or array of shape (n,)
        The weight of the loss, or of each example's.
    k, smoothing : int, float
        Parameters of the loss.
    n_classes : int, optional
        One more than the largest label by default.
    solver : {"auto", "sdca", "lbfgs"}
        Dual coordinate ascent, or L-BFGS for smooth losses (chosen for them by default).
    bias : float
        The value of a constant last feature, 0 for none.
    tol : float
        Stop when the relative duality gap is at most this.
    max_iter : int
        The most passes over the examples.
    max_time : float, optional
        Stop after so many seconds.
    block_size : int, optional
        Examples scored by one matrix product; the result does not depend on it but for rounding.
    active : bool
        Whether to make passes over the classes in play between those over all.
    seed : int
        The order in which examples are visited.
    n_jobs : int, optional
        Threads; all processors by default, and with -1; all but one with -2, and so on.
    warm : Result, optional
        An earlier result to start from. Dual coordinate ascent needs one for the same rows and
        classes, L-BFGS one for the same features and classes; loss, `k` and `C` may be others.
    report : callable, optional
        Called after each full pass as ``report(passes, seconds, estimate of the relative gap)``.

    Returns
    -------
    Result
        Weights, duals, certificate and history.

    Examples
    --------
    >>> import numpy as np, topksvm
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 5))
    >>> y = X[:, :3].argmax(axis=1)
    >>> result = topksvm.solve(X, y, "topk_hinge_alpha", C=0.1)
    >>> result.weights.shape, result.certificate.relative_gap <= 1e-3
    ((3, 5), True)
    """
    X = check_rows(X)
    labels, m = check_labels(y, X.shape[0], n_classes)
    weights = check_weights(C, X.shape[0])
    check_budget(tol, max_iter, max_time)
    if block_size is not None and block_size < 1:
        raise ValueError(f"block_size = {block_size}; it must be at least 1, or None to choose.")
    return solve_checked(
        X,
        labels,
        m,
        weights,
        loss,
        k=k,
        smoothing=smoothing,
        solver=solver,
        bias=bias,
        n_jobs=n_jobs,
        warm=warm,
        report=report,
        options=SDCAOptions(
            tol,
            max_iter,
            np.inf if max_time is None else float(max_time),
            block_size,
            active,
            seed=seed,
        ),
    )


def solve_checked(
    X: Any,
    labels: NDArray[np.integer[Any]],
    m: int,
    C: Floats,
    loss: str,
    *,
    k: int,
    smoothing: float,
    solver: str,
    bias: float,
    n_jobs: int | None,
    warm: Result | None,
    report: Any,
    options: SDCAOptions,
) -> Result:
    """Solve as :func:`solve` does, for data that have been checked."""
    parts = make_loss(loss, k, smoothing)
    if not 1 <= k < m:
        raise ValueError(f"k = {k} but there are {m} classes; k must be between 1 and {m - 1}.")
    chosen = choose_solver(solver, loss, parts)

    def work() -> Result:
        problem = make_problem(X, labels, C, m, bias)
        return run_solver(chosen, parts, problem, options, warm, report)

    with fit_threads(n_jobs):
        return stoppable(work)


def run_solver(
    solver: str,
    loss: Any,
    problem: Problem,
    options: SDCAOptions,
    warm: Result | None = None,
    report: Any = None,
) -> Result:
    """Run ``"sdca"`` or ``"lbfgs"``."""
    if solver == "sdca":
        result = SDCA(loss, problem, options, start_duals(warm, loss, problem)).run(report)
    else:
        result = LBFGS(
            loss,
            problem,
            tol=options.tol,
            max_iter=options.max_iter,
            max_time=options.max_time,
            weights=start_weights(warm, problem),
        ).run(report)
    result.C = problem.examples.C
    return result


def warn_unless_solved(
    result: Result,
    tol: float,
    stacklevel: int = 3,
    *,
    what: str = "Not",
    has_warm_start: bool = True,
) -> None:
    """Say how far from the optimum the result may be, what that means, and what to change."""
    if result.status is Status.SOLVED:
        return
    certificate = result.certificate
    advice = {
        Status.MAX_ITER: "Raise max_iter, or lower C, or scale the features to a similar range.",
        Status.MAX_TIME: "Raise max_time, or lower C, or scale the features to a similar range.",
        Status.STALLED: (
            f"Of that, {100 * certificate.relative_rounding:.3g} % is room for rounding errors in "
            "float64. Use float64 input, a larger tol, a smaller C, or features and an intercept "
            "scaling of a similar range."
        ),
        Status.INTERRUPTED: (
            "The model is usable; fit again with warm_start=True to go on."
            if has_warm_start
            else "The model is usable; to go on, fit again."
        ),
    }[result.status]
    warnings.warn(
        f"{what} solved to tol = {tol:g}: {result.status.value}. The relative duality gap is "
        f"{certificate.relative_gap:.3g}: the objective, {certificate.primal:.6g}, can be "
        f"lowered by at most {100 * certificate.relative_gap:.3g} %. {advice}",
        ConvergenceWarning,
        stacklevel=stacklevel,
    )
