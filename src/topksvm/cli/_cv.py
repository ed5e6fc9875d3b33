"""``topksvm cv``: choose C, loss and training k by cross-validation."""

from __future__ import annotations

import argparse
import csv
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm._files import replacing
from topksvm.cli._data import add_data_options, labels_to_train_on, read_examples, request_of
from topksvm.cli._errors import UserError
from topksvm.cli._folds import stratified_folds
from topksvm.cli._models import certificate_as_json, certificate_in_words, check_model_path
from topksvm.cli._options import (
    LOSS_NAMES,
    add_output_options,
    add_training_options,
    number,
    one_of,
    training_parameters,
    whole,
)
from topksvm.cli._output import check_writable, end_progress, percent, print_table, some, warn
from topksvm.cli._train import save

_EXAMPLES = """examples:
  topksvm cv digits.csv -o digits.safetensors
  topksvm cv train.npz -k 1 5 -C 0.001 0.01 0.1 1 --results results.csv
  topksvm cv train.npz -k 5 --train-k 1 5 10 --losses topk_hinge_alpha softmax --json
"""


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "cv",
        help="choose C, loss and training k by cross-validation",
        description=(
            "Choose C, loss and the k to train for, for every number of guesses wanted. All C of a "
            "fold are solved along one path, each from the solution before."
        ),
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_data_options(parser)
    _add_search_options(parser)
    add_training_options(parser)
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="MODEL",
        help="train on all rows with what was chosen, and write the model, .safetensors",
    )
    parser.add_argument(
        "--for",
        dest="for_k",
        type=whole("--for"),
        metavar="K",
        help="which of -k the model is for (the first)",
    )
    parser.add_argument(
        "--results", type=Path, metavar="FILE", help="write all results to this .csv"
    )
    add_output_options(parser)
    parser.set_defaults(run=run)


def _add_search_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-k",
        type=whole("-k"),
        nargs="+",
        help="the numbers of guesses wanted (1 5, up to one less than the classes)",
    )
    parser.add_argument(
        "-C",
        type=number("-C"),
        nargs="+",
        help="the C to try (ten from 1e-5 to 1e3, the range of the paper)",
    )
    parser.add_argument(
        "--extensions",
        type=whole("--extensions", 0),
        default=3,
        metavar="N",
        help="how often to try one C more where the best is the smallest or largest (3)",
    )
    parser.add_argument(
        "--losses",
        type=one_of("--losses", LOSS_NAMES),
        nargs="+",
        default=[LOSS_NAMES[0]],
        metavar="LOSS",
        help=f"out of {', '.join(LOSS_NAMES)} (the first)",
    )
    parser.add_argument(
        "--train-k",
        type=whole("--train-k"),
        nargs="+",
        metavar="K",
        help="the k to train for (as -k)",
    )
    parser.add_argument(
        "--folds", type=whole("--folds", 2), default=5, metavar="N", help="parts of DATA (5)"
    )


def run(options: argparse.Namespace) -> None:
    """Run the command."""
    from topksvm.cli._fit import fit_recording, is_interrupted
    from topksvm.estimators import TopKLinearSVCCV

    _check_outputs(options)
    table = read_examples(request_of(options))
    assert table.labels is not None
    y = labels_to_train_on(table.labels, options.labels or options.data)
    ks = _ks_for(options, y)
    search = TopKLinearSVCCV(
        ks,
        10 if options.C is None else options.C,
        losses=options.losses,
        train_ks=options.train_k,
        cv=stratified_folds(options.folds, y, options.seed),
        refit=options.output is not None,
        max_extensions=options.extensions,
        verbose=0 if options.quiet else 1,
        **training_parameters(options),
    )
    start = time.perf_counter()
    messages = fit_recording(search, table.X, y)
    end_progress()
    seconds = time.perf_counter() - start
    _warn_of_gaps(search, options.tol)
    if options.results is not None:
        _write_results(search.cv_results_, options.results)
    model = None
    if options.output is not None:
        model = search.model_for(options.for_k)
        save(model, table.names, options.output)
        if model.certificate_.relative_gap > options.tol:
            warn(f"the model saved is not solved to --tol {options.tol:g}. Raise --max-iter")
    if options.json:
        print(json.dumps(_as_json(search, model, seconds, options, table.notes), indent=2))
    else:
        notes = "".join(f"; {note}" for note in table.notes)
        print(f"{options.data}: {table.X.shape[0]} rows, {table.X.shape[1]} features, ", end="")
        print(f"{len(search.classes_)} classes{notes}\n")
        _print_search(search, ks, seconds, options)
        if model is not None:
            print(f"\nsaved {options.output}, for top-{options.for_k or ks[0]}: ", end="")
            print(certificate_in_words(model.certificate_))
    if is_interrupted(messages):  # While the model was trained on all rows.
        raise KeyboardInterrupt


