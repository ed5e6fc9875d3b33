"""SVM^perf for precision and recall among the best k, as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from topksvm._threads import resolve_threads
from topksvm.baselines._base import Baseline
from topksvm.baselines._cutting_planes import Solution, Stopping, certify, svm_perf_path
from topksvm.baselines._labellings import Measure
from topksvm.baselines._reduction import Reduction
from topksvm.solvers import Certificate

SINGLE_TOL = 1e-4
"""The least `tol` for which planes are looked for in float32."""


class SVMPerf(Baseline):
    r"""SVM for a multivariate performance measure: precision or recall of the best k.

    .. math::
        \min_w \; \tfrac12 \|w\|^2 + C \max_{\bar y \in \mathcal Y_k}
        \bigl[ \Delta(\bar y) + \langle w, \Psi(\bar y) - \Psi(y) \rangle \bigr], \qquad
        \Psi(y) = \frac{50}{N} \sum_{i=1}^N y_i x_i, \quad y_i = \pm 1

    where :math:`\Delta` is 100 less the precision, or the recall, in percent, of a labelling of
    all N entries of a binary problem, with one slack for all of them. The labelling that violates
    its margin most is found exactly, by sorting.

    Parameters
    ----------
    measure : {"precision", "recall"}
        The measure; Prec@k or Rec@k of SVM^perf.
    k : float
        How many entries are predicted to be positive, as a multiple of the number of positives,
        as option ``--p`` of SVM^perf; rounded down, at least one. In the multiclass reduction k
        is the number of guesses per example, on average. With "ovr" it is for each class at most
        what predicts all examples. SVM^perf itself allows only ``k <= 1`` for precision and ``k >=
        1`` for recall.
    C : float
        The weight of the loss against the norm, as option ``-c`` of SVM^perf: as that of a usual
        SVM with ``100 C / N`` for each of the N entries of the binary problem, so values are
        large.
    size : {"bound", "exact"}
        The labellings that are considered. With "bound" they predict at most k (recall) or at
        least k (precision) times as many positives as there are, as the program SVM^perf does;
        with "exact" exactly so many, as in the article of 2005.
    reduction : {"multiclass", "ovr"}
        One binary problem with an entry for each pair of an example and a class, of which the
        pair with the true class is positive; or one problem per class, against the others. The
        latter asks for larger scores in smaller classes, so it suits classes of equal size.
    tol : float
        Stop when the relative duality gap is at most this.
    epsilon : float
        Stop as well when the loss, in percent, is within this of the bound by the planes, that
        is when the gap is at most ``C * epsilon``; option ``-e`` of SVM^perf, which has 0.1 there.
    max_iter : int
        The most planes to find, for each problem.
    n_jobs : int, optional
        Threads for the problems of "ovr"; all processors by default, and with -1; all but one with
        -2, and so on. The multiclass reduction is one problem; its products use the threads of
        the BLAS library.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes, n_features)
        The weights.
    intercept_ : ndarray of shape (n_classes,)
        Zeros.
    classes_ : ndarray of shape (n_classes,)
        The labels.
    certificate_ : Certificate
        ``primal``, ``dual``, ``gap`` and ``relative_gap`` of the model, in float64; for "ovr" of
        the sum of all problems.
    history_ : list of dict
        A line per iteration: iteration, seconds, primal, dual, gap, planes; for "ovr" the label
        as well.
    n_iter_ : int
        Iterations; for "ovr" the most of all problems.
    n_features_in_, feature_names_in_
        As in every scikit-learn estimator.

    Notes
    -----
    Memory: the scores of all entries, ``n_samples * n_classes``, a few times, and
    ``n_classes * n_features`` for each plane; planes unused for long are dropped. They are float32
    if the data is, the reduction is "multiclass" and `tol` at least 1e-4, which takes half the
    time; else float32 data is copied to float64. The certificate is in float64 in any case.

    In the table of Lapin, Hein, Schiele (2015), Recall@k and Prec@1 are those with this k, and
    Prec@5 and Prec@10 those of at least 5 and 10 predicted positives in all, with
    ``k = 5 / n_samples`` and ``k = 10 / n_samples``; all with ``size="bound"`` and
    ``epsilon=0.1``.

    References
    ----------
    T. Joachims, "A Support Vector Method for Multivariate Performance Measures", ICML 2005.
    T. Joachims, T. Finley, C.-N. Yu, "Cutting-Plane Training of Structural SVMs", Machine
    Learning 77, 2009.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from topksvm.baselines import SVMPerf
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SVMPerf("recall", k=1, C=100.0).fit(X, y)
    >>> model.certificate_.relative_gap <= 1e-3
    True
    >>> model.score(X, y) > 0.9
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "measure": [StrOptions({"precision", "recall"})],
        "k": [Interval(Real, 0.0, None, closed="neither")],
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "size": [StrOptions({"bound", "exact"})],
        "reduction": [StrOptions({"multiclass", "ovr"})],
        "tol": [Interval(Real, 0.0, None, closed="left")],
        "epsilon": [Interval(Real, 0.0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Integral, None, -1, closed="right"),
            None,
        ],
    }

    def __init__(
        self,
        measure: str = "recall",
        *,
        k: float = 1,
        C: float = 1.0,
        size: str = "bound",
        reduction: str = "multiclass",
        tol: float = 1e-3,
        epsilon: float = 0.0,
        max_iter: int = 2000,
        n_jobs: int | None = None,
    ) -> None:
        self.measure = measure
        self.k = k
        self.C = C
        self.size = size
        self.reduction = reduction
        self.tol = tol
        self.epsilon = epsilon
        self.max_iter = max_iter
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any) -> SVMPerf:
        """Train the model.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            The examples.
        y : array-like of shape (n_samples,)
            Their labels, of any type.

        Returns
        -------
        self : SVMPerf
            The trained model.
        """
        X, labels = self._start(X, y)
        dtype = X.dtype
        measure = self.measure, self.k, self.size
        if self.reduction == "multiclass":
            X = X if self.tol >= SINGLE_TOL else X.astype(np.float64, copy=False)
            problems = [multiclass_reduction(X, labels, self.classes_.size, *measure)]
            solutions = [self._solve(problems[0])]
        else:
            problems = one_against_rest(X, labels, self.classes_.size, *measure)
            with ThreadPoolExecutor(resolve_threads(self.n_jobs)) as pool:
                solutions = list(pool.map(self._solve, problems))
        self._store(np.concatenate([solution.weights for solution in solutions]), dtype)
        self._record(problems, solutions)
        return self

    def _solve(self, problem: Reduction) -> Solution:
        stopping = Stopping(self.tol, self.epsilon, self.max_iter)
        return next(svm_perf_path(problem, [self.C], stopping))

    def _record(self, problems: list[Reduction], solutions: list[Solution]) -> None:
        """Set the certificate of `coef_`, which may be rounded to float32, and the history."""
        parts = np.split(self.coef_.astype(np.float64), len(problems))
        certificates = [
            certify(problem, part.ravel(), float(self.C), solution.certificate.dual)
            for problem, part, solution in zip(problems, parts, solutions, strict=True)
        ]
        self.certificate_ = Certificate(
            sum(certificate.primal for certificate in certificates),
            sum(certificate.dual for certificate in certificates),
        )
        self.n_iter_ = max(solution.n_iter for solution in solutions)
        self.history_ = [line for solution in solutions for line in solution.history]
        if self.reduction == "ovr":
            self.history_ = [
                {"label": label, **line}
                for label, solution in zip(self.classes_, solutions, strict=True)
                for line in solution.history
            ]
        failed = sum(not solution.converged for solution in solutions)
        if failed:
            self._warn(failed, len(solutions))

    def _warn(self, failed: int, total: int) -> None:
        which = f"{failed} of {total} problems are not" if total > 1 else "Not"
        certificate = self.certificate_
        advice = (
            "Raise max_iter or tol, or lower C."
            if self.n_iter_ == self.max_iter
            else "No further progress is possible in this precision: raise tol."
        )
        warnings.warn(
            f"{which} solved to tol = {self.tol:g} in {self.n_iter_} iterations. The relative "
            f"duality gap is {certificate.relative_gap:.3g}: the objective, "
            f"{certificate.primal:.6g}, can be lowered by at most "
            f"{100 * certificate.relative_gap:.3g} %. {advice}",
            ConvergenceWarning,
            stacklevel=4,
        )


