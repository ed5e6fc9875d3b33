"""``topksvm info``: what is installed, for bug reports."""

from __future__ import annotations

import argparse
import json
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from topksvm import __version__
from topksvm._threads import n_threads

_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "matplotlib")


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "info",
        help="show versions and the machine",
        description="Show versions and the machine: paste it into a bug report.",
    )
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
    facts = describe()
    if options.json:
        print(json.dumps(facts, indent=2))
        return
    width = max(map(len, facts))
    for name, value in facts.items():
        print(f"{name:{width}}  {value}")
