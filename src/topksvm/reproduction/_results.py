"""Rows as tables: beside the paper's numbers, as CSV and as JSON."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from topksvm._files import replacing
from topksvm.reproduction._published import GUESSES, Published, published
from topksvm.reproduction._store import Row

COLUMNS = (
    "dataset",
    "method",
    "top_k",
    "accuracy_percent",
    "paper_accuracy_percent",
    "C",
    "seconds",
    "relative_gap",
    "std",
    "paper_std",
)


@dataclass(frozen=True)
class Summary:
    """A method's rows, over all splits; accuracies in per cent."""

    dataset: str
    method: str
    parameter: str
    values: tuple[float, ...]
    accuracy: dict[int, float]
    std: dict[int, float]
    seconds: float
    relative_gap: float | None
    paper: dict[int, Published]
    notes: tuple[str, ...]

    @property
    def setting(self) -> str:
        """The parameter chosen, with its name unless that is C."""
        values = "/".join(dict.fromkeys(f"{value:g}" for value in self.values))
        return values if self.parameter == "C" else f"{self.parameter}={values}"

    def difference(self, k: int) -> float | None:
        """Return how far above the paper's number ours is, in points."""
        return self.accuracy[k] - self.paper[k].accuracy if k in self.paper else None


def summarise(rows: Sequence[Row], order: Sequence[str]) -> list[Summary]:
    """Return a summary for each method that has rows, in the order asked for."""
    summaries = []
    for method in order:
        parts = sorted((row for row in rows if row.method == method), key=lambda row: row.split)
        if not parts:
            continue
        table = {k: [part.accuracy[k] for part in parts] for k in parts[0].accuracy}
        gaps = [part.relative_gap for part in parts if part.relative_gap is not None]
        summaries.append(
            Summary(
                parts[0].dataset,
                method,
                parts[0].parameter,
                tuple(part.value for part in parts),
                {k: float(np.mean(values)) for k, values in table.items()},
                {k: float(np.std(v, ddof=1)) for k, v in table.items() if len(v) > 1},
                sum(part.seconds for part in parts),
                max(gaps) if gaps else None,
                published(parts[0].dataset).get(method, {}),
                tuple(dict.fromkeys(part.note for part in parts if part.note)),
            )
        )
    return summaries


def notes_of(summaries: Sequence[Summary]) -> dict[str, list[str]]:
    """Return what is to be said about methods, with the methods that it is said of."""
    notes: dict[str, list[str]] = {}
    for s in summaries:
        for note in s.notes:
            notes.setdefault(note, []).append(s.method)
    return notes


def columns_of(summaries: Sequence[Summary]) -> list[int]:
    """Return the numbers of guesses of the table that the data has classes for."""
    return [k for k in GUESSES if all(k in summary.accuracy for summary in summaries)]


def as_text(summaries: Sequence[Summary]) -> tuple[list[str], list[list[str]]]:
    """Return header and cells; below each number, in brackets, what it is above the paper's."""
    ks = columns_of(summaries)
    header = ["method", *(f"top-{k}" for k in ks), "C", "gap", "seconds"]
    width = max(len(s.method) for s in summaries)
    cells = []
    for s in summaries:
        gap = "" if s.relative_gap is None else f"{s.relative_gap:.0e}"
        numbers = [_cell(s, k) for k in ks]
        cells.append([s.method.ljust(width), *numbers, s.setting, gap, f"{s.seconds:.0f}"])
    return header, cells


def _cell(summary: Summary, k: int) -> str:
    spread = f"±{summary.std[k]:.1f}" if k in summary.std else ""
    difference = summary.difference(k)
    beside = "" if difference is None else f" ({round(difference, 2) + 0.0:+.2f})"
    return f"{summary.accuracy[k]:.2f}{spread}{beside}"


def write_csv(path: Path, summaries: Sequence[Summary]) -> None:
    """Write a line per method and number of guesses."""
    with replacing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, COLUMNS)
        writer.writeheader()
        for s in summaries:
            for k in columns_of(summaries):
                paper = s.paper.get(k)
                line = {
                    "dataset": s.dataset,
                    "method": s.method,
                    "top_k": k,
                    "accuracy_percent": f"{s.accuracy[k]:.4f}",
                    "paper_accuracy_percent": "" if paper is None else paper.accuracy,
                    "C": s.setting,
                    "seconds": f"{s.seconds:.3f}",
                    "relative_gap": "" if s.relative_gap is None else f"{s.relative_gap:.3e}",
                    "std": f"{s.std[k]:.4f}" if k in s.std else "",
                    "paper_std": "" if paper is None or paper.std is None else paper.std,
                }
                writer.writerow(line)


def write_json(
    path: Path, summaries: Sequence[Summary], rows: Sequence[Row], about: dict[str, Any]
) -> None:
    """Write everything that is known about the run."""
    content = {
        "about": about,
        "summaries": [asdict(s) | {"setting": s.setting} for s in summaries],
        "rows": [asdict(row) for row in rows],
    }
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(content, indent=1), encoding="utf-8")
