"""From a problem to a result: the one way in for :func:`topksvm.solve`, paths and estimators."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from topksvm._interrupts import stoppable
from topksvm._threads import fit_threads
from topksvm.data import (
    MIN_PIECE,
    KernelProblem,
    Problem,
    RowSource,
    StreamedProblem,
    make_problem,
    make_streamed_problem,
    open_source,
)
from topksvm.solvers._checkpoint import CheckpointFolder
from topksvm.solvers._choice import check_dual_step, choose_solver, name_of
from topksvm.solvers._kernel_sdca import KernelSDCA
from topksvm.solvers._lbfgs import LBFGS
from topksvm.solvers._result import Result, Status
from topksvm.solvers._resume import Checkpoints
from topksvm.solvers._run import Callback, Run, Solver, Stopping
from topksvm.solvers._sdca import SDCA, SDCAOptions
from topksvm.solvers._start import start_duals, start_weights
from topksvm.solvers._streaming import StreamedSDCA, memory_needed

Floats = NDArray[np.floating[Any]]
T = TypeVar("T")

WINDOW_BYTES = 1 << 29
"""Memory of each of the two windows, unless a limit says otherwise."""


@dataclass(frozen=True)
class Setup:
    """How to solve a problem.

    Parameters
    ----------
    solver : {"auto", "sdca", "lbfgs"}
        Which solver; see :func:`choose_solver`.
    stopping : Stopping
        When to stop.
    options : SDCAOptions
        For dual coordinate ascent.
    callback : callable, optional
        Told of the progress.
    """

    solver: str = "auto"
    stopping: Stopping = field(default_factory=Stopping)
    options: SDCAOptions = field(default_factory=SDCAOptions)
    callback: Callback | None = None


@dataclass(frozen=True)
class TrainingData:
    """Checked examples before they are a problem, which takes a look at all rows.

    Attributes
    ----------
    rows : ndarray, CSR matrix or source of rows
        In memory, or wherever a source reads them.
    labels : ndarray of shape (n,)
        From 0 to ``m - 1``.
    C : ndarray of shape (n,)
        The weights of the loss.
    m : int
        The number of classes.
    bias : float
        The value of the constant feature, 0 for none.
    """

    rows: Any
    labels: NDArray[np.integer[Any]]
    C: Floats
    m: int
    bias: float = 0.0

    @property
    def is_source(self) -> bool:
        """Whether the rows are read from a source."""
        return isinstance(self.rows, RowSource)

    def make_problem(self, loss: Any, memory_limit: int | None = None) -> Problem:
        """Return the problem; complain if the limit on memory leaves too little for windows."""
        if not self.is_source:
            return make_problem(self.rows, self.labels, self.C, self.m, self.bias)
        rows = window_rows(self.rows, self.m, loss, memory_limit)
        return make_streamed_problem(self.rows, self.labels, self.C, self.m, self.bias, rows)


def make_solver(loss: Any, problem: Any, setup: Setup, warm: Result | None = None) -> Solver:
    """Return the solver for a problem and a loss, before its first update."""
    if isinstance(problem, KernelProblem):
        check_dual_step("A kernel machine", loss)
        return KernelSDCA(loss, problem, setup.options.seed)
    chosen = choose_solver(setup.solver, loss)
    if isinstance(problem, StreamedProblem):
        return StreamedSDCA(loss, problem, setup.options)
    if chosen == "sdca":
        return SDCA(loss, problem, setup.options, start_duals(warm, loss, problem))
    return LBFGS(loss, problem, start_weights(warm, problem))


def run_solver(
    loss: Any,
    problem: Any,
    setup: Setup,
    warm: Result | None = None,
    checkpoints: Checkpoints | None = None,
) -> Result:
    """Solve a problem, on the threads and with the interrupts of the caller."""
    solver = make_solver(loss, problem, setup, warm)
    result = Run(solver, setup.stopping, setup.callback, checkpoints).complete()
    result.C = problem.examples.C
    return result


def train(make: Callable[[], Any], loss: Any, setup: Setup, n_jobs: int | None) -> Result:
    """Make a problem and solve it, on so many threads, and let Ctrl-C end it cleanly."""
    return run_fit(lambda: run_solver(loss, make(), setup), n_jobs)


def run_fit(work: Callable[[], T], n_jobs: int | None) -> T:
    """Return ``work()``, done on so many threads, which Ctrl-C stops at its next safe place.

    The threads of BLAS are limited by the work itself, where no interrupt can get in between.
    """

    def limited() -> T:
        with fit_threads(n_jobs):
            return work()

    return stoppable(limited)


def train_on(
    data: TrainingData,
    loss: Any,
    setup: Setup,
    *,
    n_jobs: int | None = None,
    warm: Result | None = None,
    checkpoint: Any = None,
    memory_limit: int | None = None,
) -> Result:
    """Solve for examples wherever they are, from a checkpoint or an earlier result if there is one.

    With a `checkpoint`, a folder, rows in memory are visited in windows, too.
    """
    if checkpoint is not None and not data.is_source:
        data = replace(data, rows=open_source(data.rows))
    if data.is_source:
        check_streamable(setup.solver, loss, warm)

    def work(folder: CheckpointFolder | None = None) -> Result:
        checkpoints = None if folder is None else Checkpoints(folder)
        problem = data.make_problem(loss, memory_limit)
        return run_solver(loss, problem, setup, warm, checkpoints)

    if checkpoint is None:
        return run_fit(work, n_jobs)
    with CheckpointFolder(checkpoint, identity(data, loss, setup, memory_limit)) as folder:
        return run_fit(lambda: work(folder), n_jobs)


def check_streamable(solver: str, loss: Any, warm: Result | None = None) -> None:
    """Complain about what rows on disk, or checkpoints, cannot be combined with."""
    if warm is not None:
        raise ValueError(
            "A warm start needs all rows in memory; use checkpoint= to resume a fit on disk."
        )
    if solver == "lbfgs" or not loss.traits.has_dual_step:
        choose_solver(solver, loss)
        raise ValueError(
            f"loss = {name_of(loss)} with solver = {solver!r} trains by L-BFGS, which needs all "
            "rows in memory. Use solver='sdca' with a loss that has a dual step: softmax or a "
            "top-k hinge."
        )


def window_rows(source: RowSource, m: int, loss: Any, memory_limit: int | None) -> int:
    """Return how many rows fit into a window; complain if the limit leaves too little."""
    n, d = source.shape
    row = max(1, d * source.dtype.itemsize)
    if memory_limit is None:
        return max(1, WINDOW_BYTES // row)
    k = loss.k if loss.traits.uses_k else 1
    fixed = memory_needed(n, d, m, k, source.dtype)
    largest = max(stop - start for start, stop in source.pieces(MIN_PIECE))
    rows = (memory_limit - fixed) // (2 * row)
    if rows < min(largest, n):
        least = fixed + 2 * row * min(largest, n)
        raise ValueError(
            f"memory_limit = {memory_limit} bytes is too little: the weights, the duals and two "
            f"windows of this problem take at least {least}. Raise memory_limit."
        )
    return int(rows)


def identity(
    data: TrainingData, loss: Any, setup: Setup, memory_limit: int | None
) -> dict[str, Any]:
    """Return what must be the same for a run to be resumed."""
    source = data.rows
    return {
        "shape": list(source.shape),
        "data": fingerprint(source),
        "labels": _hash(data.labels),
        "weights": _hash(data.C),
        "classes": data.m,
        "loss": repr(loss),
        "bias": data.bias,
        "seed": setup.options.seed,
        "precision": str(source.dtype),
        "window": window_rows(source, data.m, loss, memory_limit),
    }


def fingerprint(source: RowSource) -> str:
    """Return a hash of the first, the last and some rows in between."""
    pieces = source.pieces(MIN_PIECE)
    chosen = sorted({round(i * (len(pieces) - 1) / 7) for i in range(8)})
    digest = hashlib.sha256()
    for number in chosen:
        start, stop = pieces[number]
        rows = np.empty((stop - start, source.shape[1]), source.dtype)
        source.read(start, stop, rows)
        digest.update(rows.tobytes())
    return digest.hexdigest()[:16]


def _hash(array: NDArray[Any]) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]


def warn_unless_solved(
    result: Result, tol: float, stacklevel: int = 3, *, what: str = "Not"
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
            "The model is usable; to continue, fit again, with warm_start=True where there is such "
            "a parameter."
        ),
    }[result.status]
    warnings.warn(
        f"{what} solved to tol = {tol:g}: {result.status.value}. The relative duality gap is "
        f"{certificate.relative_gap:.3g}: the objective, {certificate.primal:.6g}, can be "
        f"lowered by at most {100 * certificate.relative_gap:.3g} %. {advice}",
        ConvergenceWarning,
        stacklevel=stacklevel,
    )
