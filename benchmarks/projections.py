"""The paper's scaling experiment: time of the projections against the dimension.

1000 points from N(0, 1), dimensions 10^2 to 10^6, knapsack against top-k simplex for k = 1, 5, 10,
CPU time on one thread; np.sort on the same rows beside them. Takes about three minutes.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.options import InputError
from benchmarks.timing import print_progress
from topksvm.reproduction import draw_scaling, draw_simplices, measure_scaling


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "--quick", action="store_true", help="100 points, dimensions up to 10^5: some seconds"
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="write scaling.csv, scaling.png and simplex.png"
    )


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Measure, and write if asked to."""
    if options.out is not None:
        try:
            options.out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot write to the folder {options.out}: {error}") from error
    top, points = (5, 100) if options.quick else (6, 1000)
    measurements = []
    for dimension in [*(d for e in range(2, top) for d in (10**e, 3 * 10**e)), 10**top]:
        print_progress(f"projections: dimension {dimension}")
        measurements += measure_scaling([dimension], points)
    if options.out is not None:
        write(options.out, measurements)
    rows = [
        {"dimension": m.dimension, "points": m.points}
        | {name: 1e6 * seconds / m.points for name, seconds in m.seconds.items()}
        for m in measurements
    ]
    return {"CPU microseconds per point": rows, "Summary": summarise(measurements)}


def write(folder: Path, measurements: Sequence[Any]) -> None:
    """Write the times and the two figures of the paper."""
    with (folder / "scaling.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["dimension", "points", "method", "cpu_seconds"])
        for m in measurements:
            for name, seconds in m.seconds.items():
                writer.writerow([m.dimension, m.points, name, f"{seconds:.6g}"])
    draw_scaling(measurements).savefig(folder / "scaling.png", dpi=150)
    draw_simplices().savefig(folder / "simplex.png", dpi=150)


def summarise(measurements: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the figures that the projections are judged by; smaller is better."""
    ours = [name for name in measurements[0].seconds if name != "sort"]
    topk = [name for name in ours if name != "knapsack"]
    long = [m for m in measurements if m.dimension >= 1000]
    figures = {
        "worst ratio of top-k simplex to knapsack": max(
            m.ratio(name, "knapsack") for m in measurements for name in topk
        )
    }
    if long:
        figures["worst ratio of a projection to sorting, d >= 1000"] = max(
            m.ratio(name, "sort") for m in long for name in ours
        )
    if len(long) > 1:
        first, last = long[0], long[-1]
        figures[f"worst growth exponent, d = {first.dimension} to {last.dimension}"] = max(
            np.log(last.seconds[name] / first.seconds[name]) for name in ours
        ) / np.log(last.dimension / first.dimension)
    return [{"figure": name, "value": float(value)} for name, value in figures.items()]
