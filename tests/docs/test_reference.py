"""Every public name has a page in the reference, and an example."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import topksvm

API = Path(__file__).parents[2] / "docs" / "api.rst"

# Modules without an underscore that are no part of the interface: `estimators` is where the names
# of `topksvm` are at home, the others serve the command line.
INNER = (
    "topksvm.cli.",
    "topksvm.estimators.",
    "topksvm.extraction.",
    "topksvm.report.",
    "topksvm.reproduction.",
)


def _public_modules():
    yield "topksvm"
    for module in pkgutil.walk_packages(topksvm.__path__, "topksvm."):
        parts = module.name.split(".")
        if not any(part.startswith("_") for part in parts) and not f"{module.name}.".startswith(
            INNER
        ):
            yield module.name


def _public_names():
    """Return every public object by one name of those that it has: the shortest."""
    names = {}
    for module in _public_modules():
        for name in importlib.import_module(module).__all__:
            if name != "__version__":
                full = f"{module}.{name}"
                key = id(getattr(importlib.import_module(module), name))
                names[key] = min(names.get(key, full), full, key=len)
    return sorted(names.values())


def _names_on_the_page():
    """Read the summary tables, and what is documented in place."""
    names, module, in_table = set(), "", False
    for line in API.read_text().splitlines():
        if line.startswith(".. "):
            in_table = line.startswith(".. autosummary::")
        if match := re.match(r"\.\. (?:currentmodule|module):: (\S+)", line):
            module = match[1]
        elif match := re.match(r"\.\. autodata:: (\S+)", line):
            names.add(match[1])
        elif in_table and (match := re.fullmatch(r"   (\w+)", line)):
            names.add(f"{module}.{match[1]}")
    return names


NAMES = _public_names()


def test_every_public_name_is_in_the_reference_once():
    assert "topksvm.TopKLinearSVC" in NAMES
    assert "topksvm.projections.reference.topk_cone" in NAMES
    assert _names_on_the_page() == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_has_an_example(name):
    module, _, last = name.rpartition(".")
    subject = getattr(importlib.import_module(module), last)
    if callable(subject):
        text = inspect.getdoc(subject) or ""
        assert "Examples\n--------\n" in text, f"{name} has no section of examples"
        text = text.split("Examples\n--------\n")[1]
    else:  # A constant has no docstring; its example is on the page itself.
        text = API.read_text().split(f"autodata:: {name}\n")[1].split("\n\nHow ")[0]
    assert re.search(r"^ *>>> ", text, flags=re.MULTILINE), f"{name} has no example"


def test_the_pages_of_the_table_of_contents_exist():
    docs = API.parent
    for page in (docs / "index.rst", docs / "guide" / "index.rst"):
        entries = re.findall(r"^   (?:\w+ <)?([\w/]+)>?$", page.read_text(), flags=re.MULTILINE)
        assert len(entries) >= 9
        for entry in entries:
            if not entry.startswith("auto_examples"):  # Made by sphinx-gallery.
                assert (page.parent / f"{entry}.rst").exists(), f"{page.name}: {entry}"
