"""The race against peers: time to an equal objective, and to an equal test accuracy.

Each solver runs in a process of its own. Caltech 101 Silhouettes and banking77 are read from the
folder that TOPKSVM_DATA names.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks import machine, report
from benchmarks.datasets import DATASETS, AbsentError, DataSet, store
from benchmarks.jobs import CHOSEN, QUICK, RIVALS, choose_among, plan, plan_choice, read_chosen
from benchmarks.measure import Store, run_jobs
from benchmarks.options import InputError, positive
from benchmarks.solvers import SOLVERS
from benchmarks.timing import print_progress


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "--data", nargs="+", choices=DATASETS, metavar="NAME", help=_names(DATASETS)
    )
    parser.add_argument(
        "--solvers", nargs="+", choices=SOLVERS, metavar="NAME", help=_names(SOLVERS)
    )
    parser.add_argument(
        "--threads",
        nargs="+",
        type=positive,
        default=[1],
        metavar="N",
        help="the races take the first number, the largest data the largest; the others are for "
        "how the time falls with threads",
    )
    parser.add_argument(
        "--budget",
        type=float,
        metavar="S",
        help="seconds of fitting for a solver on a problem (30, or 5 with --quick; twice that in a "
        "race to an accuracy; 60 with --choose)",
    )
    parser.add_argument("--quick", action="store_true", help="small data only, in two minutes")
    parser.add_argument(
        "--choose",
        action="store_true",
        help="no races: choose each method's loss and C on the validation rows, and write "
        "benchmarks/chosen.json",
    )
    parser.add_argument("--resume", action="store_true", help="continue a run that was stopped")
    parser.add_argument("--out", type=Path, default=Path("bench/peers"), metavar="DIR")


def _names(table: Iterable[str]) -> str:
    return "of " + ", ".join(table)


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Run what is not in the store yet, then report."""
    file = options.out / ("choice.jsonl" if options.choose else "results.jsonl")
    if file.is_file() and not options.resume:
        raise InputError(f"{file} exists; pass --resume to continue it, or another --out")
    machine.record(options.out, [word for word in options.line if word != "--resume"])
    results, data = Store(file), prepare(options)
    solvers = options.solvers or list(SOLVERS)
    if options.choose:
        return {"Chosen": choose(data, solvers, options, results)}
    budget = options.budget or (5.0 if options.quick else 30.0)
    jobs = plan(data, solvers, options.threads, quick=options.quick, budget=budget)
    run_jobs(jobs, results, options.out / "data")
    return report.read(options.out)[1]


def choose(
    data: list[DataSet], solvers: list[str], options: argparse.Namespace, results: Store
) -> list[dict[str, Any]]:
    """Choose each method's loss and C, and write the choice."""
    jobs = list(plan_choice(data, solvers, options.threads[0], options.budget or 60.0))
    run_jobs(jobs, results, options.out / "data")
    chosen = read_chosen()
    for item in data:
        points = {
            (job.solver, job.objective): results.outcomes[job.key].points
            for job in jobs
            if job.data == item.name
        }
        found = {solver: choose_among(points, solver) for solver in RIVALS}
        chosen.setdefault(item.name, {}).update({k: v for k, v in found.items() if v})
    CHOSEN.write_text(json.dumps(chosen, indent=2, sort_keys=True) + "\n")
    return [
        {"data": name, "solver": solver} | choice
        for name, choices in chosen.items()
        for solver, choice in choices.items()
    ]


def prepare(options: argparse.Namespace) -> list[DataSet]:
    """Write the data where every process reads them; leave out what is not there."""
    default = QUICK if options.quick else [name for name in DATASETS if name != "tiny"]
    found = []
    for name in options.data or default:
        path = options.out / "data" / name
        try:
            if not path.is_file():
                store(DATASETS[name].load(), path)
        except AbsentError as error:
            print_progress(f"{name} is left out: {error}")
        else:
            found.append(DATASETS[name])
    return found
