"""One linear SVM per class, each against all other classes, by LIBLINEAR."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, compute_class_weight
from sklearn.utils._param_validation import Interval, StrOptions

from topksvm.baselines._base import Baseline
from topksvm.baselines._liblinear import LiblinearOptions, train_liblinear

Array = NDArray[Any]

GROUP = 16
"""Classes that LIBLINEAR is given at a time, if X is large."""
LARGE = 1 << 23
"""Numbers in X from which on its copies take longer than what is trained in vain."""

JOBS: list[Any] = [
    Interval(Integral, 1, None, closed="left"),
    Interval(Integral, None, -1, closed="right"),
    None,
]


class OneVsRestSVC(Baseline):
    r"""A binary SVM per class, the class against the rest, by LIBLINEAR; no intercept.

    .. math::
        \min_{w_c} \; \tfrac12 \|w_c\|^2
        + C \sum_i v_i \, \ell\bigl(1 - t_i \langle w_c, x_i \rangle\bigr),
        \qquad t_i = 1 \text{ if } y_i = c \text{ else } -1

    with :math:`\ell(z) = \max(0, z)^2` or :math:`\max(0, z)`, for every class c, and :math:`v_i`
    the weight of the class of example i. "SVM-OVA" in the tables of Lapin, Hein and Schiele, whose
    figures on Caltech are those of ``loss="hinge"``.

    Parameters
    ----------
    C : float
        The weight of the losses against the norm.
    loss : {"squared_hinge", "hinge"}
        The loss.
    class_weight : dict or "balanced", optional
        Factors of `C` by the class of an example, in the problems of all classes. LIBLINEAR for
        several classes weighs only the positive examples.
    tol : float
        The tolerance of LIBLINEAR, on its own measure of optimality.
    max_iter : int
        The most iterations for a class.
    n_jobs : int, optional
        Processes among which the classes are divided; one by default, all processors with -1. The
        model does not depend on it.
    random_state : int, RandomState or None
        The order in which LIBLINEAR visits the examples.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes, n_features)
        The weights, a row per class also if there are two.
    intercept_ : ndarray of shape (n_classes,)
        Zeros.
    classes_ : ndarray of shape (n_classes,)
        The labels.
    n_iter_ : int
        The most iterations that a class took.
    n_features_in_, feature_names_in_
        As in every scikit-learn estimator.

    References
    ----------
    R.-E. Fan et al., "LIBLINEAR: A Library for Large Linear Classification", JMLR 2008.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from topksvm.baselines import OneVsRestSVC
    >>> X, y = load_digits(return_X_y=True)
    >>> model = OneVsRestSVC(C=0.1, random_state=0).fit(X / 16, y)
    >>> model.score_topk(X / 16, y, 2) > 0.95
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "loss": [StrOptions({"squared_hinge", "hinge"})],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": JOBS,
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: str = "squared_hinge",
        class_weight: Any = None,
        tol: float = 1e-4,
        max_iter: int = 1000,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.C = C
        self.loss = loss
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> OneVsRestSVC:
        """Train the model.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            The examples.
        y : array-like of shape (n_samples,)
            Their labels, of any type.

        Returns
        -------
        self : OneVsRestSVC
            The trained model.
        """
        X, labels = self._start(X, y)
        weights = self._factors(labels)[labels]
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        wide = X.astype(np.float64, copy=False)  # Once, as LIBLINEAR would do for each fit.
        m, size = self.classes_.size, GROUP if X.size >= LARGE else 1
        work = LiblinearOptions(self.loss, float(self.C), self.tol, self.max_iter, seed)
        # Processes: LIBLINEAR trains one model at a time in each.
        fits = Parallel(n_jobs=self.n_jobs)(
            delayed(_fit_group)(work, wide, labels, range(first, min(first + size, m)), weights)
            for first in range(0, m, size)
        )
        self._store(np.concatenate([normals for normals, _ in fits]), X.dtype)
        counts = np.concatenate([counts for _, counts in fits])
        self.n_iter_ = int(counts.max())
        self._warn(counts)
        return self

    def _factors(self, labels: NDArray[np.intp]) -> Array:
        """Return the weight of each class."""
        factors = np.asarray(
            compute_class_weight(self.class_weight, classes=self.classes_, y=self.classes_[labels])
        )
        if not (factors > 0).all():
            worst = self.classes_.tolist()[int(np.argmin(factors > 0))]
            raise ValueError(
                f"class_weight of class {worst!r} is {self.class_weight[worst]!r}; class weights "
                "must be positive. Remove the examples of a class that shall not count."
            )
        return factors

    def _warn(self, counts: Array) -> None:
        bad = np.flatnonzero(counts >= self.max_iter)
        if bad.size:
            first = self.classes_.tolist()[bad[0]]
            warnings.warn(
                f"{bad.size} of {counts.size} classes, the first {first!r}, did not "
                f"reach tol = {self.tol:g} within max_iter = {self.max_iter} iterations of "
                "LIBLINEAR. Raise max_iter, or lower C, or scale the features to a similar range.",
                ConvergenceWarning,
                stacklevel=3,
            )


def _fit_group(
    options: LiblinearOptions, X: Any, labels: NDArray[np.intp], group: range, weights: Array
) -> tuple[Array, Array]:
    """Return the normal vectors of some classes, and the numbers of iterations.

    LIBLINEAR copies X in every fit, which may take longer than the training of a class, so that of
    several classes is one fit. All others are a class more, whose result is not needed. Where a
    class is stopped by the number of iterations, each is trained again, to tell which.
    """
    own = np.where((labels >= group.start) & (labels < group.stop), labels, group.stop)
    n_others = int(np.any(own == group.stop))
    if len(group) + n_others > 2:
        normals, count = train_liblinear(options, X, own, weights)
        # Only the most iterations are known: enough if no class was stopped.
        if count < options.max_iter:
            return normals[: len(group)], np.full(len(group), count)
    fits = [train_liblinear(options, X, labels == c, weights) for c in group]
    return np.concatenate([normal for normal, _ in fits]), np.array([count for _, count in fits])
