"""The page is a template, a style sheet, a script and the data; all go into one file."""

from __future__ import annotations

import html
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from topksvm._files import replacing
from topksvm._matplotlib import BRIGHT


def write_report(path: Path, title: str, content: dict[str, Any]) -> None:
    """Write the page; `content` is what its script reads, see ``page.js``."""
    page = _read("page.html")
    # In a script element only "</" and "<!--" could end the data early.
    data = json.dumps(content | {"colours": list(BRIGHT.values())}, separators=(",", ":"))
    parts = {
        "title": html.escape(title),
        "style": _read("page.css"),
        "script": _read("page.js"),
        "data": data.replace("<", "\\u003c"),
    }
    for name, text in parts.items():
        page = page.replace(f"<!--{name}-->", text, 1)
    with replacing(path) as temporary:
        temporary.write_text(page, encoding="utf-8")


def _read(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
