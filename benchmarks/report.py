"""Tables, CSV, plots and the page of the documentation, from a run of peers."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import machine, tables
from benchmarks.datasets import restore
from benchmarks.measure import Store
from benchmarks.options import InputError
from benchmarks.plots import draw_paths, draw_ratios
from benchmarks.races import Race, accuracy_races, objective_races
from benchmarks.rows import Row, flatten, write

_INTRODUCTION = """\
Benchmarks
==========

How long it takes to reach an equal objective, or an equal accuracy on test rows, against the
solvers that people use today. This page is written by ``python -m benchmarks report``: every number
in it was measured by the commands below.

How it is measured
------------------

- Every solver minimises the same objective, ½‖W‖² + C Σ loss, without intercepts, from the same
  float32 rows. Its weights are judged by one function in float64, which shares no code with any
  solver. The optimum is bounded from below by the best dual value that was proven.
- A solver is run with its stopping rule from loose to exact, each time from nothing. The time to a
  goal is that of its fastest fit that reached it. Fits of less than 0.3 s are repeated, and the
  fastest counts.
- Each solver has a process of its own, with as many threads as the table says for all libraries.
  A first fit on a few rows compiles and loads everything; neither it nor the evaluation is timed.
  LIBLINEAR's own interface gets its rows in its own format, which is not timed either.
- All fits of a solver on a problem together have a budget in seconds. A peer that uses it up is
  reported with the nearest that it came. Ours may take five times as long in the end: their last
  fits are there for the bound, and not for the race.
- "Sequential SDCA" is the algorithm of the paper on the kernels of this package, in float64, with
  one liberty: it updates the weights of those classes alone that have changed.
"""

_ACCURACY = """\
Each method has its own C, chosen before on validation rows among four values (``python -m
benchmarks peers --choose``). The hinge of topksvm has its own k as well, chosen in the same way
among 5, 1, 10 and 20, as the guide advises: like C, it is there to be chosen, and the best one to
train with is often larger than the number of guesses. No test row has a part in it. The goal is the
top-5 accuracy on test rows of the best peer at the end of its stopping rules, the last of which is
near its default: what one gets for waiting.
"""

_PRODUCTS = """\
One pass over the examples has to make at least the products X W' and A' X, A being the dual
variables. In units of the time of these two products on the same data, with as many threads, in
float32, solvers took to their goal:
"""

_GUARD = """\
What keeps it fast
------------------

