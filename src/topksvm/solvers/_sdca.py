"""Stochastic dual coordinate ascent: full passes that discover, active passes that polish.

A *full* pass looks at all classes of every example, by matrix products where X is dense. It finds
the classes in play, and the losses met on the way give an estimate of the gap for free. *Active*
passes then improve the duals of the classes in play at a fraction of the price, for as long as they
pay. When the estimate says that the goal is reached, the certificate decides.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm.solvers._certificate import (
    Certificate,
    certify,
    rebuild_weights,
    sum_of_dual_values,
)
from topksvm.solvers._duals import Duals, empty_duals, with_room
from topksvm.solvers._passes import (
    active_pass,
    add_changes,
    block_pass,
    make_candidates,
    make_changes,
    make_scratch,
    sequential_pass,
)
from topksvm.solvers._problem import Problem
from topksvm.solvers._result import Check, Result, Status
from topksvm.solvers._rows import gather_rows

Floats = NDArray[np.floating[Any]]
Report = Callable[[int, float, float], None]

SEGMENT = 4096
"""Examples between two looks at the room in the log of the duals."""

TINY = float(np.finfo(float).tiny)

LEAST_GAIN = 1e-4
"""Share of the average gain still to be made below which an example is left alone for a while."""


@dataclass(frozen=True)
class SDCAOptions:
    """How to run the solver; see :func:`topksvm.solve`."""

    tol: float = 1e-3
    max_iter: int = 1000
    max_time: float = np.inf
    block_size: int | None = None
    active: bool = True
    max_active: int = 10
    seed: int = 0


def choose_block_size(m: int) -> int:
    """Return the number of rows to score together.

    The Gram matrix of a block costs ``B d`` per row where the scores cost ``m d``: well below `m`,
    yet large enough for the matrix product to run at full speed.
    """
    return 64 if m < 512 else 128


class SDCA:
    """One run of the solver: its state, and one method per kind of pass."""

    def __init__(
        self, loss: Any, problem: Problem, options: SDCAOptions, duals: Duals | None = None
    ) -> None:
        self.loss = loss
        self.problem = problem
        self.options = options
        m, n = problem.m, problem.n
        self.block = options.block_size or choose_block_size(m)
        self.rng = np.random.default_rng(options.seed)
        self.members = np.flatnonzero(problem.examples.C > 0.0)
        self.scratch = make_scratch(m, problem.dtype)
        self.wide_scratch = make_scratch(m, np.dtype(np.float64))
        self.changes = make_changes(self.block, m)
        wanted = getattr(loss, "k", 1) + 5
        # Where nearly all classes are always in play, active passes save nothing.
        is_sparse = getattr(loss, "has_sparse_duals", False)
        self.use_active = options.active and is_sparse and m > 2 * wanted
        self.candidates = make_candidates(n, wanted if self.use_active else 0)
        self.seconds: dict[str, float] = defaultdict(float)
        self.history: list[Check] = []
        self.n_passes = 0
        self.is_certified = False
        self.start_time = time.perf_counter()
        if duals is None:
            self.duals = empty_duals(n, 4 * n + self.block * m)
            self.weights = np.zeros(problem.shape, problem.dtype)
            self.dual = 0.0
        else:
            self.duals = Duals._make(part.copy() for part in duals)  # The earlier result stays.
            exact = rebuild_weights(problem.rows, problem.examples, duals, problem.shape)
            self.weights = exact.astype(problem.dtype)
            dual_sum = float(sum_of_dual_values(loss, problem.examples, duals))
            self.dual = dual_sum - 0.5 * float(np.vdot(exact, exact))

    @contextmanager
    def _timed(self, what: str) -> Any:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[what] += time.perf_counter() - start

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.start_time

    def full_pass(self) -> float:
        """Step on all classes of all examples; return an estimate of the primal objective."""
        self.is_certified = False
        order = self.rng.permutation(self.members)
        sums = np.zeros(2)
        if self.problem.is_sparse:
            self._sequential(order, sums)
        else:
            self._blocks(order, sums)
        self.dual += float(sums[0])
        self.n_passes += 1
        return float(sums[1]) + 0.5 * float(np.vdot(self.weights, self.weights))

    def _sequential(self, order: NDArray[np.int64], sums: Floats) -> None:
        for start in range(0, order.size, self.block):
            self.duals = with_room(self.duals, self.block * self.problem.m)
            sequential_pass(
                self.loss,
                self.problem.rows,
                self.weights,
                order[start : start + self.block],
                self.problem.examples,
                self.duals,
                self.candidates,
                self.changes,
                self.scratch,
                sums,
            )

    def _blocks(self, order: NDArray[np.int64], sums: Floats) -> None:
        rows, m, dtype = self.problem.rows, self.problem.m, self.problem.dtype
        x_buffer = np.empty((self.block, self.problem.d), dtype)
        score_buffer = np.empty((self.block, m), dtype)
        for start in range(0, order.size, self.block):
            index = order[start : start + self.block]
            self.duals = with_room(self.duals, self.block * m)
            with self._timed("products"):
                x, scores = x_buffer[: index.size], score_buffer[: index.size]
                gather_rows(rows.x, rows.bias, index, x)  # type: ignore[union-attr]
                np.dot(x, self.weights.T, out=scores)
                gram = np.dot(x, x.T)
            with self._timed("steps"):
                block_pass(
                    self.loss,
                    scores,
                    gram,
                    index,
                    self.problem.examples,
                    self.duals,
                    self.candidates,
                    self.changes,
                    self.scratch,
                    sums,
                )
            with self._timed("updates"):
                add_changes(self.weights, x, self.changes, index.size)

    def active_pass(self, least: float = 0.0) -> float:
        """Step on the classes in play of all examples; return the gain in the dual.

        Examples whose step gains less than `least` are left alone until the next full pass.
        """
        self.is_certified = False
        order = self.rng.permutation(self.members)
        sums = np.zeros(2)
        with self._timed("active"):
            for start in range(0, order.size, SEGMENT):
                segment = order[start : start + SEGMENT]
                in_play = self.duals.count[segment] + self.candidates.count[segment]
                self.duals = with_room(self.duals, int(in_play.sum()))
                active_pass(
                    self.loss,
                    self.problem.rows,
                    self.weights,
                    segment,
                    self.problem.examples,
                    self.duals,
                    self.candidates,
                    self.changes,
                    self.scratch,
                    least,
                    sums,
                )
        self.dual += float(sums[0])
        self.n_passes += 1
        return float(sums[0])

    def certify(self, average: Floats | None = None) -> Certificate:
        """Rebuild the weights from the duals and certify them, or the `average` in their stead.

        The dual objective converges before the primal one, which jumps about as the examples are
        visited: the average of the weights over the last passes is a better model for them.
        """
        problem = self.problem
        with self._timed("certificates"):
            exact = rebuild_weights(problem.rows, problem.examples, self.duals, problem.shape)
            self.weights = exact.astype(problem.dtype)
            model = (exact if average is None else average).astype(problem.dtype)
            certificate = certify(
                self.loss,
                problem.rows,
                problem.examples,
                self.duals,
                model,
                exact,
                self.wide_scratch,
            )
        self.dual = certificate.dual
        self.certified = model, certificate
        self.is_certified = True
        self.history.append(
            Check(
                self.n_passes,
                self.elapsed,
                certificate.primal,
                certificate.dual,
                certificate.gap,
            )
        )
        return certificate

    def run(self, report: Report | None = None) -> Result:
        """Run until the gap is within tol, or the budget is used up, or Ctrl-C."""
        status = Status.INTERRUPTED
        with suppress(KeyboardInterrupt):
            status = self._run(report)
        if not self.is_certified:
            self.certify()
        weights, certificate = self.certified
        if certificate.relative_gap <= self.options.tol:
            status = Status.SOLVED
        return Result(
            self.problem.coefficients(weights),
            certificate,
            self.duals,
            self.history,
            self.n_passes,
            status,
            dict(self.seconds),
        )

    def _run(self, report: Report | None) -> Status:
        tol = self.options.tol
        hope = 0.6 if self.use_active else 1.0  # By what active passes and averaging lower the gap.
        while True:
            primal = self.full_pass()
            gap = primal - self.dual
            relative = gap / max(abs(primal), TINY)
            if report is not None:
                report(self.n_passes, self.elapsed, relative)
            average = self._active_passes(gap) if self.use_active else None
            if hope * relative <= tol:
                certificate = self.certify(average)
                if certificate.relative_gap <= tol:
                    return Status.SOLVED
                # The estimate was too hopeful: ask for as much more as it was wrong by.
                hope = max(hope, min(4.0 * hope, 1.1 * certificate.gap / max(gap, TINY)))
            if self.n_passes >= self.options.max_iter:
                return Status.MAX_ITER
            if self.elapsed >= self.options.max_time:
                return Status.MAX_TIME

    def _active_passes(self, gap: float) -> Floats | None:
        """Make active passes while they pay; return the average of the weights after them."""
        least = LEAST_GAIN * gap / max(self.members.size, 1)
        total = np.zeros(self.weights.shape)
        for done in range(1, self.options.max_active + 1):
            if self.n_passes >= self.options.max_iter or self.elapsed >= self.options.max_time:
                return total / (done - 1) if done > 1 else None
            gain = self.active_pass(least)
            total += self.weights
            gap -= gain
            if gain <= 1e-3 * max(gap, 0.0):
                break
        return total / done
