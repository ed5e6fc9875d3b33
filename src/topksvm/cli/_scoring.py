"""Top-k accuracy of a model, block by block, so that all scores need not be held at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm.cli._data import match_labels
from topksvm.cli._output import percent
from topksvm.metrics import topk_ranks

_ENTRIES = 1 << 21
"""Entries of a block of rows, or of their scores."""


@dataclass(frozen=True)
class Accuracy:
    """The share of rows whose label is among the k best, and labels that training has not seen."""

    n: int
    by_k: dict[int, float]
    unseen: list[str]
    n_unseen: int

    def in_words(self) -> str:
        """Return the accuracy for all k in one line."""
        shares = ", ".join(f"top-{k} {percent(share)}" for k, share in self.by_k.items())
        return f"{shares} of {self.n} rows"

    def as_json(self, name: str) -> dict[str, Any]:
        """Return the accuracy as JSON can hold it, the shares under `name`."""
        seen = {"unseen_labels": self.unseen, "n_unseen": self.n_unseen}
        return {"n": self.n, name: self.by_k, **seen}


def blocks(X: Any, n_classes: int) -> Iterator[tuple[int, Any]]:
    """Yield the rows in blocks that fit into memory, each with where it starts."""
    step = max(1, _ENTRIES // max(X.shape[1], n_classes))
    for start in range(0, X.shape[0], step):
        yield start, X[start : start + step]


def measure(model: Any, X: Any, labels: NDArray[Any], ks: Sequence[int]) -> Accuracy:
    """Return the accuracy for all `ks`; a label that the model does not know is an error."""
    columns, unseen = match_labels(labels, model.classes_)
    m = model.classes_.size
    ranks = np.full(len(columns), m + 1)
    for start, block in blocks(X, m):
        found = np.flatnonzero(columns[start : start + block.shape[0]] >= 0)
        if found.size:
            scores = model.decision_function(block[found])
            truth = model.classes_[columns[start + found]]
            ranks[start + found] = topk_ranks(truth, scores, labels=model.classes_)
    shares = {k: float(np.mean(ranks <= k)) for k in ks}
    return Accuracy(len(columns), shares, unseen, int(np.count_nonzero(columns < 0)))
