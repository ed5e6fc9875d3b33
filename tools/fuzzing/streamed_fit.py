"""A streamed fit with many checkpoints, in a process that may be killed."""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
import time
import warnings
from functools import cache
from pathlib import Path

import numpy as np

from topksvm import TopKLinearSVC
from topksvm.data import _sources
from topksvm.datasets import make_ambiguous_classes
from topksvm.estimators import _streamed

PATIENCE = 120.0


@cache
def data():
    """Return rows in half precision, by class, and their labels."""
    X, y = make_ambiguous_classes(3000, 12, 15, random_state=0)
    order = np.argsort(y, kind="stable")
    return X[order].astype(np.float16), y[order]


def fit(folder) -> np.ndarray:
    """Fit with a checkpoint after every window of some hundred rows; return the weights."""
    _sources.MIN_PIECE = _streamed.MIN_PIECE = 1500
    _streamed.CHECKPOINT_SECONDS = 0.0
    model = TopKLinearSVC(
        3, C=0.1, tol=1e-4, random_state=0, n_jobs=1, memory_limit=1_726_000, max_iter=500
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(*data(), checkpoint=folder).coef_


@cache
def undisturbed() -> tuple[np.ndarray, float]:
    """Return the weights of a fit that nobody kills, and how long it takes when compiled."""
    with tempfile.TemporaryDirectory() as folder:
        fit(Path(folder) / "first")
        begin = time.monotonic()
        return fit(Path(folder) / "second"), time.monotonic() - begin


def fit_and_kill(folder, seconds: float) -> int:
    """Fit in a process that is killed after so many seconds; return its exit code."""
    process = multiprocessing.get_context("fork").Process(target=fit, args=(folder,))
    process.start()
    process.join(seconds)
    if process.is_alive():
        os.kill(process.pid, signal.SIGKILL)
    process.join(PATIENCE)
    return process.exitcode
