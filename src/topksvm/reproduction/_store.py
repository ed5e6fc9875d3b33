"""Finished rows on disk, so that a run that was killed goes on where it was."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm._files import replacing

Array = NDArray[Any]


@dataclass(frozen=True)
class Row:
    """What one method reached on one split of a data set; accuracies in per cent."""

    dataset: str
    split: int
    method: str
    parameter: str
    value: float
    accuracy: dict[int, float]
    seconds: float
    relative_gap: float | None
    validation: dict[float, float]
    history: list[dict[str, float]]
    note: str = ""


class Store:
    """A folder of rows, each with the identity of the data and settings that made it."""

    def __init__(self, folder: Path, identity: dict[str, Any]) -> None:
        self.folder = folder
        self.identity = identity

    def load(self, method: str, split: int) -> Row | None:
        """Return the row if it was finished with the same data, settings and version."""
        try:
            content = json.loads(self._path(method, split, "json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        if not isinstance(content, dict) or content.get("identity") != self.identity:
            return None
        if not self._path(method, split, "npz").exists():
            return None
        row = content["row"]
        row["accuracy"] = {int(k): value for k, value in row["accuracy"].items()}
        row["validation"] = {float(C): value for C, value in row["validation"].items()}
        return Row(**row)

    def save(self, row: Row, **arrays: Any) -> None:
        """Keep a finished row with its arrays; the row is written last, so it is complete."""
        with replacing(self._path(row.method, row.split, "npz")) as path:
            np.savez_compressed(path, **arrays)
        content = {"identity": self.identity, "row": asdict(row)}
        with replacing(self._path(row.method, row.split, "json")) as path:
            path.write_text(json.dumps(content, indent=1), encoding="utf-8")

    def arrays(self, method: str, split: int) -> dict[str, Array]:
        """Return the arrays that were kept with a row."""
        with np.load(self._path(method, split, "npz")) as content:
            return dict(content)

    def _path(self, method: str, split: int, suffix: str) -> Path:
        slug = re.sub(r"[^\w.-]+", "_", method.replace("++", "pp"))
        return self.folder / f"{slug}.{split}.{suffix}"
