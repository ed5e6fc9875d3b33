"""The vectorised exponential function against the one of the C library."""

from __future__ import annotations

import math

import numpy as np
import pytest

from topksvm.losses._exp import LEAST, exponentials, sum_of


def _exponentials(x, base=0.0, top=0.0):
    out = np.full(x.size, -1.0)
    exponentials(x, base, top, out)
    return out


def test_exponents_of_all_magnitudes():
    rng = np.random.default_rng(0)
    x = -np.abs(rng.standard_normal(20_000)) * np.exp(rng.uniform(-40.0, 5.0, 20_000))
    x = np.concatenate([x[x > LEAST], -np.arange(708.0), -np.log(2.0) * np.arange(0.5, 1000.0)])
    x = x[x > LEAST]
    expected = np.array([math.exp(value) for value in x])
    np.testing.assert_array_max_ulp(_exponentials(x), expected, maxulp=2)


def test_the_ends_of_the_range():
    x = np.array([0.0, -0.0, -5e-324, -np.inf, -1e300, LEAST, np.nextafter(LEAST, 0.0)])
    found = _exponentials(x)
    assert found[:3].tolist() == [1.0, 1.0, 1.0]
    assert found[3:6].tolist() == [0.0, 0.0, 0.0]
    assert found[6] == pytest.approx(math.exp(LEAST), rel=1e-15)
    assert np.isnan(_exponentials(np.array([np.nan]))).all()


def test_the_difference_is_taken_in_float64():
    x = np.array([2.5, 1.25], np.float32)
    expected = [math.exp(2.5 - 0.1 - 2.7), math.exp(1.25 - 0.1 - 2.7)]
    np.testing.assert_allclose(_exponentials(x, 0.1, 2.7), expected, rtol=1e-15)


def test_without_compilation_it_is_the_same():
    x = -np.geomspace(1e-3, 1e4, 50)
    out = np.empty(50)
    exponentials.py_func(x, 0.0, 0.0, out)
    np.testing.assert_array_max_ulp(out, _exponentials(x), maxulp=1)


def test_sum_of_some():
    assert sum_of(np.array([0.5, 0.25, 8.0]), 2) == 0.75
