"""What could break the gallery, found without running it; `make docs` runs all of it."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("plot_*.py"))
ALLOWED = {"matplotlib", "mpl_toolkits", "numpy", "scipy", "sklearn", "topksvm"}
"""What the extra for the documentation installs; the standard library comes on top."""

REFERENCE = re.compile(r":(?:class|func|meth|mod):`(?:[^`<]*<)?~?([\w.]+)>?`")


def imported(tree: ast.Module) -> Iterator[tuple[str, str, str]]:
    """Yield the local name, the module and the name in it (empty for the module itself)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((name.asname or name.name, name.name, "") for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((a.asname or a.name, node.module or "", a.name) for a in node.names)


def find(path: str) -> Any:
    """Return what a dotted name stands for."""
    module, _, name = path.rpartition(".")
    try:
        return import_module(path)
    except ImportError:
        return getattr(find(module), name) if module else None


def is_public(path: str) -> bool:
    """Whether no part of the dotted name is private, and all of it exists and is announced."""
    if any(part.startswith("_") for part in path.split(".")):
        return False
    try:
        found = find(path)
    except AttributeError:
        return False
    module, _, name = path.rpartition(".")
    home = find(module) if module else None
    return inspect.ismodule(found) or inspect.isclass(home) or name in home.__all__


def strangers(tree: ast.Module) -> set[str]:
    """Return the imports that users of the documentation may not have."""
    roots = {module.split(".")[0] for _, module, _ in imported(tree)}
    return roots - ALLOWED - set(sys.stdlib_module_names) | roots & {"urllib", "http", "socket"}


def not_public(tree: ast.Module) -> set[str]:
    """Return the names of topksvm that an example uses and that are not for users."""
    used = {f"{module}.{name}".rstrip(".") for _, module, name in imported(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            used.add(f"{node.value.id}.{node.attr}")
    return {u for u in used if u.split(".")[0] == "topksvm" and not is_public(u)}


def unseeded(tree: ast.Module) -> list[str]:
    """Return the calls that leave something to chance."""
    names = {local: f"{module}.{name}" for local, module, name in imported(tree) if name}
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        text = ast.unparse(node.func)
        if text.startswith("np.random."):
            is_fixed = text == "np.random.default_rng" and bool(node.args)
        elif text in names and not names[text].startswith("matplotlib"):
            accepts = "random_state" in inspect.signature(find(names[text])).parameters
            is_fixed = not accepts or "random_state" in {k.arg for k in node.keywords}
        else:
            continue
        found += [] if is_fixed else [text]
    return found


def stray_values(source: str) -> list[str]:
    """Return what ends a cell and has a value, which the page would print: a legend, an artist."""
    ends = [ast.parse(cell).body[-1:] for cell in re.split(r"(?m)^# %%", source)[1:]]
    values = [ast.unparse(last[0]) for last in ends if last and isinstance(last[0], ast.Expr)]
    return [v for v in values if not re.match(r"plt\.show\(|print\(|\w+\.cleanup\(", v)]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
class TestExample:
    def test_it_has_a_title_and_an_introduction(self, path):
        title, line, _, introduction = (
            ast.get_docstring(ast.parse(path.read_text())) or "\n\n\n"
        ).split("\n", 3)
        assert title
        assert line == "=" * len(title)
        assert introduction.strip()

    def test_it_compiles_and_uses_public_names(self, path):
        source = path.read_text()
        compile(source, path.name, "exec")
        tree = ast.parse(source)
        assert any(module.startswith("topksvm") for _, module, _ in imported(tree))
        assert not not_public(tree)
        assert not strangers(tree)

    def test_its_references_lead_somewhere(self, path):
        ours = [r for r in REFERENCE.findall(path.read_text()) if r.startswith("topksvm")]
        assert not [reference for reference in ours if not is_public(reference)]

    def test_nothing_is_left_to_chance(self, path):
        assert not unseeded(ast.parse(path.read_text()))

    def test_cells_show_figures_and_nothing_by_accident(self, path):
        source = path.read_text()
        shown = source.count("plt.show()")
        assert shown >= 1
        thumbnail = re.search(r"sphinx_gallery_thumbnail_number = (\d+)", source)
        assert thumbnail is None or 1 <= int(thumbnail[1]) <= shown
        assert not stray_values(source)


def test_the_gallery_is_a_gallery():
    assert 8 <= len(EXAMPLES) <= 12
    titles = {path.read_text().split("\n")[1] for path in EXAMPLES}
    assert len(titles) == len(EXAMPLES)
    readme = (EXAMPLES[0].parent / "README.rst").read_text()
    assert readme.startswith("Examples\n========\n")


@pytest.mark.parametrize(
    ("source", "check"),
    [
        ("from topksvm._matplotlib import BRIGHT", not_public),
        ("from topksvm.datasets import load_nothing", not_public),
        ("import topksvm\ntopksvm.no_such_thing", not_public),
        ("import torch", strangers),
        ("from urllib.request import urlopen", strangers),
        ("import numpy as np\nnp.random.rand(3)", unseeded),
        ("import numpy as np\nnp.random.default_rng()", unseeded),
        ("from topksvm import TopKLinearSVC\nTopKLinearSVC(k=2)", unseeded),
        ("from topksvm.datasets import make_ambiguous_classes as f\nf(10)", unseeded),
    ],
)
def test_the_checks_find_what_they_are_for(source, check):
    assert check(ast.parse(source))


def test_a_value_at_the_end_of_a_cell_is_found():
    assert stray_values('# %%\nax.legend()\n# %%\nprint("no")\n') == ["ax.legend()"]
