"""Whether a certificate holds in exact arithmetic."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field

import numpy as np
from flint import fmpq, fmpq_mat
from scipy.optimize import minimize_scalar

import topksvm
from exact.arithmetic import ExactProblem, fmpq_float, rational, rational_matrix
from exact.problems import Problem
from exact.values import ENTROPIES


@dataclass
class Verdict:
    """What is wrong with a certificate, by how much of the objective; nothing if it holds."""

    violations: dict[str, float] = field(default_factory=dict)
    proven: bool = False  # the claimed dual is at most the exact dual objective
    infeasible: float = 0.0  # of the duals, as a part of C

    def __str__(self):
        return ", ".join(f"{name} by {size:.1e}" for name, size in self.violations.items())


class Refused(Exception):  # noqa: N818
    """The library said why it does not solve a problem."""


def solve(problem: Problem, **changes) -> topksvm.solvers.Result:
    """Solve a problem with one thread; a ValueError with a message is a refusal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return topksvm.solve(
                problem.X,
                problem.y,
                C=problem.C,
                **problem.definition,
                **{**problem.run, "n_jobs": 1, **changes},
            )
        except ValueError as error:
            if not str(error):
                raise
            raise Refused(str(error)) from error


def examine(problem: Problem) -> Verdict:
    """Solve a problem and judge the certificate of the result."""
    result = solve(problem)
    verdict = judge(problem, result)
    claim = result.certificate
    if result.status == "solved" and not claim.relative_gap <= problem.run["tol"]:
        verdict.violations["solved above tol"] = claim.relative_gap
    return verdict


def judge(problem: Problem, result) -> Verdict:
    """Compare a claimed certificate with exact values.

    ``primal`` must be at least the objective at the weights, ``dual`` at most the optimum, and the
    gap at least the difference of the objective and the dual objective at the duals.
    """
    claim = result.certificate
    numbers = (claim.primal, claim.dual, claim.gap, claim.relative_gap)
    if not np.isfinite(numbers).all() or not np.isfinite(result.weights).all():
        return Verdict({"not finite": math.inf})
    exact = ExactProblem(problem.X, problem.y, C=problem.C, **problem.definition)
    verdict = Verdict()
    W = rational_matrix(result.weights)
    primal = exact.primal(W)
    scale = max(abs(primal.upper), abs(rational(claim.dual)), fmpq(1, 10**300))

    def hold(name, excess):
        if excess > 0:
            verdict.violations[name] = max(fmpq_float(excess / scale), 5e-324)

    hold("primal too small", primal.lower - rational(claim.primal))
    duals = _duals(exact, result, W, verdict)
    lower = exact.dual(duals) if duals else None
    verdict.proven = lower is not None and rational(claim.dual) <= lower.upper
    if not verdict.proven:
        best = best_upper_bound(problem, exact, W, duals)
        hold("dual above the optimum", rational(claim.dual) - best)
    if result.duals is not None:
        gap = primal.lower - lower.upper
        hold("dual above that of the duals", rational(claim.dual) - lower.upper)
        hold("gap too small", gap - rational(claim.gap))
        size = max(abs(primal.upper), abs(lower.lower))
        if size:
            hold("relative gap too small", (gap / size - rational(claim.relative_gap)) * scale)
    return verdict


def _duals(exact, result, W, verdict):
    """Return feasible duals, of the result or from the gradient, if the loss has one."""
    if result.duals is not None:
        duals, verdict.infeasible = exact.duals(result.duals)
        return duals
    return exact.gradient_duals(W) if exact.gamma or exact.loss in ENTROPIES else None


def best_upper_bound(problem: Problem, exact: ExactProblem, W: fmpq_mat, duals) -> fmpq:
    """Return the exact objective at the best weights that a few attempts find."""
    points = [W]
    if duals is not None:
        points.append(exact.weights(duals))
    for solver in _solvers(problem):
        run = {"solver": solver, "seed": 1234, "tol": 1e-14, "max_iter": 1000}
        try:
            points.append(rational_matrix(solve(problem, **run).weights))
        except (Refused, ArithmeticError, ValueError, OverflowError):
            continue
    best = min(points, key=lambda point: exact.primal(point).upper)
    return min(exact.primal(best).upper, _scaled(exact, best), _between(exact, points))


def _solvers(problem):
    loss, smoothing = problem.definition["loss"], problem.definition["smoothing"]
    if loss == "topk_entropy":
        return ["lbfgs"]
    return ["sdca", "lbfgs"] if smoothing or loss == "softmax" else ["sdca"]


def _scaled(exact, W):
    """Return the least objective at multiples of `W`."""
    return _least(lambda t: exact.primal(W * rational(t)).upper, 0.5, 2.0)


def _between(exact, points):
    """Return the least objective between the two best points."""
    first, second = sorted(points, key=lambda point: exact.primal(point).upper)[:2]
    step = second - first
    return _least(lambda t: exact.primal(first + step * rational(t)).upper, 0.0, 1.0)


def _least(objective, low, high):
    """Minimise over a scalar; floats steer, the rational value decides."""
    least = objective(low)

    def steered(t):
        nonlocal least
        value = objective(t)
        least = min(least, value)
        return fmpq_float(value - base)

    base = least
    minimize_scalar(steered, bounds=(low, high), method="bounded", options={"maxiter": 12})
    return least
