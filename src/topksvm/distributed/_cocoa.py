"""CoCoA+: rounds of local work on shards, one exact certificate per round.

A round: every shard gets the weights, improves its own duals (`_shard.py`), and says what they come
to. The sum of that over the shards is the new ``W = sum_i a_i x_i'``, exact in float64, and with it
the dual objective. The duals then go on in the direction of the last two rounds for as far as the
dual rises, which takes a second array of the size of the weights and saves half of the rounds or
more: ``sigma = K`` makes each of them a cautious one. At last every shard gets the new weights and
says what its examples lose at them: that is the primal objective.

Nothing here knows where the shards are; a :class:`~topksvm.distributed._local_team.Team` does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm._interrupts import raise_if_stopped
from topksvm.distributed._local_team import Team, WeightsLostError
from topksvm.distributed._model import Standing
from topksvm.distributed._shard import Order
from topksvm.solvers import SCALES, Certificate, Check, Report, Result, Run, SDCAOptions, Status

Floats = NDArray[np.floating[Any]]

FARTHEST = 50.0
"""The most rounds to be anticipated at once."""


@dataclass(frozen=True)
class RoundCheck(Check):
    """A line of the history: a certificate, and what the round cost.

    Attributes
    ----------
    round : int
        The number of the round, from 1 on.
    local_passes : int
        Passes over the examples in it.
    n_bytes : int
        Bytes that travelled between workers in it.
    computation, communication : float
        Seconds in it: those of the slowest shard, and the rest.
    snapshot_bytes : int
        Bytes of dual variables that went to the client in it, for shards that may be lost.
    n_shards, n_lost : int
        Shards, and how many of them had to be rebuilt in it.
    caution : float
        ``sigma``: from 1 to the number of shards.
    is_rejected : bool
        Whether the round was taken back, so that the certificate is still that of the one before.
    """

    round: int
    local_passes: int
    n_bytes: int
    snapshot_bytes: int
    computation: float
    communication: float
    n_shards: int
    n_lost: int
    caution: float
    is_rejected: bool


class CoCoA(Run):
    """One run: rounds until the gap is within tol or the budget is used up."""

    def __init__(
        self, team: Team, options: SDCAOptions, local_passes: int = 4, alone: int | None = None
    ) -> None:
        super().__init__(options.tol)
        self.team, self.options, self.local_passes = team, options, local_passes
        self.passes_alone = local_passes if alone is None else alone
        self.duals = None  # type: ignore[assignment]  # They stay where they are.
        self.n_rounds = 0
        self.reach = 4.0
        self.caution = float(team.n_shards)
        self.must_undo = False
        self.final: Floats | None = None
        self.last_time = 0.0

    def certify(self) -> Certificate:
        """Certify the duals as they are."""
        return self.round(Order(passes=0))

    def round(self, order: Order) -> Certificate:
        """Make a round and record its certificate."""
        standing = self.team.round(order)
        caution = float(self.team.n_shards) if order.caution is None else order.caution
        self.n_rounds += 1
        self.n_passes += standing.passes
        # Only what has a reach can be taken back.
        is_undoable = order.reach > 0.0 and order.caution is not None
        self.must_undo = is_undoable and self._is_overshoot(standing)
        if self.must_undo:
            self.team.reject()
            self._record(self.certificate, standing, caution)
            return self.certificate
        if order.reach > 0.0:
            self._learn_reach(standing.share)
        candidates = standing.certificates()
        certificate = candidates[0]
        best = int(np.argmin([candidate.primal for candidate in candidates]))
        if candidates[best].relative_gap <= self.tol < certificate.relative_gap:
            certificate = self.team.enlarge(float(SCALES[best])).certificates()[0]
        self._record(certificate, standing, caution)
        return certificate

    def _is_overshoot(self, standing: Standing) -> bool:
        """Learn how much caution it takes; return whether the dual fell for want of it.

        With as much caution as there are shards the dual rises by at least what the shards gain.
        If it rises by more, they get in each other's way less than that.
        """
        if not self.is_certified or standing.n_lost:
            return False
        rise, most = standing.plain_dual - self.certificate.dual, float(self.team.n_shards)
        if rise < 0.0 and self.caution < most:
            self.caution = min(most, 2.0 * self.caution)
            return True
        if rise < standing.gain:
            self.caution = min(most, 1.5 * self.caution)
        elif rise > 1.2 * standing.gain:
            self.caution = max(1.0, 0.8 * self.caution)
        return False

    def _record(self, certificate: Certificate, standing: Standing, caution: float) -> None:
        now = self.elapsed
        self.certificate, self.is_certified = certificate, True
        self.history.append(
            RoundCheck(
                self.n_passes,
                now,
                certificate.primal,
                certificate.dual,
                certificate.gap,
                self.n_rounds,
                standing.passes,
                standing.n_bytes,
                standing.snapshot_bytes,
                standing.computation,
                max(0.0, now - self.last_time - standing.computation),
                self.team.n_shards,
                standing.n_lost,
                caution,
                self.must_undo,
            )
        )
        self.last_time = now

    def finish(self, status: Status) -> Result:
        """Fetch the weights, which only now travel to here."""
        if not self.is_certified:
            self.certify()
        if self.final is None:
            try:
                self.final = self.team.weights()
            except WeightsLostError:
                self.certify()
                self.final = self.team.weights()
        self.certified = self.final, self.certificate
        return super().finish(status)

    def _has_fetched_weights(self) -> bool:
        try:
            self.final = self.team.weights()
        except WeightsLostError:
            return False  # With all workers that had them; the next round makes new ones.
        return True

    def _run(self, report: Report | None) -> Status:
        options = self.options
        while True:
            raise_if_stopped()
            self._welcome()
            n_shards = self.team.n_shards
            goes_on = self.team.can_go_on and n_shards > 1
            passes = self.local_passes if n_shards > 1 else self.passes_alone
            certificate = self.round(
                Order(
                    min(passes, options.max_iter - self.n_passes),
                    options.max_time - self.elapsed,
                    self.reach if goes_on else 0.0,
                    self.caution if goes_on else float(n_shards),
                    self.must_undo,
                )
            )
            if report is not None:
                report(self.n_passes, self.elapsed, certificate.relative_gap)
            status = self.verdict(certificate)
            if status is not None and self._has_fetched_weights():
                return status
            if self.n_passes >= options.max_iter:
                return Status.MAX_ITER
            if self.elapsed >= options.max_time:
                return Status.MAX_TIME

    def _welcome(self) -> None:
        if self.must_undo:  # Shards that change hands could not take back their last round.
            return
        before = self.team.n_shards
        self.team.welcome()
        self.caution *= self.team.n_shards / before

    def _learn_reach(self, share: float) -> None:
        # The farther examples may go, the more of them are held up, which bends the direction.
        self.reach *= 1.5 if share == 1.0 else 0.8 if share < 0.6 else 1.0
        self.reach = min(max(self.reach, 1.0), FARTHEST)
