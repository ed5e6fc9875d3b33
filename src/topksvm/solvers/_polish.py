"""Rounds of active passes: how many, and what model they make."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm.solvers._duals import remember

Floats = NDArray[np.floating[Any]]

FADE = 0.92
"""By what each active pass lowers the gap of the average, about."""

WORTHWHILE = 0.2
"""Share of the largest gain of this round below which active passes give way to a full one."""


class Polish:
    """Active passes after a full one, for as long as they pay, and the average of their weights.

    Attributes
    ----------
    relief : float
        By what factor they should have lowered the gap of the average by now.
    pays : bool
        Whether another would gain enough.
    """

    def __init__(self, run: Any) -> None:
        self.run = run
        self.pays = run.use_active and run.options.max_active > 0 and not run.is_beginning
        self.relief = 1.0
        self.done = 0
        self.share = 0.0
        self.total = np.zeros(run.weights.shape) if self.pays else None
        self.usual = self.largest = 0.0

    @property
    def average(self) -> Floats | None:
        """The average of the weights after the passes; the later they are, the more they count."""
        return self.total / self.share if self.total is not None and self.share > 0.0 else None

    def go_on(self, enough: float = 0.0) -> None:
        """Make a pass, and more while they pay, until the relief is `enough`."""
        options = self.run.options
        while self.pays:
            if self.run.n_passes >= options.max_iter or self.run.elapsed >= options.max_time:
                return
            self._one_more()
            if self.relief <= enough:
                return

    def _one_more(self) -> None:
        run = self.run
        # The direction of a pass that follows a jump would be that of the jump's correction.
        before = remember(run.duals) if self.done % 2 else None
        gain = run.active_pass(self.usual)
        self.done += 1
        self.relief *= FADE
        # Before the jump, which the next pass has to smooth.
        weight = float(self.done) ** 3
        self.total += weight * run.weights
        self.share += weight
        if before is not None:
            run.go_on_from(before)
        self.largest = max(self.largest, gain)
        self.usual = gain / max(run.n_visits, 1)
        self.pays = gain > WORTHWHILE * self.largest and self.done < run.options.max_active
