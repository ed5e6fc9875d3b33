"""Errors that the user can fix, and packages that the user can install."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class UserError(Exception):
    """A mistake in the input; its message is one line that says what to do."""


def import_extra(package: str, purpose: str) -> Any:
    """Return a package of the extra ``topksvm[cli]``; `purpose` says what it is missing for."""
    try:
        return import_module(package)
    except ImportError as error:
        raise UserError(
            f"{purpose} needs the package {package}, which is missing; install it with: "
            "pip install 'topksvm[cli]'."
        ) from error
