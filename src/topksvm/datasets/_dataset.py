"""What every loader returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Dataset"]

_SPLITS = ("train", "val", "test")


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Examples in fixed splits, their labels, and what is known about them.

    Parameters
    ----------
    name : str
        A short name, fit for a file: ``"quickdraw-hog"``.
    X_train, y_train, X_test, y_test : arrays of shapes (n, d) and (n,)
        Features, a row per example, a read-only memory map where the file allows it; and classes
        ``0, ..., m - 1``, int64.
    class_names : tuple of str
        The name of each of the m classes.
    description : str
        What the data are, where they come from and under which licence: show it with results.
    X_val, y_val : arrays, optional
        Examples to choose hyper-parameters on. None if the data set has none.
    images_train, images_val, images_test : uint8 array of shape (n, height, width), optional
        Pictures to show, upright: 0 is the ground, 255 the object. None without pictures.

    Examples
    --------
    >>> import numpy as np
    >>> from topksvm.datasets import Dataset
    >>> X, y = np.eye(4, dtype=np.float32), np.array([0, 1, 0, 1])
    >>> data = Dataset("corners", X, y, X[:2], y[:2], ("even", "odd"), "Four corners.")
    >>> data
    Dataset('corners': 2 classes, 4 features, 4 train, 2 test)
    >>> [part.shape for part in data.split("test")]
    [(2, 4), (2,)]
    """

    name: str
    X_train: NDArray[Any]
    y_train: NDArray[np.int64]
    X_test: NDArray[Any]
    y_test: NDArray[np.int64]
    class_names: tuple[str, ...]
    description: str
    X_val: NDArray[Any] | None = None
    y_val: NDArray[np.int64] | None = None
    images_train: NDArray[np.uint8] | None = None
    images_val: NDArray[np.uint8] | None = None
    images_test: NDArray[np.uint8] | None = None

    def __post_init__(self) -> None:
        for split in self.splits:
            X, y = self.split(split)
            if len(X) != len(y):
                raise ValueError(
                    f"{self.name}: {len(X)} rows of features but {len(y)} labels in the split "
                    f"{split!r}. There must be a label for each row, in the same order."
                )

    @property
    def splits(self) -> tuple[str, ...]:
        """The names of the splits that there are."""
        return tuple(name for name in _SPLITS if getattr(self, f"X_{name}") is not None)

    @property
    def n_classes(self) -> int:
        """The number of classes m."""
        return len(self.class_names)

    @property
    def n_features(self) -> int:
        """The number of features d."""
        return int(self.X_train.shape[1])

    def split(self, name: str) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return ``X, y`` of a split.

        Parameters
        ----------
        name : {"train", "val", "test"}
            One of `splits`.

        Returns
        -------
        X : array of shape (n, d)
            The features.
        y : array of shape (n,)
            The classes.
        """
        self._check(name)
        return getattr(self, f"X_{name}"), getattr(self, f"y_{name}")

    def images(self, name: str = "test") -> NDArray[np.uint8]:
        """Return the pictures of a split.

        Parameters
        ----------
        name : {"train", "val", "test"}
            One of `splits`.

        Returns
        -------
        uint8 array of shape (n, height, width)
            Upright, 0 the ground and 255 the object.
        """
        self._check(name)
        images = getattr(self, f"images_{name}")
        if images is None:
            raise ValueError(f"{self.name} has no pictures, only features.")
        return images

    def _check(self, split: str) -> None:
        if split not in self.splits:
            raise ValueError(
                f"split={split!r} is not in {self.name}. Choose one of {', '.join(self.splits)}."
            )

    def __repr__(self) -> str:
        sizes = ", ".join(f"{len(self.split(name)[1])} {name}" for name in self.splits)
        return (
            f"Dataset({self.name!r}: {self.n_classes} classes, {self.n_features} features, {sizes})"
        )
