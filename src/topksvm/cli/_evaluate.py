"""``topksvm evaluate``: the top-k accuracies of a model on a file."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from topksvm.cli._data import add_data_options, read_examples, request_of
from topksvm.cli._errors import UserError
from topksvm.cli._models import load_model
from topksvm.cli._options import whole
from topksvm.cli._output import percent, print_table, some

_KS = (1, 2, 3, 5, 10)

_EXAMPLES = """examples:
  topksvm evaluate model.safetensors test.csv
  topksvm evaluate model.safetensors X.npy --labels y.npy -k 1 5 --json
"""


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "evaluate",
        help="the top-k accuracies of a model on a file",
        description=(
            "The share of rows whose label is among the k best guesses. Ties count against the "
            "model, and so do labels that it was not trained on."
        ),
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", type=Path, metavar="MODEL", help="a file of topksvm train")
    add_data_options(parser)
    parser.add_argument(
        "-k",
        type=whole("-k"),
        nargs="+",
        help=f"the numbers of guesses ({' '.join(map(str, _KS))}, up to the number of classes)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Run the command."""
    from topksvm.cli._scoring import measure

    model, names = load_model(options.model)
    ks = _ks_for(options.k, model.classes_.size)
    table = read_examples(request_of(options, n_features=model.n_features_in_, names=names))
    assert table.labels is not None
    accuracy = measure(model, table.X, table.labels, ks)
    if accuracy.n_unseen == accuracy.n:
        raise UserError(
            f"none of the labels is known to the model: {options.labels or options.data} has "
            f"{some(accuracy.unseen)}, the model has {some(model.classes_.tolist())}. Check with "
            "--target or --labels what is read as labels."
        )
    if options.json:
        result = {
            "model": str(options.model),
            "data": str(options.data),
            "notes": list(table.notes),
            "n": accuracy.n,
            "accuracy": {str(k): share for k, share in accuracy.by_k.items()},
            "unseen_labels": accuracy.unseen,
            "n_unseen": accuracy.n_unseen,
        }
        print(json.dumps(result, indent=2))
        return
    notes = "".join(f"; {note}" for note in table.notes)
    print(f"{options.data}: {accuracy.n} rows, {model.classes_.size} classes{notes}\n")
    print_table(["k", "top-k accuracy"], [[str(k), percent(accuracy.by_k[k])] for k in ks])
    if accuracy.unseen:
        print(
            f"\n{accuracy.n_unseen} rows have labels that were not trained on and count as errors: "
            f"{some(accuracy.unseen, 10)}"
        )


def _ks_for(ks: list[int] | None, m: int) -> list[int]:
    if ks is None:
        return [k for k in _KS if k < m] or [1]
    too_large = [k for k in ks if k > m]
    if too_large:
        raise UserError(
            f"-k {too_large[0]}, but the model has {m} classes; k must be between 1 and {m}. "
            "Choose a smaller one."
        )
    return sorted(set(ks))
