"""How time and memory grow with n, d and m; training from disk.

The seconds of passes and the peak memory against the numbers of rows, features and classes;
training from disk against training in memory on the same data; with --shape only a run on float16
features of that many rows, features and classes on disk. k = 5, float32.
"""

from __future__ import annotations

import argparse
import math
import shutil
import tempfile
from collections.abc import Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from benchmarks.datasets import CHUNK, make_mixture
from benchmarks.memory import peak_megabytes
from benchmarks.options import InputError, positive
from benchmarks.passes import LOSS, PASSES, UNREACHABLE, measure_passes
from benchmarks.timing import print_progress, threads as limited_to, time_products, timed
from topksvm import solve
from topksvm.solvers import Progress, Result

Shape = tuple[int, int, int]
Row = dict[str, Any]

K = 5
SHAPES = {"places205": (2_448_873, 4096, 205), "imagenet2012": (1_281_167, 4096, 1000)}
"""The two large data sets of the paper: rows, features, classes."""

GROUP = 5
"""Classes with a common centre."""

_GIB = 1 << 30
_LEAST_FREE = 2 * _GIB


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument(
        "--shape",
        type=parse_shape,
        metavar="NAME|N,D,M",
        help="only this run: places205, imagenet2012, or numbers such as 100000,768,1000",
    )
    parser.add_argument(
        "--folder", type=Path, metavar="DIR", help="where to keep the features of --shape"
    )
    parser.add_argument("-C", type=float, default=0.01, help="weight of the loss (0.01)")
    parser.add_argument("--tol", type=float, default=1e-2, help="gap to reach with --shape (0.01)")
    parser.add_argument(
        "--max-time", type=float, default=7200.0, help="seconds after which to stop (7200)"
    )
    parser.add_argument(
        "--threads", type=positive, default=joblib.cpu_count(), metavar="N", help="all by default"
    )


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Measure growth and training from disk, or only the latter."""
    title = f"Training on float16 features, C = {options.C:g}"
    if options.shape:
        return {title: [run_shape(options)]}
    axes = {
        "n": [(n, 128, 100) for n in (10_000, 30_000, 100_000, 300_000, 1_000_000)],
        "d": [(20_000, d, 200) for d in (128, 512, 2048, 4096)],
        "m": [(20_000, 512, m) for m in (50, 200, 800, 2000)],
    }
    if options.quick:
        axes = {name: shapes[:2] for name, shapes in axes.items()}
    passes, exponents = [], []
    for axis, (name, shapes) in enumerate(axes.items()):
        rows = []
        for shape in shapes:
            print_progress(f"scale: n, d, m = {shape}")
            rows.append(in_own_process(time_passes, shape, options.threads))
        sizes = [shape[axis] for shape in shapes]
        columns = ("full", "active", "peak MB")
        exponents.append({"with": name} | {c: growth(sizes, [r[c] for r in rows]) for c in columns})
        passes += rows
    return {
        "Seconds of a pass and of the products, C = 1, rows in memory": passes,
        "Exponents of growth, by least squares on logarithms": exponents,
        title: compare((20_000, 256, 100) if options.quick else (100_000, 768, 200), options),
    }


def compare(shape: Shape, options: argparse.Namespace) -> list[Row]:
    """Return runs in memory and from disk on the same rows, to a gap of 1e-3."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "features.npy"
        print_progress(f"scale: writing features of n, d, m = {shape}")
        y = in_own_process(make_file, path, shape)
        rows = []
        for where in ("memory", "disk"):
            print_progress(f"scale: training from {where}, n, d, m = {shape}")
            rows.append(in_own_process(run_to_gap, path, y, where, 1e-3, options))
        return rows


def run_shape(options: argparse.Namespace) -> Row:
    """Return the run of ``--shape``; its features are kept for the next time."""
    shape: Shape = options.shape
    folder = options.folder or Path(tempfile.gettempdir()) / "topksvm-scale"
    folder.mkdir(parents=True, exist_ok=True)
    name = "x".join(map(str, shape))
    path, labels = folder / f"{name}.npy", folder / f"{name}-labels.npy"
    if not labels.exists():  # Written last, so that what is there is complete.
        size = 2 * shape[0] * shape[1] / _GIB
        free = shutil.disk_usage(folder).free / _GIB
        if free < size + _LEAST_FREE / _GIB:
            raise InputError(
                f"{folder} has {free:.0f} GiB free; the features take {size:.0f} GiB. Choose "
                "another place with --folder, or fewer rows with --shape N,D,M"
            )
        print_progress(f"scale: writing {size:.1f} GiB to {path}")
        np.save(labels, in_own_process(make_file, path, shape))
    print_progress(f"scale: training on {path}")
    y = np.load(labels)
    return in_own_process(run_to_gap, path, y, "disk", options.tol, options, _report)


