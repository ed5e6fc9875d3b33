"""The judge itself: against a convex solver, brute force and identities, and with false claims."""

from __future__ import annotations

from itertools import combinations
from types import SimpleNamespace

import cvxpy as cp
import numpy as np
import pytest
from flint import fmpq

from exact.arithmetic import ExactProblem, fmpq_float, rational, rational_matrix
from exact.judge import judge, solve
from exact.problems import HINGES, LOSSES, Problem, make_problem
from exact.values import ZERO, entropy, hinge, is_feasible, make_feasible, project, smoothed_hinge

KS = (1, 2, 4)


def margins(seed, size=4, scale=2.0):
    return [rational(v) for v in np.random.default_rng(seed).normal(0.3, scale, size)]


def floats(values):
    return np.array([fmpq_float(v) for v in values])


def domain(loss, b, k, r=1.0):
    """Return the constraints of the page on the maths, for a convex solver."""
    total = cp.sum(b)
    rules = [b >= 0, total <= r]
    if loss in ("topk_hinge_alpha", "topk_entropy"):
        rules.append(k * b <= total)
    if loss in ("topk_hinge_beta", "topk_hinge_full"):
        rules.append(k * b <= r)
    if loss == "topk_hinge_full":
        rules.append((k - 1) * b <= total)
    return rules


def maximum(loss, h, k, gamma):
    b = cp.Variable(len(h))
    value = floats(h) @ b - gamma / 2 * cp.sum_squares(b)
    if loss in ("softmax", "topk_entropy"):
        value = floats(h) @ b + cp.sum(cp.entr(b)) + cp.entr(1 - cp.sum(b))
    problem = cp.Problem(cp.Maximize(value), domain(loss, b, k))
    return problem.solve(solver=cp.CLARABEL)


