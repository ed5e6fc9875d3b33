"""Dual variables made feasible, judged in rational numbers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from topksvm.losses._domain import into_domain

VALUES = st.one_of(
    st.floats(0.0, 10.0),
    st.sampled_from([0.0, 0.1, 1 / 3, 1.0, 1.0 + 2**-52, 1e-300, 1e30]),
)


def is_inside(x, r, cap, k):
    """In exact arithmetic."""
    exact = [Fraction(float(value)) for value in x]
    total = sum(exact, Fraction(0))
    below_cap = all(value <= cap for value in exact)
    below_share = all(k * value <= total for value in exact)
    return below_cap and below_share and total <= r and all(value >= 0 for value in exact)


@settings(max_examples=400, deadline=None)
@given(
    st.lists(VALUES, min_size=1, max_size=9),
    st.floats(1e-6, 1e6),
    st.integers(1, 6),
    st.sampled_from(["alpha", "beta", "full", "cone"]),
)
def test_whatever_comes_in_is_feasible_after(values, C, k, kind):
    r, cap, share = {
        "alpha": (C, C, k),
        "beta": (C, C / k, 1),
        "full": (C, C / k, max(k - 1, 1)),
        "cone": (np.inf, np.inf, k),
    }[kind]
    x = np.array(values)
    before = x.copy()
    lost = into_domain(x, x.size, r, cap, share)
    exact_r = Fraction(C) if r < np.inf else Fraction(10) ** 400
    exact_cap = {"beta": Fraction(C) / k, "full": Fraction(C) / k}.get(kind, exact_r)
    assert is_inside(x, exact_r, exact_cap, share)
    assert (x <= before).all()
    assert 0.0 <= lost <= 1.0
    again = x.copy()
    assert into_domain(again, x.size, r, cap, share) < 1e-13
    np.testing.assert_allclose(again, x, rtol=1e-13)


@pytest.mark.parametrize("k", [2, 3, 5])
def test_equal_entries_at_the_cap_stay(k):
    """The usual case: k entries at a k-th of the sum, off by the last bit."""
    x = np.full(k, 0.1)
    x[0] = np.nextafter(0.1, 1.0)
    lost = into_domain(x, k, 10.0, 10.0, k)
    assert 0.0 < lost < 1e-15
    assert (x == 0.1).all()


def test_fewer_entries_than_k_cannot_stay():
    x = np.array([1.0, 0.5])
    assert into_domain(x, 2, 10.0, 10.0, 3) == 1.0
    assert (x == 0.0).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1.0])
def test_what_is_no_dual_variable_becomes_zero(bad):
    x = np.array([0.5, bad])
    assert into_domain(x, 2, 10.0, 10.0, 1) == 1.0
    np.testing.assert_array_equal(x, [0.5, 0.0])