def _report(now: Progress) -> None:
    gap = f"relative gap about {now.relative_gap:.2e}"
    print_progress(f"scale: pass {now.passes}, {now.seconds:.0f} s, {gap}")


def parse_shape(text: str) -> Shape:
    """Return the rows, features and classes of a name or of three numbers."""
    if text in SHAPES:
        return SHAPES[text]
    parts = text.split(",")
    if len(parts) != 3 or not all(part.strip().isdecimal() and int(part) > 0 for part in parts):
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither {' nor '.join(SHAPES)}, nor three numbers such as 100000,768,1000"
        )
    n, d, m = map(int, parts)
    return n, d, m


def make_file(path: Path, shape: Shape, dtype: Any = np.float16, seed: int = 0) -> Any:
    """Write features like those of a network, after ReLU, of ambiguous classes; return labels.

    Classes come in groups with a common centre. The rows are written in chunks.
    """
    n, d, m = shape
    rng = np.random.default_rng(seed)
    groups = rng.standard_normal((math.ceil(m / GROUP), d), dtype=np.float32)
    centres = groups[np.arange(m) // GROUP] + 0.5 * rng.standard_normal((m, d), dtype=np.float32)
    y = rng.integers(0, m, n)
    out = np.lib.format.open_memmap(path, "w+", dtype, (n, d))
    scale = np.float32(2.0 / np.sqrt(d))
    for start in range(0, n, CHUNK):
        part = y[start : start + CHUNK]
        rows = 0.3 * centres[part] + rng.standard_normal((len(part), d), dtype=np.float32)
        out[start : start + len(part)] = np.maximum(rows, 0.0) * scale
    out.flush()
    return y


def in_own_process(function: Any, *arguments: Any) -> Any:
    """Return the result of the function, run in a fresh process: its peak memory is its own."""
    with get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def time_passes(shape: Shape, threads: int) -> Row:
    """Return the seconds of passes over rows in memory, and the memory of the process."""
    best = measure_passes(*make_mixture(*shape), k=K, threads=threads, turns=3)
    return {"n, d, m": str(shape), "threads": threads, **best} | {
        "full / products": best["full"] / best["products"],
        "peak MB": peak_megabytes(),
    }


def growth(sizes: Sequence[float], values: Sequence[float]) -> float:
    """Return the exponent with which values grow with sizes."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def run_to_gap(
    path: Path, y: Any, where: str, tol: float, options: argparse.Namespace, callback: Any = None
) -> Row:
    """Train on a ``.npy`` file, with all rows in memory or read from disk in windows."""
    X, m = np.load(path, mmap_mode="r"), int(y.max()) + 1

    def fit(X: Any, y: Any, **more: Any) -> Result:
        rows = np.asarray(X, np.float32) if where == "memory" else X  # float16 is read in windows.
        return solve(rows, y, LOSS, options.C, k=K, n_classes=m, n_jobs=options.threads, **more)

    with limited_to(options.threads):
        fit(np.array(X[:CHUNK]), y[:CHUNK], tol=UNREACHABLE, max_iter=PASSES)  # Compiles.
        limits = {"tol": tol, "max_iter": 1000, "max_time": options.max_time}
        seconds, result = timed(lambda: fit(X, y, callback=callback, **limits))
        peak = peak_megabytes()
        products = time_products(X, m)
    names = ("full", "active", "extrapolation")
    pass_seconds = sum(result.seconds.get(name, 0.0) for name in names) / result.n_iter
    return {
        "n, d, m": str((*X.shape, m)),
        "rows from": where,
        "gap": result.certificate.relative_gap,
        "passes": result.n_iter,
        "seconds": seconds,
        "per pass": pass_seconds,
        "products / pass": products / pass_seconds,
        "peak MB": peak,
    }
