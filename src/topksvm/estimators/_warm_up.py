"""Compile the common kernels before anybody waits for them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

import numpy as np
import scipy.sparse as sp

from topksvm._threads import n_threads
from topksvm.estimators._linear import TopKLinearSVC
from topksvm.losses import LOSSES

SMALL, LARGE = (60, 8, 6), (300, 160, 72)
"""Rows, features and classes: weights that are stepped on row by row, and by blocks."""


def warm_up(
    losses: Sequence[str] = (),
    dtypes: Sequence[str] = ("float32", "float64"),
    callback: Callable[[int, int], None] | None = None,
) -> None:
    """Compile, into the cache on disk, the kernels of linear models on dense and CSR rows.

    Each loss and precision is compiled by a process of its own, as many at a time as there are
    threads. What is in the cache already takes about a second.

    Parameters
    ----------
    losses : sequence of str, default=()
        Names out of :data:`topksvm.losses.LOSSES`; all of them by default.
    dtypes : sequence of {"float32", "float64"}
        The precisions.
    callback : callable, optional
        Called as ``callback(done, total)`` after each process.
    """
    jobs = [(loss, dtype) for loss in losses or LOSSES for dtype in dtypes]
    with ThreadPoolExecutor(n_threads()) as pool:
        running = [pool.submit(_compile, *job) for job in jobs]
        for done, future in enumerate(as_completed(running), start=1):
            future.result()
            if callback is not None:
                callback(done, len(jobs))


def _compile(loss: str, dtype: str) -> None:
    code = "from topksvm.estimators._warm_up import fit_tiny_models; fit_tiny_models(%r, %r)"
    environment = os.environ | {"TOPKSVM_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", "-c", code % (loss, dtype)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(
            f"The kernels for loss = {loss!r} in {dtype} could not be compiled: "
            f"{done.stderr.strip().splitlines()[-1:]}"
        )


def fit_tiny_models(loss: str, dtype: str) -> None:
    """Fit models that between them run the kernels of a loss in a precision."""
    rng = np.random.default_rng(0)
    for n, d, m in (SMALL, LARGE):
        X = rng.standard_normal((n, d)).astype(dtype)
        y = np.arange(n) % m
        forms = [X, sp.csr_array(X)] if (n, d, m) == SMALL else [X]
        for rows in forms:
            TopKLinearSVC(loss=loss, max_iter=20, C=0.1, random_state=0).fit(rows, y)