``python -m benchmarks guard``, part of ``make bench``, compares passes and the time to a gap with
the two matrix products of the shape, and the dual step with ``np.sort`` of the same scores, taking
turns in one run, and fails if a ratio is above a generous bound. It needs no quiet machine and no
record of older runs. On a quiet machine, ``--write FILE`` in one checkout and ``--compare FILE`` in
another fail if a ratio has grown by more than 3 %.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--out", type=Path, default=Path("bench/peers"), metavar="DIR")
    parser.add_argument(
        "--docs", type=Path, metavar="DIR", help="write benchmarks.rst and its images there"
    )


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Write the CSV; with ``--docs``, the page and its plots too."""
    rows, found = read(options.out)
    if options.docs is not None:
        found["machine"]["commands"].append(machine.command_of(options.line))
        write_page(rows, found["machine"], options.docs)
    return found


def read(folder: Path) -> tuple[list[Row], dict[str, Any]]:
    """Return the rows of a run, which are written as CSV, and the tables for a terminal."""
    file = folder / "results.jsonl"
    if not file.is_file():
        raise InputError(f"{file} does not exist; run python -m benchmarks peers --out {folder}")
    outcomes = list(Store(file).outcomes.values())
    names = {outcome.job.data for outcome in outcomes}
    rows = flatten(outcomes, {name: restore(folder / "data" / name).shape for name in names})
    write(rows, folder / "results.csv")
    races, accuracies = objective_races(rows), accuracy_races(rows)
    return rows, {
        "machine": json.loads((folder / "machine.json").read_text()),
        "Seconds to the goal": in_rows([*races, *accuracies]),
        "Where we stand": [{"goal": line} for line in summary(races, accuracies)],
    }


def in_rows(races: list[Race]) -> list[dict[str, Any]]:
    """Return a row for each solver of each race."""
    return [
        {
            "data": race.data,
            "goal": f"{race.objective}, C = {race.C:g}" if race.objective else f"top-5 {race.goal}",
            "threads": race.threads,
            "solver": arrival.solver,
            "seconds": tables.seconds(arrival.seconds) if arrival.seconds else arrival.note,
        }
        for race in races
        for arrival in race.arrivals
    ]


def summary(races: list[Race], accuracies: list[Race]) -> list[str]:
    """Return where ours are ahead, and where they are not."""
    lines = []
    for name, group in (
        ("multiclass hinge, k = 1", [r for r in races if r.objective == "hinge-1"]),
        ("top-k hinge, k = 5", [r for r in races if r.objective == "hinge-5"]),
        ("softmax", [r for r in races if r.objective == "softmax"]),
        ("test top-5 accuracy", accuracies),
    ):
        group = [race for race in group if race.has_peers]
        if not group:
            continue
        ahead = [race for race in group if race.is_ahead]
        undecided = [race for race in group if race.is_open]
        behind = [race for race in group if not (race.is_ahead or race.is_open)]
        line = f"{name}: ahead of every peer on {len(ahead)} of {len(group)} problems"
        if behind:
            line += "; not on " + ", ".join(map(_with_ratio, behind))
        if undecided:
            line += "; undecided, as the peers were stopped before our time, on "
            line += ", ".join(map(_where, undecided))
        lines.append(line + ".")
    return lines


def _where(race: Race) -> str:
    where = race.data + (f" with C = {race.C:g}" if race.objective else "")
    return where + (f" on {race.threads} threads" if race.threads > 1 else "")


def _with_ratio(race: Race) -> str:
    where = _where(race)
    if race.ratio is None or race.best_peer is None:
        return f"{where} (not reached)"
    return f"{where} ({race.best_peer.solver} takes {race.ratio:.2g} of our time)"


def write_page(rows: list[Row], facts: dict[str, Any], docs: Path) -> None:
    """Write ``benchmarks.rst`` and its plots."""
    images = docs / "images" / "benchmarks"
    images.mkdir(parents=True, exist_ok=True)
    figures = {"ratios": draw_ratios(objective_races(rows), accuracy_races(rows))}
    figures |= {objective: draw_paths(rows, objective) for objective in tables.TITLES}
    figures = {name: figure for name, figure in figures.items() if figure is not None}
    for name, figure in figures.items():
        figure.savefig(images / f"{name}.png", dpi=150)
    (docs / "benchmarks.rst").write_text(page(rows, facts, list(figures)), encoding="utf-8")


def page(rows: list[Row], facts: dict[str, Any], images: list[str]) -> str:
    """Return the page as reStructuredText."""
    races, accuracies = objective_races(rows), accuracy_races(rows)
    parts = [
        _INTRODUCTION,
        tables.machine(facts),
        _section("Where we stand"),
        "".join(tables.paragraph(line, "- ") for line in summary(races, accuracies)),
        tables.image("ratios", "How many times as long as ours the fastest peer takes"),
        _section("Time to an equal objective"),
        tables.paragraph(
            "Seconds to an objective within a thousandth of the optimum. The last column is the "
            "time of the fastest peer over ours."
        ),
    ]
    for objective, title in tables.TITLES.items():
        group = [race for race in races if race.objective == objective]
        if group:
            parts += [_section(title, "~"), tables.races(group)]
            if objective in images:
                parts.append(tables.image(objective, f"Sub-optimality by time, {title}"))
    if accuracies:
        parts += [_section("Time to an equal accuracy"), _ACCURACY, tables.races(accuracies)]
        parts += ["What was chosen:\n", tables.choices(rows)]
    parts += [
        _section("Memory"),
        "The most memory of any fit beyond what was there before it, in MB. LIBLINEAR's own\n"
        "format of the rows is not counted.\n",
        *_by_objective(races, tables.memory),
        _section("Against the matrix products"),
        _PRODUCTS,
        *_by_objective(races, lambda group: tables.products(rows, group)),
        *_optional(rows, races),
        _GUARD,
        tables.skipped(rows),
    ]
    return "\n".join(parts).rstrip() + "\n"


def _by_objective(races: list[Race], make: Callable[[list[Race]], str]) -> list[str]:
    """Return a table for each loss, as each has its own solvers."""
    parts = []
    for objective, title in tables.TITLES.items():
        content = make([race for race in races if race.objective == objective])
        if content:
            parts += [f"{title}:\n", content]
    return parts


def _optional(rows: list[Row], races: list[Race]) -> list[str]:
    parts = []
    for title, introduction, table in (
        ("Threads", "Seconds to the goal.\n", tables.threads(races)),
        (
            "Prediction",
            "Milliseconds to the five best guesses, best first: ``predict_topk`` of ours; for the\n"
            "others ``decision_function``, ``np.argpartition`` and a sort of the five.\n",
            tables.latency(rows),
        ),
        (
            "The first fit",
            "What a first fit on a few rows takes in a new process, in the median: to load the\n"
            "package and, with Numba, to load what earlier processes have compiled.\n",
            tables.compilation(rows),
        ),
    ):
        if table:
            parts += [_section(title), introduction, table]
    return parts


def _section(title: str, line: str = "-") -> str:
    return f"{title}\n{line * len(title)}\n"
