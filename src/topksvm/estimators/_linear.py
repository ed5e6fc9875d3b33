"""The linear top-k multiclass SVM as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from topksvm.data import is_streamed
from topksvm.estimators._base import LinearClassifier
from topksvm.estimators._parameters import CONSTRAINTS, documented
from topksvm.estimators._persistence import load_model, save_model
from topksvm.estimators._streamed import open_examples
from topksvm.estimators._trained import TopKClassifier, unchanged_on_error
from topksvm.estimators._warm import FitKey, LastFit
from topksvm.solvers import (
    Result,
    Status,
    TrainingData,
    choose_solver,
    make_loss,
    train_on,
    warn_unless_solved,
)

Array = NDArray[Any]


@documented()
class TopKLinearSVC(LinearClassifier, TopKClassifier):
    r"""Linear classifier trained for the k best guesses, to a proven duality gap.

    .. math::
        \min_W \; \tfrac12 \|W\|_F^2 + C \sum_i w_i \, \phi(W x_i, y_i)

    Parameters
    ----------
    {k}
    {loss}
    {C}
    {smoothing}
    {solver}
    {fit_intercept}
    {intercept_scaling}
    {class_weight}
    {tol}
    {max_iter}
    {max_time}
    {warm_start}
    {dtype}
    {n_jobs}
    {random_state}
    {verbose}
    {memory_limit}
    {checkpoint}
    {callback}

    Attributes
    ----------
    {coef_}
    {intercept_}
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
    >>> from topksvm import TopKLinearSVC
    >>> X, y = load_digits(return_X_y=True)
    >>> model = TopKLinearSVC(k=2, C=0.01, random_state=0).fit(X / 16, y)
    >>> model.certificate_.relative_gap <= 1e-3
    True
    >>> model.predict_topk(X[:2] / 16).shape
    (2, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = CONSTRAINTS

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
        checkpoint: Any = None,
        callback: Any = None,
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
        self.checkpoint = checkpoint
        self.callback = callback

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> TopKLinearSVC:
        """Train the model.

        Rows that do not fit in memory are read in windows, in an order that is random by the
        megabyte and within a window: a memory map larger than `memory_limit`, float16 and bfloat16
        arrays, which are widened as they are read, a list of ``.npy`` files or memory maps, a
        ``pyarrow.dataset.Dataset`` with a column of lists or one per feature, any object with the
        methods of :class:`topksvm.data.RowSource`.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features), or as above
            The examples. float32 stays float32; X is not copied if it is C-ordered.
        y : array-like of shape (n_samples,)
            Their labels, of any type.
        sample_weight : array-like of shape (n_samples,), optional
            Factors of `C` by example, at least 0.

        Returns
        -------
        self : TopKLinearSVC
            The trained model.
        """
        self._validate_params()
        loss = make_loss(self.loss, self.k, self.smoothing)
        solver = choose_solver(self.solver, loss)
        with unchanged_on_error(self):
            data, classes = self._read(X, y, sample_weight)
            key = FitKey((loss, self.fit_intercept), data.rows.shape, classes, data.labels)
            last = getattr(self, "_last_fit", None) if self.warm_start else None
            result = train_on(
                data,
                loss,
                self._setup(),
                n_jobs=self.n_jobs,
                warm=None if last is None else last.start_for(key, solver),
                checkpoint=self.checkpoint,
                memory_limit=self.memory_limit,
            )
            self.classes_, self.n_features_in_ = classes, data.rows.shape[1]
            self._store(result)
            # After Ctrl-C too, so that set_params(warm_start=True) can continue from there.
            keep = (self.warm_start or result.status is Status.INTERRUPTED) and not data.is_source
            self._last_fit = LastFit(key, result) if keep else None
        warn_unless_solved(result, self.tol)
        return self

    def _read(self, X: Any, y: Any, sample_weight: Any) -> tuple[TrainingData, Array]:
        """Return the examples as solvers take them, and the classes."""
        if is_streamed(X, self.memory_limit):
            if self.warm_start:
                raise ValueError(
                    "warm_start = True needs all rows in memory; use checkpoint= to resume a fit."
                )
            rows, y = open_examples(X, y, self.dtype)
            self.__dict__.pop("feature_names_in_", None)  # Those of an earlier fit.
            like = np.broadcast_to(np.float64(0.0), (len(y), 1))
        else:
            accepted = "csr" if self.checkpoint is None else False
            rows, y = self._validate_examples(X, y, accepted)
            like = rows
        classes, labels = np.unique(y, return_inverse=True)
        self._check_classes(classes)
        weights = self._weights_of_examples(like, y, classes, labels, sample_weight)
        bias = float(self.intercept_scaling) if self.fit_intercept else 0.0
        return TrainingData(rows, labels, weights, classes.size, bias), classes

    def __getstate__(self) -> Any:
        # The duals may be larger than the model; only a warm start needs them.
        state = super().__getstate__()
        return state if self.warm_start else {k: v for k, v in state.items() if k != "_last_fit"}

    def _store(self, result: Result) -> None:
        d = self.n_features_in_
        self.coef_ = np.ascontiguousarray(result.weights[:, :d])
        if self.fit_intercept:
            self.intercept_ = result.weights[:, d] * self.coef_.dtype.type(self.intercept_scaling)
        else:
            self.intercept_ = np.zeros(self.classes_.size, self.coef_.dtype)
        self._store_outcome(result)

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
