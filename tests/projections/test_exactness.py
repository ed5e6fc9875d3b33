"""Every projection against its optimality conditions, the reference and a QP solver."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from projections.cases import KINDS, RHOS, generate
from projections.kkt import knapsack_residual, topk_residual
from topksvm.projections import (
    project_capped_simplex,
    project_knapsack,
    project_simplex,
    project_topk_cone,
    project_topk_simplex,
    reference,
)

TOLERANCE = {np.float64: 1e-9, np.float32: 1e-4}
# The distance between denormal numbers: no entry of a result can be nearer than half of it.
STEP = {np.float64: 5e-324, np.float32: 1.4e-45}


def _scale(a, length=0.0):
    return float(max(np.abs(a).max(), length))


def _check_all(kind, a, k, r, rho):
    """Assert the optimality conditions of all projections of `a`."""
    dtype = a.dtype.type
    cap = r / k

    def check(name, residual, x, *args, scale, **options):
        allowed = TOLERANCE[dtype] * scale + STEP[dtype] * a.size * (1 + rho)
        found = residual(a, x, *args, enough=allowed, **options)
        assert found <= allowed, (name, kind, a.size, k, r, rho, found / scale)

    scale = float(np.abs(a).max())
    bias = {"rho": rho, "scale": scale}
    check("cone", topk_residual, project_topk_cone(a, k, rho=rho), k, **bias)
    check("topk simplex", topk_residual, project_topk_simplex(a, k, r, rho=rho), k, r, **bias)
    x = project_capped_simplex(a, k, r, rho=rho)
    check("capped simplex", knapsack_residual, x, r, 0.0, cap, **bias)
    check("simplex", knapsack_residual, project_simplex(a, r, rho=rho), r, 0.0, np.inf, **bias)

    lo, hi = -0.4 * r / a.size, 2.5 * r / a.size
    x = project_knapsack(a, r, lo, hi, rho=rho)
    check("knapsack", knapsack_residual, x, r, lo, hi, rho=rho, scale=max(scale, hi))
    # With equality the radius must be met even if the input is far smaller than it.
    equal = {"equality": True, "scale": max(scale, r)}
    x = project_simplex(a, r, equality=True)
    check("simplex =", knapsack_residual, x, r, 0.0, np.inf, **equal)
    x = project_knapsack(a, r, lo, hi, equality=True)
    check("knapsack =", knapsack_residual, x, r, lo, hi, **equal)


# In single precision only the search for candidates differs: the rest is float64 in both.
@pytest.mark.parametrize(("dtype", "enough"), [(np.float64, 20_000), (np.float32, 4_000)])
def test_optimality_conditions_hold_on_random_cases(dtype, enough):
    n_per_kind = -(-enough // len(KINDS))
    cases = 0
    for case in generate(n_per_kind, seed=1, dtype=dtype):
        _check_all(*case)
        cases += 1
    assert cases >= enough


@pytest.mark.parametrize("d", [512, 2047, 2048, 2113, 5000])
@pytest.mark.parametrize("kind", KINDS)
def test_optimality_conditions_hold_in_long_vectors(kind, d):
    rng = np.random.default_rng(d)
    for k in (1, 5, 12, 13, 40, d // 3, d):
        for r in (1e-3, 1.0, 1e4):
            _check_all(kind, KINDS[kind](rng, d), k, r, rho=RHOS[k % 4])


def test_agrees_with_the_exhaustive_search_of_the_paper():
    regimes = set()
    for kind, a, k, r, rho in generate(60, seed=2):
        with np.errstate(under="ignore"):
            tolerance = 1e-12 * _scale(a) + 1e-320
            expected = reference.topk_cone(a, k, rho=rho)
            np.testing.assert_allclose(
                project_topk_cone(a, k, rho=rho), expected, rtol=0, atol=tolerance, err_msg=kind
            )
            expected = reference.topk_simplex(a, k, r, rho=rho)
            regimes.add("zero" if not expected.any() else expected.sum() < 0.999 * r)
            np.testing.assert_allclose(
                project_topk_simplex(a, k, r, rho=rho),
                expected,
                rtol=0,
                atol=tolerance,
                err_msg=kind,
            )
    assert regimes == {"zero", True, False}  # The cone and the knapsack branch both occurred.


def test_knapsack_agrees_with_the_search_over_breakpoints():
    for kind, a, _, r, rho in generate(40, seed=3):
        if kind == "denormal":
            continue
        for lo, hi, equality in ((0.0, r, False), (0.0, np.inf, True), (-0.1 * r, r, False)):
            if r < a.size * lo:
                continue
            np.testing.assert_allclose(
                project_knapsack(a, r, lo, hi, equality=equality, rho=rho),
                reference.knapsack(a, r, lo, hi, equality=equality, rho=rho),
                rtol=0,
                atol=1e-12 * _scale(a, r),
                err_msg=f"{kind} {lo} {hi} {equality}",
            )


def _solve_qp(a, rho, constraints):
    x = cp.Variable(a.size)
    objective = cp.sum_squares(a - x) / 2 + rho / 2 * cp.square(cp.sum(x))
    problem = cp.Problem(cp.Minimize(objective), constraints(x))
    for tolerance in (1e-13, 1e-12, 1e-11):  # As tight as Clarabel can do.
        try:
            problem.solve(
                solver=cp.CLARABEL,
                tol_gap_abs=tolerance,
                tol_gap_rel=tolerance,
                tol_feas=tolerance,
            )
        except cp.SolverError:
            continue
        if problem.status == cp.OPTIMAL:
            return x.value
    raise AssertionError("Clarabel failed")


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
def test_agrees_with_clarabel(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 25))
    k = int(rng.integers(1, d + 1))
    r = float(10 ** rng.uniform(-1, 1.5))
    rho = RHOS[seed % 4]
    a = rng.standard_normal(d) + rng.choice([0.0, 1.0])
    if seed % 5 == 0:
        a = np.round(a)

    def agree(x, constraints):
        np.testing.assert_allclose(x, _solve_qp(a, rho, constraints), rtol=0, atol=1e-6)

    agree(project_topk_cone(a, k, rho=rho), lambda x: [x >= 0, k * x <= cp.sum(x)])
    agree(
        project_topk_simplex(a, k, r, rho=rho),
        lambda x: [x >= 0, k * x <= cp.sum(x), cp.sum(x) <= r],
    )
    agree(
        project_capped_simplex(a, k, r, rho=rho),
        lambda x: [x >= 0, x <= r / k, cp.sum(x) <= r],
    )
    agree(project_simplex(a, r, rho=rho), lambda x: [x >= 0, cp.sum(x) <= r])
    agree(project_simplex(a, r, equality=True), lambda x: [x >= 0, cp.sum(x) == r])
    lo, hi = -0.5 * r / d, 1.5 * r / d
    agree(
        project_knapsack(a, r, lo, hi, rho=rho),
        lambda x: [x >= lo, x <= hi, cp.sum(x) <= r],
    )
    agree(
        project_knapsack(a, r, lo, hi, equality=True),
        lambda x: [x >= lo, x <= hi, cp.sum(x) == r],
    )


@pytest.mark.parametrize("scale", [1.0, 1e2, 1e6, 1e12])
def test_cone_projection_of_tied_entries_is_not_zero(scale):
    """The authors' code returns 0 from a scale of 100 on: its tolerance is absolute."""
    x = project_topk_cone(np.full(6, scale), 3)
    np.testing.assert_allclose(x, np.full(6, scale), rtol=1e-15)


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e12])
@pytest.mark.parametrize("k", [1, 3, 7])
def test_the_radius_is_met_however_large_the_entries(offset, k):
    a = offset + np.array([3.0, 2.5, 2.0, 2.0, 1.0, 0.5, 0.25, -1.0])
    r = 1e-6
    for x in (
        project_topk_simplex(a, k, r),
        project_capped_simplex(a, k, r),
        project_simplex(a, r, equality=True),
    ):
        np.testing.assert_allclose(x.sum(), r, rtol=1e-14)


@pytest.mark.parametrize("magnitude", [1e307, 1e-310])
def test_extreme_magnitudes_neither_overflow_nor_lose_digits(magnitude):
    a = np.array([5.0, 4.0, 2.0, -3.0, 1.0])
    for k in (1, 2, 5):
        np.testing.assert_allclose(
            project_topk_cone(a * magnitude, k, rho=1.0),
            project_topk_cone(a, k, rho=1.0) * magnitude,
            rtol=1e-12,
        )
        np.testing.assert_allclose(
            project_topk_simplex(a * magnitude, k, 3 * magnitude),
            project_topk_simplex(a, k, 3.0) * magnitude,
            rtol=1e-12,
        )
