"""Let pages include the changelog, which is written in a little Markdown for other readers too."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

UNDERLINES = {1: "=", 2: "-", 3: "~"}


def to_rst(text: str) -> str:
    """Convert headings, lists (as they are), code in backticks and links to reStructuredText."""
    text = re.sub(r"(?<!`)`([^`]+)`(?!`)", r"``\1``", text)
    text = re.sub(r"\[([^\]]+)\]\((https?://[^)]+)\)", r"`\1 <\2>`__", text)

    def heading(match: re.Match[str]) -> str:
        level, title = len(match[1]), match[2]
        return f"{title}\n{UNDERLINES[level] * len(title)}"

    return re.sub(r"^(#{1,3}) (.+)$", heading, text, flags=re.MULTILINE)


def convert_included(app: Sphinx, path: Path, docname: str, content: list[str]) -> None:  # noqa: ARG001
    """Convert what an include directive has read, if it is Markdown."""
    if path.suffix == ".md":
        content[0] = to_rst(content[0])


def setup(app: Sphinx) -> dict[str, Any]:
    """Listen to include directives."""
    app.connect("include-read", convert_included)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
