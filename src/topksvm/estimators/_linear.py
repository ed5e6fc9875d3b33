"""The linear top-k multiclass SVM as a scikit-learn estimator."""

from __future__ import annotations

from dataclasses import asdict
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from topksvm.estimators._base import (
    LinearClassifier,
    TopKClassifier,
    is_streamed,
    print_progress,
)
from topksvm.estimators._persistence import load_model, save_model
from topksvm.estimators._streamed import fit_streamed
from topksvm.estimators._warm import LastFit, Problem
from topksvm.losses import LOSSES
from topksvm.solvers import (
    SOLVERS,
    Result,
    SDCAOptions,
    Status,
    choose_solver,
    make_loss,
    solve_checked,
    warn_unless_solved,
)

Array = NDArray[Any]


class TopKLinearSVC(LinearClassifier, TopKClassifier):
    r"""Linear classifier trained for the k best guesses, to a proven duality gap.

    .. math::
        \min_W \; \tfrac12 \|W\|_F^2 + C \sum_i w_i \, \phi(W x_i, y_i)

    Parameters
    ----------
    k : int
        The number of guesses to train for, below the number of classes; 1 is the multiclass SVM of
        Crammer and Singer. A tuning parameter like `C`: the best one is often larger than the
        number of guesses wanted.
    loss : {"topk_hinge_alpha", "topk_hinge_beta", "topk_hinge_full", "softmax", "topk_entropy"}
        The loss; see :mod:`topksvm.losses`.
    C : float
        The weight of the loss against the norm, as in :class:`sklearn.svm.LinearSVC`.
    smoothing : float
        Smooth a hinge by this much; 0 leaves it as it is.
    solver : {"auto", "sdca", "lbfgs"}
        Dual coordinate ascent for the hinges; L-BFGS, smooth losses only, by default for those.
    fit_intercept : bool
        Add a constant feature; its weights are penalised like the others.
    intercept_scaling : float
        The value of the constant feature: the larger, the less the intercept is penalised.
    class_weight : dict or "balanced", optional
        Factors of `C` by class.
    tol : float
        Stop when the relative duality gap is at most this.
    max_iter : int
        The most passes over the examples.
    max_time : float, optional
        Stop after so many seconds with what has been reached.
    warm_start : bool
        Start from the last fit if loss, number of features and labels are the same, from nothing
        otherwise. The examples and their weights, and all other parameters, may have changed.
    dtype : {"float32", "float64"}, optional
        Compute in this precision; by default in that of X. Another one than that makes a copy of X.
    n_jobs : int, optional
        Threads; all processors by default, and with -1; all but one with -2, and so on.
    random_state : int, RandomState or None
        The order in which examples are visited.
    verbose : int
        1: show the estimated gap while training.
    memory_limit : int, optional
        Bytes that training may use, X apart if that is an array in memory. A memory map that is
        larger (without a limit: larger than half of the memory) is read by the piece; see `fit`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes, n_features)
        The weights.
    intercept_ : ndarray of shape (n_classes,)
        The intercepts, zeros if there are none.
    classes_ : ndarray of shape (n_classes,)
        The labels.
    certificate_ : Certificate
        ``primal``, ``dual``, ``gap`` and ``relative_gap`` of the model, in float64.
    history_ : list of dict
        A line per certificate: epoch, seconds, primal, dual, gap.
    n_iter_ : int
        Passes over the examples of the last fit.
    n_features_in_, feature_names_in_
        As in every scikit-learn estimator.

    References
    ----------
    M. Lapin, M. Hein, B. Schiele, "Top-k Multiclass SVM", NIPS 2015.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from topksvm import TopKLinearSVC
    >>> X, y = load_digits(return_X_y=True)
    >>> model = TopKLinearSVC(k=2, C=0.01, random_state=0).fit(X / 16, y)
    >>> model.certificate_.relative_gap <= 1e-3
    True
    >>> model.predict_topk(X[:2] / 16).shape
    (2, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "k": [Interval(Integral, 1, None, closed="left")],
        "loss": [StrOptions(LOSSES.keys())],  # A view: losses may be registered later.
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "smoothing": [Interval(Real, 0.0, None, closed="left")],
        "solver": [StrOptions(set(SOLVERS))],
        "fit_intercept": ["boolean"],
        "intercept_scaling": [Interval(Real, 0.0, None, closed="neither")],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "max_time": [Interval(Real, 0.0, None, closed="neither"), None],
        "warm_start": ["boolean"],
        "dtype": [StrOptions({"float32", "float64"}), type, np.dtype, None],
        "n_jobs": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Integral, None, -1, closed="right"),
            None,
        ],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "memory_limit": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        k: int = 1,
        *,
        loss: str = "topk_hinge_alpha",
        C: float = 1.0,
        smoothing: float = 0.0,
        solver: str = "auto",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        class_weight: Any = None,
        tol: float = 1e-3,
        max_iter: int = 1000,
        max_time: float | None = None,
        warm_start: bool = False,
        dtype: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        memory_limit: int | None = None,
    ) -> None:
        self.k = k
        self.loss = loss
        self.C = C
        self.smoothing = smoothing
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.warm_start = warm_start
        self.dtype = dtype
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.memory_limit = memory_limit

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, checkpoint: Any = None
    ) -> TopKLinearSVC:
        """Train the model.

        Rows that do not fit in memory are read by the piece, in an order that is random by the
        megabyte and within large windows: a memory map larger than `memory_limit`, float16 and
        bfloat16 arrays, which are widened as they are read, a list of ``.npy`` files or memory
        maps, a ``pyarrow.dataset.Dataset`` with a column of lists or one per feature.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features), or as above
            The examples. float32 stays float32; X is not copied if it is C-ordered.
        y : array-like of shape (n_samples,)
            Their labels, of any type.
        sample_weight : array-like of shape (n_samples,), optional
            Factors of `C` by example, at least 0.
        checkpoint : path, optional
            A folder to which the state is written every minute and on Ctrl-C, and from which a fit
            of the same data with the same parameters resumes, to the same model. Rows are then
            read by the piece.

        Returns
        -------
        self : TopKLinearSVC
            The trained model.
        """
        self._validate_params()
        if is_streamed(X, self.memory_limit) or checkpoint is not None:
            return fit_streamed(self, X, y, sample_weight, checkpoint)
        loss = make_loss(self.loss, self.k, self.smoothing)
        solver = choose_solver(self.solver, self.loss, loss)
        X, y = self._validate_examples(X, y)
        classes, labels = np.unique(y, return_inverse=True)
        self._check_classes(classes)
        weights = self._weights_of_examples(X, y, classes, labels, sample_weight)
        problem = Problem(self._loss_key(), X.shape, classes, labels)
        last = getattr(self, "_last_fit", None) if self.warm_start else None
        result = solve_checked(
            X,
            labels,
            classes.size,
            weights,
            self.loss,
            k=self.k,
            smoothing=self.smoothing,
            solver=self.solver,
            bias=float(self.intercept_scaling) if self.fit_intercept else 0.0,
            n_jobs=self.n_jobs,
            warm=None if last is None else last.start_for(problem, solver),
            report=print_progress if self.verbose else None,
            options=SDCAOptions(
                self.tol,
                self.max_iter,
                np.inf if self.max_time is None else float(self.max_time),
                seed=int(check_random_state(self.random_state).randint(2**31 - 1)),
            ),
        )
        self.classes_ = classes
        self._store(result, X.shape[1])
        # After Ctrl-C too, so that set_params(warm_start=True) can go on from there.
        keep = self.warm_start or result.status is Status.INTERRUPTED
        self._last_fit = LastFit(problem, result) if keep else None
        warn_unless_solved(result, self.tol)
        return self

    def _loss_key(self) -> tuple[Any, ...]:
        return self.loss, self.k, self.smoothing, self.fit_intercept

    def __getstate__(self) -> Any:
        # The duals may be larger than the model; only a warm start needs them.
        state = super().__getstate__()
        return state if self.warm_start else {k: v for k, v in state.items() if k != "_last_fit"}

    def _store(self, result: Result, n_features: int) -> None:
        self.coef_ = np.ascontiguousarray(result.weights[:, :n_features])
        if self.fit_intercept:
            self.intercept_ = result.weights[:, n_features] * self.coef_.dtype.type(
                self.intercept_scaling
            )
        else:
            self.intercept_ = np.zeros(self.classes_.size, self.coef_.dtype)
        self.certificate_ = result.certificate
        self.history_ = [asdict(check) for check in result.history]
        self.n_iter_ = result.n_iter

    def save(self, path: Any) -> None:
        """Write the model to a safetensors file, from which no code is run on loading.

        What a warm start needs is not saved; keep such a model with joblib. Needs
        ``pip install 'topksvm[safetensors]'``.

        Parameters
        ----------
        path : str or path
            The file. If it exists it is replaced, but only by one that is complete.
        """
        check_is_fitted(self)
        save_model(self, path)

    @classmethod
    def load(cls, path: Any) -> TopKLinearSVC:
        """Return the model in a file written by :meth:`save`; runs no code from it.

        Parameters
        ----------
        path : str or path
            The file.

        Returns
        -------
        model : TopKLinearSVC
            The trained model.
        """
        return load_model(cls, path)
