"""``topksvm reproduce``: the tables and figures of the paper, beside the published numbers."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from topksvm._threads import n_threads
from topksvm.cli._errors import UserError
from topksvm.cli._folders import check_folder
from topksvm.cli._info import describe
from topksvm.cli._output import (
    end_progress,
    in_options,
    one_line,
    print_table,
    report_progress,
    warn,
)

_EXAMPLES = """examples:
  topksvm reproduce caltech101-silhouettes                      every row of the paper's table
  topksvm reproduce caltech101-silhouettes --methods baselines --quick
  topksvm reproduce quickdraw --methods top-1-SVM-alpha top-10-SVM-alpha softmax
  topksvm reproduce quickdraw --rows 4140                       some rows of each class: faster
  topksvm reproduce sun397 --features DIR                       mean and deviation over ten splits
  topksvm reproduce figures

A run that was interrupted goes on where it was; finished rows lie in OUT/rows.
"""

_FEATURE_SETS = ("indoor67", "sun397", "places205", "imagenet2012")
_SUBJECTS = ("caltech101-silhouettes", "quickdraw", *_FEATURE_SETS, "figures")

_ONLY_TABLES = ("methods", "quick", "rows", "jobs", "data", "features", "no_check", "seed", "json")
"""Options that figures have no use for."""

_QUICK_ROWS = 10
"""Training rows of each class, on average, in a quick run on a large data set."""

_WORDS = {
    "pass path=": "pass --data FILE",
    "path=": "--data ",
    "check=False": "--no-check",
    "features=": "--features ",
    "folder=": "--features ",
}
"""What the loaders call their arguments, and the command line its options."""


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "reproduce",
        help="the paper's tables and figures, beside the published numbers",
        description=(
            "Train the methods of the paper by its protocol (parameters chosen by top-1 accuracy "
            "on validation rows, 10^-5 to 10^3 and further where the best lies at the edge), and "
            "print test accuracies beside the published ones. OUT gets results.csv, results.json, "
            "plots and a page, report.html."
        ),
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("subject", choices=_SUBJECTS, metavar="SUBJECT", help=", ".join(_SUBJECTS))
    parser.add_argument(
        "--methods",
        nargs="+",
        metavar="NAME",
        help="topk, baselines, all (the default), or names such as top-5-SVM-beta, softmax",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="small grids; at most 4100 training rows, or ten times the classes if that is more",
    )
    parser.add_argument(
        "--rows",
        type=int,
        metavar="N",
        help="training rows at most, the same share of every class (default: all)",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="default: reproduce/SUBJECT")
    parser.add_argument(
        "--jobs", type=int, metavar="N", help="rows at a time; default: one per processor"
    )
    parser.add_argument(
        "--data", type=Path, metavar="FILE", help="the .mat file of Caltech 101 Silhouettes"
    )
    parser.add_argument(
        "--features", metavar="DIR|KIND", help="the folder of CNN features; quickdraw: pixels, hog"
    )
    parser.add_argument(
        "--no-check",
        action="store_true",
        help="take features of other sizes than the paper's, a .mat file of another checksum",
    )
    parser.add_argument("--seed", type=int, help="of the random orders (default: 0)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Run the command."""
    out = options.out or Path("reproduce") / options.subject
    if options.jobs is not None and options.jobs < 1:
        raise UserError(f"--jobs {options.jobs} is not possible; it must be at least 1.")
    seed = options.seed or 0
    if seed < 0:
        raise UserError(f"--seed {seed} is not possible; it must be at least 0.")
    if options.subject == "figures":
        _refuse(options, _ONLY_TABLES)
        draw_figures(out)
        return
    from topksvm.reproduction import Settings

    try:
        source = make_source(options)
        data = source.split(0)
        source = replace(source, rows=choose_rows(options, data.n_classes))
        data = source.thin(data)
    except (ValueError, OSError, ImportError) as error:
        raise UserError(in_options(error, _WORDS)) from error
    names = choose_methods(options.subject, options.methods or ["all"], data.n_classes)
    settings = Settings(quick=options.quick, seed=seed)
    report_progress(f"{data.name}: {len(data.y_train)} training rows, {data.n_classes} classes")
    end_progress()
    run_table(source, names, settings, out, options.jobs, as_json=options.json)


def _refuse(options: argparse.Namespace, names: Iterable[str]) -> None:
    """Refuse options that the subject has no use for: none is accepted and ignored."""
    for name in names:
        value = getattr(options, name)
        if value is not None and value is not False:
            option = f"--{name.replace('_', '-')}"
            raise UserError(f"{option} does not go with {options.subject}; leave it out.")


def choose_rows(options: argparse.Namespace, m: int) -> int | None:
    """Return the most training rows to use, or None for all."""
    from topksvm.reproduction import SILHOUETTE_ROWS

    if options.rows is not None:
        if options.rows < m:
            raise UserError(
                f"--rows {options.rows} is not possible: there are {m} classes, and each needs a "
                "row."
            )
        return int(options.rows)
    return max(SILHOUETTE_ROWS, _QUICK_ROWS * m) if options.quick else None


