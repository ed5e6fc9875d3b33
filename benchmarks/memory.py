"""The most memory that a process, or a piece of work in it, used."""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

_STATUS = Path("/proc/self/status")
_RESET = Path("/proc/self/clear_refs")


def with_memory(work: Callable[[], T]) -> tuple[float, T]:
    """Return how far the resident memory rose during a piece of work, in MB, and its result.

    Where the peak can be reset (Linux), earlier work does not hide later work. Elsewhere it is that
    of the whole process, and the difference can only be too small.
    """
    try:
        _RESET.write_text("5")
    except OSError:
        before = peak_megabytes()
    else:
        before = _from_status("VmRSS")
    result = work()
    return max(0.0, peak_megabytes() - before), result


def peak_megabytes() -> float:
    """Return the most memory that this process has had."""
    if _STATUS.exists():
        # What getrusage says begins with the memory of the process that started this one.
        return _from_status("VmHWM")
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def _from_status(field: str) -> float:
    (line,) = (s for s in _STATUS.read_text().splitlines() if s.startswith(f"{field}:"))
    return int(line.split()[1]) * 1024 / 1e6
