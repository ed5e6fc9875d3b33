"""``topksvm extract``: features of pictures from an ONNX network."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from topksvm.cli._errors import UserError
from topksvm.cli._folders import check_folder
from topksvm.cli._output import end_progress, report_progress
from topksvm.extraction import SPLITS, Network, Preparation, extract_features

_EXAMPLES = """examples:
  topksvm extract photos/train --model resnet50.onnx --out features
  topksvm extract photos/test --model resnet50.onnx --out features --split test

A run that was stopped goes on where it was if it is started again in the same way.
Python reads the result: topksvm.datasets.load_features("features").
"""

_IMAGENET_MEAN = (0.485, 0.456, 0.406)
_IMAGENET_STD = (0.229, 0.224, 0.225)


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "extract",
        help="compute features of pictures with an ONNX network",
        description=(
            "Compute features of a folder of pictures, with a sub-folder per class, by any ONNX "
            "network. Needs topksvm[onnx]."
        ),
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("images", type=Path, help="folder with a sub-folder of pictures per class")
    parser.add_argument("--model", type=Path, required=True, metavar="FILE", help="the .onnx file")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="where to write")
    parser.add_argument(
        "--split",
        choices=list(SPLITS),
        default="train",
        help="what the files are called; features: all rows, to be split by row numbers later "
        "(default: train)",
    )
    parser.add_argument(
        "--output-name", metavar="NAME", help="the output of the network, if it has several"
    )
    parser.add_argument(
        "--size", type=int, help="side of the pictures (default: the network's, or 224)"
    )
    for name, default in (("mean", _IMAGENET_MEAN), ("std", _IMAGENET_STD)):
        parser.add_argument(
            f"--{name}",
            type=float,
            nargs=3,
            default=default,
            metavar=("R", "G", "B"),
            help=f"of the colours, from 0 to 1 (default: {' '.join(map(str, default))})",
        )
    parser.add_argument(
        "--batch", type=int, help="pictures at a time (default: the network's, or 32)"
    )
    parser.add_argument(
        "--shard", type=int, default=1024, help="pictures between two savings (default: 1024)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Run the command."""
    for name in ("size", "batch", "shard"):
        value = getattr(options, name)
        if value is not None and value < 1:
            raise UserError(f"--{name} {value} is not a positive integer.")
    if min(options.std) <= 0:
        raise UserError(f"--std {options.std} has to be three positive numbers.")
    try:
        network = Network(
            options.model,
            output_name=options.output_name,
            size=options.size,
            batch=options.batch,
        )
        check_folder(options.out)
        rows, columns = extract_features(
            options.images,
            options.out,
            network,
            Preparation(network.size, tuple(options.mean), tuple(options.std)),
            split=options.split,
            model=options.model,
            shard_rows=options.shard,
            on_progress=_show,
        )
    except (ValueError, OSError, ImportError) as error:
        raise UserError(str(error)) from error
    finally:
        end_progress()
    file = options.out / f"{options.split}.npy"
    if options.json:
        print(json.dumps({"file": str(file), "rows": rows, "features": columns}))
    else:
        print(f"written: {file}, {rows} rows of {columns} features, and their labels")


def _show(done: int, total: int) -> None:
    bar = f"[{'#' * (30 * done // total):30}] " if sys.stderr.isatty() else ""
    report_progress(f"extract: {bar}{done} of {total} pictures")
