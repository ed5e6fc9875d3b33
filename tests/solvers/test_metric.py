"""The coordinates of L-BFGS: what they are, when they are used, and what they save."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import topksvm
from solvers.cases import complete, make_data
from topksvm.data import make_problem
from topksvm.losses import Softmax
from topksvm.solvers import Stopping, _lbfgs
from topksvm.solvers._lbfgs import LBFGS
from topksvm.solvers._metric import make_metric


def spread_problem(n=600, d=30, m=8, dtype=np.float64, bias=0.0, seed=0):
    """Return a problem whose features differ in size and depend on one another."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % m
    mix = rng.standard_normal((d, d)) * np.geomspace(3.0, 0.01, d)
    X = (rng.standard_normal((n, d)) + rng.standard_normal((m, d))[y]) @ mix
    C = rng.uniform(0.0, 2.0, n)
    return make_problem(X.astype(dtype), y, C, m, bias)


@pytest.mark.parametrize("bias", [0.0, 2.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(400, 30, 8), (4500, 300, 40)], ids=["block", "blocks"])
def test_curvature_is_that_of_the_definition(dtype, bias, shape):
    """Of all examples, where they are not many more than the features."""
    problem = spread_problem(*shape, dtype=dtype, bias=bias)
    metric = make_metric(problem)
    X = problem.rows.x.astype(np.float64)
    X = np.column_stack([X, np.full(len(X), bias)]) if bias else X
    expected = np.eye(X.shape[1]) + 0.1 / shape[2] * (X.T * problem.examples.C) @ X
    found = metric.factor @ metric.factor.T
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


def sparse_problem(bias=0.0, **options):
    """Return a problem of the same kind with CSR rows, a third of the entries."""
    dense = spread_problem(**options)
    keep = np.random.default_rng(3).random(dense.rows.x.shape) < 1 / 3
    X = sp.csr_array(np.where(keep, dense.rows.x, 0))
    return make_problem(X, dense.examples.labels, dense.examples.C, dense.m, bias)


@pytest.mark.parametrize("bias", [0.0, 2.0])
def test_sparse_rows_have_the_diagonal_of_the_curvature(bias):
    problem = sparse_problem(bias)
    rows = problem.rows
    X = sp.csr_array((rows.data, rows.indices, rows.indptr), (600, 30)).toarray()
    X = np.column_stack([X, np.full(600, bias)]) if bias else X
    metric = make_metric(problem)
    expected = 1.0 + 0.1 / 8 * problem.examples.C @ X**2
    np.testing.assert_allclose(metric.factor**2, expected, rtol=1e-12)
    np.testing.assert_allclose(metric.inverse, expected**-0.5, rtol=1e-12)


@pytest.mark.parametrize("shape", [(600, 30, 8), (4500, 300, 40)], ids=["stripe", "stripes"])
@pytest.mark.parametrize("make", [spread_problem, sparse_problem])
def test_coordinates_there_and_back(make, shape):
    n, d, m = shape
    metric = make_metric(make(n=n, d=d, m=m))
    W, step = np.random.default_rng(1).standard_normal((2, m, d))
    np.testing.assert_allclose(metric.weights(metric.coordinates(W)), W, rtol=1e-9)
    # The slope in a direction does not depend on the coordinates.
    there = np.vdot(metric.gradient(W), metric.coordinates(step))
    assert there == pytest.approx(np.vdot(W, step))


def test_curvature_for_the_first_step_needs_no_product():
    problem = spread_problem(400)
    metric, objective = make_metric(problem), _lbfgs.Objective(Softmax(), problem)
    slope = np.random.default_rng(2).standard_normal((8, 30))
    direction = metric.weights(slope)
    expected = objective.curvature(direction)
    assert metric.curvature(direction, slope) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_first_step_is_the_best_one_for_softmax(form):
    dense = spread_problem()
    labels, C = dense.examples.labels, dense.examples.C
    problem = make_problem(form(dense.rows.x), labels, C, 8, 0.0)
    solver = LBFGS(Softmax(), problem)
    for _ in range(2):
        solver.update(Stopping())
    direction, objective = solver.last[1], solver.objective  # The first step, from zero.
    steps = np.geomspace(0.1, 10.0, 41)
    primals = [objective.evaluate(step * direction)[0].primal for step in steps]
    assert 0.4 < steps[np.argmin(primals)] < 2.5


def test_some_examples_are_enough():
    problem = spread_problem(n=6000)
    few, rows = make_metric(problem), problem.rows.x
    product = few.factor @ few.factor.T
    whole = np.eye(30) + 0.1 / 8 * (rows.T * problem.examples.C) @ rows
    assert not np.allclose(product, whole, rtol=1e-3)
    ratios = np.linalg.eigvals(np.linalg.solve(whole, product)).real
    assert 0.3 < ratios.min() <= ratios.max() < 3.0


def test_only_where_it_pays():
    assert make_metric(spread_problem(n=120)) is not None
    assert make_metric(spread_problem(n=119)) is None
    # Many features and few classes: the estimate would cost more than many evaluations.
    assert make_metric(spread_problem(n=600, d=60, m=8)) is not None
    assert make_metric(spread_problem(n=600, d=60, m=2)) is None


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_of_any_size(dtype):
    """Rounding makes no curvature indefinite; what overflows is refused before it is squared."""
    for size in (1e-12, 1e4, 1e9):
        problem = spread_problem(dtype=dtype)
        rows = (size * problem.rows.x).astype(dtype)
        rows[:, 1] = rows[:, 0]  # Singular but for the identity.
        scaled = make_problem(rows, problem.examples.labels, problem.examples.C, 8, 0)
        assert np.isfinite(make_metric(scaled).inverse).all()
    huge = np.full((400, 4), np.finfo(dtype).max, dtype)
    for X in (huge, sp.csr_array(np.full((400, 4), 1e300))):
        with pytest.raises(ValueError, match="too large for float"), np.errstate(over="ignore"):
            make_problem(X, np.arange(400) % 3, np.ones(400), 3, 0)


@pytest.mark.parametrize("make", [spread_problem, sparse_problem])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_saves_evaluations_and_ends_at_the_same_optimum(dtype, make, monkeypatch):
    def run():
        return complete(LBFGS(Softmax(), make(dtype=dtype)), tol=1e-4, max_iter=2000)

    with_metric = run()
    monkeypatch.setattr(_lbfgs, "make_metric", lambda _: None)
    without = run()
    assert with_metric.certificate.relative_gap <= 1e-4
    assert with_metric.n_iter < 0.6 * without.n_iter
    assert with_metric.certificate.primal == pytest.approx(without.certificate.primal, rel=2e-4)


def test_warm_start_is_in_these_coordinates():
    X, y = make_data(300, 5, 20)
    first = topksvm.solve(X, y, "softmax", 1.0, tol=1e-6)
    again = topksvm.solve(X, y, "softmax", 1.0, tol=1e-6, warm=first)
    assert again.n_iter <= 2 < first.n_iter
