r"""Structural SVMs with one slack by cutting planes, for one C or a path of them.

.. math::
    \min_w \; \tfrac12 \|w\|^2 + C R(w), \qquad
    R(w) = \max_{\bar y} \; \Delta(\bar y) + \langle w, \Psi(\bar y) - \Psi(y) \rangle

Planes from below approximate ``R`` (Joachims, Finley, Yu 2009). As in OCAS (Franc, Sonnenburg
2008), a line search from the best weights so far to the optimum of the planes makes the primal
fall, and the next plane is taken near the new best weights, which saves most of the iterations.
Along the line scores are linear, so a trial there costs a sort and no product with the data.

References
----------
T. Joachims, T. Finley, C.-N. Yu, "Cutting-Plane Training of Structural SVMs", Machine Learning
77, 2009. V. Franc, S. Sonnenburg, "Optimized Cutting Plane Algorithm for SVMs", ICML 2008.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from topksvm.baselines._labellings import PERCENT, Labelling, Measure, Truth, most_violated
from topksvm.baselines._line_search import Line, Tangent, search_line
from topksvm.baselines._planes import Planes
from topksvm.solvers._certificate import Certificate

Floats = NDArray[np.float64]

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
    """Weights of shape ``(columns, d)`` for one `C`, and what is known about them."""

    C: float
    weights: Floats
    certificate: Certificate
    n_iter: int
    converged: bool
    history: list[dict[str, Any]] = field(default_factory=list)


class Reduction:
    """The binary problem with an entry for each row of X and each column of weights.

    Entry ``i * columns + j`` has the score ``<w_j, x_i>``. With a column per class it is the
    multiclass reduction, where ``(i, y_i)`` is positive; with one column it is a class against the
    others. The features of the entries are never formed.
    """

    def __init__(self, X: Any, positives: NDArray[np.intp], columns: int, measure: Measure) -> None:
        self.X = X
        self.columns = columns
        self.truth = Truth(positives, X.shape[0] * columns)
        self.measure = measure

    @property
    def width(self) -> int:
        """The number of weights."""
        return self.columns * int(self.X.shape[1])

    def scores(self, weights: Floats) -> Floats:
        """Return the scores of all entries."""
        scores = self.X @ weights.reshape(self.columns, -1).T
        return np.ascontiguousarray(scores, dtype=np.float64).ravel()

    def worst(self, scores: Floats) -> Labelling:
        """Return the most violated labelling."""
        return most_violated(scores, self.truth, self.measure)

    def normal(self, labelling: Labelling) -> Floats:
        """Return ``Psi(truth) - Psi(labelling)``."""
        entries = np.concatenate([labelling.missed, labelling.false])
        unit = self.truth.unit
        signs = np.repeat([unit, -unit], [labelling.missed.size, labelling.false.size])
        row, column = np.divmod(entries, self.columns)
        coefficients = sp.csr_array((signs, (column, row)), (self.columns, self.X.shape[0]))
        product = coefficients @ self.X
        return np.asarray(product.toarray() if sp.issparse(product) else product).ravel()

    def first_normal(self) -> Floats | None:
        """Return the mean normal of labellings that miss all positives, if the measure allows them.

        They predict as many negatives as there are positives, or as the measure asks for. Their
        mean is a valid plane with the full loss, in a direction that is of use from the start.
        """
        truth, size = self.truth, self.measure.size
        if not self.measure.exactly:
            limit = min if self.measure.recall else max
            size = limit(size, truth.positives.size)
        if size > truth.n_negatives:
            return None
        signs = truth.unit * np.where(truth.is_negative, -size / truth.n_negatives, 1.0)
        return np.asarray(signs.reshape(-1, self.columns).T @ self.X).ravel()

    def risk(self, weights: Floats) -> float:
        """Return the largest violation; that of the truth is 0."""
        return max(0.0, self.worst(self.scores(weights)).violation)


def svm_perf_path(
    reduction: Reduction, Cs: Iterable[float], stopping: Stopping
) -> Iterator[Solution]:
    """Yield the solution for each `C`; planes and weights of one are the start of the next.

    A plane does not depend on `C`, so a path needs few more than its last point alone. Ascending
    `Cs` are best: the multipliers of the last stay feasible.
    """
    planes = Planes(reduction.width)
    if (normal := reduction.first_normal()) is not None:
        planes.add(normal, PERCENT)
    best = _Point.zero(reduction)
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
    def zero(cls, reduction: Reduction) -> _Point:
        scores = np.zeros(reduction.truth.is_negative.size)
        return cls(np.zeros(reduction.width), scores, reduction.worst(scores))

    def primal(self, C: float) -> float:
        return 0.5 * float(self.weights @ self.weights) + C * max(0.0, self.labelling.violation)


def _solve(
    reduction: Reduction, planes: Planes, best: _Point, C: float, stopping: Stopping
) -> tuple[Solution, _Point]:
    start = time.perf_counter()
    history: list[dict[str, Any]] = []
    gap, step, lower, finer = best.primal(C), 1.0, -np.inf, 1.0
    for iteration in range(1, stopping.max_iter + 1):
        planes.solve(C, finer * QP_SHARE * gap)
        weights = planes.weights()
        lower = max(lower, planes.dual(weights))
        scores = reduction.scores(weights)
        tol = finer * LINE_SHARE * gap
        best, step = _towards(reduction, best, weights, scores, C, step, tol)
        certificate = Certificate(best.primal(C), lower)
        gap = certificate.gap
        history.append(
            {
                "iteration": iteration,
                "seconds": time.perf_counter() - start,
                "primal": certificate.primal,
                "dual": certificate.dual,
                "gap": gap,
                "planes": planes.count,
            }
        )
        if stopping.met(certificate, C) or iteration == stopping.max_iter:
            break
        if not _add_plane(reduction, planes, best, scores):
            # The planes are exact here, so the gap is that of the inner solutions.
            finer *= 0.01
            if finer < FINEST:
                break
    certificate = certify(reduction, best.weights, C, lower)
    return Solution(
        C,
        best.weights.reshape(reduction.columns, -1),
        certificate,
        iteration,
        stopping.met(certificate, C),
        history,
    ), best


def certify(reduction: Reduction, weights: Floats, C: float, dual: float) -> Certificate:
    """Return the certificate of the weights, anew from the data.

    During training scores are summed up along the lines, so rounding may have crept in.
    """
    return Certificate(0.5 * float(weights @ weights) + C * reduction.risk(weights), dual)


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
    direction, change = weights - best.weights, scores - best.scores
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
        return Tangent(at, labelling.violation, -reduction.truth.margin(labelling, change))

    def risk(at: float) -> Tangent:
        return tangent(at, reduction.worst(best.scores + at * change))

    found = search_line(line, tangent(0.0, best.labelling), risk, step, tol)
    if found == 0.0:
        return best, step
    return _Point(
        best.weights + found * direction, best.scores + found * change, labellings[found]
    ), found


def _add_plane(reduction: Reduction, planes: Planes, best: _Point, scores: Floats) -> bool:
    """Add a plane that the optimum of the planes violates; return False if there is none."""
    slack = planes.slack()
    for share in (AHEAD, 1.0):
        labelling = reduction.worst((1.0 - share) * best.scores + share * scores)
        # Below rounding the plane is there already, and the same step would be made for ever.
        if labelling.loss - reduction.truth.margin(labelling, scores) > slack + 1e-13 * (
            1.0 + abs(slack)
        ):
            planes.add(reduction.normal(labelling), labelling.loss)
            return True
    return False
