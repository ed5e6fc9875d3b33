"""``topksvm info``: what is installed, for bug reports; or what is in a model."""

from __future__ import annotations

import argparse
import json
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from topksvm import __version__
from topksvm._threads import n_threads
from topksvm.cli._models import certificate_as_json, certificate_in_words, load_model
from topksvm.cli._output import print_facts, some

_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "matplotlib", "safetensors", "pyarrow")

_EXAMPLES = """examples:
  topksvm info                        versions and the machine: paste it into a bug report
  topksvm info model.safetensors      parameters, classes and certificate of a model
"""


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "info",
        help="show versions and the machine, or a model",
        description="Show versions and the machine, or what is in a model.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", type=Path, nargs="?", metavar="MODEL", help="a saved model")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


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
        _show_model(options)
    elif options.json:
        print(json.dumps(describe(), indent=2))
    else:
        print_facts(describe())


def _show_model(options: argparse.Namespace) -> None:
    model, names = load_model(options.model)
    classes = model.classes_.tolist()
    if options.json:
        result = {
            "model": str(options.model),
            "parameters": model.get_params(),
            "n_features": model.n_features_in_,
            "feature_names": names,
            "dtype": model.coef_.dtype.name,
            "classes": classes,
            "certificate": certificate_as_json(model.certificate_),
            "passes": model.n_iter_,
        }
        print(json.dumps(result, indent=2, default=str))
        return
    plain = model.__class__().get_params()
    changed = [f"{n} = {v!r}" for n, v in model.get_params().items() if v != plain[n]]
    facts = {
        "model": f"{model.loss}, k = {model.k}, C = {model.C:g}",
        "parameters": ", ".join(changed) + "; else as by default" if changed else "as by default",
        "features": f"{model.n_features_in_}" + ("" if names is None else f": {some(names)}"),
        "classes": f"{len(classes)}: {some(classes)}",
        "weights": f"{model.coef_.shape[0]} x {model.coef_.shape[1]} in {model.coef_.dtype.name}",
        "certificate": certificate_in_words(model.certificate_),
        "passes": f"{model.n_iter_}",
    }
    print_facts(facts)