def make_source(options: argparse.Namespace) -> Any:
    """Return where the data comes from."""
    from topksvm.datasets import load_features, load_quickdraw, load_silhouettes
    from topksvm.reproduction import Source

    subject = options.subject
    if options.data is not None and subject != "caltech101-silhouettes":
        raise UserError(f"--data is the file of caltech101-silhouettes; {subject} has none.")
    if subject == "caltech101-silhouettes":
        if options.features is not None:
            raise UserError("--features does not go with caltech101-silhouettes; use --data FILE.")
        return Source(load_silhouettes, (("path", options.data), ("check", not options.no_check)))
    if subject == "quickdraw":
        _refuse(options, ["no_check"])
        return Source(load_quickdraw, (("features", options.features or "hog"),))
    if options.features is None:
        raise UserError(
            f"{subject} needs --features DIR, the folder of its CNN features. "
            "help(topksvm.datasets.load_features) says how it looks; `topksvm extract` makes one."
        )
    splits = 10 if subject == "sun397" else 1
    arguments = {"folder": options.features, "dataset": subject, "check": not options.no_check}
    return Source(load_features, tuple(arguments.items()), splits)


def choose_methods(subject: str, wanted: list[str], m: int) -> list[str]:
    """Return the methods asked for, in the order of the table; groups only what m classes allow."""
    from topksvm.reproduction import make_method, methods_of

    table = methods_of(subject)
    later = ["softmax", "smooth-top-1-SVM"]  # Not in the paper, and hard to beat.
    topk = [name for name in table if name.startswith("top-")]
    groups = {
        "topk": topk,
        "baselines": [name for name in table if name not in topk] + later,
        "all": [name for name in table if name not in topk] + later + topk,
    }
    names = dict.fromkeys(n for name in wanted for n in groups.get(name, [name]))
    try:
        least = {name: make_method(name).least_classes for name in names}
    except ValueError as error:
        raise UserError(str(error)) from error
    too_large = [name for name in names if least[name] > m]
    for name in too_large:
        if name in wanted:
            raise UserError(
                f"{name} needs {least[name]} classes, but {subject} has {m} here. Choose a "
                "smaller k."
            )
    if too_large:
        warn(f"left out, as there are only {m} classes: {', '.join(too_large)}")
    return [name for name in names if name not in too_large]


def run_table(
    source: Any,
    names: list[str],
    settings: Any,
    out: Path,
    jobs: int | None,
    *,
    as_json: bool = False,
) -> list[Any]:
    """Train and test all methods; print and write the table, and return it."""
    from topksvm.reproduction import as_text, notes_of, open_store, reproduce, write_folder

    check_folder(out)
    start = time.perf_counter()
    total = len(names) * source.splits
    jobs = jobs or n_threads()
    rows = []
    report_progress(_progress(0, total, start, ""))
    try:
        for row, was_there in reproduce(source, names, settings, out, jobs):
            rows.append(row)
            last = f"{row.method}: top-1 {row.accuracy[1]:.2f} %"
            last += " (kept from before)" if was_there else f" in {row.seconds:.0f} s"
            report_progress(_progress(len(rows), total, start, last))
    except ValueError as error:
        advice = "Mend the data, or leave the method out, and run again: finished rows are kept."
        raise UserError(f"{one_line(error)}. {advice}") from error
    finally:
        end_progress()
    about = {
        "command": shlex.join(["topksvm", *sys.argv[1:]]),
        "elapsed seconds": f"{time.perf_counter() - start:.0f}",
        "processes": str(jobs),
    } | describe()
    store = open_store(source, settings, out)
    summaries = write_folder(out, source.split(0), store, rows, names, about)
    if as_json:
        print(json.dumps(json.loads((out / "results.json").read_text()), indent=1))
        return summaries
    print_table(*as_text(summaries))
    if any(s.paper for s in summaries):
        print("\nAccuracy in per cent; in brackets, what it is above the paper's number.")
    for note, methods in notes_of(summaries).items():
        print(f"{', '.join(methods)}: {note}.")
    print(f"\n{out / 'report.html'} shows it all; results.csv, results.json and plots beside it.")
    return summaries


def _progress(done: int, total: int, start: float, last: str) -> str:
    elapsed = time.perf_counter() - start
    left = f", about {elapsed / done * (total - done):.0f} s left" if 0 < done < total else ""
    return f"rows: {done}/{total}, {elapsed:.0f} s{left}{'. ' + last if last else ''}"


def draw_figures(out: Path) -> None:
    """Draw the simplex figure and the scaling figure."""
    from topksvm._files import replacing
    from topksvm._matplotlib import import_pyplot
    from topksvm.reproduction import draw_scaling, draw_simplices, measure_scaling

    check_folder(out)
    try:
        import_pyplot(backend="Agg")  # That it is missing is found now, not after the measuring.
    except ImportError as error:
        raise UserError(str(error)) from error
    dimensions = [d for e in range(2, 6) for d in (10**e, 3 * 10**e)] + [10**6]
    measurements: list[Any] = []
    for dimension in dimensions:
        report_progress(f"scaling of the projections: dimension {dimension}")
        measurements += measure_scaling([dimension], points=1000)
    end_progress()
    figures = {"simplex.png": draw_simplices(), "scaling.png": draw_scaling(measurements)}
    for name, figure in figures.items():
        with replacing(out / name) as temporary:
            figure.savefig(temporary, dpi=150)
        print(out / name)
