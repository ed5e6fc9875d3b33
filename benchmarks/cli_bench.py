"""``topksvm bench``: measure the speed on this machine."""

from __future__ import annotations

import argparse
import csv
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.cli_data_of_bench import silhouettes
from topksvm._files import replacing
from topksvm._numba import warm_up
from topksvm.cli import _bench_distributed, _bench_scale
from topksvm.cli._errors import UserError
from topksvm.cli._folders import check_folder
from topksvm.cli._info import describe
from topksvm.cli._output import end_progress, print_table, report_progress
from topksvm.reproduction._scaling import Measurement, measure_scaling, summarise

_EXAMPLES = """examples:
  topksvm bench projections --quick             a first look, in seconds
  topksvm bench projections --out bench         the paper's experiment, with CSV and plots
  topksvm bench distributed                     shards and Dask against one process
  topksvm bench path                            a path over C against single fits
  topksvm bench path --together                 paths for seven k, together and one by one
  topksvm bench scale --shape imagenet2012      a million rows of 4096 features on disk
  topksvm bench solver --quick                  the solver against its peers, small shapes
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
    solver: argparse.ArgumentParser = subjects.add_parser(
        "solver",
        help="passes against matrix products, time to a gap against peers",
        description=(
            "One pass of the solver against the two matrix products of its shape; the dual step "
            "alone; time to a relative gap of 1e-3 against sequential SDCA (the algorithm as the "
            "paper prints it, and one that updates only the classes that have changed) and, for "
            "k = 1, LIBLINEAR's Crammer-Singer at an objective as good. All in one run; "
            "compilation is not included. Takes some minutes."
        ),
    )
    solver.add_argument("--quick", action="store_true", help="small shapes only")
    solver.add_argument(
        "--silhouettes",
        type=Path,
        metavar="FILE",
        help="the .mat file of Caltech 101 Silhouettes, trained with C = 0.01; a synthetic "
        "problem of its size without it",
    )
    solver.add_argument("--json", action="store_true", help="print JSON")
    solver.set_defaults(run=run_solver)
    path: argparse.ArgumentParser = subjects.add_parser(
        "path",
        help="a warm-started path over C against single fits",
        description=(
            "The paper's grid of nine C from 1e-5 to 1e3 along one path, against a fit for each, "
            "to a relative gap of 1e-3 in float32 on one thread. Takes about a minute, with -k 1 "
            "about five. With --together: paths for k = 1, 2, 3, 4, 5, 10, 20 that share blocks of "
            "rows and their Gram matrices, against one path after the other, with X in memory and "
            "in a memory map that is read from the disk for each. Takes about four minutes."
        ),
    )
    path.add_argument(
        "-k", type=int, nargs="+", help="the k to train for: 5, or all seven with --together"
    )
    path.add_argument(
        "--together", action="store_true", help="several k at once against one after the other"
    )
    path.add_argument(
        "--silhouettes", type=Path, metavar="FILE", help="as for the solver's benchmark"
    )
    path.add_argument("--json", action="store_true", help="print JSON")
    path.set_defaults(run=run_path)
    _bench_scale.add_parser(subjects)
    _bench_distributed.add_parser(subjects)


def run_projections(options: argparse.Namespace) -> None:
    """Run ``topksvm bench projections``."""
    if options.out is not None:
        check_folder(options.out)
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


def run_solver(options: argparse.Namespace) -> None:
    """Run ``topksvm bench solver``."""
    from benchmarks.solver_speed import measure_passes, time_dual_step, time_to_gap

    X, y, C = silhouettes(options.silhouettes)
    shapes = [(4100, 784, 101)] if options.quick else [(4100, 784, 101), (8000, 2048, 1000)]
    passes = []
    for shape in shapes:
        for strength in (1.0, 10.0):
            for threads in (1, 2):
                report_progress(f"solver: passes, n, d, m = {shape}, C = {strength:g}")
                passes.append(measure_passes(shape, C=strength, threads=threads))
    report_progress("solver: the dual step")
    steps = {strength: time_dual_step(C=strength) for strength in (0.01, 1.0, 100.0)}
    report_progress("solver: time to a gap of 1e-3")
    times = list(time_to_gap(X, y, C, ks=(1, 10) if options.quick else (1, 5, 10)))
    end_progress()
    if options.json:
        result = {
            "machine": describe(),
            "passes": [vars(p) for p in passes],
            "dual_step_seconds": steps,
            "time_to_gap": [vars(t) for t in times],
        }
        print(json.dumps(result, indent=2))
        return
    print("One pass, float32, k = 5, against the products X W' and A' X\n")
    print_table(
        ["n, d, m", "C", "threads", "products", "full", "active", "full/products", "active/full"],
        [
            [
                str(p.shape),
                f"{p.C:g}",
                str(p.threads),
                f"{p.products:.4f} s",
                f"{p.full:.4f} s",
                f"{p.active:.4f} s",
                f"{p.full / p.products:.2f}",
                f"{p.active / p.full:.2f}",
            ]
            for p in passes
        ],
    )
    print("\nThe dual step alone, m = 1000, k = 5, float32 scores:")
    print(", ".join(f"C = {s:g}: {1e6 * t:.1f} us" for s, t in steps.items()))
    print("\nTime to a relative gap of 1e-3, one thread\n")
    ours = {t.k: t.seconds for t in reversed(times) if t.method.startswith("topksvm float32")}
    print_table(
        ["method", "k", "seconds", "times ours", "objective", "relative gap"],
        [
            [
                t.method,
                str(t.k),
                f"{t.seconds:.3f}",
                f"{t.seconds / ours[t.k]:.1f}",
                f"{t.primal:.5f}",
                f"{t.relative_gap:.1e}",
            ]
            for t in times
        ],
    )


def run_path(options: argparse.Namespace) -> None:
    """Run ``topksvm bench path``."""
    from benchmarks.path_speed import KS, time_path

    X, y, _ = silhouettes(options.silhouettes)
    X, m = X.astype("float32"), int(y.max()) + 1
    ks = options.k or (list(KS) if options.together else [5])
    if not all(1 <= k < m for k in ks):
        raise UserError(f"-k {ks} is not between 1 and {m - 1}, the classes less one.")
    if options.together:
        _run_together(X, y, ks, options)
        return
    speeds = []
    for k in ks:
        report_progress(f"path: k = {k}")
        speeds.append(time_path(X, y, k))
    end_progress()
    if options.json:
        measured = [vars(speed) | {"ratio": speed.ratio} for speed in speeds]
        print(json.dumps({"machine": describe(), "paths": measured}, indent=2))
        return
    for speed in speeds:
        print(f"k = {speed.k}: path {speed.warm_seconds:.2f} s, single fits ", end="")
        print(f"{sum(speed.cold_seconds):.2f} s, ratio {speed.ratio:.2f}\n")
        print_table(
            ["C", "path: passes", "gap", "single: passes", "gap", "seconds"],
            [
                [f"{C:g}", str(a), f"{b:.1e}", str(c), f"{d:.1e}", f"{e:.2f}"]
                for C, a, b, c, d, e in zip(
                    speed.Cs,
                    speed.warm_passes,
                    speed.warm_gaps,
                    speed.cold_passes,
                    speed.cold_gaps,
                    speed.cold_seconds,
                    strict=True,
                )
            ],
        )


def _run_together(X: Any, y: Any, ks: list[int], options: argparse.Namespace) -> None:
    from benchmarks.path_speed import time_together

    report_progress("path: X in memory")
    speeds = [time_together(X, y, ks)]
    report_progress("path: X on disk")
    with tempfile.TemporaryDirectory() as folder:
        speeds.append(time_together(X, y, ks, folder=Path(folder)))
    end_progress()
    if options.json:
        measured = [vars(speed) | {"ratio": speed.ratio} for speed in speeds]
        print(json.dumps({"machine": describe(), "together": measured}, indent=2))
        return
    print(f"Paths over nine C from 1e-5 to 1e3 for k = {', '.join(map(str, ks))},")
    print("to a relative gap of 1e-3 in float32 on one thread\n")
    print_table(
        ["X in", "together", "one by one", "ratio", "topksvm.path", "largest gap"],
        [
            [
                s.where,
                f"{s.together:.2f} s",
                f"{s.one_by_one:.2f} s",
                f"{s.ratio:.2f}",
                f"{s.plain:.2f} s",
                f"{s.max_gap:.1e}",
            ]
            for s in speeds
        ],
    )


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
    from topksvm.reproduction._figures import draw_scaling, draw_simplices

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
