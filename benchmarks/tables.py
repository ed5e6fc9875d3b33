"""Tables in reStructuredText."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from statistics import median
from typing import Any

from benchmarks.races import Arrival, Race
from benchmarks.rows import Row

TITLES = {
    "hinge-1": "The multiclass hinge loss (Crammer and Singer), k = 1",
    "hinge-5": "The top-k hinge loss, k = 5",
    "softmax": "The multinomial logistic loss",
}


def table(header: list[str], lines: Iterable[list[str]]) -> str:
    """Return a list-table, or nothing if there are no lines."""
    body = [_line(line) for line in lines]
    if not body:
        return ""
    return ".. list-table::\n   :header-rows: 1\n\n" + _line(header) + "".join(body)


def _line(cells: list[str]) -> str:
    first, *rest = cells
    return f"   * - {first}\n" + "".join(f"     - {cell}\n" for cell in rest)


def paragraph(text: str, first: str = "") -> str:
    """Return text in lines of the usual length."""
    return (
        textwrap.fill(
            text,
            100,
            initial_indent=first,
            subsequent_indent=" " * len(first),
            break_long_words=False,
            break_on_hyphens=False,
        )
        + "\n"
    )


def seconds(value: float | None) -> str:
    """Return three digits, as people read them."""
    if value is None:
        return ""
    return f"{value:.4f}" if value < 0.01 else f"{value:.3f}" if value < 1 else f"{value:.3g}"


def image(name: str, alt: str) -> str:
    """Return a picture."""
    return f".. image:: images/benchmarks/{name}\n   :alt: {alt}\n"


def machine(facts: dict[str, Any]) -> str:
    """Return machine, versions and commands."""
    versions = ", ".join(f"{name} {value}" for name, value in facts["versions"].items())
    commands = "".join(f"   {command}\n" for command in facts["commands"])
    machine = (
        f"Measured on {facts['date']}: {facts['processor']}, {facts['processors']} processors, "
        f"{facts['memory']} of memory, {facts['platform']}. Versions: {versions}."
    )
    how = (
        "The commands, in the root of the project, with the peers of this list installed, and "
        "``TOPKSVM_DATA`` set to the folder that holds Caltech 101 Silhouettes and banking77::"
    )
    return f"{paragraph(machine)}\n{paragraph(how)}\n{commands}"


def races(group: list[Race]) -> str:
    """Return times to an objective: a line per problem, a column per solver."""
    solvers = _solvers(group)
    header = ["data", "n, d, m", "C", "threads", *solvers, "peer / ours"]
    lines = [
        [
            race.data,
            "{}, {}, {}".format(*race.shape),
            f"{race.C:g}",
            str(race.threads),
            *(_arrival(race, solver) for solver in solvers),
            _ratio(race),
        ]
        for race in group
    ]
    return table(header, lines)


def accuracies(group: list[Race]) -> str:
    """Return times to an accuracy."""
    solvers = _solvers(group)
    lines = [
        [
            race.data,
            race.goal,
            str(race.threads),
            *(_arrival(race, solver) for solver in solvers),
            _ratio(race),
        ]
        for race in group
    ]
    return table(["data", "top-5 accuracy", "threads", *solvers, "peer / ours"], lines)


def choices(rows: list[Row]) -> str:
    """Return the C, and the k of top-k losses, with which each method races to an accuracy."""
    chosen = {
        (row["data"], row["solver"]): _choice(row["objective"], row["C"])
        for row in rows
        if row["kind"] == "accuracy"
    }
    solvers = list(dict.fromkeys(solver for _, solver in chosen))
    lines = [
        [data, *(chosen.get((data, solver), "") for solver in solvers)]
        for data in dict.fromkeys(data for data, _ in chosen)
    ]
    return table(["data", *solvers], lines)


def _choice(objective: str, C: float) -> str:
    _, _, k = objective.partition("-")
    return f"k = {k}, C = {C:g}" if k else f"C = {C:g}"


def memory(group: list[Race]) -> str:
    """Return megabytes."""
    solvers = _solvers(group)
    lines = []
    for race in group:
        most = {a.solver: a.megabytes for a in race.arrivals}
        cells = [most.get(solver) for solver in solvers]
        numbers = ["" if cell is None else f"{cell:.0f}" for cell in cells]
        lines.append([race.data, f"{race.C:g}", str(race.threads), *numbers])
    return table(["data", "C", "threads", *solvers], lines)


def threads(group: list[Race]) -> str:
    """Return the problems that were raced with several numbers of threads."""
    counts = sorted({race.threads for race in group})
    times = {
        (race.data, race.objective, race.C, arrival.solver, race.threads): arrival.seconds
        for race in group
        for arrival in race.arrivals
    }
    lines = []
    for data, objective, C, solver in dict.fromkeys(key[:4] for key in times):
        row = [times.get((data, objective, C, solver, count)) for count in counts]
        if all(value is not None for value in row) and len(row) > 1:
            gain = f"{(row[0] or 0.0) / (row[-1] or 1.0):.2f}"
            lines.append([data, objective, f"{C:g}", solver, *map(seconds, row), gain])
    header = ["data", "loss", "C", "solver", *(f"{count} threads" for count in counts), "gain"]
    return table(header, lines)


def products(rows: list[Row], group: list[Race]) -> str:
    """Return times in units of the two matrix products of a pass."""
    unit = {(r["data"], r["threads"]): r["seconds"] for r in rows if r["kind"] == "products"}
    solvers = _solvers(group)
    lines = []
    for race in group:
        one = unit.get((race.data, race.threads))
        if one:
            times = {a.solver: a.seconds for a in race.arrivals}
            cells = [times.get(solver) for solver in solvers]
            numbers = ["" if cell is None else f"{cell / one:.0f}" for cell in cells]
            problem = [race.data, f"{race.C:g}", str(race.threads)]
            lines.append([*problem, f"{1e3 * one:.3g} ms", *numbers])
    return table(["data", "C", "threads", "the products", *solvers], lines)


def compilation(rows: list[Row]) -> str:
    """Return what the first fit of a process takes, in the median."""
    seconds_of: dict[str, list[float]] = {}
    for row in rows:
        if row["solver"] and row["compile_seconds"]:
            seconds_of.setdefault(row["solver"], []).append(row["compile_seconds"])
    lines = [[name, f"{median(values):.2f}"] for name, values in seconds_of.items()]
    return table(["solver", "seconds"], lines)


def latency(rows: list[Row]) -> str:
    """Return milliseconds of predictions."""
    lines = [
        [
            row["data"],
            str(row["threads"]),
            row["solver"],
            f"{1e3 * row['seconds_1']:.3f}",
            f"{1e3 * row['seconds_10000']:.1f}",
        ]
        for row in rows
        if row["kind"] == "latency" and row["seconds_1"] is not None
    ]
    return table(["data", "threads", "method", "1 row", "10,000 rows"], lines)


def skipped(rows: list[Row]) -> str:
    """Return who could not take part, and why."""
    reasons = {
        row["solver"]: row["reason"] for row in rows if row["status"] in ("skipped", "failed")
    }
    if not reasons:
        return ""
    lines = "".join(f"- {solver}: {reason}\n" for solver, reason in reasons.items())
    return f"Not measured\n------------\n\n{lines}"


def _solvers(group: list[Race]) -> list[str]:
    """Return the solvers of which at least one result is known, ours first."""
    found: dict[str, Arrival] = {}
    for race in group:
        for arrival in race.arrivals:
            if arrival.seconds is not None or arrival.megabytes is not None:
                found.setdefault(arrival.solver, arrival)
    return sorted(found, key=lambda name: not found[name].is_ours)


def _arrival(race: Race, solver: str) -> str:
    for arrival in race.arrivals:
        if arrival.solver == solver:
            return arrival.note if arrival.seconds is None else seconds(arrival.seconds)
    return ""


def _ratio(race: Race) -> str:
    if race.ratio is not None:
        return f"{race.ratio:.2g}"
    return "" if race.least_ratio is None else f"> {race.least_ratio:.2g}"
