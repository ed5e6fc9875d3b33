"""Input at the edge of what makes sense, and runs that end before they are done."""

from __future__ import annotations

import numpy as np
import pytest

from solvers.cases import (
    FORMATS,
    complete,
    every_hinge,
    full_pass,
    make_data,
    make_objective,
    make_sdca,
    optimum,
    run,
    with_formats,
    with_rows,
)
from solvers.objective import HINGES, check, check_primal_solver
from topksvm._interrupts import current_stop, is_stop_requested, stoppable
from topksvm.solvers import Status

every_solver = pytest.mark.parametrize(
    ("name", "solver"),
    [*((name, "sdca") for name in (*HINGES, "softmax")), ("softmax", "lbfgs")],
)


def _judge(objective, result, tol):
    judge = check_primal_solver if result.duals is None else check
    return judge(objective, result, tol)


def _solve_and_check(objective, solver, tol=1e-6):
    result = run(objective, solver=solver, tol=tol)
    assert result.status is Status.SOLVED
    assert np.all(np.isfinite(result.weights))
    return result, *_judge(objective, result, tol)


def _k(name, k):
    return 1 if name == "softmax" else k


@with_formats(every_solver)
def test_rows_of_zeros(name, solver, form):
    X, y = make_data()
    X[::3] = 0.0
    objective = make_objective(name, _k(name, 3), 0.0, FORMATS[form](X), y)
    _, primal, _ = _solve_and_check(objective, solver)
    # They add a constant: the loss at equal scores.
    rest = np.arange(len(y)) % 3 != 0
    without = make_objective(name, _k(name, 3), 0.0, FORMATS[form](X[rest]), y[rest], n_classes=7)
    _, smaller, _ = _solve_and_check(without, solver)
    loss = np.log(7.0) if name == "softmax" else 1.0
    assert primal == pytest.approx(smaller + 0.3 * loss * np.sum(~rest), rel=2e-6)


@with_formats(every_solver)
def test_nothing_but_rows_of_zeros(name, solver, form):
    y = np.arange(12) % 4
    objective = make_objective(name, _k(name, 2), 0.0, FORMATS[form](np.zeros((12, 5))), y)
    result, primal, _ = _solve_and_check(objective, solver)
    assert not result.weights.any()
    assert primal == pytest.approx(0.3 * 12 * (np.log(4.0) if name == "softmax" else 1.0))


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("smoothing", [0.0, 0.5])
@every_hinge
def test_rows_of_zeros_with_smoothing_and_bias(name, k, smoothing):
    X, y = make_data()
    X[::3] = 0.0
    for bias in (0.0, 1.0):
        objective = make_objective(name, k, smoothing, X, y, bias=bias)
        _solve_and_check(objective, "sdca")


@with_formats(every_solver)
def test_duplicate_rows(name, solver, form):
    X, y = make_data(20)
    X, y = np.vstack([X] * 3), np.concatenate([y, y, (y + 1) % 7])
    _solve_and_check(make_objective(name, _k(name, 3), 0.0, FORMATS[form](X), y), solver)


@every_solver
def test_all_rows_equal(name, solver):
    X, y = np.ones((30, 4)), np.arange(30) % 5
    _solve_and_check(make_objective(name, _k(name, 2), 0.0, X, y), solver)


@with_formats(every_solver)
def test_constant_features(name, solver, form):
    X, y = make_data()
    objectives = []
    for bias in (0.0, 2.0):
        extra = np.zeros((len(y), 1)) if bias else np.full((len(y), 1), 2.0)
        rows = FORMATS[form](np.hstack([X, extra]))
        objectives.append(make_objective(name, _k(name, 3), 0.0, rows, y, bias=bias))
    results = [_solve_and_check(objective, solver) for objective in objectives]
    # A constant feature is what the bias is; a feature of zeros is nothing.
    assert results[0][1] == pytest.approx(results[1][1], rel=2e-6)
    assert not results[1][0].weights[:, -2].any()


@with_formats(every_solver)
def test_one_example_per_class(name, solver, form):
    X, y = make_data(7)
    objective = make_objective(name, _k(name, 2), 0.0, FORMATS[form](X), y)
    _, primal, _ = _solve_and_check(objective, solver)
    assert optimum(objective) == pytest.approx(primal, rel=1e-5)