@pytest.mark.parametrize("k", KS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("gamma", [0.0, 0.1, 3.0])
def test_a_loss_is_the_maximum_over_its_domain(loss, k, gamma):
    for seed in range(8):
        h = margins(seed)
        if loss in HINGES:
            own = smoothed_hinge(loss, h, k, rational(gamma)) if gamma else hinge(loss, h, k)
            own = fmpq_float(own)
        elif gamma:
            return
        else:
            k = 1 if loss == "softmax" else k
            ball = entropy(h, k)
            assert float(ball.rad()) < 1e-50
            own = float(ball)
        assert own == pytest.approx(maximum(loss, h, k, gamma), rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("k", KS)
@pytest.mark.parametrize("loss", HINGES)
def test_hinges_are_maxima_over_subsets(loss, k):
    for seed in range(20):
        h = terms = margins(seed)
        if loss == "topk_hinge_beta":
            terms = [max(v, ZERO) for v in h]
        elif loss == "topk_hinge_full":
            terms = [*h, ZERO]
        best = max(sum(part, ZERO) / k for part in combinations(terms, k))
        assert hinge(loss, h, k) == max(best, ZERO)


@pytest.mark.parametrize("loss", HINGES)
def test_for_k_1_all_hinges_are_the_same(loss):
    for seed in range(20):
        h, r = margins(seed), fmpq(seed + 1, 3)
        assert hinge(loss, h, 1) == max(*h, ZERO)
        assert project(loss, h, 1, r) == project("topk_hinge_beta", h, 1, r)


def test_the_losses_are_in_order():
    for seed in range(30):
        h, k = margins(seed), seed % 4 + 1
        alpha, beta, full = (hinge(loss, h, k) for loss in HINGES)
        assert alpha <= full <= beta <= hinge("topk_hinge_beta", h, 1)
        assert not entropy(h, k) > entropy(h, 1)


@pytest.mark.parametrize("loss", LOSSES)
def test_duals_are_made_feasible(loss):
    rng = np.random.default_rng(3)
    for _ in range(50):
        k = 1 if loss == "softmax" else int(rng.integers(1, 5))
        x = [rational(v) for v in rng.normal(0.2, 0.5, 4)]
        near = make_feasible(loss, x, k, fmpq(1))
        assert is_feasible(loss, near, k, fmpq(1))
        assert make_feasible(loss, near, k, fmpq(1)) is near


def test_extreme_margins():
    for h in ([fmpq(10**12), fmpq(-(10**12)), ZERO], [fmpq(-(10**12))] * 3):
        for k in (1, 2, 3):
            ball = entropy(h, k)
            assert float(ball.rad()) <= 1e-50 * max(1.0, abs(float(ball.mid())))


def an_easy_problem(loss, seed=0, smoothing=0.0, **run):
    rng = np.random.default_rng(seed)
    k = 1 if loss == "softmax" else 2
    definition = {
        "loss": loss,
        "k": k,
        "smoothing": smoothing,
        "n_classes": 4,
        "bias": 1.0,
    }
    run = {"solver": "auto", "tol": 1e-9, "max_iter": 2000, "seed": 0} | run
    X = rng.standard_normal((7, 3))
    return Problem(seed, X, rng.integers(0, 4, 7), 0.5, definition, run)


def optimum(problem):
    """Return the optimum by a convex solver, to eight digits or so."""
    W = cp.Variable((4, problem.X.shape[1] + 1))
    X = np.column_stack([problem.X, np.ones(len(problem.X))])
    k, total = problem.definition["k"], cp.sum_squares(W) / 2
    for x, label in zip(X, problem.y, strict=True):
        h = cp.hstack([(W[j] - W[label]) @ x for j in range(4) if j != label])
        total += problem.C * _loss(problem.definition["loss"], h, k)
    return cp.Problem(cp.Minimize(total)).solve(solver=cp.CLARABEL)


def _loss(loss, h, k):
    if loss == "topk_hinge_alpha":
        return cp.pos(cp.sum_largest(h + 1, k) / k)
    if loss == "topk_hinge_beta":
        return cp.sum_largest(cp.pos(h + 1), k) / k
    if loss == "topk_hinge_full":
        return cp.pos(cp.sum_largest(cp.hstack([h + 1, 0]), k) / k)
    return cp.log_sum_exp(cp.hstack([h, 0]))


@pytest.mark.parametrize("loss", [*HINGES, "softmax"])
def test_exact_values_enclose_the_optimum_of_a_convex_solver(loss):
    problem = an_easy_problem(loss, solver="sdca")
    result = solve(problem)
    exact = ExactProblem(problem.X, problem.y, C=problem.C, **problem.definition)
    primal = exact.primal(rational_matrix(result.weights))
    dual = exact.dual(exact.duals(result.duals)[0])
    best = optimum(problem)
    assert fmpq_float(dual.lower) <= best * (1 + 1e-6)
    assert fmpq_float(primal.upper) == pytest.approx(best, rel=1e-6)
    assert fmpq_float(dual.lower) == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("loss", LOSSES)
def test_weak_duality_holds_exactly_and_is_tight_at_the_gradient(loss, smoothing):
    smoothing = smoothing if loss in HINGES else 0.0
    problem = an_easy_problem(loss, 1, smoothing)
    exact = ExactProblem(problem.X, problem.y, C=problem.C, **problem.definition)
    rng = np.random.default_rng(0)
    W = rational_matrix(rng.standard_normal((4, 4)))
    raw = [[rational(v) for v in rng.random(3)] for _ in problem.y]
    duals = [make_feasible(loss, x, exact.k, c) for x, c in zip(raw, exact.C, strict=True)]
    assert exact.dual(duals).upper <= exact.primal(W).lower
    if smoothing or loss not in HINGES:
        # Fenchel's equality: P(W) - D(A) = 1/2 ||W - W(A)||^2 at the gradient.
        duals = exact.gradient_duals(W)
        rest = sum((v * v for v in (W - exact.weights(duals)).entries()), ZERO) / 2
        slack = exact.primal(W).upper - exact.dual(duals).lower - rest
        assert 0 <= slack < fmpq(1, 2**150)


def claim(result, primal, dual):
    gap = primal - dual
    relative = gap / max(abs(primal), abs(dual))
    certificate = SimpleNamespace(primal=primal, dual=dual, gap=gap, relative_gap=relative)
    return SimpleNamespace(weights=result.weights, duals=result.duals, certificate=certificate)


@pytest.mark.parametrize("solver", ["sdca", "lbfgs"])
@pytest.mark.parametrize("loss", LOSSES)
def test_false_claims_are_found(loss, solver):
    if loss == "topk_entropy":
        solver = "lbfgs"
    smoothing = 0.1 if solver == "lbfgs" and loss in HINGES else 0.0
    problem = an_easy_problem(loss, smoothing=smoothing, solver=solver)
    result = solve(problem)
    found = result.certificate
    honest = claim(result, found.primal * (1 + 1e-13), found.dual * (1 - 1e-13))
    assert not judge(problem, honest).violations
    lowered = claim(result, found.primal * (1 - 1e-12), honest.certificate.dual)
    assert "primal too small" in judge(problem, lowered).violations
    raised = claim(result, honest.certificate.primal, found.primal * (1 + 1e-12))
    assert "dual above the optimum" in judge(problem, raised).violations
    broken = claim(result, float("nan"), found.dual)
    assert "not finite" in judge(problem, broken).violations


def test_the_same_seed_gives_the_same_problem():
    for seed in range(20):
        assert str(make_problem(seed)) == str(make_problem(seed))
        assert make_problem(seed, "softmax", "float32", "csr").X.dtype == np.float32
