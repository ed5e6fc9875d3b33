"""Compute features of pictures with an ONNX network.

The pictures are in a folder with a sub-folder per class. Needs topksvm[onnx].

Examples
--------
  topksvm extract photos/train --model resnet50.onnx --out features
  topksvm extract photos/test --model resnet50.onnx --out features --split test

A run that was stopped resumes if it is started again in the same way.
Python reads the result: topksvm.datasets.load_features("features").
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from topksvm._progress import CountBar
from topksvm.cli._errors import UserError
from topksvm.cli._options import above_0, add_command, add_output_options, number, whole
from topksvm.cli._output import check_writable
from topksvm.extraction import SPLITS, Network, Preparation, extract_features

_MEAN = (0.485, 0.456, 0.406)
_STD = (0.229, 0.224, 0.225)
"""Those of ImageNet, which most networks are trained with."""


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(commands, "extract", run, __doc__)
    add = parser.add_argument
    add("images", type=Path, help="folder with a sub-folder of pictures per class")
    add("--model", type=Path, required=True, metavar="FILE", help="the .onnx file")
    add("--out", type=Path, required=True, metavar="DIR", help="where to write")
    split = "what the files are called; features: all rows, to be split by row numbers later"
    add("--split", choices=list(SPLITS), default="train", help=f"{split} (train)")
    add("--output-name", metavar="NAME", help="the output of the network, if it has several")
    for name, type_, values in (("--mean", number, _MEAN), ("--std", above_0, _STD)):
        text = f"of the colours, from 0 to 1 ({' '.join(map(str, values))})"
        add(name, type=type_, nargs=3, default=values, metavar=("R", "G", "B"), help=text)
    add("--size", type=whole(), metavar="N", help="side of the pictures (the network's, or 224)")
    add("--batch", type=whole(), metavar="N", help="pictures at a time (the network's, or 32)")
    shard = "pictures between two savings (1024)"
    add("--shard", type=whole(), default=1024, metavar="N", help=shard)
    add_output_options(parser)


def run(options: argparse.Namespace) -> None:
    """Run the command."""
    try:
        network = Network(
            options.model,
            output_name=options.output_name,
            size=options.size,
            batch=options.batch,
        )
        check_writable(options.out, "--out")
        with CountBar("pictures") as bar:
            rows, columns = extract_features(
                options.images,
                options.out,
                network,
                Preparation(network.size, tuple(options.mean), tuple(options.std)),
                split=options.split,
                model=options.model,
                shard_rows=options.shard,
                on_progress=bar.show,
            )
    except (ValueError, OSError, ImportError) as error:
        raise UserError(str(error)) from error
    file = options.out / f"{options.split}.npy"
    if options.json:
        print(json.dumps({"file": str(file), "rows": rows, "features": columns}))
    else:
        print(f"written: {file}, {rows} rows of {columns} features, and their labels")
