"""``python -m benchmarks COMMAND``: run a command and print its tables."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from benchmarks import machine
from benchmarks.options import InputError
from benchmarks.timing import print_progress
from topksvm.estimators import warm_up

COMMANDS = {
    "peers": "race against peers, to an equal objective and to an equal test accuracy",
    "report": "tables, CSV, plots and the page of the documentation, from a run of peers",
    "guard": "ratios to references of the same run, against bounds or another checkout",
    "projections": "time of the projections against the dimension",
    "solver": "passes against matrix products, time to a gap against peers",
    "path": "a path over C against single fits, paths for several k together",
    "scale": "growth of time and memory with n, d and m, training from disk",
    "distributed": "rounds and bytes by the number of shards, Dask against one process",
}
"""A command is the module of its name, whose docstring is the help."""

LOSSES = ("topk_hinge_alpha", "softmax")
"""What is trained with, and so is compiled first."""

_EXAMPLES = """examples:
  python -m benchmarks peers --quick --out bench/quick
  python -m benchmarks peers --threads 1 2 --out bench/peers
  python -m benchmarks report --out bench/peers --docs docs
  python -m benchmarks guard --write before.json       in one checkout, and in the other:
  python -m benchmarks guard --compare before.json     exit code 1 if it is more than 3 % slower
  python -m benchmarks projections --out bench
  python -m benchmarks solver --silhouettes FILE
  python -m benchmarks scale --shape imagenet2012
"""


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options; ``line`` is what was typed, ``run`` the command."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure the speed on this machine, always against a reference in one run.",
        epilog=_EXAMPLES,
        formatter_class=plain,
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, summary in COMMANDS.items():
        own = commands.add_parser(name, help=summary, formatter_class=plain)
        if [name] == words[:1]:  # The others are not needed, not even to be importable.
            module = import_module(f"benchmarks.{name}")
            own.description = module.__doc__
            own.add_argument("--json", action="store_true", help="print JSON")
            module.add_options(own)
            own.set_defaults(run=module.run)
    options = parser.parse_args(words)
    options.line = words
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return 1 if a verdict in its tables is not ok, 2 for a mistake in the input.

    A command returns tables by title, each of them a list of rows, and each of these a value by
    column. ``machine`` is what they were measured on, if that is not the present run.
    """
    options = parse(arguments)
    try:
        if options.command != "report":
            print_progress("compiling what is not in the cache")
            warm_up(LOSSES)
        tables = options.run(options)
    except InputError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 2
    facts = tables.pop("machine", None) or machine.facts(options.line)
    if options.json:
        print(json.dumps({"machine": facts} | tables, indent=2))
    else:
        print(machine.in_words(facts), *facts["commands"], sep="\n")
        for title, rows in tables.items():
            print(f"\n{title}\n\n{in_columns(rows)}")
    verdicts = {row.get("verdict", "ok") for rows in tables.values() for row in rows}
    return 0 if verdicts <= {"ok"} else 1


def in_columns(rows: list[dict[str, Any]]) -> str:
    """Return the rows as text under the names of the columns; numbers are aligned at the right."""
    columns = []
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [row.get(name) for row in rows]
        cells = [name, *map(_cell, values)]
        align = str.ljust if all(isinstance(value, str) for value in values) else str.rjust
        width = max(map(len, cells))
        columns.append([align(cell, width) for cell in cells])
    return "\n".join("  ".join(line).rstrip() for line in zip(*columns, strict=True))


def _cell(value: Any) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    sys.exit(main())
