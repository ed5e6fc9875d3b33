"""Tables in reStructuredText."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from statistics import median
from typing import Any

from benchmarks.machine import in_words
from benchmarks.races import Race
from benchmarks.rows import Row

TITLES = {
    "hinge-1": "The multiclass hinge loss (Crammer and Singer), k = 1",
    "hinge-5": "The top-k hinge loss, k = 5",
    "softmax": "The multinomial logistic loss",
}


def table(lines: list[dict[str, str]]) -> str:
    """Return a list-table with the names of the columns as header, or nothing without lines."""
    if not lines:
        return ""
    body = [_line(line.values()) for line in [dict(zip(lines[0], lines[0], strict=True)), *lines]]
    return ".. list-table::\n   :header-rows: 1\n\n" + "".join(body)


def _line(cells: Any) -> str:
    first, *rest = cells
    return f"   * - {first}\n" + "".join(f"     - {cell}\n" for cell in rest)


def paragraph(text: str, first: str = "") -> str:
    """Return text in lines of the usual length."""
    options = {"break_long_words": False, "break_on_hyphens": False}
    indent = " " * len(first)
    text = textwrap.fill(text, 100, initial_indent=first, subsequent_indent=indent, **options)
    return f"{text}\n"


def seconds(value: float | None) -> str:
    """Return three digits, as people read them."""
    if value is None:
        return ""
    return f"{value:.4f}" if value < 0.01 else f"{value:.3f}" if value < 1 else f"{value:.3g}"


def image(name: str, alt: str) -> str:
    """Return a picture."""
    return f".. image:: images/benchmarks/{name}.png\n   :alt: {alt}\n"


def machine(facts: dict[str, Any]) -> str:
    """Return machine, commit, versions and commands."""
    commands = "".join(f"   {command}\n" for command in facts["commands"])
    how = (
        "The commands, in the root of the project, with the peers of this list installed, and "
        "``TOPKSVM_DATA`` set to the folder that holds Caltech 101 Silhouettes and banking77::"
    )
    return f"{paragraph(in_words(facts))}\n{paragraph(how)}\n{commands}"


def races(group: list[Race]) -> str:
    """Return the times to a goal: a line per problem, a column per solver."""
    return table(
        [
            {"data": race.data}
            | (
                {"n, d, m": "{}, {}, {}".format(*race.shape), "C": f"{race.C:g}"}
                if race.objective
                else {"top-5 accuracy": race.goal}
            )
            | {"threads": str(race.threads)}
            | _by_solver(race, group, lambda a: a.note if a.seconds is None else seconds(a.seconds))
            | {"peer / ours": _ratio(race)}
            for race in group
        ]
    )


def memory(group: list[Race]) -> str:
    """Return megabytes."""

    def megabytes(arrival: Any) -> str:
        return "" if arrival.megabytes is None else f"{arrival.megabytes:.0f}"

    return table([_problem(race) | _by_solver(race, group, megabytes) for race in group])


def products(rows: list[Row], group: list[Race]) -> str:
    """Return times in units of the two matrix products of a pass."""
    unit = {(r["data"], r["threads"]): r["seconds"] for r in rows if r["kind"] == "products"}
    lines = []
    for race in group:
        one = unit.get((race.data, race.threads))
        if one:

            def in_units(arrival: Any, one: float = one) -> str:
                return "" if arrival.seconds is None else f"{arrival.seconds / one:.0f}"

            cells = {"the products": f"{1e3 * one:.3g} ms"} | _by_solver(race, group, in_units)
            lines.append(_problem(race) | cells)
    return table(lines)


def threads(group: list[Race]) -> str:
    """Return the problems that were raced with several numbers of threads."""
    counts = sorted({race.threads for race in group})
    times = {
        (race.data, race.objective, f"{race.C:g}", arrival.solver, race.threads): arrival.seconds
        for race in group
        for arrival in race.arrivals
    }
    lines = []
    for key in dict.fromkeys(key[:4] for key in times):
        row = [times.get((*key, count)) for count in counts]
        if len(row) > 1 and all(row):
            cells = {f"{n} threads": seconds(value) for n, value in zip(counts, row, strict=True)}
            names = dict(zip(("data", "loss", "C", "solver"), key, strict=True))
            lines.append(names | cells | {"gain": f"{(row[0] or 0.0) / (row[-1] or 1.0):.2f}"})
    return table(lines)


def choices(rows: list[Row]) -> str:
    """Return the C, and the k of top-k losses, with which each method races to an accuracy."""
    chosen = {
        (row["data"], row["solver"]): _choice(row["objective"], row["C"])
        for row in rows
        if row["kind"] == "accuracy"
    }
    solvers = dict.fromkeys(solver for _, solver in chosen)
    return table(
        [
            {"data": data} | {solver: chosen.get((data, solver), "") for solver in solvers}
            for data in dict.fromkeys(data for data, _ in chosen)
        ]
    )


def _choice(objective: str, C: float) -> str:
    _, _, k = objective.partition("-")
    return f"k = {k}, C = {C:g}" if k else f"C = {C:g}"


def compilation(rows: list[Row]) -> str:
    """Return what the first fit of a process takes, in the median."""
    found: dict[str, list[float]] = {}
    for row in rows:
        if row["solver"] and row["compile_seconds"]:
            found.setdefault(row["solver"], []).append(row["compile_seconds"])
    return table([{"solver": s, "seconds": f"{median(v):.2f}"} for s, v in found.items()])


def latency(rows: list[Row]) -> str:
    """Return milliseconds of predictions."""
    return table(
        [
            {
                "data": row["data"],
                "threads": str(row["threads"]),
                "method": row["solver"],
                "1 row": f"{1e3 * row['seconds_1']:.3f}",
                "10,000 rows": f"{1e3 * row['seconds_10000']:.1f}",
            }
            for row in rows
            if row["kind"] == "latency" and row["seconds_1"] is not None
        ]
    )


def skipped(rows: list[Row]) -> str:
    """Return who could not take part, and why."""
    reasons = {r["solver"]: r["reason"] for r in rows if r["status"] in ("skipped", "failed")}
    lines = "".join(f"- {solver}: {reason}\n" for solver, reason in reasons.items())
    return f"Not measured\n------------\n\n{lines}" if lines else ""


def _problem(race: Race) -> dict[str, str]:
    return {"data": race.data, "C": f"{race.C:g}", "threads": str(race.threads)}


def _by_solver(race: Race, group: list[Race], cell: Callable[[Any], str]) -> dict[str, str]:
    """Return a cell for each solver of which a result is known in the group, ours first."""
    known = [
        arrival
        for other in group
        for arrival in other.arrivals
        if arrival.seconds is not None or arrival.megabytes is not None
    ]
    names = dict.fromkeys(a.solver for a in sorted(known, key=lambda a: not a.is_ours))
    cells = {arrival.solver: cell(arrival) for arrival in race.arrivals}
    return {name: cells.get(name, "") for name in names}


def _ratio(race: Race) -> str:
    if race.ratio is not None:
        return f"{race.ratio:.2g}"
    return "" if race.least_ratio is None else f"> {race.least_ratio:.2g}"
