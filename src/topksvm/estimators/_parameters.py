"""The parameters that estimators share: what is allowed, and what the reference says of them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from numbers import Integral, Real
from os import PathLike
from textwrap import dedent, indent
from typing import Any, TypeVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from topksvm.losses import LOSSES
from topksvm.solvers import SOLVERS

T = TypeVar("T")

POSITIVE = Interval(Real, 0.0, None, closed="neither")
NOT_NEGATIVE = Interval(Real, 0.0, None, closed="left")
COUNT = Interval(Integral, 1, None, closed="left")

CONSTRAINTS: dict[str, list[Any]] = {
    "k": [COUNT],
    "loss": [StrOptions(LOSSES.keys())],  # A view: losses may be registered later.
    "C": [POSITIVE],
    "smoothing": [NOT_NEGATIVE],
    "solver": [StrOptions({"auto", *SOLVERS})],
    "fit_intercept": ["boolean"],
    "intercept_scaling": [POSITIVE],
    "class_weight": [dict, StrOptions({"balanced"}), None],
    "tol": [POSITIVE],
    "max_iter": [COUNT],
    "max_time": [POSITIVE, None],
    "warm_start": ["boolean"],
    "dtype": [StrOptions({"float32", "float64"}), type, np.dtype, None],
    "n_jobs": [COUNT, Interval(Integral, None, -1, closed="right"), None],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
    "memory_limit": [COUNT, None],
    "checkpoint": [str, PathLike, None],
    "callback": [callable, None],
}
"""What scikit-learn's validation allows, by parameter."""

REFERENCE = {
    "k": """
        k : int, default=1
            The number of guesses to train for, below the number of classes; 1 is the multiclass SVM
            of Crammer and Singer. A tuning parameter like `C`: the best one is often larger than
            the number of guesses wanted.
        """,
    "loss": """
        loss : {"topk_hinge_alpha", "topk_hinge_beta", "topk_hinge_full", "softmax", \
"topk_entropy"}, default="topk_hinge_alpha"
            The loss; see :mod:`topksvm.losses`.
        """,
    "C": """
        C : float, default=1.0
            The weight of the loss against the norm, as in :class:`sklearn.svm.LinearSVC`: the
            larger, the closer the model follows the training rows. Try powers of ten, on rows of
            norm one from 0.1 to 100.
        """,
    "smoothing": """
        smoothing : float, default=0.0
            Smooth a hinge by this much; 0 leaves it as it is.
        """,
    "solver": """
        solver : {"auto", "sdca", "lbfgs"}, default="auto"
            Dual coordinate ascent for the hinges; L-BFGS, smooth losses only, by default for those.
        """,
    "fit_intercept": """
        fit_intercept : bool, default=True
            Add a constant feature; its weights are penalised like the others.
        """,
    "intercept_scaling": """
        intercept_scaling : float, default=1.0
            The value of the constant feature: the larger, the less the intercept is penalised.
        """,
    "class_weight": """
        class_weight : dict or "balanced", default=None
            Factors of `C` by class.
        """,
    "tol": """
        tol : float, default=1e-3
            Stop when the relative duality gap is at most this.
        """,
    "max_iter": """
        max_iter : int, default=1000
            The most passes over the examples, or evaluations of the objective.
        """,
    "max_time": """
        max_time : float, default=None
            Stop after so many seconds with what has been reached.
        """,
    "warm_start": """
        warm_start : bool, default=False
            Start from the last fit if loss, number of features and labels are the same, from
            nothing otherwise. The examples and their weights, and all other parameters, may have
            changed.
        """,
    "dtype": """
        dtype : {"float32", "float64"}, default=None
            Compute in this precision; by default in that of X. Another one than that makes a copy
            of X.
        """,
    "n_jobs": """
        n_jobs : int, default=None
            Threads; all processors by default, and with -1; all but one with -2, and so on.
        """,
    "random_state": """
        random_state : int, RandomState or None, default=None
            The order in which examples are visited.
        """,
    "verbose": """
        verbose : int, default=0
            1: show the estimated gap while training.
        """,
    "memory_limit": """
        memory_limit : int, default=None
            Bytes that training may use, X apart if that is an array in memory. A memory map that is
            larger (without a limit: larger than half of the memory) is read in windows; see `fit`.
        """,
    "checkpoint": """
        checkpoint : path, default=None
            A folder to which the state is written every minute and on Ctrl-C, and from which a fit
            of the same data with the same parameters resumes, to the same model. Rows are then
            visited in windows.
        """,
    "callback": """
        callback : callable, default=None
            Called while training with an object that has the attributes `passes`, `seconds` and
            `relative_gap`, an estimate. An exception in it ends the fit.
        """,
    "coef_": """
        coef_ : ndarray of shape (n_classes, n_features)
            The weights.
        """,
    "intercept_": """
        intercept_ : ndarray of shape (n_classes,)
            The intercepts, zeros if there are none.
        """,
    "classes_": """
        classes_ : ndarray of shape (n_classes,)
            The labels.
        """,
    "certificate_": """
        certificate_ : Certificate
            ``primal``, ``dual``, ``gap`` and ``relative_gap`` of the model, in float64.
        """,
    "status_": """
        status_ : {"solved", "max_iter", "max_time", "stalled", "interrupted"}
            Why training ended.
        """,
    "history_": """
        history_ : list of dict
            A line per certificate: epoch, seconds, primal, dual, gap.
        """,
    "n_iter_": """
        n_iter_ : int
            Passes over the examples of the last fit, or evaluations of the objective.
        """,
    "n_features_in_": """
        n_features_in_, feature_names_in_
            As in every scikit-learn estimator.
        """,
}
"""Entries of the reference by parameter or attribute, in numpydoc's form."""


def documented(**own: str) -> Callable[[type[T]], type[T]]:
    """Fill in ``{name}`` in the docstring of a class from `REFERENCE`, or from `own` entries."""
    entries = {**REFERENCE, **own}

    def fill(match: re.Match[str]) -> str:
        return indent(dedent(entries[match[2]]).strip(), match[1])

    def document(cls: type[T]) -> type[T]:
        if cls.__doc__ is not None:  # Python can leave docstrings out.
            text = inspect.cleandoc(cls.__doc__)
            cls.__doc__ = re.sub(r"(?m)^( *)\{(\w+)\}$", fill, text)
        return cls

    return document


def constraints(*names: str) -> dict[str, list[Any]]:
    """Return the constraints of the parameters of these names."""
    return {name: CONSTRAINTS[name] for name in names}