@with_rows(every_hinge)
def test_one_example_per_class_and_k_is_all_wrong_classes(name, dtype, form):
    X, y = make_data(7, dtype=dtype)
    objective = make_objective(name, 6, 0.0, FORMATS[form](X), y)
    tol = 1e-6 if dtype == np.float64 else 1e-3
    _, primal, _ = _solve_and_check(objective, "sdca", tol)
    assert optimum(objective) == pytest.approx(primal, rel=tol + 1e-5)


@with_formats(every_solver)
def test_class_whose_examples_all_have_weight_zero(name, solver, form):
    X, y = make_data()
    C = np.where(y == 2, 0.0, 0.3)
    objective = make_objective(name, _k(name, 3), 0.0, FORMATS[form](X), y, C=C)
    result, primal, _ = _solve_and_check(objective, solver)
    assert result.weights.shape[0] == 7
    # It is still a wrong class for the others.
    keep = y != 2
    without = make_objective(
        name, _k(name, 3), 0.0, FORMATS[form](X[keep]), y[keep], C=C[keep], n_classes=7
    )
    assert _solve_and_check(without, solver)[1] == pytest.approx(primal, rel=2e-6)


@every_solver
def test_class_without_examples(name, solver):
    X, y = make_data()
    objective = make_objective(name, _k(name, 3), 0.0, X, y, n_classes=9)
    result, _, _ = _solve_and_check(objective, solver)
    assert result.weights.shape[0] == 9


@every_solver
def test_all_weights_zero(name, solver):
    X, y = make_data()
    objective = make_objective(name, _k(name, 3), 0.0, X, y, C=np.zeros(len(y)))
    result = run(objective, solver=solver)
    assert result.status is Status.SOLVED
    assert not result.weights.any()
    assert result.certificate.primal == result.certificate.dual == 0.0


@with_formats(every_solver)
def test_two_classes(name, solver, form):
    X, y = make_data(30, 4, 2)
    objective = make_objective(name, 1, 0.0, FORMATS[form](X), y)
    result, primal, _ = _solve_and_check(objective, solver)
    assert optimum(objective) == pytest.approx(primal, rel=1e-5)
    np.testing.assert_allclose(result.weights[0], -result.weights[1], rtol=1e-6, atol=1e-9)


@with_formats(every_solver)
def test_two_examples(name, solver, form):
    X, y = np.array([[1.0, 2.0], [3.0, -1.0]]), np.array([0, 1])
    objective = make_objective(name, 1, 0.0, FORMATS[form](X), y)
    _, primal, _ = _solve_and_check(objective, solver)
    assert optimum(objective) == pytest.approx(primal, rel=1e-5)


@every_solver
def test_one_feature(name, solver):
    X, y = make_data(30, 1, 4)
    _solve_and_check(make_objective(name, _k(name, 2), 0.0, X, y), solver)


