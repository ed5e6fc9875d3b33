"""Predictions on dask collections: computed when asked for, where the rows are."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from topksvm.distributed._parts import import_dask, is_dask_array, is_dask_frame, whole_rows
from topksvm.estimators import TopKLinearSVC

Array = NDArray[Any]


class LazyPredictions(TopKLinearSVC):
    """A classifier whose predictions for dask collections are dask arrays."""

    @abstractmethod
    def to_local(self) -> TopKLinearSVC:
        """Return the model without Dask."""

    def decision_function(self, X: Any) -> Any:
        """Return the scores of the classes, lazily for a dask collection.

        Parameters
        ----------
        X : dask array, dask dataframe, array-like or CSR matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        scores : array of shape (n_samples, n_classes), or (n_samples,) for two classes
            For two classes, the score of the second less that of the first.
        """
        if not _is_lazy(X):
            return super().decision_function(X)
        check_is_fitted(self)
        m = self.classes_.size
        width = None if m == 2 else m
        return self._map(X, TopKLinearSVC.decision_function, width, self.coef_.dtype)

    def predict(self, X: Any) -> Any:
        """Return the label with the best score of each row, lazily for a dask collection.

        Parameters
        ----------
        X : dask array, dask dataframe, array-like or CSR matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        labels : array of shape (n_samples,)
            The labels.
        """
        if not _is_lazy(X):
            return super().predict(X)
        check_is_fitted(self)
        return self._map(X, TopKLinearSVC.predict, None, self.classes_.dtype)

    def predict_topk(self, X: Any, k: int | None = None, return_scores: bool = False) -> Any:
        """Return the `k` best labels of each row, best first, lazily for a dask collection.

        Parameters
        ----------
        X : dask array, dask dataframe, array-like or CSR matrix of shape (n_samples, n_features)
            The rows.
        k : int, optional
            How many; by default the `k` that the model was trained for.
        return_scores : bool
            Return their scores as well.

        Returns
        -------
        labels : array of shape (n_samples, k)
            The labels.
        scores : array of shape (n_samples, k)
            Their scores, if asked for.
        """
        if not _is_lazy(X):
            return super().predict_topk(X, k, return_scores)
        number = self._number_of_guesses(k)
        labels = self._map(X, _best_labels, number, self.classes_.dtype, k=number)
        if not return_scores:
            return labels
        return labels, self._map(X, _best_scores, number, self.coef_.dtype, k=number)

    def score_topk(self, X: Any, y: Any, k: int | None = None, sample_weight: Any = None) -> float:
        """Return the share of rows whose true label is among the `k` best.

        Parameters
        ----------
        X : dask array, dask dataframe, array-like or CSR matrix of shape (n_samples, n_features)
            The rows.
        y : array or dask array of shape (n_samples,)
            Their labels.
        k : int, optional
            How many guesses; by default the `k` that the model was trained for.
        sample_weight : array or dask array of shape (n_samples,), optional
            The weights of the rows.

        Returns
        -------
        accuracy : float
            Between 0 and 1.
        """
        computed = import_dask().compute(X, y, sample_weight)
        return self.to_local().score_topk(computed[0], computed[1], k, computed[2])

    def _map(self, X: Any, method: Any, width: int | None, dtype: Any, **options: Any) -> Any:
        """Return ``method(model, rows)`` of each block: so many columns, or one number per row."""
        if is_dask_frame(X):
            validate_data(self, X._meta, reset=False, skip_check_array=True)
            X = X.to_dask_array()
        if X.ndim != 2 or X.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has shape {X.shape} but the model was trained with {self.n_features_in_} "
                f"features; X must be (n, {self.n_features_in_})."
            )
        model = self.to_local()
        if hasattr(model, "feature_names_in_"):
            del model.feature_names_in_  # Blocks are arrays, which have no names.
        X = whole_rows(X)
        columns = {} if width is None else {"chunks": (X.chunks[0], (width,))}
        return X.map_blocks(
            _apply,
            method,
            model=import_dask().delayed(model, traverse=False),
            options=options,
            dtype=dtype,
            meta=np.empty((0,) * (1 if width is None else 2), dtype),
            drop_axis=1 if width is None else None,
            name=None,
            token=f"topksvm-{method.__name__.strip('_').replace('_', '-')}",
            **columns,
        )


def _is_lazy(X: Any) -> bool:
    return hasattr(X, "__dask_graph__") and (is_dask_array(X) or is_dask_frame(X))


def _apply(rows: Any, method: Any, model: TopKLinearSVC, options: dict[str, Any]) -> Any:
    return method(model, rows, **options)


def _best_labels(model: TopKLinearSVC, rows: Any, k: int) -> Any:
    return model.predict_topk(rows, k)


def _best_scores(model: TopKLinearSVC, rows: Any, k: int) -> Any:
    return model.predict_topk(rows, k, return_scores=True)[1]
