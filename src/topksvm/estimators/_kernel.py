"""The top-k multiclass SVM with a kernel as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from topksvm.data import (
    ComputedGram,
    GivenGram,
    Gram,
    check_gram,
    check_sample,
    check_square,
    checked_values,
    make_kernel_problem,
    sample_rows,
)
from topksvm.estimators._kernel_functions import (
    KERNELS,
    NamedKernel,
    resolve_gamma,
    wrap_callable,
)
from topksvm.estimators._parameters import NOT_NEGATIVE, POSITIVE, constraints, documented
from topksvm.estimators._trained import TopKClassifier, unchanged_on_error
from topksvm.solvers import (
    BLOCK,
    Result,
    check_dual_step,
    make_loss,
    train,
    warn_unless_solved,
)

Array = NDArray[Any]

BLOCK_ENTRIES = 1 << 21
"""Values of the kernel that prediction computes together."""


@documented()
class TopKSVC(TopKClassifier):
    r"""Kernel classifier trained for the k best guesses, to a proven duality gap.

    The scores of a row ``x`` are :math:`f(x) = \sum_i a_i K(x_i, x)`, and the model minimises

    .. math::
        \tfrac12 \sum_{ij} \langle a_i, a_j \rangle K(x_i, x_j)
        + C \sum_i w_i \, \phi(f(x_i), y_i)

    There is no intercept; ``K + 1`` is a kernel with a penalised one.

    Parameters
    ----------
    {k}
    kernel : {"linear", "poly", "rbf", "sigmoid", "precomputed"} or callable, default="rbf"
        The kernel, as in :class:`sklearn.svm.SVC`. For "precomputed", X is the matrix of the kernel
        itself: of all pairs of training rows in `fit`, of new rows and training rows after that. A
        callable takes two matrices of rows and returns the matrix of all pairs; one that takes two
        rows and returns a number works, slowly. A kernel must be positive semi-definite, which
        "sigmoid" often is not: a warning says so then, and `certificate_` is no proof.
    gamma : {"scale", "auto"} or float, default="scale"
        The factor of "rbf", "poly" and "sigmoid": ``1 / (n_features * X.var())``,
        ``1 / n_features``, or a number above 0.
    degree : float, default=3
        The degree of "poly".
    coef0 : float, default=0.0
        The constant term of "poly" and "sigmoid".
    {loss}
    {C}
    {smoothing}
    {class_weight}
    {tol}
    {max_iter}
    {max_time}
    cache_size : float, default=200
        Megabytes for rows of the matrix of the kernel, at least one row. The larger, the fewer are
        computed again; the model is the same.
    {dtype}
    {n_jobs}
    {random_state}
    {verbose}
    {callback}

    Attributes
    ----------
    support_ : ndarray of shape (n_support,)
        The training rows that take part in the model, in order.
    support_vectors_ : ndarray or CSR matrix of shape (n_support, n_features)
        Those rows; not there for ``kernel="precomputed"``.
    dual_coef_ : ndarray of shape (n_classes, n_support)
        Their coefficients: the scores are ``K(X, support_vectors_) @ dual_coef_.T``.
    n_support_ : ndarray of shape (n_classes,)
        How many of them have which label.
    {classes_}
    {certificate_}
    {status_}
    {history_}
    {n_iter_}
    {n_features_in_}

    References
    ----------
    M. Lapin, M. Hein, B. Schiele, "Top-k Multiclass SVM", NIPS 2015.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from topksvm import TopKSVC
    >>> X, y = load_digits(return_X_y=True)
    >>> model = TopKSVC(k=2, random_state=0).fit(X[:300], y[:300])
    >>> model.certificate_.relative_gap <= 1e-3
    True
    >>> model.predict_topk(X[300:302]).shape
    (2, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **constraints(
            "k", "loss", "C", "smoothing", "class_weight", "tol", "max_iter", "max_time", "dtype",
            "n_jobs", "random_state", "verbose", "callback",
        ),
        "kernel": [StrOptions({*KERNELS, "precomputed"}), callable],
        "gamma": [StrOptions({"scale", "auto"}), POSITIVE],
        "degree": [NOT_NEGATIVE],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "cache_size": [POSITIVE],
    }  # fmt: skip

    _kernel_function: Any  # None for a precomputed kernel.

    def __init__(
        self,
        k: int = 1,
        *,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: float = 3,
        coef0: float = 0.0,
        loss: str = "topk_hinge_alpha",
        C: float = 1.0,
        smoothing: float = 0.0,
        class_weight: Any = None,
        tol: float = 1e-3,
        max_iter: int = 1000,
        max_time: float | None = None,
        cache_size: float = 200,
        dtype: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        callback: Any = None,
    ) -> None:
        self.k = k
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.loss = loss
        self.C = C
        self.smoothing = smoothing
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.cache_size = cache_size
        self.dtype = dtype
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_precomputed
        tags.input_tags.sparse = not self._is_precomputed
        return tags

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    @property
    def _accepted_formats(self) -> Any:
        return False if self._is_precomputed else "csr"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> TopKSVC:
        """Train the model.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            The examples, or for ``kernel="precomputed"`` the dense matrix of the kernel of shape
            (n_samples, n_samples). float32 stays float32.
        y : array-like of shape (n_samples,)
            The labels, of any type.
        sample_weight : array-like of shape (n_samples,), optional
            Factors of `C` by example, at least 0.

        Returns
        -------
        self : TopKSVC
            The trained model.
        """
        self._validate_params()
        loss = make_loss(self.loss, self.k, self.smoothing)
        check_dual_step("A kernel machine", loss)
        with unchanged_on_error(self):
            X, y = self._validate_examples(X, y, self._accepted_formats)
            classes, labels = np.unique(y, return_inverse=True)
            self._check_classes(classes)
            weights = self._weights_of_examples(X, y, classes, labels, sample_weight)
            gram = self._make_gram(X)
            result = train(
                lambda: make_kernel_problem(gram, labels, weights, classes.size),
                loss,
                self._setup(),
                self.n_jobs,
            )
            self.classes_ = classes
            self._store(result, X, labels)
        warn_unless_solved(result, self.tol)
        return self

    def _make_gram(self, X: Any) -> Gram:
        """Return the Gram matrix of the rows; complain, as far as can be seen, if it is none."""
        if self._is_precomputed:
            check_square(X.shape)
            check_gram(X)
            self._kernel_function = None
            return GivenGram(X)
        self._kernel_function = self._make_function(X)
        if not (isinstance(self.kernel, str) and self.kernel in ("linear", "rbf")):
            self._check_function(X)
        return ComputedGram(self._kernel_function, X, self.cache_size, BLOCK)

    def _make_function(self, X: Any) -> Any:
        if not isinstance(self.kernel, str):
            return wrap_callable(self.kernel, X)
        return NamedKernel(self.kernel, resolve_gamma(self.gamma, X), self.degree, self.coef0)

    def _check_function(self, X: Any) -> None:
        """Complain about a kernel function that some of the examples show not to be one."""
        some: Any = X[sample_rows(X.shape[0])]
        n = some.shape[0]
        K = checked_values(self._kernel_function(some, some), n, n).astype(X.dtype)
        try:
            check_sample(K)
        except ValueError as error:
            if self.kernel != "sigmoid" or (np.diagonal(K) < 0.0).any():
                raise
            # It is known for that, and used nevertheless.
            warnings.warn(
                f"{error} Training goes on, but may end in a local optimum, and certificate_ is no "
                "bound on the distance from the best one.",
                UserWarning,
                stacklevel=4,
            )

    def _store(self, result: Result, X: Any, labels: Array) -> None:
        self.support_ = np.flatnonzero(result.duals.count)
        self.dual_coef_ = result.weights
        self.n_support_ = np.bincount(labels[self.support_], minlength=self.classes_.size)
        if not self._is_precomputed:
            self.support_vectors_ = X[self.support_]
        elif hasattr(self, "support_vectors_"):  # Of an earlier fit with another kernel.
            del self.support_vectors_
        self._store_outcome(result)

    def _scores(self, X: Any) -> Array:
        check_is_fitted(self)
        X = validate_data(
            self,
            X,
            reset=False,
            accept_sparse=self._accepted_formats,
            dtype=[np.float64, np.float32],
        )
        n, n_support = X.shape[0], self.support_.size
        if n_support == 0:  # After an interrupt before the first step.
            return np.zeros((n, self.classes_.size), self.dual_coef_.dtype)
        height = max(1, BLOCK_ENTRIES // n_support)
        parts = [
            self._kernel_with_support(X[start : start + height]) @ self.dual_coef_.T
            for start in range(0, n, height)
        ]
        return np.concatenate(parts)

    def _kernel_with_support(self, X: Any) -> Array:
        if self._kernel_function is None:
            return X[:, self.support_]
        values = self._kernel_function(X, self.support_vectors_)
        return checked_values(values, X.shape[0], self.support_.size)