@every_hinge
@pytest.mark.parametrize("order", ["F", "strided"])
def test_rows_in_other_layouts(name, order):
    X, y = make_data()
    other = np.asfortranarray(X) if order == "F" else np.repeat(X, 2, axis=1)[:, ::2]
    expected, found = (
        run(make_objective(name, 2, 0.0, rows, y), tol=1e-6).weights for rows in (X, other)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@with_rows(every_solver)
def test_very_small_weight_of_the_loss(name, solver, dtype, form):
    X, y = make_data(dtype=dtype)
    objective = make_objective(name, _k(name, 3), 0.0, FORMATS[form](X), y, C=1e-6)
    _, primal, _ = _solve_and_check(objective, solver, 1e-6)
    at_zero = objective.primal(np.zeros((7, 6)))
    assert primal == pytest.approx(at_zero, rel=1e-4)


@with_formats(every_solver)
def test_very_large_weight_of_the_loss(name, solver, form):
    X, y = make_data(overlap=2.0)
    objective = make_objective(name, _k(name, 3), 0.0, FORMATS[form](X), y, C=1e6)
    result = run(objective, solver=solver, tol=1e-9, max_iter=5)
    assert result.status is Status.MAX_ITER
    assert result.certificate.relative_gap > 1e-9
    _judge(objective, result, np.inf)


@with_formats(every_hinge)
@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_huge_and_tiny_features(name, scale, form):
    """Scaling X by c and C by 1/c^2 scales the objective by 1/c^2, and the iterates with it."""
    X, y = make_data()
    base = make_objective(name, 3, 0.0, FORMATS[form](X), y)
    scaled = make_objective(name, 3, 0.0, FORMATS[form](X * scale), y, C=0.3 / scale**2)
    expected = _solve_and_check(base, "sdca")
    found = _solve_and_check(scaled, "sdca")
    assert found[1] * scale**2 == pytest.approx(expected[1], rel=2e-6)


@with_rows(every_hinge)
def test_features_of_very_different_scales(name, form, dtype):
    X, y = make_data(dtype=dtype)
    X *= np.array([1e-6, 1.0, 1e3, 1e6, 1.0, 1e-3], dtype=dtype)
    objective = make_objective(name, 3, 0.0, FORMATS[form](X), y, C=1e-3)
    result = run(objective, tol=1e-3, max_iter=50)
    assert np.all(np.isfinite(result.weights))
    _judge(objective, result, np.inf)


class _Interrupt:
    """A callback that is interrupted at its `n`-th call."""

    def __init__(self, n):
        self.n_left = n

    def __call__(self, *_):
        self.n_left -= 1
        if self.n_left == 0:
            raise KeyboardInterrupt


@with_formats(every_solver)
@pytest.mark.parametrize("n", [1, 3])
def test_interrupt_leaves_a_certified_model(name, solver, form, n):
    X, y = make_data(200, 6, 10)
    objective = make_objective(name, _k(name, 3), 0.0, FORMATS[form](X), y, C=1.0)
    callback = _Interrupt(n)
    result = run(objective, solver=solver, tol=1e-12, callback=callback)
    assert callback.n_left == 0
    assert result.status is Status.INTERRUPTED
    _judge(objective, result, np.inf)


@every_hinge
def test_interrupt_inside_a_pass_after_a_certificate(name):
    """The certificate must be that of the weights returned, not of those of the last check."""
    X, y = make_data(200, 6, 10)
    objective = make_objective(name, 3, 0.0, X, y, C=1.0)
    solver = make_sdca(objective, block_size=32)
    full_pass(solver)
    solver.certify()
    certified, segments = solver.weights.copy(), []

    def should_stop():
        segments.append(1)
        if len(segments) == 4:
            current_stop().request()
        return is_stop_requested()

    solver.engine.segment, solver.engine.should_stop = 32, should_stop
    result = stoppable(lambda: complete(solver, tol=0.0))
    assert (len(segments), result.n_iter) == (4, 1)
    assert not np.array_equal(result.weights, certified)
    assert result.status is Status.INTERRUPTED
    check(objective, result, np.inf)


@with_formats(every_solver)
def test_time_budget_leaves_a_certified_model(name, solver, form):
    X, y = make_data(200, 6, 10)
    objective = make_objective(name, _k(name, 3), 0.0, FORMATS[form](X), y, C=10.0)
    result = run(objective, solver=solver, tol=1e-12, max_time=1e-9, max_iter=10**6)
    assert result.status is Status.MAX_TIME
    assert result.n_iter <= 3
    _judge(objective, result, np.inf)


@every_solver
@pytest.mark.parametrize("max_iter", [1, 2, 6])
@pytest.mark.parametrize("m", [10, 40], ids=["few", "many"])
def test_iteration_budget_is_kept(name, solver, max_iter, m):
    X, y = make_data(200, 6, m)
    objective = make_objective(name, _k(name, 3), 0.0, X, y, C=10.0)
    result = run(objective, solver=solver, tol=1e-12, max_iter=max_iter)
    assert result.status is Status.MAX_ITER
    # One more evaluation of L-BFGS is the certificate.
    assert max_iter <= result.n_iter <= max_iter + (solver == "lbfgs")
    _judge(objective, result, np.inf)


def test_unknown_loss_is_refused():
    X, y = make_data()
    with pytest.raises(ValueError, match="hinge_gamma"):
        run(make_objective("hinge_gamma", 1, 0.0, X, y))


@pytest.mark.parametrize("k", [0, 7])
def test_k_out_of_range_is_refused(k):
    X, y = make_data()
    with pytest.raises(ValueError, match="between 1 and 6"):
        run(make_objective("topk_hinge_alpha", k, 0.0, X, y))


def test_solver_that_cannot_do_the_loss_is_refused():
    X, y = make_data()
    with pytest.raises(ValueError, match="dual step"):
        run(make_objective("topk_entropy", 2, 0.0, X, y), solver="sdca")
    with pytest.raises(ValueError, match="kinks"):
        run(make_objective("topk_hinge_beta", 2, 0.0, X, y), solver="lbfgs")