def _check_outputs(options: argparse.Namespace) -> None:
    if options.output is not None:
        check_model_path(options.output)
    elif options.for_k is not None:
        raise UserError("--for has no effect without -o MODEL. Add that, or leave it out.")
    if options.results is not None:
        check_writable(options.results, "--results", [".csv"])


def _ks_for(options: argparse.Namespace, y: NDArray[Any]) -> list[int]:
    m = len(np.unique(y))
    if m < 2:
        raise UserError(
            f"the labels have one class only, {some(np.unique(y).tolist())}; at least 2 are "
            "needed. Check with --target or --labels-key what is read as labels."
        )
    ks = sorted({1, min(5, m - 1)}) if options.k is None else list(dict.fromkeys(options.k))
    for option, values in (("-k", ks), ("--train-k", options.train_k or [])):
        if max(values, default=1) >= m:
            raise UserError(
                f"{option} {max(values)}, but there are {m} classes; k must be between 1 and "
                f"{m - 1}. Choose a smaller one."
            )
    if options.for_k is not None and options.for_k not in ks:
        raise UserError(
            f"--for {options.for_k} is none of the numbers of guesses wanted, {ks}. Choose one of "
            "them, or add it to -k."
        )
    return ks


def _warn_of_gaps(search: Any, tol: float) -> None:
    results = search.cv_results_
    unsolved = results["max_relative_gap"] > tol
    if not unsolved.any():
        return
    chosen = list(search.best_params_.values())
    hit = [p for p, bad in zip(results["params"], unsolved, strict=True) if bad and p in chosen]
    warn(
        f"{unsolved.sum()} of {len(unsolved)} points, the smallest at C = "
        f"{results['param_C'][unsolved].min():g}, were not solved to --tol {tol:g}; "
        f"{'the choice is among them' if hit else 'none of them was chosen'}. Raise --max-iter, "
        "or leave out large -C"
    )


def _print_search(search: Any, ks: list[int], seconds: float, options: argparse.Namespace) -> None:
    header = ["loss", "training k"]
    for k in ks:
        header += [f"top-{k}", "+-", "at C"]
    rows = []
    for loss, trained in dict.fromkeys((p["loss"], p["k"]) for p in search.cv_results_["params"]):
        row = [loss, str(trained)]
        for k in ks:
            best = _best(search.cv_results_, loss, trained, k)
            mark = "*" if search.best_params_[k] == best["params"] else " "
            row += [percent(best["mean"]) + mark, f"{100 * best['std']:.2f}", f"{best['C']:g}"]
        rows.append(row)
    print_table(header, rows)
    print(f"\n{len(search.cv_results_['params'])} points on {options.folds} folds in ", end="")
    print(f"{seconds:.1f} s; * the best. What to train with:")
    for k in ks:
        best = search.best_params_[k]
        print(f"  for top-{k}: --loss {best['loss']} -k {best['k']} -C {best['C']:.6g}")


def _best(results: dict[str, Any], loss: str, trained: int, k: int) -> dict[str, Any]:
    """Return the best point of one loss and training k; of equal ones that with the smallest C."""
    own = np.flatnonzero((results["param_loss"] == loss) & (results["param_k"] == trained))
    at = own[int(np.argmax(results[f"mean_test_top{k}"][own]))]
    return {
        "params": results["params"][at],
        "C": float(results["param_C"][at]),
        "mean": float(results[f"mean_test_top{k}"][at]),
        "std": float(results[f"std_test_top{k}"][at]),
    }


def _write_results(results: dict[str, Any], path: Path) -> None:
    names = [name for name in results if name != "params"]
    with replacing(path) as temporary, temporary.open("w", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(zip(*(results[name].tolist() for name in names), strict=True))


def _as_json(
    search: Any,
    model: Any,
    seconds: float,
    options: argparse.Namespace,
    notes: tuple[str, ...],
) -> Any:
    results = {n: v.tolist() for n, v in search.cv_results_.items() if n != "params"}
    chosen = {
        str(k): best | {"accuracy": float(search.best_score_[k])}
        for k, best in search.best_params_.items()
    }
    return {
        "data": str(options.data),
        "notes": list(notes),
        "best": chosen,
        "Cs": search.Cs_.tolist(),
        "seconds": seconds,
        "results": results,
        "model": None
        if model is None
        else {
            "path": str(options.output),
            "for_k": options.for_k or next(iter(search.best_params_)),
            "certificate": certificate_as_json(model.certificate_),
        },
    }
