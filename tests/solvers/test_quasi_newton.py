"""L-BFGS: its direction against the matrix that it stands for, its end against known minima."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import rosen, rosen_der
from scipy.special import expit

from topksvm.solvers._quasi_newton import PAIRS, Memory, minimise, search


def remember(n_pairs, size=30, seed=0):
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((size, size))
    hessian = root @ root.T + np.eye(size)
    memory = Memory(size, np.dtype(np.float64), 0.7)
    pairs = []
    for _ in range(n_pairs):
        step = rng.standard_normal(size)
        change = hessian @ step + 0.1 * rng.standard_normal(size)
        memory.add(step, change)
        pairs.append((step, change))
    return memory, pairs[-PAIRS:], rng.standard_normal(size)


@pytest.mark.parametrize("n_pairs", [0, 1, 4, PAIRS, PAIRS + 1, 3 * PAIRS + 2])
def test_direction_is_that_of_the_matrix(n_pairs):
    """The inverse Hessian by its definition: one update of rank two after the other."""
    memory, pairs, gradient = remember(n_pairs)
    scale = np.vdot(*pairs[-1]) / np.vdot(pairs[-1][1], pairs[-1][1]) if pairs else 0.7
    inverse = scale * np.eye(gradient.size)
    for step, change in pairs:
        rho = 1.0 / (step @ change)
        left = np.eye(gradient.size) - rho * np.outer(step, change)
        inverse = left @ inverse @ left.T + rho * np.outer(step, step)
    np.testing.assert_allclose(memory.direction(gradient), -inverse @ gradient, rtol=1e-8)


def test_without_curvature_it_starts_again():
    memory, _, gradient = remember(5)
    step = np.ones(gradient.size)
    scale = memory.scale
    memory.add(step, -step)
    np.testing.assert_allclose(memory.direction(gradient), -scale * gradient)


class Count:
    """An objective that counts how often it is asked."""

    def __init__(self, function, derivative):
        self.function, self.derivative = function, derivative
        self.values, self.points = [], []

    def __call__(self, x):
        self.values.append(float(self.function(x)))
        self.points.append(x)
        return self.values[-1], self.derivative(x)

    def minimise(self, x, scale, goal=-np.inf):
        """Minimise from `x` on until it is low enough; return whether it is."""
        for evaluations, _ in enumerate(minimise(self, x, scale), 1):
            assert len(self.values) == evaluations, "it comes back after each evaluation"
            if self.values[-1] <= goal:
                return True
        return False


def search_to_the_end(*args):
    """Return what a search along a line has found."""
    steps = search(*args)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def test_reaches_the_bottom_of_a_curved_valley():
    objective = Count(rosen, rosen_der)
    assert objective.minimise(np.full(20, -1.2), 1e-3, goal=1e-12)
    np.testing.assert_allclose(objective.points[-1], 1.0, atol=1e-4)
    assert len(objective.values) < 300


@pytest.mark.parametrize("first", [1e-8, 1e-3, 1.0, 1e8])
def test_any_first_step_will_do(first):
    curvatures = np.geomspace(1.0, 100.0, 40)
    objective = Count(lambda x: 0.5 * x @ (curvatures * x), lambda x: curvatures * x)
    assert objective.minimise(np.ones(40), first, goal=1e-14)
    assert len(objective.values) < 120


def test_ends_where_nothing_is_better():
    objective = Count(lambda x: x @ x, lambda x: 2.0 * x)
    assert not objective.minimise(np.zeros(5), 1.0)
    assert len(objective.values) == 1
    # A wrong gradient: no step along it is better, and it says so by ending.
    assert not Count(lambda x: x @ x, lambda x: -2.0 * x).minimise(np.ones(5), 1.0)


@pytest.mark.parametrize("length", [1e-6, 1e-3, 1.0, 1e3, 1e6])
def test_search_meets_the_conditions(length):
    def function(x):
        value = np.logaddexp(0.0, x[0]) - 0.3 * x[0] + 0.01 * x[0] ** 2
        return float(value), expit(x) - 0.3 + 0.02 * x

    x = np.array([6.0])
    value, gradient = function(x)
    direction = -length * gradient
    found, new_value, new_gradient = search_to_the_end(function, x, direction, value, gradient)
    slope = float(-length * gradient @ gradient)
    assert new_value <= value + 1e-4 * found * slope
    assert float(-length * new_gradient @ gradient) >= 0.9 * slope


def test_search_refuses_to_go_up():
    x = np.ones(2)
    assert search_to_the_end(lambda x: (float(x @ x), 2 * x), x, x, 2.0, x) is None


def test_overflow_on_the_way_is_too_long_a_step():
    def function(x):
        with np.errstate(over="ignore"):
            return float(np.cosh(x[0])), np.sinh(x)

    start, direction = np.array([1.0]), np.array([-1e6])
    found = search_to_the_end(function, start, direction, np.cosh(1.0), np.sinh([1.0]))
    assert found is not None
    assert found[1] < np.cosh(1.0)
