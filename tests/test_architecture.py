"""The architecture is read from the folder listing; imports go downwards, through doors."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import topksvm

PACKAGE = Path(topksvm.__file__).parent
SOURCES = sorted(PACKAGE.rglob("*.py"))

# A module may import from its own layer's package and from layers below it.
LAYERS = {
    "": 0,  # topksvm itself
    "_clock": 0,
    "_files": 0,
    "_interrupts": 0,
    "_kernel_cache": -1,
    "_kernel_compiler": -1,
    "_matplotlib": 0,
    "_numba": 0,
    "_progress": 0,
    "_scores_and_labels": 0,
    "_threads": 0,
    "_team": 1,
    "metrics": 1,
    "projections": 1,
    "losses": 2,
    "data": 2,
    "solvers": 3,
    "datasets": 1,
    "estimators": 4,
    "baselines": 5,
    "distributed": 5,
    "plotting": 5,
    "extraction": 5,
    "report": 6,
    "reproduction": 7,
    "cli": 8,
    "__main__": 9,
}
OPTIONAL = {
    "matplotlib",
    "mpl_toolkits",
    "dask",
    "distributed",
    "safetensors",
    "pyarrow",
    "onnxruntime",
    "PIL",
    "pooch",
}


def _layer_of(path):
    return path.relative_to(PACKAGE).with_suffix("").parts[0].replace("__init__", "")


def _imports(tree):
    """Yield ``(module, at the top level)`` for every import."""
    top_level = set(tree.body)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node in top_level
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide the direction"
            for alias in node.names:
                yield f"{node.module}.{alias.name}", node in top_level


def test_every_module_has_a_layer():
    assert {_layer_of(path) for path in SOURCES} == set(LAYERS)


def test_imports_go_downwards():
    for path in SOURCES:
        own = _layer_of(path)
        for module, _ in _imports(ast.parse(path.read_text())):
            parts = module.split(".")
            if parts[0] != "topksvm" or parts[1] not in LAYERS:
                continue
            other = parts[1]
            assert other == own or LAYERS[other] < LAYERS[own], f"{path} imports {module}"


def test_packages_are_entered_by_their_doors():
    """A private module belongs to its package: others import what they need from the package."""
    for path in SOURCES:
        own = _layer_of(path)
        for module, _ in _imports(ast.parse(path.read_text())):
            parts = module.split(".")
            if parts[0] == "topksvm" and parts[1] != own:
                inner = [part for part in parts[2:-1] if part.startswith("_")]
                assert not inner, f"{path} imports {module}: import it from topksvm.{parts[1]}"


def test_optional_packages_are_imported_where_they_are_used():
    for path in SOURCES:
        for module, top_level in _imports(ast.parse(path.read_text())):
            if module.split(".")[0] in OPTIONAL:
                assert not top_level, f"{path} imports {module} at its top"


def test_importing_the_command_line_imports_no_optional_package():
    code = f"import sys, topksvm.cli\nprint(sorted({OPTIONAL!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
