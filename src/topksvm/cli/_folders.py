"""Folders that results go to."""

from __future__ import annotations

import tempfile
from pathlib import Path

from topksvm.cli._errors import UserError


def check_folder(folder: Path) -> None:
    """Find out before the work, not after it, whether the results can be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UserError(
            f"cannot write to the folder {folder}: {error.strerror}. Choose another with --out."
        ) from error
