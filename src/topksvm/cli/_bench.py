"""``topksvm bench``: measure the speed on this machine."""

from __future__ import annotations

import argparse
import csv
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from topksvm._files import replacing
from topksvm._numba import warm_up
from topksvm.cli._errors import UserError
from topksvm.cli._info import describe
from topksvm.cli._output import end_progress, print_table, report_progress
from topksvm.experiments.scaling import Measurement, measure_scaling, summarise

_EXAMPLES = """examples:
  topksvm bench projections --quick             a first look, in seconds
  topksvm bench projections --out bench         the paper's experiment, with CSV and plots
"""


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "bench",
        help="measure the speed on this machine",
        description="Measure the speed on this machine, always against a reference in one run.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    subjects = parser.add_subparsers(metavar="SUBJECT", required=True)
    projections: argparse.ArgumentParser = subjects.add_parser(
        "projections",
        help="time of the projections against the dimension",
        description=(
            "The scaling experiment of the paper: 1000 points from N(0, 1), dimensions 10^2 to "
            "10^6, knapsack against top-k simplex for k = 1, 5, 10, CPU time on one thread; "
            "np.sort on the same rows beside them. Takes about three minutes."
        ),
    )
    projections.add_argument(
        "--quick", action="store_true", help="100 points, dimensions up to 10^5: some seconds"
    )
    projections.add_argument(
        "--out", type=Path, metavar="DIR", help="write scaling.csv, scaling.png and simplex.png"
    )
    projections.add_argument("--json", action="store_true", help="print JSON")
    projections.set_defaults(run=run_projections)


def run_projections(options: argparse.Namespace) -> None:
    """Run ``topksvm bench projections``."""
    if options.out is not None:
        _check_folder(options.out)
    start = time.perf_counter()
    warm_up()
    compile_seconds = time.perf_counter() - start

    top = 5 if options.quick else 6
    dimensions = [d for e in range(2, top) for d in (10**e, 3 * 10**e)] + [10**top]
    measurements = []
    report_progress(f"projections: dimension {dimensions[0]}")
    for measurement in measure_scaling(dimensions, points=100 if options.quick else 1000):
        measurements.append(measurement)
        if measurement.dimension < dimensions[-1]:
            report_progress(f"projections: dimension {dimensions[len(measurements)]}")
    end_progress()

    summary = summarise(measurements)
    if options.json:
        result = {
            "machine": describe(),
            "compile_seconds": compile_seconds,
            "measurements": [vars(m) for m in measurements],
            "summary": summary,
        }
        print(json.dumps(result, indent=2))
    else:
        _print_measurements(measurements, summary, compile_seconds)
    if options.out is not None:
        _write(options.out, measurements)
        if not options.json:
            print(f"\nwritten: {options.out / 'scaling.csv'}, scaling.png, simplex.png")


def _check_folder(folder: Path) -> None:
    """Find out before the measurement, not after it, whether the results can be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UserError(
            f"cannot write to the folder {folder}: {error.strerror}. Choose another with --out."
        ) from error


def _print_measurements(
    measurements: list[Measurement], summary: dict[str, float], compile_seconds: float
) -> None:
    names = list(measurements[0].seconds)
    rows = [
        [f"{m.dimension}"]
        + [f"{1e6 * seconds / m.points:.2f}" for seconds in m.seconds.values()]
        + [f"{max(m.ratio(n, 'knapsack') for n in names[2:]):.2f}"]
        + [f"{max(m.ratio(n, 'sort') for n in names[1:]):.2f}"]
        for m in measurements
    ]
    print(f"CPU microseconds per point, one thread, mean of {measurements[0].points} points\n")
    print_table(["dimension", *names, "top-k/knapsack", "worst/sort"], rows)
    print()
    for name, value in summary.items():
        print(f"{name}: {value:.2f}")
    print(f"compiling or loading the kernels, not included: {compile_seconds:.1f} s")


def _write(folder: Path, measurements: list[Measurement]) -> None:
    from topksvm.experiments.figures import draw_scaling, draw_simplices

    with replacing(folder / "scaling.csv") as path, path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["dimension", "points", "method", "cpu_seconds"])
        for m in measurements:
            for name, seconds in m.seconds.items():
                writer.writerow([m.dimension, m.points, name, f"{seconds:.6g}"])
    for name, figure in (
        ("scaling.png", draw_scaling(measurements)),
        ("simplex.png", draw_simplices()),
    ):
        with replacing(folder / name) as path:
            figure.savefig(path, dpi=150)
