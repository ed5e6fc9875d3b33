"""What is asked of a file, and what is found in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class Request:
    """A file, and what to look for in it.

    `n_features` and `names` are those of the model that the rows are for, None in training; `names`
    is None as well if the model knows no names.
    """

    path: Path
    format: str | None = None
    target: str | None = None
    labels: Path | None = None
    features_key: str | None = None
    labels_key: str | None = None
    zero_based: bool = False
    needs_labels: bool = True
    n_features: int | None = None
    names: tuple[str, ...] | None = None

    @property
    def wants_own_labels(self) -> bool:
        """Whether the labels are wanted, and from the file itself."""
        return self.needs_labels and self.labels is None


@dataclass(frozen=True)
class Table:
    """The rows of a file.

    Labels are as in the file, text or numbers; `notes` say what was taken for what.
    """

    X: Any
    labels: Array | None = None
    names: tuple[str, ...] | None = None
    notes: tuple[str, ...] = field(default=())
