"""The most memory that a piece of work used, beyond what was there before."""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_STATUS = Path("/proc/self/status")
_RESET = Path("/proc/self/clear_refs")


class Peak:
    """Filled in when the block of :func:`watch` ends."""

    megabytes: float = 0.0


@contextmanager
def watch() -> Iterator[Peak]:
    """Yield a :class:`Peak`: how far the resident memory rose above what it was at the start.

    Where the kernel can set the mark back (Linux), earlier work does not hide later work. Elsewhere
    the mark of the whole process is used, which can only be too small.
    """
    peak = Peak()
    try:
        _RESET.write_text("5")
    except OSError:
        before = _high_water()
    else:
        before = _from_status("VmRSS")
    yield peak
    peak.megabytes = max(0.0, _high_water() - before)


def _high_water() -> float:
    if _STATUS.exists():
        return _from_status("VmHWM")
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def _from_status(field: str) -> float:
    for line in _STATUS.read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise RuntimeError(f"{_STATUS} has no {field}.")
