"""Properties of the projections that hold for every input (Hypothesis)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from topksvm._threads import thread_limit
from topksvm.projections import (
    project_capped_simplex,
    project_knapsack,
    project_simplex,
    project_topk_cone,
    project_topk_simplex,
)

# Whole multiples of 1/8 make ties common, floats make them rare.
NUMBERS = st.one_of(
    st.integers(-80, 80).map(lambda i: i / 8),
    st.floats(-1e6, 1e6, allow_subnormal=False),
)
VECTORS = hnp.arrays(np.float64, st.integers(1, 80), elements=NUMBERS)


@st.composite
def problems(draw):
    """Draw a projection of one argument that scales with its radius, and a vector for it."""
    a = draw(VECTORS)
    k = draw(st.integers(1, a.size))
    r = draw(st.floats(1e-3, 1e3))
    rho = draw(st.sampled_from([0.0, 0.3, 1.0, 5.0]))
    projection = draw(
        st.sampled_from(
            [
                lambda v, _=1.0, rho=rho: project_topk_cone(v, k, rho=rho),
                lambda v, scale=1.0, rho=rho: project_topk_simplex(v, k, r * scale, rho=rho),
                lambda v, scale=1.0, rho=rho: project_capped_simplex(v, k, r * scale, rho=rho),
                lambda v, scale=1.0, rho=rho: project_simplex(v, r * scale, rho=rho),
                lambda v, scale=1.0, **_: project_simplex(v, r * scale, equality=True),
                lambda v, scale=1.0, rho=rho: project_knapsack(
                    v, r * scale, 0.0, 2 * r / a.size * scale, rho=rho
                ),
            ]
        )
    )
    return a, projection


def _near(x, expected, a):
    np.testing.assert_allclose(x, expected, rtol=0, atol=1e-12 * max(1.0, np.abs(a).max()))


@given(problems())
def test_idempotent(problem):
    a, project = problem
    x = project(a, rho=0.0)
    _near(project(x, rho=0.0), x, a)


@given(problems(), st.randoms(use_true_random=False))
def test_permutation_equivariant(problem, random):
    a, project = problem
    order = np.array(random.sample(range(a.size), a.size))
    _near(project(a[order]), project(a)[order], a)


@given(problems(), st.floats(1e-9, 1e9))
def test_scale_equivariant(problem, scale):
    a, project = problem
    _near(project(a * scale, scale) / scale, project(a), a)


@given(problems(), st.integers(-20, 20))
def test_scaling_by_powers_of_two_is_exact(problem, exponent):
    a, project = problem
    scale = 2.0**exponent
    np.testing.assert_array_equal(project(a * scale, scale), project(a) * scale)


@given(problems(), st.data())
def test_not_expansive(problem, data):
    a, project = problem
    b = data.draw(hnp.arrays(np.float64, a.size, elements=NUMBERS))
    moved = np.linalg.norm(project(a) - project(b))
    assert moved <= np.linalg.norm(a - b) + 1e-9 * max(1.0, np.abs(a).max(), np.abs(b).max())


@given(problems())
def test_larger_entries_stay_larger(problem):
    a, project = problem
    order = np.argsort(a)
    assert (np.diff(project(a)[order]) >= 0).all()


@given(VECTORS, st.floats(1e-3, 1e3))
def test_all_sets_are_the_simplex_for_k_1(a, r):
    expected = project_simplex(a, r)
    _near(project_topk_simplex(a, 1, r), expected, a)
    _near(project_capped_simplex(a, 1, r), expected, a)
    _near(project_knapsack(a, r, 0.0, r), expected, a)


@given(VECTORS)
def test_k_equal_to_the_dimension_leaves_one_direction(a):
    x = project_topk_cone(a, a.size)
    _near(x, np.full(a.size, max(a.mean(), 0.0)), a)


ROW_FUNCTIONS = {
    "cone": lambda a, **kw: project_topk_cone(a, 5, rho=1.0, **kw),
    "topk simplex": lambda a, **kw: project_topk_simplex(a, 5, 2.0, rho=1.0, **kw),
    "capped simplex": lambda a, **kw: project_capped_simplex(a, 5, 2.0, rho=1.0, **kw),
    "simplex": lambda a, **kw: project_simplex(a, 2.0, **kw),
    "knapsack": lambda a, **kw: project_knapsack(a, 2.0, -0.01, 0.7, equality=True, **kw),
}
by_row_function = pytest.mark.parametrize("project", ROW_FUNCTIONS.values(), ids=ROW_FUNCTIONS)


@by_row_function
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_are_projected_one_by_one_whatever_the_threads(project, dtype):
    a = np.random.default_rng(0).standard_normal((700, 211)).astype(dtype)
    expected = np.array([project(row) for row in a])
    assert expected.dtype == dtype
    for threads in (1, 2, 3):
        with thread_limit(threads):
            np.testing.assert_array_equal(project(a), expected)


@by_row_function
def test_layouts_and_kinds_of_input_give_the_same(project):
    a = np.round(np.random.default_rng(1).standard_normal((20, 60)) * 4)
    expected = project(a)
    read_only = a.copy()
    read_only.flags.writeable = False
    for other in (
        np.asfortranarray(a),
        np.repeat(a, 2, axis=1)[:, ::2],
        a.astype(">f8"),
        a.astype(np.int64),
        a.tolist(),
        read_only,
    ):
        result = project(other)
        assert result.dtype == np.float64
        np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(project(a.astype(np.float16)), project(a.astype(np.float32)))


@by_row_function
def test_out_is_filled_and_returned(project):
    a = np.random.default_rng(2).standard_normal((9, 70))
    expected = project(a)
    kept = a.copy()
    out = np.empty_like(a)
    assert project(a, out=out) is out
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(a, kept)  # The input is never written unless it is `out`.
    strided = np.empty((9, 140))[:, ::2]
    project(a, out=strided)
    np.testing.assert_array_equal(strided, expected)
    overlapping = np.concatenate([a[:1], a])
    project(overlapping[1:], out=overlapping[:-1])
    np.testing.assert_array_equal(overlapping[:-1], expected)
    project(a, out=a)
    np.testing.assert_array_equal(a, expected)
