"""Progress of long work on the error stream: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import io
import math
import sys
from threading import RLock
from typing import Any

from tqdm import tqdm

__all__ = ["CountBar", "GapBar", "print_above"]

SECONDS_BETWEEN_LINES = 2.0
"""How often a line is printed where there is no terminal."""


class _Tqdm(tqdm):
    """tqdm without a thread of its own and without a lock between processes."""

    monitor_interval = 0


_Tqdm.set_lock(RLock())


class _Lines(io.TextIOBase):
    """Prints as lines what tqdm would draw in place."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.last = ""

    def write(self, text: str) -> int:
        line = text.strip()
        if line and line != self.last:
            print(line, file=self.stream, flush=True)
            self.last = line
        return len(text)


class _Bar:
    """What the bars share: tqdm, which may be called from any thread."""

    def __init__(self, terminal: str, plain: str, **options: Any) -> None:
        options |= {"miniters": 0, "smoothing": 0}
        if sys.stderr.isatty():
            self.bar = _Tqdm(bar_format=terminal, leave=False, dynamic_ncols=True, **options)
            return
        self.bar = _Tqdm(
            bar_format=plain,
            file=_Lines(sys.stderr),
            mininterval=SECONDS_BETWEEN_LINES,
            delay=1e-9,  # Nothing is printed before the first update.
            **options,
        )
        self.bar.last_print_t = 0.0  # The first update is printed at once.

    def _advance(self, done: float) -> None:
        with self.bar.get_lock():
            self.bar.update(max(0, done - self.bar.n))

    def close(self) -> None:
        """Remove the bar from a terminal; elsewhere print how far the work has come."""
        self.bar.close()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class GapBar(_Bar):
    """A callback for a fit: its bar is full when the relative gap has fallen to `tol`.

    `start` is shown on a terminal before the first pass ends.
    """

    def __init__(self, tol: float, start: str = "") -> None:
        super().__init__("{bar:20} {desc}", "{desc}", total=1.0)
        self.log_tol = math.log(min(tol, 0.5))
        if sys.stderr.isatty():
            self.bar.set_description_str(start)

    def __call__(self, progress: Any) -> None:
        """Show passes, relative gap and seconds."""
        gap = progress.relative_gap
        self.bar.set_description_str(
            f"pass {progress.passes}: relative gap about {gap:.2e} after {progress.seconds:.1f} s",
            refresh=False,
        )
        # The gap falls about geometrically, so its logarithm tells how much is done.
        self._advance(min(1.0, math.log(gap) / self.log_tol) if 0.0 < gap < 1.0 else 0.0)


class CountBar(_Bar):
    """How many pieces of work are done; as a callback it serves for a search."""

    def __init__(self, what: str, total: int | None = None) -> None:
        counts = "{n_fmt}/{total_fmt} [{elapsed}<{remaining}]{postfix}"
        bar = "{desc}: {percentage:3.0f}%|{bar:20}| "
        super().__init__(bar + counts, "{desc}: " + counts, desc=what, total=total)

    def __call__(self, progress: Any) -> None:
        """Show ``progress.done`` of ``progress.total``."""
        self.show(progress.done, progress.total)

    def show(self, done: int, total: int, note: str = "") -> None:
        """Show `done` of `total`, and a note on the last piece."""
        self.bar.total = total
        self.bar.set_postfix_str(note, refresh=False)
        self._advance(done)


def print_above(line: str) -> None:
    """Print a line on the error stream, above the bar if there is one."""
    _Tqdm.write(line, file=sys.stderr)
