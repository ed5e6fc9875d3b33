"""Print the k best labels of every row of a file.

They are printed best first, as CSV.

Examples
--------
  topksvm predict model.safetensors new.csv > guesses.csv
  topksvm predict model.safetensors X.npy -k 3 --scores -o guesses.csv
  topksvm predict model.safetensors X.npy -o labels.npy
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from topksvm._files import replacing
from topksvm.cli._data import add_data_options, read_examples, request_of
from topksvm.cli._errors import UserError
from topksvm.cli._models import load_model
from topksvm.cli._options import add_command, add_output_options, check_k, whole
from topksvm.cli._output import check_writable

Array = NDArray[Any]
Guesses = Iterator[tuple[Array, Array]]
"""Labels and scores of blocks of rows, both ``(rows, k)``, best first."""


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(commands, "predict", run, __doc__)
    add = parser.add_argument
    add("model", type=Path, metavar="MODEL", help="a file of topksvm train")
    add_data_options(parser, needs_labels=False)
    add("-k", type=whole(), help="the number of guesses (that the model was trained for)")
    add("--scores", action="store_true", help="their scores as well")
    output = "write .csv, .json, or the labels as .npy, instead of printing"
    add("-o", "--output", type=Path, metavar="FILE", help=output)
    add_output_options(parser)


def run(options: argparse.Namespace) -> None:
    """Run the command."""
    if options.output is not None:
        _check_output(options)
    model, names = load_model(options.model)
    m = model.classes_.size
    k = check_k("-k", options.k or model.k, m, most=m)
    table = read_examples(request_of(options, n_features=model.n_features_in_, names=names))
    for note in table.notes:
        print(f"topksvm: {note}", file=sys.stderr)
    guesses = _guess(model, table.X, k)
    if options.output is None:
        write = _write_json if options.json else _write_csv
        write(guesses, k, sys.stdout, scores=options.scores)
        return
    with replacing(options.output) as temporary:
        if options.output.suffix.lower() == ".npy":
            _write_npy(guesses, (table.X.shape[0], k), model.classes_, temporary)
            return
        write = _write_json if options.output.suffix.lower() == ".json" else _write_csv
        with temporary.open("w", newline="", encoding="utf-8") as stream:
            write(guesses, k, stream, scores=options.scores)


def _check_output(options: argparse.Namespace) -> None:
    check_writable(options.output, "-o", [".csv", ".json", ".npy"])
    end = options.output.suffix.lower()
    if options.json and end != ".json":
        raise UserError(
            f"--json does not go with -o {options.output}; leave it out, or end the name in .json."
        )
    if options.scores and end == ".npy":
        raise UserError(
            f"--scores does not go with -o {options.output}, which holds labels only. Choose .csv "
            "or .json."
        )


def _guess(model: Any, X: Any, k: int) -> Guesses:
    from topksvm.cli._scoring import blocks

    for _, block in blocks(X, model.classes_.size):
        yield model.predict_topk(block, k, return_scores=True)


def _write_csv(guesses: Guesses, k: int, stream: IO[str], *, scores: bool) -> None:
    writer = csv.writer(stream, lineterminator="\n")
    names = [f"label_{i}" for i in range(1, k + 1)]
    writer.writerow(names + [f"score_{i}" for i in range(1, k + 1)] if scores else names)
    for labels, values in guesses:
        rows = labels.tolist()
        if scores:
            rows = [a + [f"{v:.9g}" for v in b] for a, b in zip(rows, values.tolist(), strict=True)]
        writer.writerows(rows)


def _write_json(guesses: Guesses, k: int, stream: IO[str], *, scores: bool) -> None:
    """Write one JSON object, a row at a time: the rows may be many."""
    stream.write(f'{{"k": {k}, "predictions": [')
    separator = "\n"
    for labels, values in guesses:
        for guess, value in zip(labels.tolist(), values.tolist(), strict=True):
            row = {"labels": guess, "scores": value} if scores else {"labels": guess}
            stream.write(f"{separator}  {json.dumps(row)}")
            separator = ",\n"
    stream.write("\n]}\n")


def _write_npy(guesses: Guesses, shape: tuple[int, int], classes: Array, path: Path) -> None:
    # Text of one width: arrays of Python's strings would need pickle.
    kind = classes.dtype if classes.dtype.kind in "iufb" else np.array(classes.tolist()).dtype
    array = np.lib.format.open_memmap(path, mode="w+", dtype=kind, shape=shape)
    start = 0
    for labels, _ in guesses:
        array[start : start + len(labels)] = labels
        start += len(labels)
    array.flush()
