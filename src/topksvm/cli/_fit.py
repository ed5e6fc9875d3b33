"""Training, with what to do where it falls short."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from topksvm._clock import Clock
from topksvm.cli._errors import UserError
from topksvm.cli._output import one_line, warn

_SCALE = "or lower -C, or scale the features to a similar range"

_SHORTFALLS = {
    "max_iter": ("{max_iter} passes were made", f"Raise --max-iter, {_SCALE}"),
    "max_time": ("{max_time} seconds were used up", f"Raise --max-time, {_SCALE}"),
    "stalled": (
        "no further progress is possible in this precision",
        "Use --dtype float64, or a larger --tol",
    ),
    "interrupted": ("interrupted", "The model is usable all the same"),
}
"""What ended a training that is not solved, and what to do."""

_LARGE = 1e4
"""``C`` times the squared norm of a row from which on training takes very many passes."""


def fit(estimator: Any, X: Any, y: Any, bar: Any = None) -> float:
    """Train with a bar, and return the seconds it took, without those of the compiler."""
    clock = Clock()
    estimator.set_params(callback=bar)
    with bar or nullcontext(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # It says no more than status_.
        try:
            estimator.fit(X, y)
        except ValueError as error:
            raise UserError(f"{one_line(error)}.") from error
        finally:
            estimator.set_params(callback=None)
    return clock.elapsed


def warn_unless_solved(model: Any) -> None:
    """Say how far a model may be from the optimum, and what to change."""
    if model.status_ == "solved":
        return
    why, advice = _SHORTFALLS[model.status_]
    warn(
        f"not solved to --tol {model.tol:g}: {why.format(**model.get_params())}; up to "
        f"{100 * model.certificate_.relative_gap:.2g} % of the objective may be gained yet. "
        f"{advice}"
    )


def warn_of_scale(X: Any, C: float) -> None:
    """Say before a long training, not after it, that the features are too large for `C`."""
    rows = X[:1000].astype(np.float64)
    squares = rows.multiply(rows).sum(axis=1) if sp.issparse(rows) else (rows * rows).sum(axis=1)
    square = float(np.median(np.asarray(squares)))
    if C * square > _LARGE:
        warn(
            f"the features are large: rows have a norm of about {square**0.5:.2g}. At -C {C:g} the "
            f"training may be slow. Divide them by their largest value, or try -C {1 / square:.1g}"
        )
