"""Show versions and the machine, or a model.

Examples
--------
  topksvm info                        versions and the machine: paste it into a bug report
  topksvm info model.safetensors      parameters, classes and certificate of a model
"""

from __future__ import annotations

import argparse
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from topksvm import __version__
from topksvm._scores_and_labels import some
from topksvm._threads import n_threads
from topksvm.cli._models import certificate_as_json, certificate_in_words, load_model
from topksvm.cli._options import add_command, add_output_options
from topksvm.cli._output import print_facts, print_json

_PACKAGES = (
    "numpy",
    "scipy",
    "scikit-learn",
    "numba",
    "matplotlib",
    "safetensors",
    "pandas",
    "pyarrow",
)


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(commands, "info", run, __doc__)
    parser.add_argument("model", type=Path, nargs="?", metavar="MODEL", help="a saved model")
    add_output_options(parser)


def describe() -> dict[str, str]:
    """Return versions and the machine."""
    facts = {
        "topksvm": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "threads": str(n_threads()),
    }
    for package in _PACKAGES:
        try:
            facts[package] = version(package)
        except PackageNotFoundError:
            facts[package] = "not installed"
    return facts


def run(options: argparse.Namespace) -> None:
    """Run the command."""
    if options.model is not None:
        model, names = load_model(options.model)
        show_model = _print_model_as_json if options.json else _print_model
        show_model(options, model, names)
    else:
        show = print_json if options.json else print_facts
        show(describe())


def _print_model_as_json(
    options: argparse.Namespace, model: Any, names: tuple[str, ...] | None
) -> None:
    print_json(
        {
            "model": options.model,
            "parameters": model.get_params(),
            "n_features": model.n_features_in_,
            "feature_names": names,
            "dtype": model.coef_.dtype.name,
            "classes": model.classes_.tolist(),
            "certificate": certificate_as_json(model.certificate_),
            "passes": model.n_iter_,
        }
    )


def _print_model(_: argparse.Namespace, model: Any, names: tuple[str, ...] | None) -> None:
    classes = model.classes_.tolist()
    plain = model.__class__().get_params()
    changed = [f"{n} = {v!r}" for n, v in model.get_params().items() if v != plain[n]]
    print_facts(
        {
            "model": f"{model.loss}, k = {model.k}, C = {model.C:g}",
            "parameters": ", ".join(changed) + "; else as by default"
            if changed
            else "as by default",
            "features": str(model.n_features_in_) + (f": {some(list(names))}" if names else ""),
            "classes": f"{len(classes)}: {some(classes)}",
            "weights": "{} x {} in ".format(*model.coef_.shape) + model.coef_.dtype.name,
            "certificate": certificate_in_words(model.certificate_),
            "passes": f"{model.n_iter_}",
        }
    )
