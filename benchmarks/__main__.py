"""``python -m benchmarks``: run, choose, report, guard."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from benchmarks import guard, machine, report
from benchmarks.datasets import DATASETS, AbsentError, DataSet, is_stored, restore, store
from benchmarks.jobs import CHOSEN, QUICK, RIVALS, choose_among, plan, plan_choice, read_chosen
from benchmarks.measure import Store, run_jobs
from benchmarks.rows import flatten, write
from benchmarks.solvers import SOLVERS
from topksvm._files import replacing

_EXAMPLES = """commands:
  run      the races: time to an equal objective, and to an equal test accuracy (the default)
  choose   choose each method's loss and C on the validation rows; writes benchmarks/chosen.json
  report   CSV, plots and the page of the documentation, from a run
  guard    ratios to matrix products and to np.sort; exit code 1 if a bound is broken

examples:
  python -m benchmarks --quick --out bench/quick
  python -m benchmarks --threads 1 2 --out bench/peers
  python -m benchmarks --threads 1 2 --out bench/peers --resume      goes on where it was stopped
  python -m benchmarks report --out bench/peers --docs docs
  python -m benchmarks --data digits --solvers 'topksvm hinge' 'LIBLINEAR -s 4' --out bench/one

Caltech 101 Silhouettes and banking77 are read from the folder that TOPKSVM_DATA names.
"""


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure topksvm against its peers; each solver in a process of its own.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "command", nargs="?", default="run", choices=("run", "choose", "report", "guard")
    )
    parser.add_argument(
        "--data", nargs="+", choices=DATASETS, metavar="NAME", help=_names(DATASETS)
    )
    parser.add_argument(
        "--solvers", nargs="+", choices=SOLVERS, metavar="NAME", help=_names(SOLVERS)
    )
    parser.add_argument(
        "--threads",
        nargs="+",
        type=_positive,
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
        "race to an accuracy)",
    )
    parser.add_argument("--quick", action="store_true", help="small data only, in two minutes")
    parser.add_argument("--resume", action="store_true", help="go on with a run that was stopped")
    parser.add_argument("--out", type=Path, default=Path("bench/peers"), metavar="DIR")
    parser.add_argument(
        "--docs", type=Path, metavar="DIR", help="report: write benchmarks.rst and images there"
    )
    return parser.parse_args(arguments)


def _names(table: Iterable[str]) -> str:
    return "of " + ", ".join(table)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit code."""
    options = parse(arguments)
    commands: dict[str, Callable[[argparse.Namespace], int]] = {
        "run": run,
        "choose": choose,
        "report": write_report,
        "guard": lambda options: guard.judge(guard.measure(quick=options.quick)),
    }
    if options.docs is not None and options.command != "report":
        return _complain("--docs is for report; run first, then report.")
    options.line = list(sys.argv[1:] if arguments is None else arguments)
    return commands[options.command](options)


def run(options: argparse.Namespace) -> int:
    """Run the races that are not in the store yet, then report."""
    results = _open_store(options, "results.jsonl")
    if results is None:
        return 2
    data, folder_of = _prepare(options)
    jobs = plan(
        data,
        options.solvers or list(SOLVERS),
        options.threads,
        quick=options.quick,
        budget=options.budget or (5.0 if options.quick else 30.0),
    )
    run_jobs(jobs, results, folder_of, _say)
    return write_report(options)


def choose(options: argparse.Namespace) -> int:
    """Choose each method's loss and C and write the choice."""
    results = _open_store(options, "choice.jsonl")
    if results is None:
        return 2
    data, folder_of = _prepare(options)
    budget = options.budget or 60.0
    jobs = list(plan_choice(data, options.solvers or list(SOLVERS), options.threads[0], budget))
    run_jobs(jobs, results, folder_of, _say)
    chosen = read_chosen()
    for item in data:
        points = {
            (job.solver, job.objective): results.outcomes[job.key].points
            for job in jobs
            if job.data == item.name
        }
        for solver in RIVALS:
            best = choose_among(points, solver)
            if best is not None:
                chosen.setdefault(item.name, {})[solver] = best
    with replacing(CHOSEN) as path:
        path.write_text(json.dumps(chosen, indent=2, sort_keys=True) + "\n")
    print(f"written: {CHOSEN}")
    return 0


def write_report(options: argparse.Namespace) -> int:
    """Write the CSV and print the tables; with ``--docs``, the page and its plots too."""
    file = options.out / "results.jsonl"
    if not file.is_file():
        return _complain(f"{file} is not there; run python -m benchmarks --out {options.out}.")
    outcomes = list(Store(file).outcomes.values())
    folders = {o.job.data: options.out / "data" / o.job.data for o in outcomes}
    rows = flatten(outcomes, {name: restore(path).shape for name, path in folders.items()})
    write(rows, options.out / "results.csv")
    facts = json.loads((options.out / "machine.json").read_text())
    print(report.text(rows, facts))
    if options.docs is not None:
        facts["commands"].append(machine.command_of(options.line))
        report.write_page(rows, facts, options.docs)
        print(f"written: {options.docs / 'benchmarks.rst'}")
    return 0


def _open_store(options: argparse.Namespace, name: str) -> Store | None:
    file = options.out / name
    if file.is_file() and not options.resume:
        _complain(f"{file} is there already; pass --resume to go on with it, or another --out.")
        return None
    machine.record(options.out, [a for a in options.line if a != "--resume"])
    return Store(file)


def _prepare(options: argparse.Namespace) -> tuple[list[DataSet], Callable[[str], Path]]:
    """Write the data where every process reads them; leave out what is not there."""
    default = QUICK if options.quick else [name for name in DATASETS if name != "tiny"]
    found = []
    for name in options.data or default:
        folder = options.out / "data" / name
        try:
            if not is_stored(folder):
                store(DATASETS[name].load(), folder)
        except AbsentError as error:
            _say(f"{name} is left out: {error}")
        else:
            found.append(DATASETS[name])
    return found, lambda name: options.out / "data" / name


def _say(line: str) -> None:
    print(line, flush=True)


def _complain(message: str) -> int:
    print(f"benchmarks: {message}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
