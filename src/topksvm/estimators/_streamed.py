"""Training on rows that are read by the piece, with checkpoints."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from topksvm._interrupts import is_stop_requested, stoppable
from topksvm._threads import fit_threads
from topksvm.data import MIN_PIECE, RowSource, open_source
from topksvm.estimators._base import is_streamed, print_progress
from topksvm.solvers import (
    CheckpointFolder,
    Result,
    SDCAOptions,
    StreamedSDCA,
    choose_solver,
    make_loss,
    make_streamed_problem,
    memory_needed,
    warn_unless_solved,
)

Array = NDArray[Any]

CHECKPOINT_SECONDS = 60.0
"""Time between two checkpoints."""

WINDOW_BYTES = 1 << 29
"""Memory of each of the two windows, unless a limit says otherwise."""


@dataclass(frozen=True)
class Task:
    """What to train: a source of rows, labels ``0 ... m - 1``, and the parameters."""

    source: RowSource
    labels: Array
    m: int
    weights: Array
    loss: Any
    bias: float
    options: SDCAOptions
    memory_limit: int | None
    n_jobs: int | None
    checkpoint: Any
    report: Any

    @property
    def window_rows(self) -> int:
        """How many rows fit into a window; complain if the limit on memory leaves too little."""
        n, d = self.source.shape
        row = max(1, d * self.source.dtype.itemsize)
        if self.memory_limit is None:
            return max(1, WINDOW_BYTES // row)
        k = getattr(self.loss, "k", 1)
        fixed = memory_needed(n, d, self.m, k, self.source.dtype)
        largest = max(stop - start for start, stop in self.source.pieces(MIN_PIECE))
        rows = (self.memory_limit - fixed) // (2 * row)
        if rows < min(largest, n):
            least = fixed + 2 * row * min(largest, n)
            raise ValueError(
                f"memory_limit = {self.memory_limit} bytes is too little: the weights, the duals "
                f"and two windows of this problem take at least {least}. Raise memory_limit."
            )
        return int(rows)

    def identity(self, window_rows: int) -> dict[str, Any]:
        """Return what must be the same for a run to go on."""
        return {
            "shape": list(self.source.shape),
            "data": fingerprint(self.source),
            "labels": _hash(self.labels),
            "weights": _hash(self.weights),
            "classes": self.m,
            "loss": repr(self.loss),
            "bias": self.bias,
            "seed": self.options.seed,
            "precision": str(self.source.dtype),
            "window": window_rows,
        }


def train_streamed(task: Task) -> Result:
    """Solve the task, from its checkpoint if there is one."""
    with fit_threads(task.n_jobs):
        if task.checkpoint is None:
            return stoppable(lambda: _train(task, None))
        with CheckpointFolder(task.checkpoint, task.identity(task.window_rows)) as folder:
            return stoppable(lambda: _train(task, folder))


def _train(task: Task, folder: CheckpointFolder | None) -> Result:
    state = None if folder is None else folder.load()
    problem = make_streamed_problem(
        task.source, task.labels, task.weights, task.m, task.bias, task.window_rows
    )
    run = StreamedSDCA(task.loss, problem, task.options, None if folder is None else _Saver(folder))
    if state is not None:
        run.restore(state)
    return run.run(task.report)


class _Saver:
    """Called after each window: saves when it is time to, and before the run is stopped."""

    def __init__(self, folder: CheckpointFolder) -> None:
        self.folder = folder
        self.last = time.monotonic()

    def __call__(self, run: StreamedSDCA) -> None:
        if time.monotonic() - self.last >= CHECKPOINT_SECONDS or is_stop_requested():
            self.folder.save(run.state())
            self.last = time.monotonic()


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


def _hash(array: Array) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]


def fit_streamed(model: Any, X: Any, y: Any, sample_weight: Any, checkpoint: Any) -> Any:
    """Train `model`, a :class:`~topksvm.TopKLinearSVC`, on rows that are read by the piece."""
    if model.warm_start:
        raise ValueError(
            "warm_start = True needs all rows in memory; use checkpoint= to go on with a fit."
        )
    loss = make_loss(model.loss, model.k, model.smoothing)
    _check_solver(model.solver, model.loss, loss)
    source, y = _open(model, X, y)
    classes, labels = np.unique(y, return_inverse=True)
    model._check_classes(classes)
    rows = np.broadcast_to(np.float64(0.0), (len(y), 1))  # Weights depend on their number only.
    weights = model._weights_of_examples(rows, y, classes, labels, sample_weight)
    limit = np.inf if model.max_time is None else float(model.max_time)
    seed = int(check_random_state(model.random_state).randint(2**31 - 1))
    task = Task(
        source,
        labels,
        classes.size,
        weights,
        loss,
        float(model.intercept_scaling) if model.fit_intercept else 0.0,
        SDCAOptions(model.tol, model.max_iter, limit, seed=seed),
        model.memory_limit,
        model.n_jobs,
        checkpoint,
        print_progress if model.verbose else None,
    )
    result = train_streamed(task)
    model.classes_, model.n_features_in_ = classes, source.shape[1]
    model._store(result, source.shape[1])
    model._last_fit = None
    warn_unless_solved(result, model.tol, stacklevel=4, has_warm_start=False)
    return model


def _check_solver(solver: str, name: str, loss: Any) -> None:
    """Complain unless dual coordinate ascent was asked for, or none, and the loss has a step."""
    if solver == "lbfgs" or not hasattr(type(loss), "dual_step"):
        choose_solver(solver, name, loss)
        raise ValueError(
            f"loss = {name!r} with solver = {solver!r} trains by L-BFGS, which needs all rows in "
            "memory. Use solver='sdca' with a loss that has a dual step: softmax or a top-k hinge."
        )


def _open(model: Any, X: Any, y: Any) -> tuple[RowSource, Array]:
    """Return the rows as a source, and checked labels."""
    if not is_streamed(X, model.memory_limit):
        X, y = model._validate_examples(X, y, accept_sparse=False)
    source = open_source(X)
    if model.dtype is not None:
        source.dtype = np.dtype(model.dtype)
    y = column_or_1d(y, warn=True)
    if len(y) != source.shape[0]:
        raise ValueError(
            f"X has {source.shape[0]} rows but y has {len(y)} labels; there must be one for each."
        )
    check_classification_targets(y)
    return source, y
