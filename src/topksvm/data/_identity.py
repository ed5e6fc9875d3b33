"""By which a file is recognised, so that a change since it was opened is noticed."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Identity:
    """Where a file is, how long it is, and when it was written; 0 for what is not known."""

    device: int
    number: int
    size: int
    modified: int


def identity_of(found: os.stat_result, is_timed: bool = True) -> Identity:
    """Return the identity of a file, without the time if that says nothing."""
    modified = found.st_mtime_ns if is_timed else 0
    return Identity(found.st_dev, found.st_ino, found.st_size, modified)


def difference(before: Identity, now: Identity) -> str:
    """Return what has happened to a file, in words."""
    if (now.device, now.number) != (before.device, before.number):
        return "it was replaced by another file"
    if now.size != before.size:
        verb = "shrank" if now.size < before.size else "grew"
        return f"it {verb} from {before.size} to {now.size} bytes"
    return "it was written to"


def changed(name: str, what: str) -> ValueError:
    """Return the error about a file that is not as it was when it was opened."""
    return ValueError(
        f"{name} has changed since it was opened: {what}. Leave the file as it is until the fit or "
        "the prediction ends, and run it again."
    )
