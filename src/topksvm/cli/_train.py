"""Train a model on a file of examples.

A linear top-k SVM is trained to a proven duality gap and saved.

Examples
--------
  topksvm train digits.csv -o digits.safetensors --holdout 0.2
  topksvm train train.npz --test test.npz -k 5 -C 0.1 -o model.safetensors
  topksvm train X.npy --labels y.txt --dtype float32 -o model.safetensors
  topksvm train --features DIR --checkpoint state --memory-limit 4G -o model.safetensors
  topksvm train news.svm.gz --loss softmax --max-time 60 -o model.safetensors

Ctrl-C ends the training early; the model reached is saved with its certificate all the same.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm._clock import Clock
from topksvm._progress import GapBar
from topksvm._scores_and_labels import some
from topksvm.cli._data import Table, add_data_options, read_examples, read_to_train_on, request_of
from topksvm.cli._errors import UserError
from topksvm.cli._models import (
    certificate_as_json,
    certificate_in_words,
    check_model_path,
    save_model,
)
from topksvm.cli._options import (
    LOSSES,
    above_0,
    add_command,
    add_output_options,
    add_training_options,
    check_k,
    size,
    training_parameters,
    whole,
)
from topksvm.cli._output import print_facts, print_json, warn, with_notes


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(commands, "train", run, __doc__)
    add_data_options(parser, is_optional=True)
    _add_large_data_options(parser)
    add = parser.add_argument
    add("-o", "--output", type=Path, required=True, metavar="MODEL", help="write this .safetensors")
    k_help = "the number of guesses to train for (5, or one less than the classes)"
    add("-k", type=whole(), help=k_help)
    add("-C", type=above_0, default=1.0, help="the weight of the loss against the norm (1)")
    names = list(LOSSES)
    loss = f"{', '.join(names)} (the first)"
    add("--loss", choices=names, default=names[0], metavar="LOSS", help=loss)
    add_training_options(parser)
    add = parser.add_mutually_exclusive_group().add_argument
    add("--test", type=Path, metavar="FILE", help="test on this file, read like DATA")
    holdout_help = "test on this share of each class, and train on the others only"
    add("--holdout", type=above_0, metavar="SHARE", help=holdout_help)
    add_output_options(parser, is_quiet=True)


def _add_large_data_options(parser: Any) -> None:
    add = parser.add_argument_group("large data").add_argument
    features = (
        "instead of DATA, a folder with train.npy, train_labels.txt, test.npy, ... as topksvm "
        "extract writes it; float16 is streamed, and need not fit in memory"
    )
    add("--features", type=Path, metavar="DIR", help=features)
    checkpoint = "keep the state there every minute, and resume from it"
    add("--checkpoint", type=Path, metavar="DIR", help=checkpoint)
    limit = "memory to use, such as 4G; a larger .npy file is streamed"
    add("--memory-limit", type=size, metavar="SIZE", help=limit)


def run(options: argparse.Namespace) -> None:
    """Run the command."""
    # Imported here, as all commands start by loading this file, and scikit-learn is slow.
    from topksvm.cli._fit import fit, warn_of_scale, warn_unless_solved
    from topksvm.cli._scoring import measure
    from topksvm.estimators import TopKLinearSVC

    check_model_path(options.output)
    clock = Clock()
    table, test = _read(options)
    guesses, k = choose_k(options.k, options.loss, len(np.unique(table.labels)))
    seconds = {"read": clock.elapsed}

    parameters = {name: getattr(options, name) for name in ("C", "loss", "memory_limit")}
    parameters |= {"checkpoint": options.checkpoint, **training_parameters(options)}
    model = TopKLinearSVC(k, **parameters)
    warn_of_scale(table.X, options.C)
    text = f"training on {table.X.shape[0]} rows; the first time, kernels are compiled"
    bar = None if options.quiet else GapBar(options.tol, text)
    seconds["train"] = fit(model, table.X, table.labels, bar)
    # Before anything else that could be interrupted.
    save_model(model, table.names, options.output)
    warn_unless_solved(model)

    clock = Clock()
    parts = {"training": table} | ({} if test is None else {"test": test})
    accuracies = {
        name: measure(model, part.X, part.labels, sorted({1, guesses}))
        for name, part in parts.items()
    }
    seconds["test"] = clock.elapsed
    _warn_of_unseen(accuracies.get("test"))
    show = _print_json if options.json else _print_words
    show(options, model, table, seconds, accuracies)
    if model.status_ == "interrupted":
        raise KeyboardInterrupt


def choose_k(k: int | None, loss: str, m: int) -> tuple[int, int]:
    """Return the number of guesses to report, and the k to train for, which some losses lack."""
    guesses = min(5, m - 1) if k is None else check_k("-k", k, m, most=m - 1)
    if LOSSES[loss]:
        return guesses, guesses
    if k is not None and k > 1:
        raise UserError(f"-k {k} has no effect on --loss {loss}, which has no k. Leave it out.")
    return guesses, 1


def _read(options: argparse.Namespace) -> tuple[Table, Table | None]:
    """Return what to train on, and what to test on."""
    if (options.data is None) == (options.features is None):
        raise UserError(
            "give either DATA, a file of examples, or --features DIR, not both or none."
        )
    if options.features is not None:
        return _read_folder(options)
    table = read_to_train_on(request_of(options))
    if options.test is not None:
        return table, _read_test(options, table)
    if options.holdout is None:
        return table, None
    y = table.labels
    held_out = hold_out(y, options.holdout, options.seed)
    test = replace(table, X=table.X[held_out], labels=y[held_out])
    return replace(table, X=table.X[~held_out], labels=y[~held_out]), test


def _read_test(options: argparse.Namespace, table: Table) -> Table:
    if options.labels is not None:
        raise UserError(
            "--test cannot be used with --labels, which is for the rows of DATA. Use --holdout, "
            "or topksvm evaluate afterwards."
        )
    request = request_of(options, n_features=table.X.shape[1], names=table.names)
    return read_examples(replace(request, path=options.test))


def _read_folder(options: argparse.Namespace) -> tuple[Table, Table]:
    if options.test is not None or options.holdout is not None or options.labels is not None:
        raise UserError(
            "--features DIR has labels and rows to test on of its own; leave out --labels, --test "
            "and --holdout."
        )
    from topksvm.datasets import load_features

    options.data = options.features
    try:
        data = load_features(options.features)
    except (OSError, ValueError) as error:
        raise UserError(str(error)) from error
    names = np.array(data.class_names)
    notes = (f"{len(data.y_test)} rows to test",)
    train = Table(data.X_train, names[data.y_train], notes=notes)
    return train, Table(data.X_test, names[data.y_test])


def hold_out(y: NDArray[Any], share: float, seed: int) -> NDArray[np.bool_]:
    """Return which rows to hold out: a share of each class, but not all of any."""
    if share >= 1:
        raise UserError(f"--holdout {share:g}: it must be between 0 and 1. Try 0.2.")
    random = np.random.default_rng(seed)
    held_out = np.zeros(len(y), dtype=bool)
    for label in np.unique(y):
        rows = random.permutation(np.flatnonzero(y == label))
        held_out[rows[: min(round(share * len(rows)), len(rows) - 1)]] = True
    if not held_out.any():
        raise UserError(
            f"--holdout {share:g} leaves nothing to test on: no class has enough rows. Raise it."
        )
    return held_out


def _warn_of_unseen(accuracy: Any) -> None:
    if accuracy is not None and accuracy.unseen:
        warn(
            f"{accuracy.n_unseen} of {accuracy.n} rows to test on have labels that were not "
            f"trained on and count as errors: {some(accuracy.unseen)}"
        )


def _print_json(
    options: argparse.Namespace, model: Any, table: Table, seconds: Any, accuracies: Any
) -> None:
    result = {
        "model": options.output,
        "data": options.data,
        "notes": table.notes,
        "n_rows": len(table.labels),
        "n_features": model.n_features_in_,
        "n_classes": len(model.classes_),
        "parameters": model.get_params(),
        "status": model.status_,
        "certificate": certificate_as_json(model.certificate_),
        "passes": model.n_iter_,
        "seconds": seconds,
        "accuracy": {name: accuracy.as_json("topk") for name, accuracy in accuracies.items()},
    }
    print_json(result)


def _print_words(
    options: argparse.Namespace, model: Any, table: Table, seconds: Any, accuracies: Any
) -> None:
    n, d, m = len(table.labels), model.n_features_in_, len(model.classes_)
    data = f"{options.data}: {n} rows to train on, {d} features, {m} classes"
    facts = {
        "data": with_notes(data, table.notes),
        "model": f"{model.loss}, k = {model.k}, C = {model.C:g}",
        "certificate": certificate_in_words(model.certificate_),
        "time": f"{seconds['train']:.2f} s for {model.n_iter_} passes, "
        f"{seconds['read']:.2f} s to read",
    }
    facts |= {name: accuracy.in_words() for name, accuracy in accuracies.items()}
    print_facts(facts | {"saved": str(options.output)})
