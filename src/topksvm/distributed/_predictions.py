"""Predictions on dask collections: computed when asked for, where the rows are."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from topksvm.distributed._one_thread import on_one_thread
from topksvm.distributed._parts import (
    import_dask,
    is_dask_array,
    is_dask_frame,
    parts_of,
    whole_rows,
)
from topksvm.estimators import TopKLinearSVC
from topksvm.metrics import Tally


def is_lazy(X: Any) -> bool:
    """Return whether `X` is a dask collection of rows."""
    return hasattr(X, "__dask_graph__") and (is_dask_array(X) or is_dask_frame(X))


def map_rows(model: TopKLinearSVC, X: Any, method: str, item: Any = None, **options: Any) -> Any:
    """Return what a method of the model returns for the rows, or an `item` of it, lazily."""
    if is_dask_frame(X):
        validate_data(model, X._meta, reset=False, skip_check_array=True)
        X = X.to_dask_array()
    d = model.n_features_in_
    if X.ndim != 2 or X.shape[1] != d:
        raise ValueError(
            f"X has shape {X.shape} but the model was trained with {d} features; X must be "
            f"(n, {d})."
        )
    X, model = whole_rows(X), _scoring_model(model)
    dtype = X.dtype if X.dtype == np.float32 else np.float64
    like = _call(model, np.zeros((1, d), dtype), method, item, options)
    columns = {"drop_axis": 1} if like.ndim == 1 else {"chunks": (X.chunks[0], like.shape[1:])}
    return X.map_blocks(
        _predict,
        model=import_dask().delayed(model, traverse=False),
        method=method,
        item=item,
        options=options,
        dtype=like.dtype,
        meta=like[:0],
        token="topksvm-predict",
        **columns,
    )


def score_topk(model: TopKLinearSVC, X: Any, y: Any, k: int | None, sample_weight: Any) -> float:
    """Return the share of rows whose true label is among the `k` best."""
    number = model._number_of_guesses(k)
    if is_dask_frame(X):
        validate_data(model, X._meta, reset=False, skip_check_array=True)
    dask = import_dask()
    scorer = dask.delayed(_scoring_model(model), traverse=False)
    tally = dask.delayed(_tally)
    parts = enumerate(parts_of(X, y, sample_weight))
    tallies = dask.compute(*(tally(i, scorer, *part) for i, part in parts))
    filled = [tally for tally in tallies if tally is not None]
    if not filled:
        raise ValueError("X has no rows; at least one is required.")
    return float(sum(filled[1:], filled[0]).accuracies([number])[0])


def _scoring_model(model: TopKLinearSVC) -> TopKLinearSVC:
    """Return what scores need of a model; without names of features, as blocks have none."""
    copy = TopKLinearSVC(model.k)
    copy.coef_, copy.intercept_ = model.coef_, model.intercept_
    copy.classes_, copy.n_features_in_ = model.classes_, model.n_features_in_
    return copy


def _call(model: TopKLinearSVC, rows: Any, method: str, item: Any, options: dict[str, Any]) -> Any:
    result = getattr(model, method)(rows, **options)
    return result if item is None else result[item]


@on_one_thread
def _predict(
    rows: Any, model: Any, method: str, item: Any, options: dict[str, Any], block_info: Any = None
) -> Any:
    try:
        return _call(model, rows, method, item, options)
    except ValueError as error:
        number = block_info[0]["chunk-location"][0] if block_info else "?"
        raise ValueError(f"Block {number} of X (counted from 0): {error}") from error


@on_one_thread
def _tally(number: int, model: TopKLinearSVC, rows: Any, y: Any, weights: Any) -> Tally | None:
    """Return how often the true label has which rank, None for a part without rows."""
    rows, y = getattr(rows, "values", rows), np.asarray(y)
    weights = None if weights is None else np.asarray(weights)
    if rows.shape[0] == 0 and y.size == 0:
        return None
    try:
        return model._tally(rows, y, weights)
    except ValueError as error:
        raise ValueError(f"Part {number} of the data (counted from 0): {error}") from error
