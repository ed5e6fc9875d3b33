"""The n-choose-k model of Swersky and others for top-k classification."""

from __future__ import annotations

import sys
import warnings
from math import comb
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval

from topksvm.baselines._base import Baseline
from topksvm.baselines._symmetric_polynomials import n_choose_k_losses

Floats = NDArray[np.floating[Any]]

MOST_SUBSETS = 10**300
"""The polynomials are scaled by their largest term, so they grow up to the number of subsets."""


class NChooseK(Baseline):
    r"""Linear classifier for the chance that the label is among k labels drawn together.

    Given the scores ``s = W x``, a set S of exactly k labels is drawn with probability
    proportional to ``exp(sum_{j in S} s_j)``, and the model is trained so that the set contains
    the label:

    .. math::
        \min_W \; \tfrac12 \|W\|_F^2 - C \sum_i \log p(y_i \in S \mid x_i), \qquad
        p(y \in S \mid x) = \frac{e^{s_y} \, e_{k-1}(s_{\setminus y})}{e_k(s)},

    with the elementary symmetric polynomials :math:`e_k` of the exponentials of the scores. The
    best k guesses are the k largest scores. (Sets of at most k labels would make a model that
    changes if a constant is added to all scores.) With k = 1 this is softmax regression. From
    k = 2 on the objective is not convex: with :math:`r = \log e_k(s_{\setminus y}) -
    \log e_{k-1}(s_{\setminus y})`, which approaches the k-th largest score of the other classes,
    a term of the sum is :math:`\log(1 + e^{r - s_y})`. There is then no certificate of optimality;
    L-BFGS starts at 0 and ends where the gradient vanishes.

    Parameters
    ----------
    k : int
        The size of the sets, below the number of classes.
    C : float
        The weight of the loss against the norm.
    tol : float
        Stop when no entry of the gradient is larger in size than this times the largest one at 0.
    max_iter : int
        The most iterations of L-BFGS.
    verbose : int
        1: show the objective and the gradient at the end.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes, n_features)
        The weights.
    intercept_ : ndarray of shape (n_classes,)
        Zeros: the model has no intercept.
    classes_ : ndarray of shape (n_classes,)
        The labels.
    objective_ : float
        The objective at the weights, as the solver computed it in the precision of X.
    gradient_norm_ : float
        The largest entry of the gradient in size, relative to that at 0.
    n_iter_ : int
        Iterations of L-BFGS.
    n_features_in_, feature_names_in_
        As in every scikit-learn estimator.

    References
    ----------
    K. Swersky, D. Tarlow, R. P. Adams, R. S. Zemel, B. J. Frey, "Probabilistic n-Choose-k Models
    for Classification and Ranking", NIPS 2012.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from topksvm.baselines import NChooseK
    >>> X, y = load_digits(return_X_y=True)
    >>> model = NChooseK(k=2, C=0.1).fit(X / 16, y)
    >>> bool(model.score_topk(X / 16, y, k=2) > 0.98)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "k": [Interval(Integral, 1, None, closed="left")],
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        k: int = 1,
        *,
        C: float = 1.0,
        tol: float = 1e-4,
        max_iter: int = 1000,
        verbose: int = 0,
    ) -> None:
        self.k = k
        self.C = C
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> NChooseK:
        """Train the model.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            The examples.
        y : array-like of shape (n_samples,)
            Their labels, of any type.

        Returns
        -------
        self : NChooseK
            The trained model.
        """
        X, labels = self._start(X, y)
        self._check_k()
        objective = Objective(X, labels, self.classes_.size, self.k, self.C)
        scale = self._scale(objective)
        result = minimize(
            objective,
            np.zeros(objective.size),
            jac=True,
            method="L-BFGS-B",
            options={
                "maxiter": self.max_iter,
                "maxfun": 10 * self.max_iter,
                "ftol": 0.0,
                "gtol": self.tol * scale,
            },
        )
        self._store(result.x.reshape(self.classes_.size, -1), X.dtype)
        self.objective_ = float(result.fun)
        self.gradient_norm_ = float(np.abs(result.jac).max()) / scale
        self.n_iter_ = int(result.nit)
        self._report(str(result.message))
        return self

    def _scale(self, objective: Objective) -> float:
        """Return the largest entry of the gradient at 0, and 1 if there is no gradient."""
        with np.errstate(over="ignore", invalid="ignore"):
            gradient = objective(np.zeros(objective.size))[1]
        if not np.isfinite(gradient).all():
            raise ValueError(
                f"The gradient at 0 is not finite, at C = {self.C:g}. Choose a smaller C, or scale "
                "the features to a range around 1."
            )
        # Without a gradient (all of X is 0) there is nothing to learn, and 0 is the optimum.
        return float(np.abs(gradient).max()) or 1.0

    def _check_k(self) -> None:
        m = self.classes_.size
        if self.k >= m:
            raise ValueError(
                f"k = {self.k} but there are {m} classes; k must be between 1 and {m - 1}. Choose "
                "a smaller k."
            )
        if comb(m - 1, self.k) > MOST_SUBSETS:
            raise ValueError(
                f"k = {self.k} of {m} classes gives more than 1e300 subsets, too many for "
                "floating-point numbers. Choose a smaller k."
            )

    def _report(self, message: str) -> None:
        found = (
            f"objective {self.objective_:.6g}, gradient {self.gradient_norm_:.3g} of that at 0, "
            f"after {self.n_iter_} iterations"
        )
        if self.verbose:
            print(found, file=sys.stderr)
        if not self.gradient_norm_ <= self.tol:  # Which NaN is not either.
            warnings.warn(
                f"Not solved to tol = {self.tol:g}: {found} ({message}). Raise max_iter or tol, "
                "lower C, or scale the features to a similar range.",
                ConvergenceWarning,
                stacklevel=3,
            )


class Objective:
    """The objective and its gradient at flat weights; matrix products in the precision of X."""

    def __init__(self, X: Any, labels: NDArray[np.intp], m: int, k: int, C: float) -> None:
        self.X, self.labels, self.C = X, labels.astype(np.int64, copy=False), float(C)
        self.k = np.int64(k)
        self.shape = m, X.shape[1]
        self.size = m * X.shape[1]
        # Bounds the memory for scores; blocks are large enough for fast matrix products.
        self.block = max(256, (1 << 22) // m)

    def __call__(self, flat: Floats) -> tuple[float, Floats]:
        """Return the objective and its gradient."""
        weights = flat.reshape(self.shape)
        narrow = np.ascontiguousarray(weights.T, dtype=self.X.dtype)
        losses, gradient = 0.0, np.zeros(self.shape)
        for start in range(0, self.X.shape[0], self.block):
            rows = slice(start, start + self.block)
            x = self.X[rows]
            scores = np.ascontiguousarray(x @ narrow, dtype=np.float64)
            losses += n_choose_k_losses(scores, self.labels[rows], self.k)
            shares = scores.astype(self.X.dtype, copy=False)
            gradient += np.asarray(x.T @ shares).T if sp.issparse(x) else shares.T @ x
        value = 0.5 * float(flat @ flat) + self.C * losses
        return value, (weights + self.C * gradient).ravel()
