"""Inputs that broke the projections once, found by an independent reviewer."""

from __future__ import annotations

import numpy as np
import pytest

from topksvm.projections import (
    project_knapsack,
    project_simplex,
    project_topk_cone,
    project_topk_simplex,
    reference,
)


def test_near_ties_do_not_loop_for_ever():
    x = project_topk_simplex(1 / 3 + 2.0**-54 * (np.arange(66) % 2), 13, r=1e-15)
    np.testing.assert_allclose(x.sum(), 1e-15, rtol=1e-9)
    x = project_topk_cone(1 / 3 + 2.0**-54 * (np.arange(66) % 5), 34, rho=1e15)
    assert x.max() <= x.sum() / 34 * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(200))
def test_near_ties_of_many_kinds(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(65, 300))
    k = int(rng.integers(1, d))
    a = rng.uniform(0.1, 10) + 2.0 ** -rng.integers(40, 55) * rng.integers(0, 6, d)
    r = float(10.0 ** rng.uniform(-17, -9))
    x = project_topk_simplex(a, k, r)
    assert x.sum() <= r * (1 + 1e-6)
    assert x.max() <= x.sum() / k * (1 + 1e-6)


@pytest.mark.parametrize("mask", [-1e15, -1e16, -1e18, -1e30, -1e100])
def test_entries_masked_by_huge_negative_numbers(mask):
    expected = project_simplex([2.0, 1.0, 0.5], 3.0, equality=True)
    x = project_simplex([2.0, 1.0, mask, mask, 0.5], 3.0, equality=True)
    np.testing.assert_allclose(x[[0, 1, 4]], expected, rtol=1e-14)
    np.testing.assert_array_equal(x[2:4], 0.0)
    r = 2.579070475367424
    np.testing.assert_allclose(project_simplex([mask, r, mask], r, equality=True), [0.0, r, 0.0])
    r = 0.09048183661944868
    a = [1.8121074727376638, 0.13429155801856787, mask, 0.30414395400307315]
    x = project_knapsack(a, r, 0.0, r, equality=True)
    np.testing.assert_allclose(x, [r, 0.0, 0.0, 0.0])


def test_a_huge_bias_neither_overflows_nor_hangs():
    x = project_knapsack([5.0, 5.0, 5.0], 2.0, -1.0, 1.0, rho=1.7e308)
    np.testing.assert_allclose(x, 0.0, atol=1e-15)
    x = project_knapsack([5.0, 5.0, 5.0], 2.0, -1.0, 1.0, rho=5e307)
    np.testing.assert_allclose(x, 0.0, atol=1e-15)
    np.testing.assert_allclose(project_simplex([1e150], 1e160, rho=1e200), [1e-50])
    x = project_simplex([1e150, 2e150], 1e160, rho=1e180)
    np.testing.assert_allclose(x, [0.0, 2e-30])


def test_rows_are_scaled_one_by_one():
    rows = np.array([[1e-250, 2e-250], [1e201, 1.0], [0.0, 0.0], [3.0, 4.0]])
    np.testing.assert_allclose(project_topk_cone(rows, 1), rows, rtol=1e-15)
    np.testing.assert_allclose(project_topk_cone(rows, 1, out=rows.copy()), rows, rtol=1e-15)
    np.testing.assert_allclose(project_simplex(rows[0], 1e300), rows[0], rtol=1e-15)
    np.testing.assert_allclose(project_topk_simplex(rows[0], 1, 1e300), rows[0], rtol=1e-15)
    x = project_simplex(rows[0], 1e300, equality=True)
    np.testing.assert_allclose(x, [0.5e300, 0.5e300])


def test_numbers_beyond_floating_point():
    with pytest.raises(ValueError, match=r"r = 1000+ is not allowed; it must be a finite number"):
        project_simplex([1, 2], r=10**400)


def test_results_that_float32_cannot_hold():
    for project in (
        lambda a: project_knapsack(a, r=1e300, lo=1e200, hi=1e201),
        lambda a: project_simplex(a, r=1e39, equality=True),
    ):
        with pytest.raises(ValueError, match=r"dtype float32, but the set asks for .*astype"):
            project(np.array([1.0, 2.0], np.float32))


@pytest.mark.parametrize("order", ["ascending", "descending", "organ pipe", "killer"])
def test_selection_is_right_in_any_order(order):
    n, k = 600, 300
    values = np.arange(n, dtype=float)
    half = np.arange(1.0, n // 2 + 1)
    a = {
        "ascending": values,
        "descending": values[::-1].copy(),
        "organ pipe": np.concatenate([values[::2], values[::-2]]),
        # Musser's sequence, bad for the median of the first, the middle and the last entry.
        "killer": np.concatenate([np.where(half % 2, half, half + n // 2 - 1), 2 * half]),
    }[order]
    np.testing.assert_allclose(
        project_topk_cone(a, k), reference.topk_cone(a, k), rtol=0, atol=1e-9 * n
    )


def test_flags_must_be_flags():
    with pytest.raises(TypeError, match=r"equality is 'no' of type str; it must be a bool"):
        project_simplex([1.0, 2.0], equality="no")
