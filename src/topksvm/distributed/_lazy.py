"""Predictions on dask collections: computed when asked for, where the rows are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from topksvm.distributed._one_thread import on_one_thread
from topksvm.distributed._parts import (
    import_dask,
    is_dask_array,
    is_dask_frame,
    parts_of_column,
    parts_of_rows,
    whole_rows,
)
from topksvm.estimators import TopKLinearSVC
from topksvm.metrics import Tally

Array = NDArray[Any]


class LazyPredictions(TopKLinearSVC):
    """A classifier whose predictions for dask collections are dask arrays."""

    def to_local(self) -> TopKLinearSVC:
        """Return the model as a :class:`topksvm.TopKLinearSVC`, which needs no Dask.

        Returns
        -------
        model : TopKLinearSVC
            Fitted, with the same parameters, weights, certificate and history.
        """
        check_is_fitted(self)
        names = TopKLinearSVC().get_params()
        model = TopKLinearSVC(**{name: getattr(self, name) for name in names})
        for name, value in vars(self).items():
            if name.endswith("_") and name not in ("n_shards_", "worker_bytes_"):
                setattr(model, name, value)
        return model

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
        return self._map("scores", X, TopKLinearSVC.decision_function, width, self.coef_.dtype)

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
        return self._map("predict", X, TopKLinearSVC.predict, None, self.classes_.dtype)

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
        labels = self._map("best-labels", X, _best_labels, number, self.classes_.dtype, k=number)
        if not return_scores:
            return labels
        return labels, self._map("best-scores", X, _best_scores, number, self.coef_.dtype, k=number)

    def score_topk(self, X: Any, y: Any, k: int | None = None, sample_weight: Any = None) -> float:
        """Return the share of rows whose true label is among the `k` best.

        Ties count against the true label, and so do labels that were not there in training. Labels
        of a type that no class has are refused.

        Parameters
        ----------
        X : dask array, dask dataframe, array-like or CSR matrix of shape (n_samples, n_features)
            The rows.
        y : array or dask array of shape (n_samples,)
            Their labels.
        k : int, optional
            How many guesses; by default the `k` that the model was trained for.
        sample_weight : array or dask array of shape (n_samples,), optional
            The weights of the rows, finite and at least 0.

        Returns
        -------
        accuracy : float
            Between 0 and 1.
        """
        number = self._number_of_guesses(k)
        if not _is_lazy(X):
            y, sample_weight = import_dask().compute(y, sample_weight)
            return self.to_local().score_topk(X, y, number, sample_weight)
        if is_dask_frame(X):
            validate_data(self, X._meta, reset=False, skip_check_array=True)
        rows = parts_of_rows(X)
        labels = parts_of_column(y, X, len(rows), "y")
        weights: list[Any] = [None] * len(rows)
        if sample_weight is not None:
            weights = parts_of_column(sample_weight, X, len(rows), "sample_weight")
        dask = import_dask()
        model, tally = dask.delayed(self._for_blocks(), traverse=False), dask.delayed(_tally)
        parts = enumerate(zip(rows, labels, weights, strict=True))
        tallies = dask.compute(*(tally(i, model, *part) for i, part in parts))
        filled = [tally for tally in tallies if tally is not None]
        if not filled:
            raise ValueError("X has no rows; at least one is required.")
        return float(sum(filled[1:], filled[0]).accuracies([number])[0])

    def _map(
        self, name: str, X: Any, method: Any, width: int | None, dtype: Any, **options: Any
    ) -> Any:
        """Return ``method(model, rows)`` of each block: so many columns, or one number per row."""
        if is_dask_frame(X):
            validate_data(self, X._meta, reset=False, skip_check_array=True)
            X = X.to_dask_array()
        if X.ndim != 2 or X.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has shape {X.shape} but the model was trained with {self.n_features_in_} "
                f"features; X must be (n, {self.n_features_in_})."
            )
        X = whole_rows(X)
        columns = {} if width is None else {"chunks": (X.chunks[0], (width,))}
        return X.map_blocks(
            _apply,
            method,
            model=import_dask().delayed(self._for_blocks(), traverse=False),
            options=options,
            dtype=dtype,
            meta=np.empty((0,) * (1 if width is None else 2), dtype),
            drop_axis=1 if width is None else None,
            name=None,
            token=f"topksvm-{name}",
            **columns,
        )

    def _for_blocks(self) -> TopKLinearSVC:
        model = self.to_local()
        if hasattr(model, "feature_names_in_"):
            del model.feature_names_in_  # Blocks are arrays, which have no names.
        return model


def _is_lazy(X: Any) -> bool:
    return hasattr(X, "__dask_graph__") and (is_dask_array(X) or is_dask_frame(X))


@on_one_thread
def _apply(
    rows: Any, method: Any, model: TopKLinearSVC, options: dict[str, Any], block_info: Any = None
) -> Any:
    try:
        return method(model, rows, **options)
    except ValueError as error:
        number = block_info[0]["chunk-location"][0] if block_info else "?"
        raise ValueError(f"Block {number} of X (counted from 0): {error}") from error


@on_one_thread
def _tally(number: int, model: TopKLinearSVC, rows: Any, y: Any, weights: Any) -> Tally | None:
    """Return how often the true label has which rank, None for a part without rows."""
    rows, y = getattr(rows, "values", rows), np.asarray(y)
    if weights is not None:
        weights = np.asarray(weights)
    if rows.shape[0] == 0 and y.size == 0:
        return None
    try:
        return model._tally(rows, y, weights)
    except ValueError as error:
        raise ValueError(f"Part {number} of the data (counted from 0): {error}") from error


def _best_labels(model: TopKLinearSVC, rows: Any, k: int) -> Any:
    return model.predict_topk(rows, k)


def _best_scores(model: TopKLinearSVC, rows: Any, k: int) -> Any:
    return model.predict_topk(rows, k, return_scores=True)[1]
