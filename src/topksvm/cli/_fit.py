"""Train with a live line, and turn what scikit-learn warns of into what a person can act on."""

from __future__ import annotations

import sys
import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from topksvm.cli._errors import UserError
from topksvm.cli._output import lines_as_progress, one_line, report_progress, warn
from topksvm.solvers import Status

_ADVICE = {
    Status.MAX_ITER: "Raise --max-iter, or lower -C, or scale the features to a similar range",
    Status.MAX_TIME: "Raise --max-time, or lower -C, or scale the features to a similar range",
    Status.STALLED: "Use --dtype float64, or a larger --tol",
    Status.INTERRUPTED: "The model is usable all the same",
}

_LARGE = 1e4
"""``C`` times the squared norm of a row from which on training takes very many passes."""


@dataclass(frozen=True)
class Fit:
    """How a training went."""

    status: Status
    seconds: float


def fit_model(model: Any, X: Any, y: Any, *, is_quiet: bool, **how: Any) -> Fit:
    """Train one model; one that falls short of its tol is a warning, Ctrl-C leaves it usable."""
    model.set_params(verbose=0 if is_quiet else 1)
    if not is_quiet and sys.stderr.isatty():  # There it is overwritten, also by an error.
        report_progress(f"training on {X.shape[0]} rows; the first time, kernels are compiled")
    _warn_of_scale(X, model.C)
    start = time.perf_counter()
    with lines_as_progress(is_on=not is_quiet):
        messages = fit_recording(model, X, y, **how)
    seconds = time.perf_counter() - start
    model.set_params(verbose=0)
    status = next((s for s in _ADVICE if any(s.value in text for text in messages)), Status.SOLVED)
    if status is not Status.SOLVED:
        gap = model.certificate_.relative_gap
        why = status.value.replace("max_iter", f"{model.max_iter}")
        why = why.replace("max_time", f"{model.max_time}")
        warn(
            f"not solved to --tol {model.tol:g}: {why}; up to {100 * gap:.2g} % of the objective "
            f"may be gained yet. {_ADVICE[status]}"
        )
    for text in messages:
        if status is Status.SOLVED or status.value not in text:
            warn(text)
    return Fit(status, seconds)


def _warn_of_scale(X: Any, C: float) -> None:
    """Say before a long training, not after it, that the features are too large for `C`."""
    rows = X[:1000].astype(np.float64)
    squares = rows.multiply(rows).sum(axis=1) if sp.issparse(rows) else (rows * rows).sum(axis=1)
    square = float(np.median(np.asarray(squares)))
    if C * square > _LARGE:
        warn(
            f"the features are large: rows have a norm of about {square**0.5:.2g}. At -C {C:g} the "
            f"training may be slow. Divide them by their largest value, or try -C {1 / square:.1g}"
        )


def fit_recording(estimator: Any, X: Any, y: Any, **how: Any) -> list[str]:
    """Train, and return the warnings instead of printing them; `how` is passed to ``fit``."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        try:
            estimator.fit(X, y, **how)
        except ValueError as error:
            raise UserError(f"{one_line(error)}.") from error
    return list(dict.fromkeys(one_line(warning.message) for warning in caught))


def is_interrupted(messages: list[str]) -> bool:
    """Return whether the warnings of a training say that the user ended it."""
    return any(Status.INTERRUPTED.value in text for text in messages)
