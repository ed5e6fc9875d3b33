"""CoCoA+: rounds of local work on shards, one exact certificate per round.

A round: every shard gets the weights, improves its own duals (`_shard.py`), and says what they come
to. The sum of that over the shards is the new ``W = sum_i a_i x_i'``, exact in float64, and with it
the dual objective. The duals are then extrapolated in the direction of the last two rounds for as
far as the dual rises, which takes a second array of the size of the weights and saves half of the
rounds or more: ``sigma = K`` makes each of them a short step. At last every shard gets the new
weights and says what its examples lose at them: that is the primal objective.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from topksvm._clock import Clock
from topksvm.distributed._model import RoundResult
from topksvm.distributed._shard import Order
from topksvm.solvers import SCALES, Certificate, Estimate, Stopping, next_limit

Floats = NDArray[np.floating[Any]]

# On four kinds of data in 2 and 8 shards, other values of the constants below (2 to 8, 20 to 200,
# 1.2 to 2, 1.5 to 4, 0.7 to 0.9, and 1 to 1.5) change the number of rounds by 4 % at most in all.

FIRST_REACH, FARTHEST = 4.0, 50.0
"""How many rounds may be anticipated at once, at first and at most."""

RAISE, RAISE_MUCH, LOWER = 1.5, 2.0, 0.8
"""Factors of ``sigma`` after a round that gained less than its shards, one by which the dual fell,
and one that gained more."""

CLEARLY_MORE = 1.2
"""What a round has gained, in gains of its shards, before ``sigma`` is lowered."""


class WeightsLostError(RuntimeError):
    """The weights that were certified cannot be had any more."""


class Shards(Protocol):
    """Shards, wherever they are."""

    can_extrapolate: bool

    @property
    def n_shards(self) -> int:
        """The number of shards."""

    def rebalance(self) -> None:
        """Let workers that have joined take part, which may change the number of shards."""

    def round(self, order: Order) -> RoundResult:
        """Have all shards carry out the order, and evaluate the model to which that has led."""

    def reject(self) -> None:
        """Return to the model before the last round, which the next order will undo."""

    def enlarge(self, factor: float) -> RoundResult:
        """Evaluate the model with weights that are larger than those of the duals.

        It is what :meth:`weights` returns until the next round, which starts from the model.
        """

    def weights(self) -> Floats:
        """Return the weights evaluated last as ``(m, d)``; may raise `WeightsLostError`."""


class CoCoA:
    """The solver for shards; see :class:`~topksvm.solvers.Solver`. An update is a round.

    A shard makes up to `local_passes` over its examples in a round, `single_passes` if it is the
    only one. The last round is described by `details`, which are part of the history.
    """

    def __init__(self, shards: Shards, local_passes: int = 4, single_passes: int = 4) -> None:
        self.shards, self.local_passes, self.single_passes = shards, local_passes, single_passes
        self.clock = Clock()
        self.n_passes = self.n_rounds = 0
        self.duals = None  # They stay where they are.
        self.reach = FIRST_REACH
        self.sigma = float(shards.n_shards)
        self.must_undo = False
        self.certificate: Certificate | None = None
        self.details: dict[str, Any] = {}
        self.last_time = 0.0

    def update(self, stopping: Stopping) -> Estimate:
        """Make a round."""
        if not self.must_undo:  # Shards that change hands could not take back their last round.
            before = self.shards.n_shards
            self.shards.rebalance()
            self.sigma *= self.shards.n_shards / before
        n_shards = self.shards.n_shards
        extrapolates = self.shards.can_extrapolate and n_shards > 1
        passes = self.local_passes if n_shards > 1 else self.single_passes
        order = Order(
            min(passes, stopping.max_iter - self.n_passes),
            stopping.max_time - self.clock.elapsed,
            self.reach if extrapolates else 0.0,
            self.sigma if extrapolates else float(n_shards),
            self.must_undo,
        )
        certificate, tol = self.round(order, stopping.tol), stopping.tol
        may_end = certificate.is_within(tol) or certificate.is_limited_by_rounding(tol)
        return Estimate(certificate.relative_gap, may_end, certificate, self.details)

    def certify(self) -> tuple[Floats, Certificate]:
        """Fetch the weights, which only now travel to here, with the last certificate."""
        if self.certificate is None:
            self.round(Order(passes=0))
        try:
            weights = self.shards.weights()
        except WeightsLostError:  # With all workers that had them; a round makes new ones.
            self.round(Order(passes=0))
            weights = self.shards.weights()
        assert self.certificate is not None
        return weights, self.certificate

    def round(self, order: Order, tol: float = 0.0) -> Certificate:
        """Make a round; return its certificate, or the one before if it was taken back."""
        result = self.shards.round(order)
        self.n_rounds += 1
        self.n_passes += result.model.passes
        # Only what has a reach can be taken back.
        is_undoable = order.reach > 0.0 and order.sigma is not None
        self.must_undo = is_undoable and self._is_overshoot(result)
        if self.must_undo:
            self.shards.reject()
        else:
            if order.reach > 0.0:
                self.reach = next_limit(self.reach, result.model.share, FARTHEST, 1.5)
            self.certificate = self._best(result.certificates(), tol)
        self._describe(result, order)
        assert self.certificate is not None
        return self.certificate

    def _best(self, candidates: list[Certificate], tol: float) -> Certificate:
        """Return the certificate of the weights, or that of larger ones if those are within tol."""
        best = int(np.argmin([candidate.primal for candidate in candidates]))
        if candidates[best].relative_gap <= tol < candidates[0].relative_gap:
            return self.shards.enlarge(float(SCALES[best])).certificates()[0]
        return candidates[0]

    def _is_overshoot(self, result: RoundResult) -> bool:
        """Adapt ``sigma``; return whether the dual fell because it was too small.

        With ``sigma = K`` the dual rises by at least what the shards gain. If it rises by more,
        they get in each other's way less than that.
        """
        if self.certificate is None or result.n_lost:
            return False
        rise, gain = result.model.plain_dual - self.certificate.dual, result.model.gain
        most = float(self.shards.n_shards)
        if rise < 0.0 and self.sigma < most:
            self.sigma = min(most, RAISE_MUCH * self.sigma)
            return True
        if rise < gain:
            self.sigma = min(most, RAISE * self.sigma)
        elif rise > CLEARLY_MORE * gain:
            self.sigma = max(1.0, LOWER * self.sigma)
        return False

    def _describe(self, result: RoundResult, order: Order) -> None:
        now, n_shards = self.clock.elapsed, self.shards.n_shards
        computation = result.model.seconds + result.found.seconds
        self.details = {
            "round": self.n_rounds,
            "local_passes": result.model.passes,
            "n_bytes": result.n_bytes,
            "snapshot_bytes": result.snapshot_bytes,
            "computation": computation,
            "communication": max(0.0, now - self.last_time - computation),
            "n_shards": n_shards,
            "n_lost": result.n_lost,
            "sigma": float(n_shards) if order.sigma is None else order.sigma,
            "is_rejected": self.must_undo,
        }
        self.last_time = now