def multiclass_reduction(
    X: Any, labels: NDArray[np.intp], n_classes: int, measure: str, k: float, size: str
) -> Reduction:
    """Return the problem with an entry for each example and class; labels are 0 ... m - 1."""
    n = labels.size
    positives = np.arange(n) * n_classes + labels
    wanted = make_measure(measure, k, size, n, n * n_classes)
    X = X if X.dtype == np.float32 else X.astype(np.float64, copy=False)
    return Reduction(X, positives, n_classes, wanted)


def one_against_rest(
    X: Any, labels: NDArray[np.intp], n_classes: int, measure: str, k: float, size: str
) -> list[Reduction]:
    """Return a problem for each class, with an entry for each example.

    For a large class `k` may ask for more predicted positives than there are examples: then it is
    all of them.
    """
    X = X.astype(np.float64, copy=False)
    positives = [np.flatnonzero(labels == label) for label in range(n_classes)]
    n = labels.size
    return [
        Reduction(X, own, 1, make_measure(measure, min(k, n / own.size), size, own.size, n))
        for own in positives
    ]


def make_measure(measure: str, k: float, size: str, n_positives: int, n_entries: int) -> Measure:
    """Return the measure with the number of predicted positives that `k` stands for."""
    # The small factor is for k = number / n_positives, whose product may fall short by rounding.
    predicted = max(1, int(k * n_positives * (1.0 + 1e-12)))
    if predicted > n_entries:
        raise ValueError(
            f"k = {k:g} asks for {predicted} predicted positives, as k is a multiple of the number "
            f"of positives, {n_positives}, but there are {n_entries} entries. Choose k of at most "
            f"{n_entries / n_positives:g}."
        )
    return Measure(measure == "recall", predicted, size == "exact")
