"""TopPush: as many positives as possible above the best negative, as an estimator."""

from __future__ import annotations

import warnings
from dataclasses import asdict
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from threadpoolctl import threadpool_limits

from topksvm._threads import resolve_threads
from topksvm.baselines._base import Baseline
from topksvm.baselines._one_vs_rest import JOBS
from topksvm.baselines._top_push_solver import (
    Options,
    Problem,
    Stop,
    TopPushResult,
    solve_top_push,
)
from topksvm.estimators import print_progress

Floats = NDArray[np.floating[Any]]


class TopPush(Baseline):
    r"""Rank positives above the best negative, to a proven duality gap; no intercept.

    .. math::
        \min_w \; \tfrac12 \|w\|^2 + C \sum_i
        \max\bigl(0, 1 + \max_j \langle w, x^-_j \rangle - \langle w, x^+_i \rangle\bigr)^2

    Several classes are reduced to positives and negatives: of the pairs of an example and a class,
    those with the true class are positives, all others negatives, and the score of a pair is
    :math:`\langle w_y, x \rangle`. The best negative is that of *all* examples and classes. With
    ``reduction="ovr"`` it is that of one class: a problem for each, its examples against the rest.

    Parameters
    ----------
    C : float or array-like of shape (n_classes,), default=1.0
        The weight of the losses. One-vs-rest there may be one for each class, in the order of
        `classes_`. The objective of the paper, :math:`\tfrac\lambda2 \|w\|^2 + \tfrac1{n^+}
        \sum_i`, is this one with :math:`C = 1 / (\lambda n^+)`, where :math:`n^+` is the number
        of positives: of all examples, or one-vs-rest of those of the class, so that one
        :math:`\lambda` for all classes takes ``C = 1 / (lambda * numpy.bincount(y))``.
    reduction : {"multiclass", "ovr"}
        One problem for all classes, or one for each.
    tol : float
        Stop when the relative duality gap is at most this.
    change_tol : float
        Stop as well when a step changes the dual objective by less than this, relatively, as the
        program of the authors does. That is far from the optimum on hard problems, and often a
        better classifier. Unless the gap is within `tol`, a ``ConvergenceWarning`` tells how far,
        as the certificate does.
    max_iter : int
        The most steps of the ascent, for each problem.
    n_jobs : int, optional
        Threads that prepare the classes, and one-vs-rest solve them; all processors by default, and
        with -1. The model does not depend on it.
    verbose : int
        1: show the gap while training.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes, n_features)
        The weights, a row per class also if there are two.
    intercept_ : ndarray of shape (n_classes,)
        Zeros.
    classes_ : ndarray of shape (n_classes,)
        The labels.
    certificate_ : Certificate
        ``primal``, ``dual``, ``gap`` and ``relative_gap`` of the model, in float64; one-vs-rest, of
        the sum over the classes.
    history_ : list of dict
        A line per certificate: epoch (steps so far), seconds, primal, dual, gap.
    n_iter_ : int
        Steps of the ascent; one-vs-rest, of the class with the most in every round.
    n_features_in_, feature_names_in_
        As in every scikit-learn estimator.

    Notes
    -----
    Training holds a table of the scores, examples times classes, and a copy of X if it is float32.

    References
    ----------
    N. Li, R. Jin, Z.-H. Zhou, "Top Rank Optimization in Linear Time", NIPS 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from topksvm.baselines import TopPush
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TopPush(C=0.1).fit(X, y)
    >>> model.certificate_.relative_gap <= 1e-3
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "C": [Interval(Real, 0.0, None, closed="neither"), "array-like"],
        "reduction": [StrOptions({"multiclass", "ovr"})],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "change_tol": [Interval(Real, 0.0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": JOBS,
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        C: Any = 1.0,
        *,
        reduction: str = "multiclass",
        tol: float = 1e-3,
        change_tol: float = 0.0,
        max_iter: int = 10_000,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.reduction = reduction
        self.tol = tol
        self.change_tol = change_tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> TopPush:
        """Train the model.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            The examples.
        y : array-like of shape (n_samples,)
            Their labels, of any type.

        Returns
        -------
        self : TopPush
            The trained model.
        """
        X, labels = self._start(X, y)
        problem = Problem(X, labels, self.classes_.size, self.reduction, self._weight_of_losses())
        callback = print_progress if self.verbose else None
        options = Options(self.tol, self.max_iter, float(self.change_tol), callback)
        with threadpool_limits(resolve_threads(self.n_jobs), user_api="blas"):
            result = solve_top_push(problem, options)
        self._store(result.weights, X.dtype)
        self.certificate_ = result.certificate
        self.history_ = [asdict(check) for check in result.history]
        self.n_iter_ = result.n_iter
        self._warn_unless_solved(result)
        return self

    def _weight_of_losses(self) -> float | Floats:
        """Return the weight of the losses, or one for each class; complain if they do not fit."""
        if np.ndim(self.C) == 0:
            return float(self.C)
        C = np.asarray(self.C, dtype=np.float64)
        m = self.classes_.size
        if self.reduction == "multiclass" or C.shape != (m,):
            raise ValueError(
                f"C has the shape {C.shape} with reduction = {self.reduction!r} and {m} classes; "
                "it must be one number, or with reduction='ovr' a number for each class."
            )
        if not (np.isfinite(C) & (C > 0.0)).all():
            raise ValueError(f"C = {self.C!r} has values that are not positive and finite.")
        return C

    def _warn_unless_solved(self, result: TopPushResult) -> None:
        if result.status is Stop.SOLVED:
            return
        certificate = result.certificate
        advice = {
            Stop.SMALL_CHANGE: f"Lower change_tol = {self.change_tol:g}; 0 leaves it to tol alone.",
            Stop.MAX_ITER: "Raise max_iter, or lower C, or scale the features to a similar range.",
        }[result.status]
        warnings.warn(
            f"Not solved to tol = {self.tol:g}: {result.status.value}. The relative duality gap is "
            f"{certificate.relative_gap:.3g}: the objective, {certificate.primal:.6g}, can be "
            f"lowered by at most {100 * certificate.relative_gap:.3g} %. {advice}",
            ConvergenceWarning,
            stacklevel=3,
        )
