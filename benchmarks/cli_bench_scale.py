"""``topksvm bench scale``: how time and memory grow, in memory and from disk."""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from topksvm._threads import n_threads
from topksvm.cli._errors import UserError
from topksvm.cli._info import describe
from topksvm.cli._output import end_progress, print_table, report_progress

_GIB = 1 << 30
_LEAST_FREE = 2 * _GIB


def add_parser(subjects: Any) -> None:
    """Add the subject to the parser of ``topksvm bench``."""
    parser: argparse.ArgumentParser = subjects.add_parser(
        "scale",
        help="growth of time and memory with n, d and m; training from disk",
        description=(
            "Time of a pass and peak memory against the numbers of rows, features and classes; "
            "training from disk against training in memory on the same data; with --shape, a run "
            "on float16 features of that many rows, features and classes on disk, k = 5."
        ),
    )
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument(
        "--shape",
        metavar="NAME|N,D,M",
        help="only this run: places205, imagenet2012, or numbers such as 100000,768,1000",
    )
    parser.add_argument(
        "--folder", type=Path, metavar="DIR", help="where to keep the features of --shape"
    )
    parser.add_argument("-C", type=float, default=0.01, help="weight of the loss (0.01)")
    parser.add_argument("--tol", type=float, default=1e-2, help="relative gap to reach (0.01)")
    parser.add_argument(
        "--max-time", type=float, default=7200.0, help="seconds after which to stop (7200)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Run the command."""
    result = _run_shape(options) if options.shape else _run_growth(options)
    end_progress()
    if options.json:
        print(json.dumps({"machine": describe(), **result}, indent=2, default=asdict))
        return
    for name, value in result.items():
        if name == "epochs":
            _print_epochs(value)
        elif name == "exponents":
            print("\nExponents of growth, by least squares on logarithms\n")
            print_table(
                ["with", "time of a pass", "peak memory"],
                [[axis, f"{a:.2f}", f"{b:.2f}"] for axis, (a, b) in value.items()],
            )
        else:
            _print_runs(value)


def _run_growth(options: argparse.Namespace) -> dict[str, Any]:
    from benchmarks.scale_speed import growth, in_own_process, time_epoch

    axes = {
        "n": [(n, 128, 100) for n in (10_000, 30_000, 100_000, 300_000, 1_000_000)],
        "d": [(20_000, d, 200) for d in (128, 512, 2048, 4096)],
        "m": [(20_000, 512, m) for m in (50, 200, 800, 2000)],
    }
    if options.quick:
        axes = {name: shapes[:2] for name, shapes in axes.items()}
    epochs, exponents = [], {}
    for place, (name, shapes) in enumerate(axes.items()):
        part = []
        for shape in shapes:
            report_progress(f"scale: n, d, m = {shape}")
            part.append(in_own_process(time_epoch, shape, n_threads()))
        exponents[name] = [growth(part, place, "seconds"), growth(part, place, "peak")]
        epochs += part
    shape = (20_000, 256, 100) if options.quick else (100_000, 768, 200)
    return {"epochs": epochs, "exponents": exponents, "runs": _compare(shape, options)}


def _compare(shape: tuple[int, int, int], options: argparse.Namespace) -> list[Any]:
    """Return runs in memory and from disk on the same rows, to a gap of 1e-3."""
    from benchmarks.scale_speed import in_own_process, make_file, run_to_gap

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "features.npy"
        report_progress(f"scale: writing features of n, d, m = {shape}")
        y = in_own_process(make_file, path, shape)
        runs = []
        for kind in ("memory", "streamed"):
            report_progress(f"scale: training, {kind}, n, d, m = {shape}")
            task = (path, y, shape[2], kind, options.C, 1e-3, options.max_time)
            runs.append(in_own_process(run_to_gap, *task))
        return runs


def _run_shape(options: argparse.Namespace) -> dict[str, Any]:
    import numpy as np

    from benchmarks.scale_speed import in_own_process, make_file, run_to_gap

    shape = _parse_shape(options.shape)
    folder = options.folder or Path(tempfile.gettempdir()) / "topksvm-scale"
    folder.mkdir(parents=True, exist_ok=True)
    name = "x".join(map(str, shape))
    path, labels = folder / f"{name}.npy", folder / f"{name}-labels.npy"
    if not labels.exists():  # Written last, so that what is there is complete.
        _check_room(folder, 2 * shape[0] * shape[1])
        report_progress(f"scale: writing {2 * shape[0] * shape[1] / _GIB:.1f} GiB to {path}")
        np.save(labels, in_own_process(make_file, path, shape))
    report_progress(f"scale: training on {path}")
    y = np.load(labels)
    run = in_own_process(
        run_to_gap, path, y, shape[2], "streamed", options.C, options.tol, options.max_time, _report
    )
    return {"runs": [run]}


def _report(passes: int, seconds: float, gap: float) -> None:
    report_progress(f"scale: pass {passes}, {seconds:.0f} s, relative gap about {gap:.2e}")


def _parse_shape(text: str) -> tuple[int, int, int]:
    from benchmarks.scale_speed import SHAPES

    if text in SHAPES:
        return SHAPES[text]
    parts = text.split(",")
    if len(parts) != 3 or not all(part.strip().isdecimal() and int(part) > 0 for part in parts):
        raise UserError(
            f"--shape {text}: it must be {' or '.join(SHAPES)}, or three numbers such as "
            "100000,768,1000."
        )
    n, d, m = map(int, parts)
    return n, d, m


def _check_room(folder: Path, size: int) -> None:
    import shutil

    free = shutil.disk_usage(folder).free
    if free < size + _LEAST_FREE:
        raise UserError(
            f"{folder} has {free / _GIB:.0f} GiB free; the features take {size / _GIB:.0f} GiB. "
            "Choose another place with --folder, or fewer rows with --shape N,D,M."
        )


def _print_epochs(epochs: list[Any]) -> None:
    print(f"One full pass, float32, k = 5, {n_threads()} threads\n")
    print_table(
        ["n, d, m", "pass", "products", "pass/products", "peak memory"],
        [
            [
                str(e.shape),
                f"{e.seconds:.3f} s",
                f"{e.products:.3f} s",
                f"{e.seconds / e.products:.2f}",
                f"{e.peak / _GIB:.2f} GiB",
            ]
            for e in epochs
        ],
    )


def _print_runs(runs: list[Any]) -> None:
    print("\nTraining on float16 features, k = 5\n")
    print_table(
        ["n, d, m", "rows are", "gap", "passes", "seconds", "per pass", "of products", "peak"],
        [
            [
                str(r.shape),
                {"memory": "in memory", "streamed": "read by the piece"}[r.kind],
                f"{r.relative_gap:.1e}",
                str(r.passes),
                f"{r.seconds:.1f}",
                f"{r.pass_seconds:.1f} s",
                f"{r.products / r.pass_seconds:.2f}",
                f"{r.peak / _GIB:.2f} GiB",
            ]
            for r in runs
        ],
    )
