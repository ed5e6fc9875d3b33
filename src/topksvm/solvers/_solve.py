"""Training without an estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm.data import (
    check_budget,
    check_labels,
    check_rows,
    check_weights,
    is_streamed,
    open_source,
)
from topksvm.solvers._choice import loss_for
from topksvm.solvers._result import Result
from topksvm.solvers._run import Stopping
from topksvm.solvers._sdca import SDCAOptions
from topksvm.solvers._train import Setup, TrainingData, train_on

Floats = NDArray[np.floating[Any]]


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
    callback: Any = None,
    checkpoint: Any = None,
    memory_limit: int | None = None,
) -> Result:
    r"""Train without an estimator: minimise the objective to a proven gap.

    .. math::
        \min_W \; \tfrac12 \|W\|_F^2 + \sum_i C_i \, \phi(W x_i, y_i)

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d), float32 or float64, or rows on disk
        Never written; copied only if it is in Fortran order or has repeated CSR entries. Rows on
        disk are what :meth:`topksvm.TopKLinearSVC.fit` takes: memory maps larger than
        `memory_limit`, float16 and bfloat16 arrays, lists of ``.npy`` files, Arrow data sets, any
        object with the methods of :class:`topksvm.data.RowSource`.
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
    callback : callable, optional
        Called with a :class:`~topksvm.solvers.Progress` after each update of the solver. An
        exception in it ends the run.
    checkpoint : path, optional
        A folder for the state of the run, from which a run of the same problem is resumed.
    memory_limit : int, optional
        Bytes that training may use.

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
    rows = open_source(X) if is_streamed(X, memory_limit) else check_rows(X)
    labels, m = check_labels(y, rows.shape[0], n_classes)
    weights = check_weights(C, rows.shape[0])
    check_budget(tol, max_iter, max_time)
    if block_size is not None and block_size < 1:
        raise ValueError(f"block_size = {block_size}; it must be at least 1, or None to choose.")
    limit = np.inf if max_time is None else float(max_time)
    setup = Setup(
        solver,
        Stopping(tol, max_iter, limit),
        SDCAOptions(block_size, active, seed=seed),
        callback,
    )
    return train_on(
        TrainingData(rows, labels, weights, m, bias),
        loss_for(m, loss, k, smoothing),
        setup,
        n_jobs=n_jobs,
        warm=warm,
        checkpoint=checkpoint,
        memory_limit=memory_limit,
    )
