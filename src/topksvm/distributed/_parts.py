"""The examples as a list of delayed parts, whatever kind of collection the user passed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def import_dask() -> Any:
    """Return the package `dask`, with arrays and clusters, or say how to get it."""
    try:
        import dask.array
        import dask.distributed
    except ImportError as error:
        raise ImportError(
            "DaskTopKLinearSVC runs on Dask, which is missing; install it with: "
            "pip install 'topksvm[dask]'"
        ) from error
    return dask


def is_dask_array(X: Any) -> bool:
    """Return whether `X` is a dask array."""
    return isinstance(X, import_dask().array.Array)


def is_dask_frame(X: Any) -> bool:
    """Return whether `X` is a dask dataframe or series; their module need not be installed."""
    return hasattr(X, "__dask_graph__") and hasattr(X, "to_dask_array")


def parts_of(X: Any, y: Any, sample_weight: Any) -> list[tuple[Any, Any, Any]]:
    """Return the delayed parts of rows, labels and weights (or None), in order."""
    rows = _parts_of_rows(X)
    labels = _parts_of_column(y, X, len(rows), "y")
    weights: list[Any] = [None] * len(rows)
    if sample_weight is not None:
        weights = _parts_of_column(sample_weight, X, len(rows), "sample_weight")
    return list(zip(rows, labels, weights, strict=True))


def _parts_of_rows(X: Any) -> list[Any]:
    if is_dask_array(X):
        if X.ndim != 2:
            raise ValueError(f"X has {X.ndim} dimensions; it must have two: (n, d).")
        return list(whole_rows(X).to_delayed().ravel())
    if is_dask_frame(X):
        return list(X.to_delayed())
    if isinstance(X, list | tuple) and X:
        return [_delayed_part(part, "X") for part in X]
    raise TypeError(
        f"X is of type {type(X).__name__}; it must be a dask array, a dask dataframe, or a list of "
        "parts that are delayed, futures, or paths of .npy files. For an array in memory use "
        "TopKLinearSVC, or dask.array.from_array(X, chunks=...)."
    )


def whole_rows(X: Any) -> Any:
    """Return a dask array none of whose chunks ends within a row."""
    return X if X.numblocks[1] == 1 else X.rechunk({1: -1})


def _parts_of_column(values: Any, X: Any, n_parts: int, name: str) -> list[Any]:
    if is_dask_frame(values):
        values = values.iloc[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
        return _matching(list(values.to_delayed()), n_parts, name)
    if isinstance(values, list | tuple) and not is_dask_array(X) and not is_dask_frame(X):
        return _matching([_delayed_part(part, name) for part in values], n_parts, name)
    dask = import_dask()
    if not is_dask_array(values):
        values = dask.array.from_array(np.asarray(values), chunks=-1)
    if values.ndim != 1:
        raise ValueError(f"{name} has {values.ndim} dimensions; it must have one: (n,).")
    if is_dask_array(X) and not np.isnan(X.shape[0] + values.shape[0]):
        if values.shape[0] != X.shape[0]:
            raise ValueError(
                f"{name} has {values.shape[0]} entries but X has {X.shape[0]} rows; there must be "
                "one for each row."
            )
        values = values.rechunk((X.chunks[0],))
    return _matching(list(values.to_delayed().ravel()), n_parts, name)


def _matching(parts: list[Any], n_parts: int, name: str) -> list[Any]:
    if len(parts) != n_parts:
        raise ValueError(
            f"{name} has {len(parts)} parts but X has {n_parts}, and the number of rows in each is "
            "not known beforehand; they must match part by part. Make both from the same "
            "partitions, or call compute_chunk_sizes() on dask arrays."
        )
    return parts


def _delayed_part(part: Any, name: str) -> Any:
    dask = import_dask()
    if isinstance(part, str | Path):
        if not str(part).endswith(".npy"):
            raise ValueError(f"{name} holds the path {part}; paths must be of .npy files.")
        return dask.delayed(load_part)(str(part))
    if hasattr(part, "dask") or isinstance(part, dask.distributed.Future):
        return dask.delayed(part)
    raise TypeError(
        f"{name} is a list with a part of type {type(part).__name__}; each must be delayed, a "
        "future, or the path of a .npy file. Put arrays into dask.array.from_array instead."
    )


def load_part(path: str) -> Array:
    """Return the array in a file, as a memory map: its rows are read when they are used."""
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"cannot read the part {path} on a worker ({error}); the file must be there on every "
            "worker, as on a shared file system."
        ) from error
