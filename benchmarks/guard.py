"""Ratios to references of the same run, against bounds or against another checkout.

A full and an active pass and the time to a gap in matrix products of the same shape, the dual step
in sorts of the same row, the least of several turns. The bounds are generous: they are to catch a
mistake on a busy machine. For small differences write a file in one checkout and compare with it in
the other, on the same quiet machine.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import machine
from benchmarks.datasets import make_mixture, silhouettes_or_mixture
from benchmarks.options import InputError, add_silhouettes, positive
from benchmarks.passes import LOSS, measure_dual_step, measure_passes
from benchmarks.timing import print_progress, threads, time_products, timed
from topksvm import solve

BOUNDS = {"full pass": 3.0, "active pass": 1.0, "dual step": 4.0, "time to gap": 100.0}
"""The most that a ratio may be: three to nine times what it is on a cloud machine (AMD EPYC)."""

SLOWER = 1.03
"""The most that a ratio may be in units of the one before."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--quick", action="store_true", help="a smaller shape for the passes")
    add_silhouettes(parser)
    parser.add_argument("--turns", type=positive, default=5, metavar="N", help="turns (5)")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the ratios")
    parser.add_argument(
        "--compare",
        type=Path,
        metavar="FILE",
        help=f"judge by the ratios in a file: at most {SLOWER:g} times of them",
    )


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Return the ratios with verdicts."""
    setting = {
        "quick": options.quick,
        "silhouettes": options.silhouettes is not None,
        "processor": machine.facts(options.line)["processor"],
    }
    before = None if options.compare is None else read(options.compare, setting)
    ratios = measure(options)
    if options.write is not None:
        content = {"machine": machine.facts(options.line), "setting": setting, "ratios": ratios}
        options.write.write_text(json.dumps(content, indent=2) + "\n")
    return {"Ratios to the reference, one thread, float32, k = 5": judge(ratios, before)}


def read(path: Path, setting: dict[str, Any]) -> dict[str, float]:
    """Return the ratios in a file that was written for the same setting."""
    try:
        content = json.loads(path.read_text())
        there, ratios = content["setting"], content["ratios"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"cannot read {path}, which guard --write makes: {error!r}") from error
    if there != setting:
        raise InputError(f"{path} was written for {there}, and this would be {setting}")
    return ratios


def measure(options: argparse.Namespace) -> dict[str, float]:
    """Return the ratios by what was measured."""
    shape = (2000, 512, 1000) if options.quick else (8000, 2048, 1000)
    print_progress(f"guard: passes, n, d, m = {shape}")
    passes = measure_passes(*make_mixture(*shape), turns=options.turns)
    print_progress("guard: the dual step, the time to a gap")
    step = measure_dual_step(turns=4 * options.turns)
    ratios = {
        "full pass": passes["full"] / passes["products"],
        "active pass": passes["active"] / passes["products"],
        "dual step": step["step"] / step["sort"],
        "time to gap": time_to_gap(*silhouettes_or_mixture(None), options.turns),
    }
    if options.silhouettes is not None:
        problem = silhouettes_or_mixture(options.silhouettes)
        ratios["time to gap, silhouettes"] = time_to_gap(*problem, options.turns)
    return ratios


def time_to_gap(X: Any, y: Any, C: float, turns: int) -> float:
    """Return the time to a relative gap of 1e-3, in matrix products."""
    m = int(y.max()) + 1
    fit: Callable[[], Any] = lambda: solve(X, y, LOSS, C, k=5, n_jobs=1)  # noqa: E731
    fit()  # Compiles.
    with threads(1):
        pairs = [(timed(fit)[0], time_products(X, m)) for _ in range(turns)]
    seconds, products = np.min(pairs, axis=0)
    return float(seconds / products)


def judge(ratios: dict[str, float], before: dict[str, float] | None) -> list[dict[str, Any]]:
    """Return a row for each ratio; a verdict that is not "ok" is for one that is above its bound.

    The bound is that of the file, if there is one.
    """
    rows = []
    for what, ratio in ratios.items():
        if before is None:
            bound = BOUNDS[what.split(",")[0]]
            facts: dict[str, Any] = {"at most": bound}
        else:
            bound = SLOWER * before[what]
            facts = {"before": before[what], "change": f"{100 * (ratio / before[what] - 1):+.1f} %"}
        # What is not a number is not within a bound.
        verdict = "ok" if ratio <= bound else "too slow"
        rows.append({"what": what, "ratio": ratio} | facts | {"verdict": verdict})
    return rows
