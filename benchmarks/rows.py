"""The results as a table with a line per measurement: what is written as CSV, and reported from."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.measure import Outcome
from benchmarks.solvers import SOLVERS

Row = dict[str, Any]

COLUMNS = (
    *("kind", "data", "objective", "solver", "status", "reason", "setting"),
    *("n", "d", "m", "threads", "is_ours", "C", "budget", "seconds", "primal", "dual", "accuracy"),
    *("megabytes", "compile_seconds", "evaluation_seconds", "seconds_1", "seconds_10000"),
)


def flatten(outcomes: Iterable[Outcome], shapes: dict[str, tuple[int, int, int]]) -> list[Row]:
    """Return a row per point; a job without any gives one row that says why."""
    rows = []
    for outcome in outcomes:
        job = outcome.job
        n, d, m = shapes[job.data]
        common: Row = (
            dict.fromkeys(COLUMNS)
            | vars(job)
            | {
                "status": outcome.status,
                "reason": outcome.reason,
                "is_ours": int(job.solver in SOLVERS and SOLVERS[job.solver].is_ours),
                "compile_seconds": outcome.compile_seconds,
                "n": n,
                "d": d,
                "m": m,
            }
        )
        for point in outcome.points or [{}]:
            known = {name: value for name, value in point.items() if name in COLUMNS}
            setting = point.get("setting")
            rows.append(common | known | {"setting": "" if setting is None else f"{setting:g}"})
    return rows


def write(rows: list[Row], path: Path) -> None:
    """Write the rows as CSV; what is not known is empty."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
