"""Choose C, loss and training k by cross-validation.

They are chosen for every number of guesses wanted. All C of a fold are solved along one path, each
from the solution before.

Examples
--------
  topksvm cv digits.csv -o digits.safetensors
  topksvm cv train.npz -k 1 5 -C 0.001 0.01 0.1 1 --results results.csv
  topksvm cv train.npz -k 5 --train-k 1 5 10 --losses topk_hinge_alpha softmax --json
"""

from __future__ import annotations

import argparse
import csv
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm._files import replacing
from topksvm._progress import CountBar
from topksvm._scores_and_labels import some
from topksvm.cli._data import Table, add_data_options, read_to_train_on, request_of
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
    training_parameters,
    whole,
)
from topksvm.cli._output import check_writable, percent, print_json, print_table, warn, with_notes


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(commands, "cv", run, __doc__)
    add_data_options(parser)
    _add_search_options(parser)
    add_training_options(parser)
    add = parser.add_argument
    output = "train on all rows with what was chosen, and write this .safetensors"
    add("-o", "--output", type=Path, metavar="MODEL", help=output)
    for_help = "which of -k the model is for (the first)"
    add("--for", dest="for_k", type=whole(), metavar="K", help=for_help)
    add("--results", type=Path, metavar="FILE", help="write all results to this .csv")
    add_output_options(parser, is_quiet=True)


def _add_search_options(parser: Any) -> None:
    add, names = parser.add_argument, list(LOSSES)
    k_help = "the numbers of guesses wanted (1 5, up to one less than the classes)"
    add("-k", type=whole(), nargs="+", help=k_help)
    add("--train-k", type=whole(), nargs="+", metavar="K", help="the k to train for (as -k)")
    C_help = "the C to try (ten from 1e-5 to 1e3, the range of the paper)"
    add("-C", type=above_0, nargs="+", help=C_help)
    extensions = "how often to try one C more where the best is the smallest or largest (3)"
    add("--extensions", type=whole(0), default=3, metavar="N", help=extensions)
    losses = f"out of {', '.join(names)} (the first)"
    add("--losses", choices=names, nargs="+", default=names[:1], metavar="LOSS", help=losses)
    add("--folds", type=whole(2), default=5, metavar="N", help="parts of DATA (5)")


def run(options: argparse.Namespace) -> None:
    """Run the command."""
    from topksvm.cli._fit import fit

    _check_outputs(options)
    table = read_to_train_on(request_of(options))
    search = _make_search(options, table.labels)
    seconds = fit(search, table.X, table.labels, None if options.quiet else CountBar("fits"))
    _warn_of_gaps(search, options.tol)
    if options.results is not None:
        _write_results(search.cv_results_, options.results)
    model = None
    if options.output is not None:
        model = search.model_for(options.for_k)
        save_model(model, table.names, options.output)
        if model.certificate_.relative_gap > options.tol:
            warn(f"the model saved is not solved to --tol {options.tol:g}. Raise --max-iter")
    show = _print_json if options.json else _print_words
    show(options, search, model, table, seconds)
    if model is not None and model.status_ == "interrupted":
        raise KeyboardInterrupt


def _check_outputs(options: argparse.Namespace) -> None:
    if options.output is not None:
        check_model_path(options.output)
    elif options.for_k is not None:
        raise UserError("--for has no effect without -o MODEL. Add that, or leave it out.")
    if options.results is not None:
        check_writable(options.results, "--results", [".csv"])


def _make_search(options: argparse.Namespace, y: NDArray[Any]) -> Any:
    from topksvm.estimators import TopKLinearSVCCV

    return TopKLinearSVCCV(
        _ks_for(options, len(np.unique(y))),
        10 if options.C is None else options.C,
        losses=options.losses,
        train_ks=options.train_k,
        cv=_stratified_folds(options.folds, y, options.seed),
        refit=options.output is not None,
        max_extensions=options.extensions,
        **training_parameters(options),
    )


def _ks_for(options: argparse.Namespace, m: int) -> list[int]:
    ks = sorted({1, min(5, m - 1)}) if options.k is None else list(dict.fromkeys(options.k))
    for option, values in (("-k", ks), ("--train-k", options.train_k or [])):
        for k in values:
            check_k(option, k, m, most=m - 1)
    if options.for_k is not None and options.for_k not in ks:
        raise UserError(
            f"--for {options.for_k} is none of the numbers of guesses wanted, {ks}. Choose one of "
            "them, or add it to -k."
        )
    return ks


def _stratified_folds(folds: int, y: NDArray[Any], seed: int) -> list[tuple[Any, Any]]:
    """Return stratified folds of shuffled rows, as files are often sorted by their labels."""
    from sklearn.model_selection import StratifiedKFold

    classes, sizes = np.unique(y, return_counts=True)
    if sizes.max() < folds:
        raise UserError(
            f"--folds {folds}, but no class has more than {sizes.max()} rows. Choose fewer folds, "
            "at least 2, or give more rows."
        )
    small = classes[sizes < folds].tolist()
    if small:
        warn(f"classes with fewer rows than there are folds, {folds}: {some(small)}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # Small classes were named already.
        splitter = StratifiedKFold(folds, shuffle=True, random_state=seed)
        return list(splitter.split(np.zeros(len(y)), y))


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


def _write_results(results: dict[str, Any], path: Path) -> None:
    names = [name for name in results if name != "params"]
    with replacing(path) as temporary, temporary.open("w", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(zip(*(results[name].tolist() for name in names), strict=True))


def _print_words(
    options: argparse.Namespace, search: Any, model: Any, table: Table, seconds: float
) -> None:
    n, d = table.X.shape
    text = f"{options.data}: {n} rows, {d} features, {len(search.classes_)} classes"
    print(f"{with_notes(text, table.notes)}\n")
    results, ks = search.cv_results_, search.ks
    header = ["loss", "training k"]
    for k in ks:
        header += [f"top-{k}", "+-", "at C"]
    rows = []
    for loss, trained in dict.fromkeys((p["loss"], p["k"]) for p in results["params"]):
        row = [loss, str(trained)]
        for k in ks:
            best = _best(results, loss, trained, k)
            mark = "*" if search.best_params_[k] == best["params"] else " "
            row += [percent(best["mean"]) + mark, f"{100 * best['std']:.2f}", f"{best['C']:g}"]
        rows.append(row)
    print_table(header, rows)
    print(f"\n{len(results['params'])} points on {options.folds} folds in ", end="")
    print(f"{seconds:.1f} s; * the best. What to train with:")
    for k in ks:
        best = search.best_params_[k]
        print(f"  for top-{k}: --loss {best['loss']} -k {best['k']} -C {best['C']:.6g}")
    if model is not None:
        print(f"\nsaved {options.output}, for top-{options.for_k or ks[0]}: ", end="")
        print(certificate_in_words(model.certificate_))


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


def _print_json(
    options: argparse.Namespace, search: Any, model: Any, table: Table, seconds: float
) -> None:
    saved = model and {
        "path": options.output,
        "for_k": options.for_k or search.ks[0],
        "certificate": certificate_as_json(model.certificate_),
    }
    print_json(
        {
            "data": options.data,
            "notes": table.notes,
            "best": {
                k: best | {"accuracy": float(search.best_score_[k])}
                for k, best in search.best_params_.items()
            },
            "Cs": search.Cs_.tolist(),
            "seconds": seconds,
            "results": {n: v.tolist() for n, v in search.cv_results_.items() if n != "params"},
            "model": saved,
        }
    )
