"""Repeat the tables and figures of the paper.

All methods are trained, and shown beside the published numbers. The protocol is that of the paper:
parameters are chosen by top-1 accuracy on validation rows, from 10^-5 to 10^3 and further where the
best lies at the edge. OUT gets results.csv, results.json, plots and a page, report.html.

Examples
--------
  topksvm reproduce caltech101-silhouettes                      every row of the paper's table
  topksvm reproduce caltech101-silhouettes --methods baselines --quick
  topksvm reproduce quickdraw --methods top-1-SVM-alpha top-10-SVM-alpha softmax
  topksvm reproduce quickdraw --rows 4140                       some rows of each class: faster
  topksvm reproduce sun397 --features DIR                       mean and deviation over ten splits
  topksvm reproduce figures

A run that was interrupted resumes; finished rows are kept in OUT/rows.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from topksvm._clock import Clock
from topksvm._progress import CountBar
from topksvm._threads import n_threads
from topksvm.cli._errors import UserError
from topksvm.cli._info import describe
from topksvm.cli._options import add_command, add_output_options, whole
from topksvm.cli._output import check_writable, one_line, print_table, warn

_SILHOUETTES = "caltech101-silhouettes"
_FEATURE_SETS = ("indoor67", "sun397", "places205", "imagenet2012")
_SUBJECTS = (_SILHOUETTES, "quickdraw", *_FEATURE_SETS, "figures")

_ONLY_TABLES = ("methods", "quick", "rows", "jobs", "data", "features", "no_check", "seed", "json")
"""Options that figures have no use for."""

_QUICK_ROWS = 10
"""Training rows of each class, on average, in a quick run on a large data set."""

_OPTIONS_OF = {
    _SILHOUETTES: "path= is --data FILE and check=False is --no-check",
    "quickdraw": "features= is --features KIND",
    **dict.fromkeys(_FEATURE_SETS, "folder= is --features DIR and check=False is --no-check"),
}
"""What the arguments of the loaders are called here; their errors name the arguments."""


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(commands, "reproduce", run, __doc__)
    add = parser.add_argument
    add("subject", choices=_SUBJECTS, metavar="SUBJECT", help=", ".join(_SUBJECTS))
    methods = "topk, baselines, all (the default), or names such as top-5-SVM-beta, softmax"
    add("--methods", nargs="+", metavar="NAME", help=methods)
    quick = "small grids; at most 4100 training rows, or ten times the classes if that is more"
    add("--quick", action="store_true", help=quick)
    rows = "training rows at most, the same share of every class (all)"
    add("--rows", type=whole(), metavar="N", help=rows)
    add("--out", type=Path, metavar="DIR", help="where to write (reproduce/SUBJECT)")
    jobs = "rows of the table at a time (one per processor)"
    add("--jobs", type=whole(), metavar="N", help=jobs)
    add("--data", type=Path, metavar="FILE", help="the .mat file of Caltech 101 Silhouettes")
    features = "the folder of CNN features; quickdraw: pixels, hog"
    add("--features", metavar="DIR|KIND", help=features)
    no_check = "take features of other sizes than the paper's, a .mat file of another checksum"
    add("--no-check", action="store_true", help=no_check)
    add("--seed", type=whole(0), metavar="N", help="of the random orders (0)")
    add_output_options(parser)


def run(options: argparse.Namespace) -> None:
    """Run the command."""
    out = options.out or Path("reproduce") / options.subject
    if options.subject == "figures":
        _refuse(options, _ONLY_TABLES)
        draw_figures(out)
        return
    from topksvm.reproduction import Settings

    source, data = _load(options)
    names = choose_methods(options.subject, options.methods or ["all"], data.n_classes)
    settings = Settings(quick=options.quick, seed=options.seed or 0)
    text = f"{data.name}: {len(data.y_train)} training rows, {data.n_classes} classes"
    print(text, file=sys.stderr)
    summaries = run_table(source, names, settings, out, options.jobs)
    if options.json:
        print((out / "results.json").read_text())
    else:
        print_summaries(summaries, out)


def _refuse(options: argparse.Namespace, names: Iterable[str]) -> None:
    """Refuse options that the subject has no use for: none is accepted and ignored."""
    for name in names:
        value = getattr(options, name)
        if value is not None and value is not False:
            option = f"--{name.replace('_', '-')}"
            raise UserError(f"{option} does not go with {options.subject}; leave it out.")


def _load(options: argparse.Namespace) -> tuple[Any, Any]:
    """Return where the data comes from, and its first split."""
    source = make_source(options)
    try:
        data = source.split(0)
    except (ValueError, OSError, ImportError) as error:
        words = _OPTIONS_OF[options.subject]
        raise UserError(f"{one_line(error)}. On the command line, {words}.") from error
    source = replace(source, rows=choose_rows(options, data.n_classes))
    return source, source.thin(data)


def choose_rows(options: argparse.Namespace, m: int) -> int | None:
    """Return the most training rows to use, or None for all."""
    from topksvm.reproduction import SILHOUETTE_ROWS

    if options.rows is None:
        return max(SILHOUETTE_ROWS, _QUICK_ROWS * m) if options.quick else None
    if options.rows < m:
        raise UserError(
            f"--rows {options.rows} is not possible: there are {m} classes, and each needs a row."
        )
    return int(options.rows)


def make_source(options: argparse.Namespace) -> Any:
    """Return where the data comes from."""
    from topksvm.datasets import load_features, load_quickdraw, load_silhouettes
    from topksvm.reproduction import Source

    subject = options.subject
    if options.data is not None and subject != _SILHOUETTES:
        raise UserError(f"--data is the file of caltech101-silhouettes; {subject} has none.")
    if subject == _SILHOUETTES:
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
    source: Any, names: list[str], settings: Any, out: Path, jobs: int | None = None
) -> list[Any]:
    """Train and test all methods, write the table, and return it."""
    from topksvm.reproduction import open_store, reproduce, write_folder

    check_writable(out, "--out")
    clock = Clock()
    jobs = jobs or n_threads()
    total = len(names) * source.splits
    rows: list[Any] = []
    try:
        with CountBar("rows") as bar:
            bar.show(0, total)
            for row, was_there in reproduce(source, names, settings, out, jobs):
                rows.append(row)
                last = "kept from before" if was_there else f"in {row.seconds:.0f} s"
                bar.show(len(rows), total, f"{row.method}: top-1 {row.accuracy[1]:.2f} % {last}")
    except ValueError as error:
        advice = "Correct the data, or leave the method out, and run again: finished rows are kept."
        raise UserError(f"{one_line(error)}. {advice}") from error
    about = {
        "command": shlex.join(["topksvm", *sys.argv[1:]]),
        "elapsed seconds": f"{clock.elapsed:.0f}",
        "processes": str(jobs),
    } | describe()
    store = open_store(source, settings, out)
    return write_folder(out, source.split(0), store, rows, names, about)


def print_summaries(summaries: list[Any], out: Path) -> None:
    """Print the table, with notes."""
    from topksvm.reproduction import as_text, notes_of

    print_table(*as_text(summaries))
    if any(s.paper for s in summaries):
        print("\nAccuracy in per cent; in brackets, what it is above the paper's number.")
    for note, methods in notes_of(summaries).items():
        print(f"{', '.join(methods)}: {note}.")
    print(f"\n{out / 'report.html'} shows it all; results.csv, results.json and plots beside it.")


def draw_figures(out: Path) -> None:
    """Draw the simplex figure and the scaling figure."""
    from topksvm._files import replacing
    from topksvm._matplotlib import import_pyplot
    from topksvm.reproduction import draw_scaling, draw_simplices, measure_scaling

    check_writable(out, "--out")
    try:
        import_pyplot(backend="Agg")  # That it is missing is found now, not after the measuring.
    except ImportError as error:
        raise UserError(str(error)) from error
    dimensions = [d for e in range(2, 6) for d in (10**e, 3 * 10**e)] + [10**6]
    measurements: list[Any] = []
    with CountBar("dimensions", len(dimensions)) as bar:
        for done, dimension in enumerate(dimensions):
            bar.show(done, len(dimensions), f"projections in dimension {dimension}")
            measurements += measure_scaling([dimension], points=1000)
    figures = {"simplex.png": draw_simplices(), "scaling.png": draw_scaling(measurements)}
    for name, figure in figures.items():
        with replacing(out / name) as temporary:
            figure.savefig(temporary, dpi=150)
        print(out / name)
