"""Bad input gets one clear error: what was wrong, the value, what is allowed."""

from __future__ import annotations

import numpy as np
import pytest

from topksvm.projections import (
    project_capped_simplex,
    project_knapsack,
    project_simplex,
    project_topk_cone,
    project_topk_simplex,
)

A = np.array([1.0, 2.0, 3.0])
FUNCTIONS = {
    "knapsack": project_knapsack,
    "simplex": project_simplex,
    "capped": lambda a, **kw: project_capped_simplex(a, 1, **kw),
    "cone": lambda a, **kw: project_topk_cone(a, 1, **kw),
    "topk": lambda a, **kw: project_topk_simplex(a, 1, **kw),
}
every_function = pytest.mark.parametrize("project", FUNCTIONS.values(), ids=FUNCTIONS)
every_radius = pytest.mark.parametrize(
    "project", [FUNCTIONS[n] for n in ("knapsack", "simplex", "capped", "topk")]
)
every_k = pytest.mark.parametrize(
    "project", [project_capped_simplex, project_topk_cone, project_topk_simplex]
)


@every_function
@pytest.mark.parametrize(
    ("a", "error", "message"),
    [
        ([], ValueError, r"empty, shape \(0,\)"),
        (np.empty((0, 3)), ValueError, r"empty, shape \(0, 3\)"),
        (np.empty((3, 0)), ValueError, r"empty, shape \(3, 0\)"),
        (1.0, ValueError, r"0 dimensions"),
        (np.zeros((2, 2, 2)), ValueError, r"3 dimensions, shape \(2, 2, 2\)"),
        ([1.0, np.nan], ValueError, r"contains nan \(entry 1\)"),
        ([[1.0, 2.0], [np.inf, 0.0]], ValueError, r"contains inf \(row 1, entry 0\)"),
        (np.array([1.0, -np.inf], np.float32), ValueError, r"contains -inf \(entry 1\)"),
        (["a", "b"], TypeError, r"dtype <U1.*float32 or float64"),
        ([1j, 2.0], TypeError, r"dtype complex128"),
        (np.array([1.0, None]), TypeError, r"dtype object"),
        (np.zeros(3, np.longdouble), TypeError, r"dtype \S*float128|dtype longdouble"),
    ],
)
def test_bad_vectors(project, a, error, message):
    with pytest.raises(error, match=message):
        project(a)


@every_k
@pytest.mark.parametrize("k", [0, -1, 4])
def test_k_out_of_range(project, k):
    with pytest.raises(ValueError, match=rf"k = {k} but the vectors have 3 entries.*1 and 3"):
        project(A, k)


@every_k
@pytest.mark.parametrize("k", [1.0, "2", None, True])
def test_k_of_the_wrong_type(project, k):
    with pytest.raises(TypeError, match=r"k is .* must be a whole number"):
        project(A, k)


@every_k
def test_k_may_be_any_integer_type(project):
    np.testing.assert_array_equal(project(A, np.int32(2)), project(A, 2))


@every_radius
@pytest.mark.parametrize("r", [-1e-9, -1, np.nan, np.inf])
def test_bad_radius(project, r):
    with pytest.raises(ValueError, match=r"r = "):
        project(A, r=r)


@every_radius
def test_radius_of_the_wrong_type(project):
    with pytest.raises(TypeError, match=r"r is '1' of type str; it must be a number"):
        project(A, r="1")


@every_function
@pytest.mark.parametrize("rho", [-0.1, np.nan, np.inf])
def test_bad_bias(project, rho):
    with pytest.raises(ValueError, match=r"rho = .*finite number of at least 0"):
        project(A, rho=rho)


def test_bounds_in_the_wrong_order():
    with pytest.raises(ValueError, match=r"hi = 0.0 is below lo = 1.0"):
        project_knapsack(A, 5.0, 1.0, 0.0)


def test_budget_out_of_reach():
    with pytest.raises(ValueError, match=r"r = 1.0 cannot be met: 3 entries of at least lo = 0.5"):
        project_knapsack(A, 1.0, 0.5, 1.0)
    with pytest.raises(ValueError, match=r"r = 4.0 cannot be met: 3 entries of at most hi = 1.0"):
        project_knapsack(A, 4.0, 0.0, 1.0, equality=True)
    # Within reach but for the rounding of 3 * 0.1.
    np.testing.assert_allclose(project_knapsack(A, 0.3, 0.1, 1.0), [0.1, 0.1, 0.1], rtol=1e-15)
    np.testing.assert_allclose(project_knapsack(A, 0.3, 0.0, 0.1, equality=True), 0.1, rtol=1e-15)


def test_infinite_bounds():
    np.testing.assert_allclose(project_knapsack(A, 3.0, 0.0, np.inf), [0.0, 1.0, 2.0], atol=1e-15)
    with pytest.raises(ValueError, match=r"lo = -inf is not allowed; it must be a finite number"):
        project_knapsack(A, 1.0, -np.inf, 1.0)


@every_function
@pytest.mark.parametrize(
    ("out", "error", "message"),
    [
        ([0.0] * 3, TypeError, r"out is of type list"),
        (np.empty(4), ValueError, r"out has shape \(4,\).*result has shape \(3,\)"),
        (np.empty(3, np.float32), ValueError, r"dtype float32; .* dtype float64"),
        (np.broadcast_to(0.0, 3), ValueError, r"out is read-only"),
    ],
)
def test_bad_out(project, out, error, message):
    with pytest.raises(error, match=message):
        project(A, out=out)


def test_radius_zero_gives_zero():
    for x in (
        project_simplex(A, 0.0),
        project_simplex(A, 0.0, equality=True),
        project_capped_simplex(A, 2, 0.0),
        project_topk_simplex(A, 2, 0.0),
    ):
        np.testing.assert_array_equal(x, np.zeros(3))
