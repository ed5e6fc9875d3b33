"""Take MathJax from the package sphinx-mathjax-offline, if installed: readers need no network.

That package would copy all of MathJax, 24 MB; what our pages use is less than a tenth of it.
Without the package, MathJax is loaded from the address that Sphinx has for it.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.util.fileutil import copy_asset

PARTS = ("tex-chtml.js", "input/tex/extensions", "output/chtml/fonts/woff-v2")


def find_mathjax() -> Path | None:
    """Return the folder with MathJax."""
    spec = find_spec("sphinx-mathjax-offline")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / "static" / "mathjax"


def copy_mathjax(app: Sphinx, error: Exception | None) -> None:
    """Copy it beside the other static files."""
    if error is None and app.builder.format == "html":
        for part in PARTS:
            source = find_mathjax() / part
            target = app.outdir / "_static" / "mathjax" / part
            target.parent.mkdir(parents=True, exist_ok=True)
            copy_asset(source, target if source.is_dir() else target.parent)


def setup(app: Sphinx) -> dict[str, Any]:
    """Say where MathJax is."""
    if find_mathjax() is not None:
        app.config.mathjax_path = "mathjax/tex-chtml.js"
        app.connect("build-finished", copy_mathjax)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
