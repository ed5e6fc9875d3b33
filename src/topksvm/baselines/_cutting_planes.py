r"""Structural SVMs with one slack by cutting planes, for one C or a path of them.

.. math::
    \min_w \; \tfrac12 \|w\|^2 + C R(w), \qquad
    R(w) = \max_{\bar y} \; \Delta(\bar y) + \langle w, \Psi(\bar y) - \Psi(y) \rangle

Planes from below approximate ``R`` (Joachims, Finley, Yu 2009). As in OCAS (Franc, Sonnenburg
2008), a line search from the best weights so far to the optimum of the planes makes the primal
fall, and the next plane is taken near the new best weights, which saves most of the iterations.
Along the line scores are linear, so a trial there costs a sort and no product with the data.

No line may lead down from the start, where all weights are 0, although the optimum lies elsewhere:
the planes must first tell the steepest way. Zero may be within the tolerance then, but it ranks
nothing, so the model is the optimum of the planes, as it is in SVM^perf, and must be so, too.

References
----------
T. Joachims, T. Finley, C.-N. Yu, "Cutting-Plane Training of Structural SVMs", Machine Learning
77, 2009. V. Franc, S. Sonnenburg, "Optimized Cutting Plane Algorithm for SVMs", ICML 2008.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm._clock import Clock
from topksvm._numba import kernel
from topksvm.baselines._labellings import PERCENT, Labelling
from topksvm.baselines._line_search import Line, Tangent, search_line
from topksvm.baselines._planes import Planes
from topksvm.baselines._reduction import Reduction
from topksvm.solvers import Certificate

Floats = NDArray[np.floating[Any]]

AHEAD = 0.1
"""How far from the best weights to the optimum of the planes the next plane is taken."""
QP_SHARE, LINE_SHARE = 0.02, 0.05
"""The quadratic program, and the line search, are solved to this share of the last gap."""
FINEST = 1e-6
"""The smallest factor of these shares, tried before a solution is given up as the best possible."""


@dataclass(frozen=True)
class Stopping:
    """When to stop.

    Attributes
    ----------
    tol : float
        At this relative duality gap.
    epsilon : float
        Also when the gap is at most ``C * epsilon``, the criterion of SVM^perf.
    max_iter : int
        The most planes to find.
    """

    tol: float = 1e-3
    epsilon: float = 0.0
    max_iter: int = 2000

    def met(self, certificate: Certificate, C: float) -> bool:
        """Return whether the gap is small enough."""
        return certificate.relative_gap <= self.tol or certificate.gap <= C * self.epsilon


@dataclass
class Solution:
    """Weights of shape ``(columns, d)`` for one `C`, and what is known about them.

    `has_descended` tells whether any weights were found whose objective is below that of 0.
    """

    C: float
    weights: Floats
    certificate: Certificate
    n_iter: int
    converged: bool
    has_descended: bool
    history: list[dict[str, Any]] = field(default_factory=list)


def svm_perf_path(
    reduction: Reduction, Cs: Iterable[float], stopping: Stopping
) -> Iterator[Solution]:
    """Yield the solution for each `C`; planes and weights of one are the start of the next.

    A plane does not depend on `C`, so a path needs few more than its last point alone. Ascending
    `Cs` are best: the multipliers of the last stay feasible.
    """
    planes = Planes(reduction.width, reduction.dtype)
    if (normal := reduction.first_normal()) is not None:
        planes.add(normal, PERCENT)
    best = _Point.at(reduction, np.zeros(reduction.width))
    for C in Cs:
        solution, best = _solve(reduction, planes, best, float(C), stopping)
        yield solution


@dataclass
class _Point:
    """Weights, their scores, and the most violated labelling there."""

    weights: Floats
    scores: Floats
    labelling: Labelling

    @classmethod
    def at(cls, reduction: Reduction, weights: Floats) -> _Point:
        """Return the point, anew from the data in float64."""
        scores = reduction.exact_scores(weights)
        return cls(weights, scores.astype(reduction.dtype, copy=False), reduction.worst(scores))

    @property
    def is_start(self) -> bool:
        return not self.weights.any()

    def primal(self, C: float) -> float:
        return 0.5 * float(self.weights @ self.weights) + C * max(0.0, self.labelling.violation)


def _solve(
    reduction: Reduction, planes: Planes, best: _Point, C: float, stopping: Stopping
) -> tuple[Solution, _Point]:
    clock = Clock()
    history: list[dict[str, Any]] = []
    gap, step, lower, finer, model = best.primal(C), 1.0, -np.inf, 1.0, best
    for iteration in range(1, stopping.max_iter + 1):
        planes.solve(C, finer * QP_SHARE * gap)
        weights = planes.weights()
        lower = max(lower, planes.dual(weights))
        scores = reduction.scores(weights)
        tol = finer * LINE_SHARE * gap
        best, step = _towards(reduction, best, weights, scores, C, step, tol)
        model = _model(reduction, best, model, weights, scores, C)
        certificate = Certificate(model.primal(C), lower)
        gap = certificate.gap
        history.append(
            {
                "iteration": iteration,
                "seconds": clock.elapsed,
                "primal": certificate.primal,
                "dual": certificate.dual,
                "gap": gap,
                "planes": planes.count,
            }
        )
        is_last = iteration == stopping.max_iter
        if is_last or stopping.met(certificate, C):
            # Scores are summed up along the lines, so rounding may have crept in.
            model = _Point.at(reduction, model.weights)
            certificate = Certificate(model.primal(C), lower)
            best = best if best.is_start else model
            if is_last or stopping.met(certificate, C):
                break
        if not _add_plane(reduction, planes, best, scores):
            # The planes are exact here, so the gap is that of the inner solutions.
            finer *= 0.01
            if finer < FINEST:
                model = _Point.at(reduction, model.weights)
                certificate = Certificate(model.primal(C), lower)
                break
    return Solution(
        C,
        model.weights.reshape(reduction.columns, -1),
        certificate,
        iteration,
        stopping.met(certificate, C),
        not best.is_start,
        history,
    ), best


def _model(
    reduction: Reduction, best: _Point, last: _Point, weights: Floats, scores: Floats, C: float
) -> _Point:
    """Return the best point that is not the start: of the line, or else of the planes' optima."""
    if not best.is_start:
        return best
    optimum = _Point(weights, scores, reduction.worst(scores))
    return optimum if last.is_start or optimum.primal(C) < last.primal(C) else last


