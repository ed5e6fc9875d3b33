"""Many rows of a table, side by side in processes; finished ones are kept."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed, parallel_config
from threadpoolctl import threadpool_limits

from topksvm import __version__
from topksvm._threads import thread_limit
from topksvm.datasets import Dataset
from topksvm.reproduction._candidates import POWERS, Method
from topksvm.reproduction._methods import make_method
from topksvm.reproduction._protocol import run_row
from topksvm.reproduction._store import Row, Store

SILHOUETTE_NORM = 432.0
"""The mean of ``||x||^2`` on Caltech 101 Silhouettes."""

SILHOUETTE_ROWS = 4100
"""The number of training rows there."""

SILHOUETTE_ENTRIES = SILHOUETTE_ROWS * 101
"""Training rows times classes there."""


@dataclass(frozen=True)
class Settings:
    """How to run: `quick` takes small grids and a larger gap; `values` are grids for methods."""

    quick: bool = False
    seed: int = 0
    values: tuple[tuple[str, tuple[float, ...]], ...] = ()

    def grid_of(self, method: Method, data: Dataset) -> tuple[float, ...]:
        """Return the values to choose from.

        The grid of the paper is wide enough for all data. Smaller ones are for Caltech 101
        Silhouettes; as ``C ||x||^2`` is what matters, they are moved by half powers of ten for
        rows of another size.
        """
        if method.name in dict(self.values):
            return dict(self.values)[method.name]
        grid = method.quick_grid if self.quick else method.grid
        if grid == POWERS:
            return grid
        factor = 10.0 ** (round(2.0 * np.log10(_likeness(method, data))) / 2.0)
        return tuple(float(f"{value * factor**method.scaling:.3g}") for value in grid)


def _likeness(method: Method, data: Dataset) -> float:
    """Return how much larger C must be here to mean the same as on the silhouettes."""
    rows = np.asarray(data.X_train[:: max(1, len(data.y_train) // 1000)], dtype=np.float64)
    norm = max(np.mean(np.sum(rows**2, axis=1)), np.finfo(float).tiny)
    entries = len(data.y_train) * data.n_classes / SILHOUETTE_ENTRIES
    return float(SILHOUETTE_NORM / norm * (entries if method.mean else 1.0))


@dataclass(frozen=True)
class Source:
    """Where a data set comes from; each process loads it once for itself.

    Larger sets are thinned to `rows` training rows.
    """

    load: Callable[..., Dataset]
    arguments: tuple[tuple[str, Any], ...] = ()
    splits: int = 1
    rows: int | None = None

    def split(self, number: int) -> Dataset:
        """Return one split of the data."""
        extra = {"split": number + 1} if self.splits > 1 else {}
        data = self.load(**dict(self.arguments), **extra)
        return self.thin(data)

    def thin(self, data: Dataset) -> Dataset:
        """Return the data with at most `rows` training rows."""
        return data if self.rows is None else thinned(data, self.rows)


def thinned(data: Dataset, rows: int) -> Dataset:
    """Return the data with about as many training rows, the same share of every class."""
    labels = np.asarray(data.y_train)
    if len(labels) <= rows:
        return data
    order = np.random.default_rng(0).permutation(len(labels))
    by_class = order[np.argsort(labels[order], kind="stable")]
    counts = np.bincount(labels, minlength=data.n_classes)
    place = np.arange(len(labels)) - np.repeat(np.cumsum(counts) - counts, counts)
    share = place / np.repeat(counts, counts)  # The first row of every class has the share 0.
    kept = np.sort(by_class[np.argsort(share, kind="stable")[:rows]])
    images = None if data.images_train is None else data.images_train[kept]
    return replace(
        data,
        X_train=data.X_train[kept],
        y_train=labels[kept],
        images_train=images,
        description=f"{len(kept)} of {len(labels)} training rows. {data.description}",
    )


@lru_cache(maxsize=1)
def _loaded(source: Source, split: int) -> Dataset:
    data = source.split(split)
    # Not all methods know half precision.
    half = [name for name in data.splits if data.split(name)[0].dtype == np.float16]
    wide: dict[str, Any] = {f"X_{n}": data.split(n)[0].astype(np.float32) for n in half}
    return replace(data, **wide)


def reproduce(
    source: Source, names: Sequence[str], settings: Settings, folder: Path, jobs: int
) -> Iterator[tuple[Row, bool]]:
    """Yield the rows as they are finished, and whether they were there before.

    Each row is the work of one thread, so that results do not depend on `jobs`.
    """
    store = open_store(source, settings, folder)
    missing = []
    for split in range(source.splits):
        for name in names:
            make_method(name)  # A wrong name is found now, not after an hour.
            row = store.load(name, split)
            if row is None:
                missing.append((name, split))
            else:
                yield row, True
    with parallel_config("loky", inner_max_num_threads=1):
        work = Parallel(n_jobs=min(jobs, max(1, len(missing))), return_as="generator_unordered")
        for row in work(delayed(_work)(source, store, settings, *task) for task in missing):
            yield row, False


def open_store(source: Source, settings: Settings, folder: Path) -> Store:
    """Return the folder's rows for this data and these settings."""
    data = _loaded(source, 0)
    identity = {
        "version": __version__,
        "dataset": data.name,
        "data": fingerprint(data),
        "quick": settings.quick,
        "seed": settings.seed,
        "values": [[name, list(grid)] for name, grid in settings.values],
    }
    return Store(folder / "rows", identity)


def _work(source: Source, store: Store, settings: Settings, name: str, split: int) -> Row:
    with thread_limit(1), threadpool_limits(1):
        method, data = make_method(name), _loaded(source, split)
        try:
            row, guesses = run_row(
                method,
                data,
                settings.grid_of(method, data),
                quick=settings.quick,
                seed=settings.seed,
                split=split,
            )
        except ValueError as error:  # Of many rows, say which one.
            place = f" (split {split + 1})" if source.splits > 1 else ""
            raise ValueError(f"{name}{place}: {error}") from error
    store.save(
        row,
        ranks=guesses.ranks.astype(np.int32),
        classes=guesses.classes.astype(np.int32),
        scores=guesses.scores.astype(np.float32),
    )
    return row


def fingerprint(data: Dataset) -> str:
    """Return a short hash of shapes, labels and some rows, enough to tell data sets apart."""
    digest = hashlib.sha256()
    for X, y in map(data.split, data.splits):  # Parameters depend on the validation rows, too.
        digest.update(repr((X.shape, str(X.dtype))).encode())
        digest.update(np.ascontiguousarray(y).tobytes())
        rows = X[:: max(1, X.shape[0] // 100)]
        digest.update(np.ascontiguousarray(rows).tobytes())
    return digest.hexdigest()[:16]
