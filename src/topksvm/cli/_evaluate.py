"""Measure the top-k accuracies of a model on a file.

A top-k accuracy is the share of rows whose label is among the k best guesses. Ties count against
the model, and so do labels that it was not trained on.

Examples
--------
  topksvm evaluate model.safetensors test.csv
  topksvm evaluate model.safetensors X.npy --labels y.npy -k 1 5 --json
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from topksvm._scores_and_labels import some
from topksvm.cli._data import add_data_options, read_examples, request_of
from topksvm.cli._errors import UserError
from topksvm.cli._models import load_model
from topksvm.cli._options import add_command, add_output_options, check_k, whole
from topksvm.cli._output import percent, print_json, print_table, with_notes

_KS = (1, 2, 3, 5, 10)


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(commands, "evaluate", run, __doc__)
    parser.add_argument("model", type=Path, metavar="MODEL", help="a file of topksvm train")
    add_data_options(parser)
    k_help = f"the numbers of guesses ({' '.join(map(str, _KS))}, up to the number of classes)"
    parser.add_argument("-k", type=whole(), nargs="+", help=k_help)
    add_output_options(parser)


def run(options: argparse.Namespace) -> None:
    """Run the command."""
    from topksvm.cli._scoring import measure

    model, names = load_model(options.model)
    m = model.classes_.size
    if options.k is None:
        ks = [k for k in _KS if k < m] or [1]
    else:
        ks = sorted({check_k("-k", k, m, most=m) for k in options.k})
    table = read_examples(request_of(options, n_features=model.n_features_in_, names=names))
    accuracy = measure(model, table.X, table.labels, ks)
    if accuracy.n_unseen == accuracy.n:
        raise UserError(
            f"none of the labels is known to the model: {options.labels or options.data} has "
            f"{some(accuracy.unseen)}, the model has {some(model.classes_.tolist())}. Check with "
            "--target or --labels what is read as labels."
        )
    if options.json:
        result = {"model": options.model, "data": options.data, "notes": table.notes}
        print_json(result | accuracy.as_json("accuracy"))
        return
    print(with_notes(f"{options.data}: {accuracy.n} rows, {m} classes", table.notes), end="\n\n")
    print_table(["k", "top-k accuracy"], [[str(k), percent(accuracy.by_k[k])] for k in ks])
    if accuracy.unseen:
        print(
            f"\n{accuracy.n_unseen} rows have labels that were not trained on and count as errors: "
            f"{some(accuracy.unseen, 10)}"
        )