def certify(reduction: Reduction, weights: Floats, C: float, dual: float) -> Certificate:
    """Return the certificate of the weights, anew from the data in float64."""
    return Certificate(_Point.at(reduction, weights).primal(C), dual)


def _towards(
    reduction: Reduction,
    best: _Point,
    weights: Floats,
    scores: Floats,
    C: float,
    step: float,
    tol: float,
) -> tuple[_Point, float]:
    """Return the best point found between `best` and `weights`, and how far it is."""
    direction, trial = weights - best.weights, np.empty_like(scores)
    line = Line(
        0.5 * float(best.weights @ best.weights),
        float(best.weights @ direction),
        float(direction @ direction),
        C,
    )
    labellings: dict[float, Labelling] = {}

    def tangent(at: float, labelling: Labelling) -> Tangent:
        labellings[at] = labelling
        if labelling.violation <= 0.0:
            return Tangent(at, 0.0, 0.0)
        margins = [reduction.truth.margin(labelling, ends) for ends in (best.scores, scores)]
        return Tangent(at, labelling.violation, margins[0] - margins[1])

    def risk(at: float) -> Tangent:
        return tangent(at, reduction.worst(_between(trial, best.scores, scores, at)))

    found = search_line(line, tangent(0.0, best.labelling), risk, step, tol)
    if found == 0.0:
        return best, step
    there = _between(trial, best.scores, scores, found)
    return _Point(best.weights + found * direction, there, labellings[found]), found


def _between(out: Floats, first: Floats, second: Floats, share: float) -> Floats:
    """Return `first`, plus a share of the way to `second`, in `out`."""
    mix(out, first, second, out.dtype.type(share))
    return out


def _add_plane(reduction: Reduction, planes: Planes, best: _Point, scores: Floats) -> bool:
    """Add a plane that the optimum of the planes violates; return False if there is none."""
    slack, trial = planes.slack(), np.empty_like(scores)
    for share in (AHEAD, 1.0):
        labelling = reduction.worst(_between(trial, best.scores, scores, share))
        # Below rounding the plane is there already, and the same step would be made for ever.
        if labelling.loss - reduction.truth.margin(labelling, scores) > slack + 1e-13 * (
            1.0 + abs(slack)
        ):
            planes.add(reduction.normal(labelling), labelling.loss)
            return True
    return False


@kernel
def mix(out, first, second, share):
    """Set ``out = first + share (second - first)``."""
    for entry in range(out.size):
        out[entry] = first[entry] + share * (second[entry] - first[entry])
