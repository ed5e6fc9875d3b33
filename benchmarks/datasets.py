"""The data sets: where they come from, and the strengths C that are of interest on them."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp

from benchmarks.options import InputError
from topksvm.datasets import load_quickdraw, load_silhouettes, make_ambiguous_classes

CHUNK = 4096
"""Rows that are made at once."""


class AbsentError(Exception):
    """The data are not on this machine; the message says what to do."""


@dataclass(frozen=True)
class Splits:
    """Rows in float32 (dense, or CSR), and labels from 0 to m - 1."""

    X_train: Any
    y_train: Any
    X_val: Any
    y_val: Any
    X_test: Any
    y_test: Any

    @property
    def shape(self) -> tuple[int, int, int]:
        """The numbers of training rows n, of features d and of classes m."""
        n, d = self.X_train.shape
        return n, d, int(self.y_train.max()) + 1


@dataclass(frozen=True)
class DataSet:
    """A data set by name."""

    name: str
    load: Callable[[], Splits]
    """Raises :class:`AbsentError` where the data are not to be had."""
    strengths: tuple[float, ...]
    """The C of the races to an objective of hinge losses; the first for a quick run and k = 5."""
    softmax_strength: float
    """The C of the race to an objective of the logistic loss: near the best on validation rows."""
    grid: tuple[float, ...] = ()
    """The C to choose from on the validation rows; empty for no race to an accuracy."""
    is_large: bool = False
    """Run with most threads, only the solvers that have a chance, every second setting."""


def store(splits: Splits, path: Path) -> None:
    """Write the splits, so that every process starts from the same arrays and no others."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    joblib.dump(splits, part)
    part.replace(path)  # What has its name is complete.


def restore(path: Path) -> Splits:
    """Read what :func:`store` wrote."""
    return joblib.load(path)


def load_digits() -> Splits:
    """Return scikit-learn's digits, 8 x 8 pixels between 0 and 1."""
    from sklearn.datasets import load_digits as load

    X, y = load(return_X_y=True)
    return split_at_random((X / 16).astype(np.float32), y, n_val=300, n_test=400)


def load_caltech() -> Splits:
    """Return Caltech 101 Silhouettes from the folder or the file ``TOPKSVM_DATA``."""
    return splits_of(load_silhouettes(file_of("caltech101_silhouettes_28_split1.mat")))


def load_sketches(per_class: int = 20) -> Splits:
    """Return the gradients of the sketches that come with the package, 20 of 70 for training.

    With all of them no peer ends in the time that there is.
    """
    data = splits_of(load_quickdraw(features="hog"))
    n = per_class * data.shape[2]  # Rows go round the classes.
    return replace(data, X_train=data.X_train[:n], y_train=data.y_train[:n])


def load_banking77() -> Splits:
    """Return TF-IDF rows of the questions in ``banking77_{train,test}.csv`` in ``TOPKSVM_DATA``."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    (texts, names), (new_texts, new_names) = map(read_csv, ("train", "test"))
    vectorizer = TfidfVectorizer(sublinear_tf=True, dtype=np.float32)
    X = sp.csr_matrix(vectorizer.fit_transform(texts))
    categories, y = np.unique(names, return_inverse=True)
    order = np.random.default_rng(0).permutation(len(y))
    val, train = order[:1000], order[1000:]
    X_test = sp.csr_matrix(vectorizer.transform(new_texts))
    y_test = np.searchsorted(categories, new_names)
    return Splits(X[train], y[train], X[val], y[val], X_test, y_test)


def read_csv(split: str) -> tuple[list[str], list[str]]:
    """Return the texts and categories of a split of banking77."""
    with file_of(f"banking77_{split}.csv").open(newline="", encoding="utf-8") as stream:
        lines = list(csv.DictReader(stream))
    return [line["text"] for line in lines], [line["category"] for line in lines]


def make_synthetic(n: int, d: int, m: int, n_val: int, n_test: int) -> Splits:
    """Return classes in groups of ten that are taken for one another, with rows of unit norm."""
    kind = {"overlap": 0.3, "group_size": min(10, m // 2), "noise": 0.4, "random_state": 0}
    X, y = make_ambiguous_classes(n + n_val + n_test, d, m, **kind)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    # In random order already; the training rows come first, without a copy.
    parts = [slice(0, n), slice(n, n + n_val), slice(n + n_val, None)]
    return Splits(*(part for rows in parts for part in (X[rows], y[rows])))


def make_mixture(n: int, d: int, m: int, dtype: Any = np.float32, seed: int = 0) -> tuple[Any, Any]:
    """Return unit rows around `m` random centres, and their labels; in little more memory."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((m, d), dtype=np.float32)
    y = rng.integers(0, m, n)
    X = np.empty((n, d), dtype)
    for start in range(0, n, CHUNK):
        own = y[start : start + CHUNK]
        rows = 0.5 * centres[own] + rng.standard_normal((len(own), d), dtype=np.float32)
        X[start : start + CHUNK] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return X, y


def silhouettes_or_mixture(path: Path | None) -> tuple[Any, Any, float]:
    """Return the rows of Caltech 101 Silhouettes, or a problem of that shape; labels; and C."""
    if path is None:
        return *make_mixture(4100, 784, 101), 1.0
    try:
        data = load_silhouettes(path)
    except (OSError, ValueError) as error:
        raise InputError(f"--silhouettes {path}: {error}") from error
    return data.X_train, data.y_train, 0.01


def split_at_random(X: Any, y: Any, n_val: int, n_test: int) -> Splits:
    """Return the rows in random order, in three parts."""
    order = np.random.default_rng(0).permutation(len(y))
    test, val, train = np.split(order, [n_test, n_test + n_val])
    return Splits(X[train], y[train], X[val], y[val], X[test], y[test])


def splits_of(data: Any) -> Splits:
    """Return the splits of a data set of the package, without the pictures."""
    names = ("train", "val", "test")
    return Splits(*(part for name in names for part in data.split(name)))


def file_of(name: str) -> Path:
    """Return a file in the folder that ``TOPKSVM_DATA`` names."""
    folder = os.environ.get("TOPKSVM_DATA")
    if not folder:
        raise AbsentError(f"TOPKSVM_DATA is not set; set it to the folder that holds {name}")
    file = Path(folder) if Path(folder).name == name else Path(folder) / name
    if not file.is_file():
        raise AbsentError(f"{name} is not in the folder that TOPKSVM_DATA names")
    return file


load_tiny = partial(make_synthetic, 300, 20, 12, 100, 100)
load_probe = partial(make_synthetic, 12_811, 384, 1000, 2000, 5000)
load_large = partial(make_synthetic, 100_000, 768, 1000, 1, 5000)

UNIT_GRID = (0.1, 1.0, 10.0, 100.0)

DATASETS = {
    data.name: data
    for data in (
        DataSet("tiny", load_tiny, (1.0,), 1.0, (0.1, 1.0)),
        DataSet("digits", load_digits, (0.1, 10.0), 0.1, (0.01, 0.1, 1.0, 10.0)),
        DataSet("banking77", load_banking77, (1.0, 10.0), 10.0, UNIT_GRID),
        DataSet("caltech", load_caltech, (0.01, 1.0), 0.1, (0.001, 0.01, 0.1, 1.0)),
        DataSet("quickdraw", load_sketches, (1.0,), 10.0, UNIT_GRID),
        DataSet("probe", load_probe, (1.0, 10.0), 10.0, UNIT_GRID),
        DataSet("large", load_large, (1.0,), 1.0, is_large=True),
    )
}
