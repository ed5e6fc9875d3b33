"""The numbers of the paper's tables.

M. Lapin, M. Hein, B. Schiele, "Top-k Multiclass SVM", NIPS 2015, tables 1 to 3, with the rows of
K. Swersky, B. J. Frey, D. Tarlow, R. Zemel, R. Adams, "Probabilistic n-choose-k models for
classification and ranking", NIPS 2012, that it cites.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

GUESSES = (1, 2, 3, 4, 5, 10)
"""The columns of the tables: the numbers of guesses."""

DATASETS = ("caltech101-silhouettes", "indoor67", "sun397", "places205", "imagenet2012")

# Other people's networks, quoted in the tables as the state of the art of 2015.
_QUOTED = {"ZLX/BVLC"}


@dataclass(frozen=True)
class Published:
    """A number of the paper, in per cent; with the deviation over the splits where it has one."""

    accuracy: float
    std: float | None = None


@cache
def published(dataset: str) -> dict[str, dict[int, Published]]:
    """Return the numbers by method and number of guesses, in the order of the paper."""
    text = files(__package__).joinpath("published.csv").read_text(encoding="utf-8")
    table: dict[str, dict[int, Published]] = {}
    for line in csv.DictReader(text.splitlines()):
        if line["dataset"] == dataset:
            cells = {k: line[f"top {k}"] for k in GUESSES}
            table[line["method"]] = {k: _number(cell) for k, cell in cells.items() if cell}
    return table


def methods_of(dataset: str) -> list[str]:
    """Return the methods that the paper trained on the data set.

    Data sets that are not in the paper have those of its first table.
    """
    table = published(dataset) or published(DATASETS[0])
    return [name for name in table if name not in _QUOTED]


def _number(cell: str) -> Published:
    accuracy, _, std = cell.partition("±")
    return Published(float(accuracy), float(std) if std else None)
