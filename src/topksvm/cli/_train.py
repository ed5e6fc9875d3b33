"""``topksvm train``: train a model on a file, with a proof of how good it is."""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm.cli._data import (
    Table,
    add_data_options,
    labels_to_train_on,
    read_examples,
    request_of,
)
from topksvm.cli._errors import UserError
from topksvm.cli._models import certificate_as_json, certificate_in_words, check_model_path
from topksvm.cli._options import (
    LOSS_NAMES,
    add_output_options,
    add_training_options,
    number,
    one_of,
    size,
    training_parameters,
    whole,
)
from topksvm.cli._output import percent, print_facts, some, warn

_EXAMPLES = """examples:
  topksvm train digits.csv -o digits.safetensors --holdout 0.2
  topksvm train train.npz --test test.npz -k 5 -C 0.1 -o model.safetensors
  topksvm train X.npy --labels y.txt --dtype float32 -o model.safetensors
  topksvm train --features DIR --checkpoint state --memory-limit 4G -o model.safetensors
  topksvm train news.svm.gz --loss softmax --max-time 60 -o model.safetensors

Ctrl-C ends the training early; the model reached is saved with its certificate all the same.
"""


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "train",
        help="train a model on a file of examples",
        description="Train a linear top-k SVM to a proven duality gap and save it.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_data_options(parser, is_optional=True)
    large = parser.add_argument_group("large data")
    large.add_argument(
        "--features",
        type=Path,
        metavar="DIR",
        help="instead of DATA, a folder with train.npy, train_labels.txt, test.npy, ... as "
        "topksvm extract writes it; float16 is read by the piece, and need not fit in memory",
    )
    large.add_argument(
        "--checkpoint",
        type=Path,
        metavar="DIR",
        help="keep the state there every minute, and go on from it",
    )
    large.add_argument(
        "--memory-limit",
        type=size("--memory-limit"),
        metavar="SIZE",
        help="memory to use, such as 4G; a larger .npy file is read by the piece",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        required=True,
        metavar="MODEL",
        help="the file to write, .safetensors",
    )
    parser.add_argument(
        "-k",
        type=whole("-k"),
        help="the number of guesses to train for (5, or one less than the classes)",
    )
    parser.add_argument(
        "-C", type=number("-C"), default=1.0, help="the weight of the loss against the norm (1)"
    )
    parser.add_argument(
        "--loss",
        type=one_of("--loss", LOSS_NAMES),
        default=LOSS_NAMES[0],
        metavar="LOSS",
        help=f"{', '.join(LOSS_NAMES)} (the first)",
    )
    add_training_options(parser)
    held_out = parser.add_mutually_exclusive_group()
    held_out.add_argument(
        "--test", type=Path, metavar="FILE", help="test on this file, read like DATA"
    )
    held_out.add_argument(
        "--holdout",
        type=number("--holdout"),
        metavar="SHARE",
        help="test on this share of each class, and train on the others only",
    )
    add_output_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Run the command."""
    # Imported here, as all commands start by loading this file, and scikit-learn is slow.
    from topksvm.cli._fit import fit_model
    from topksvm.cli._scoring import measure
    from topksvm.estimators import TopKLinearSVC
    from topksvm.solvers import Status

    check_model_path(options.output)
    start = time.perf_counter()
    table, test = _read(options)
    assert table.labels is not None
    y = labels_to_train_on(table.labels, options.labels or options.data)
    guesses, k = choose_k(options.k, options.loss, np.unique(y))
    X, y, test = _parts(options, table, y) if test is None else (table.X, y, test)
    reading = time.perf_counter() - start

    parameters = training_parameters(options) | {"memory_limit": options.memory_limit}
    model = TopKLinearSVC(k, loss=options.loss, C=options.C, **parameters)
    how = {} if options.checkpoint is None else {"checkpoint": options.checkpoint}
    fit = fit_model(model, X, y, is_quiet=options.quiet, **how)
    # Before anything else that could be interrupted.
    save(model, table.names, options.output)

    ks = sorted({1, guesses})
    start = time.perf_counter()
    accuracies = {"training": measure(model, X, y, ks)}
    if test is not None:
        accuracies["test"] = measure(model, test[0], test[1], ks)
        _warn_of_unseen(accuracies["test"])
    seconds = {"read": reading, "train": fit.seconds, "test": time.perf_counter() - start}
    show = _print_json if options.json else _print_words
    show(options, model, table, X.shape[0], fit.status.name.lower(), seconds, accuracies)
    if fit.status is Status.INTERRUPTED:
        raise KeyboardInterrupt


def _read(options: argparse.Namespace) -> tuple[Table, tuple[Any, NDArray[Any]] | None]:
    """Return the examples, and those to test on if they come with them."""
    if (options.data is None) == (options.features is None):
        raise UserError(
            "give either DATA, a file of examples, or --features DIR, not both or none."
        )
    if options.features is None:
        return read_examples(request_of(options)), None
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
    test = data.X_test, names[data.y_test]
    return Table(data.X_train, names[data.y_train], notes=(f"{len(test[1])} rows to test",)), test


def _print_json(
    options: argparse.Namespace,
    model: Any,
    table: Table,
    n_rows: int,
    status: str,
    seconds: dict[str, float],
    accuracies: dict[str, Any],
) -> None:
    result = {
        "model": str(options.output),
        "data": str(options.data),
        "notes": list(table.notes),
        "n_rows": n_rows,
        "n_features": model.n_features_in_,
        "n_classes": len(model.classes_),
        "parameters": model.get_params(),
        "status": status,
        "certificate": certificate_as_json(model.certificate_),
        "passes": model.n_iter_,
        "seconds": seconds,
        "accuracy": {name: accuracy_as_json(a) for name, a in accuracies.items()},
    }
    print(json.dumps(result, indent=2))


def _print_words(
    options: argparse.Namespace,
    model: Any,
    table: Table,
    n_rows: int,
    _status: str,  # A warning has told it already.
    seconds: dict[str, float],
    accuracies: dict[str, Any],
) -> None:
    notes = "".join(f"; {note}" for note in table.notes)
    facts = {
        "data": f"{options.data}: {n_rows} rows to train on, {model.n_features_in_} features, "
        f"{len(model.classes_)} classes{notes}",
        "model": f"{model.loss}, k = {model.k}, C = {model.C:g}",
        "certificate": certificate_in_words(model.certificate_),
        "time": f"{seconds['train']:.2f} s for {model.n_iter_} passes, "
        f"{seconds['read']:.2f} s to read",
    }
    facts |= {name: accuracy_in_words(a) for name, a in accuracies.items()}
    print_facts(facts | {"saved": str(options.output)})


def save(model: Any, names: tuple[str, ...] | None, path: Path) -> None:
    """Write a model, with the names of its features if the file had them."""
    if names is not None:
        model.feature_names_in_ = np.array(names, dtype=object)
    try:
        model.save(path)
    except OSError as error:
        raise UserError(
            f"cannot write {path}: {error.strerror}. Choose another place with -o."
        ) from error
    finally:
        if names is not None:
            del model.feature_names_in_


def accuracy_in_words(accuracy: Any) -> str:
    """Return the accuracy for all k in one line."""
    shares = ", ".join(f"top-{k} {percent(share)}" for k, share in accuracy.by_k.items())
    return f"{shares} of {accuracy.n} rows"


def accuracy_as_json(accuracy: Any) -> dict[str, Any]:
    """Return the accuracy for all k as JSON can hold it."""
    return {
        "n": accuracy.n,
        "topk": {str(k): share for k, share in accuracy.by_k.items()},
        "unseen_labels": accuracy.unseen,
        "n_unseen": accuracy.n_unseen,
    }


def _warn_of_unseen(accuracy: Any) -> None:
    if accuracy.unseen:
        warn(
            f"{accuracy.n_unseen} of {accuracy.n} rows to test on have labels that were not "
            f"trained on and count as errors: {some(accuracy.unseen)}"
        )


def choose_k(k: int | None, loss: str, classes: NDArray[Any]) -> tuple[int, int]:
    """Return the number of guesses to report, and the k to train for, which some losses lack."""
    from topksvm.losses import LOSSES

    m = len(classes)
    if m < 2:
        raise UserError(
            f"the labels have one class only, {some(classes.tolist())}; at least 2 are needed. "
            "Check with --target or --labels-key what is read as labels."
        )
    if k is not None and k >= m:
        raise UserError(
            f"-k {k}, but there are {m} classes; k must be between 1 and {m - 1}. Choose a smaller "
            "one."
        )
    guesses = min(5, m - 1) if k is None else k
    if "k" in LOSSES[loss]._fields:  # type: ignore[attr-defined]
        return guesses, guesses
    if k is not None and k > 1:
        raise UserError(f"-k {k} has no effect on --loss {loss}, which has no k. Leave it out.")
    return guesses, 1


def _parts(
    options: argparse.Namespace, table: Table, y: NDArray[Any]
) -> tuple[Any, NDArray[Any], tuple[Any, NDArray[Any]] | None]:
    """Return what to train on, and what to test on."""
    X = table.X
    if options.test is not None:
        if options.labels is not None:
            raise UserError(
                "--test cannot be used with --labels, which is for the rows of DATA. Use "
                "--holdout, or topksvm evaluate afterwards."
            )
        request = dataclasses.replace(
            request_of(options, n_features=X.shape[1], names=table.names), path=options.test
        )
        test = read_examples(request)
        assert test.labels is not None
        return X, y, (test.X, test.labels)
    if options.holdout is None:
        return X, y, None
    held_out = hold_out(y, options.holdout, options.seed)
    return X[~held_out], y[~held_out], (X[held_out], y[held_out])


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
