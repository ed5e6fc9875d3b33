"""Precomputed features: the paper's other four data sets, or your own."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topksvm.datasets._dataset import Dataset
from topksvm.datasets._tables import find, read_features, read_labels, read_lines

__all__ = ["PAPER", "load_features"]


class Size(NamedTuple):
    """What the paper says of a data set: training examples, classes, features."""

    n: int
    m: int
    d: int


PAPER = {
    "indoor67": Size(n=5354, m=67, d=4096),
    "sun397": Size(n=19850, m=397, d=4096),
    "places205": Size(n=2448873, m=205, d=4096),
    "imagenet2012": Size(n=1281167, m=1000, d=4096),
}
"""Lapin, Hein, Schiele, NIPS 2015, section 5; the sizes of the test sets are not given there."""


def load_features(
    folder: str | PathLike[str],
    dataset: str | None = None,
    *,
    split: int | None = None,
    check: bool = True,
) -> Dataset:
    r"""Load precomputed features from a folder.

    Two layouts are read. Either each split has its files::

        train.npy           features (n, d), or train.npz, or train.parquet
        train_labels.npy    labels (n,), or train_labels.txt with one per line
        test.npy, test_labels.npy
        val.npy, val_labels.npy     if there are any

    or all rows are in one file, and numbered splits say which belong where, as for SUN 397::

        features.npy, labels.npy
        splits/01_train.txt, splits/01_test.txt, splits/02_train.txt, ...     and 01_val.txt, ...

    with row numbers, from 0, one per line. ``classes.txt`` may name the classes, one per line in
    the order of the sorted labels. The rows of features and labels have the same order.

    Parameters
    ----------
    folder : path
        Where the files are. ``.npy`` is memory-mapped: it may be larger than the memory. ``.npz``
        holds one array, or one called ``features``; ``.parquet`` a column per feature, or one of
        lists, and needs ``topksvm[parquet]``. Features are float16, float32 or float64; integers
        are read into memory as float32.
    dataset : {"indoor67", "sun397", "places205", "imagenet2012"}, optional
        A data set of the paper: the numbers of training examples, classes and features are then
        compared with those of the paper.
    split : int, optional
        The number of the split, for the second layout; not needed if there is only one.
    check : bool
        False: accept other numbers than the paper's. Needs `dataset`.

    Returns
    -------
    Dataset
        Labels are replaced by their rank among the training labels, ``0, ..., m - 1``.

    References
    ----------
    M. Lapin, M. Hein, B. Schiele. Top-k multiclass SVM. NIPS 2015: features of the layer fc7 after
    ReLU, d = 4096.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from topksvm.datasets import load_features
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name in ("train", "test"):
    ...     np.save(folder / f"{name}.npy", np.eye(4, dtype=np.float32))
    ...     _ = (folder / f"{name}_labels.txt").write_text("cat\ndog\ncat\ndog\n")
    >>> data = load_features(folder)
    >>> data.class_names, data.y_train.tolist()
    (('cat', 'dog'), [0, 1, 0, 1])
    """
    folder = Path(folder).expanduser()
    if not folder.is_dir():
        raise FileNotFoundError(f"folder={str(folder)!r} is not a folder. Pass one with features.")
    if dataset is not None and dataset not in PAPER:
        raise ValueError(f"dataset={dataset!r} is not known. Choose one of {', '.join(PAPER)}.")
    if dataset is None and not check:
        raise ValueError("check=False without dataset=: there is nothing to check. Leave it out.")
    if find(folder, "features") is not None:
        rows = _read_numbered(folder, split)
    elif split is not None:
        raise ValueError(f"split={split} but {folder} has no features file to split. Leave it out.")
    else:
        rows = _read_separate(folder)
    data = _build(folder, dataset, rows)
    if dataset is not None and check:
        _compare(data, dataset)
    return data


Rows = dict[str, tuple[NDArray[Any], NDArray[Any]]]
"""Features and labels, as they are in the files, of each split."""


def _read_separate(folder: Path) -> Rows:
    return {
        name: (read_features(folder, name), read_labels(folder, f"{name}_labels"))
        for name in ("train", "val", "test")
        if name != "val" or find(folder, "val") is not None
    }


def _read_numbered(folder: Path, split: int | None) -> Rows:
    splits = folder / "splits"
    numbers = sorted({int(file.name[:2]) for file in splits.glob("[0-9][0-9]_train.txt")})
    if not numbers:
        raise FileNotFoundError(f"{splits} has no 01_train.txt. It says which rows are for what.")
    if split is None and len(numbers) == 1:
        split = numbers[0]
    if split not in numbers:
        raise ValueError(f"split={split} is not one of those in {splits}: {numbers}. Choose one.")
    X, y = read_features(folder, "features"), read_labels(folder, "labels")
    if len(X) != len(y):
        raise ValueError(f"{folder}: {len(X)} rows of features but {len(y)} labels.")
    rows: Rows = {}
    for name in ("train", "val", "test"):
        file = splits / f"{split:02d}_{name}.txt"
        if name != "val" or file.exists():
            chosen = _row_numbers(file, len(X))
            rows[name] = X[chosen], y[chosen]
    return rows


def _row_numbers(file: Path, n: int) -> NDArray[np.int64]:
    lines = read_lines(file)
    try:
        rows = np.array([int(line) for line in lines], dtype=np.int64)
    except ValueError as error:
        raise ValueError(f"{file}: {error}. Write one row number per line, from 0.") from error
    if len(rows) == 0 or rows.min() < 0 or rows.max() >= n:
        raise ValueError(f"{file}: row numbers must be from 0 to {n - 1}, one per line, not none.")
    if len(np.unique(rows)) < len(rows):
        raise ValueError(f"{file}: a row number stands twice. Each example counts once.")
    return rows


def _build(folder: Path, dataset: str | None, rows: Rows) -> Dataset:
    labels = np.unique(rows["train"][1])
    names = _class_names(folder, labels)
    d = rows["train"][0].shape[1]
    parts: dict[str, Any] = {}
    for split, (X, y) in rows.items():
        if X.shape[1] != d:
            raise ValueError(f"{folder}: {d} features for training but {X.shape[1]} in {split}.")
        parts[f"X_{split}"] = X
        parts[f"y_{split}"] = _ranks(folder, split, labels, y)
    source = f"Precomputed features from {folder.name}."
    if dataset is not None:
        source += f" Said to be {dataset} of Lapin, Hein, Schiele, NIPS 2015."
    return Dataset(dataset or folder.name, class_names=names, description=source, **parts)


def _class_names(folder: Path, labels: NDArray[Any]) -> tuple[str, ...]:
    file = folder / "classes.txt"
    if not file.exists():
        return tuple(str(label) for label in labels)
    names = tuple(read_lines(file))
    if len(names) != len(labels):
        raise ValueError(f"{file} names {len(names)} classes but there are {len(labels)} labels.")
    return names


def _ranks(folder: Path, split: str, labels: NDArray[Any], y: NDArray[Any]) -> NDArray[np.int64]:
    if labels.dtype.kind != y.dtype.kind:  # Or 1 and "1" would be compared.
        raise ValueError(f"{folder}: labels of {split} are of another kind than for training.")
    unknown = ~np.isin(y, labels)
    if unknown.any():
        raise ValueError(
            f"{folder}: the label {y[unknown][0]} of {split} is not among the training labels."
        )
    return np.searchsorted(labels, y).astype(np.int64)


def _compare(data: Dataset, dataset: str) -> None:
    expected = PAPER[dataset]
    found = Size(n=len(data.X_train), m=data.n_classes, d=data.n_features)
    if found == expected:
        return
    names = {"n": "training examples", "m": "classes", "d": "features"}
    differences = ", ".join(
        f"{getattr(found, key)} {name} instead of {getattr(expected, key)}"
        for key, name in names.items()
        if getattr(found, key) != getattr(expected, key)
    )
    raise ValueError(
        f"these are not the features of {dataset} in the paper: {differences}. Look into the "
        "files, or pass check=False to use them as they are."
    )
