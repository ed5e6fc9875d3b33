"""L-BFGS on the primal: gradients, the certificate, and agreement with other solvers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from solvers.cases import (
    FORMATS,
    SMOOTHING,
    TOLERANCE,
    every_bias,
    every_dtype,
    every_format,
    losses,
    make_data,
    make_objective,
    make_parts,
    make_sparse_rows,
    optimum,
    run,
    with_formats,
    with_softmax,
)
from solvers.objective import HINGES, check, check_primal_solver
from topksvm._threads import thread_limit
from topksvm.solvers import Status
from topksvm.solvers._lbfgs import Objective as PrimalAndGradient

_entropies = losses(["topk_entropy"], (1, 3, 6), (0.0,))
_smoothed = losses(HINGES, (1, 3, 6), (SMOOTHING,))
smooth_losses = with_softmax(
    pytest.mark.parametrize(_entropies.args[0], [*_entropies.args[1], *_smoothed.args[1]])
)


@smooth_losses
@every_format
@every_bias
def test_gradient_is_that_of_finite_differences(name, k, smoothing, form, bias):
    X, y = make_data(20, 4, 7)
    C = np.random.default_rng(1).uniform(0.0, 1.0, len(y))
    C[3] = 0.0
    objective = make_objective(name, k, smoothing, FORMATS[form](X), y, C=C, bias=bias)
    evaluate = PrimalAndGradient(*make_parts(objective)).evaluate
    rng = np.random.default_rng(2)
    W = 0.5 * rng.standard_normal((7, 4 + (bias != 0)))
    gradient = evaluate(W)[1]
    assert gradient.shape == W.shape
    step = 1e-5
    for entry in np.ndindex(*W.shape):
        change = np.zeros_like(W)
        change[entry] = step
        slope = (evaluate(W + change)[0].primal - evaluate(W - change)[0].primal) / (2 * step)
        # Smoothed hinges have a kink in their second derivative.
        assert gradient[entry] == pytest.approx(slope, rel=1e-5, abs=1e-4 if smoothing else 1e-7)
    # At zero it is computed in another way.
    np.testing.assert_allclose(evaluate(0.0 * W)[1], evaluate(1e-9 * W)[1], atol=1e-6)


@smooth_losses
@every_format
@every_bias
def test_evaluation_anywhere_is_the_independent_one(name, k, smoothing, form, bias):
    """Not only where the gap is small, so that a wrong dual would be seen."""
    X, y = make_data()
    C = np.random.default_rng(1).uniform(0.0, 1.0, len(y))
    C[3] = 0.0
    objective = make_objective(name, k, smoothing, FORMATS[form](X), y, C=C, bias=bias)
    evaluate = PrimalAndGradient(*make_parts(objective)).evaluate
    rng = np.random.default_rng(2)
    for scale in (0.0, 0.3, 30.0):
        W = scale * rng.standard_normal((7, 6 + (bias != 0)))
        found, _ = evaluate(W)
        assert found.primal == pytest.approx(objective.primal(W), rel=1e-9)
        # The independent maximiser of a smoothed hinge has half of the digits of its value.
        rel = 1e-6 if smoothing else 1e-9
        assert found.dual == pytest.approx(objective.dual_at(W), rel=rel, abs=rel)


@every_format
@every_bias
def test_blocks_add_up(form, bias):
    X, y = make_data()
    parts = make_parts(make_objective("softmax", 1, 0.0, FORMATS[form](X), y, bias=bias))
    whole, divided = PrimalAndGradient(*parts), PrimalAndGradient(*parts)
    divided.products.block = 7
    W = np.random.default_rng(2).standard_normal((7, 6 + (bias != 0)))
    for weights in (0.0 * W, W):
        (found, gradient), (expected, slope) = divided.evaluate(weights), whole.evaluate(weights)
        assert found.primal == pytest.approx(expected.primal, rel=1e-12)
        assert found.dual == pytest.approx(expected.dual, rel=1e-12)
        np.testing.assert_allclose(gradient, slope, atol=1e-12)
    np.testing.assert_allclose(whole.unflat(whole.flat(W)), W)
    assert divided.curvature(W) == pytest.approx(whole.curvature(W))


@every_dtype
@every_bias
def test_threads_share_sparse_products(dtype, bias):
    X, y = make_sparse_rows(2000, 12, 100, dtype=dtype)
    parts = make_parts(make_objective("softmax", 1, 0.0, FORMATS["csr"](X), y, bias=bias))
    W = np.random.default_rng(2).standard_normal((100, 12 + (bias != 0))).astype(dtype)
    alone = PrimalAndGradient(*parts).evaluate(W)
    for count in (2, 3):
        with thread_limit(count):
            found, gradient = PrimalAndGradient(*parts).evaluate(W)
        assert found.primal == pytest.approx(alone[0].primal, rel=1e-6)
        assert found.dual == pytest.approx(alone[0].dual, rel=1e-6)
        np.testing.assert_allclose(gradient, alone[1], rtol=1e-5, atol=1e-6)


def test_no_proof_is_tried_in_vain():
    """The bound that is proven is that of the point, and not the best one met on the way."""
    X, y = make_data(300, 40, 30)
    for C, tol in itertools.product((1.0, 10.0, 1000.0), (0.9, 0.7, 0.3, 0.1)):
        objective = make_objective("softmax", 1, 0.0, X, y, C=C)
        assert len(run(objective, solver="lbfgs", tol=tol).history) == 1


@smooth_losses
@every_dtype
@every_format
@every_bias
def test_certificate_is_true_and_the_gap_is_reached(name, k, smoothing, dtype, form, bias):
    X, y = make_sparse_rows(dtype=dtype)
    objective = make_objective(name, k, smoothing, FORMATS[form](X), y, bias=bias)
    result = run(objective, solver="lbfgs", tol=TOLERANCE[dtype])
    assert result.status is Status.SOLVED
    assert result.weights.shape == (7, 12 + (bias != 0))
    assert result.weights.dtype == dtype
    check_primal_solver(objective, result, TOLERANCE[dtype])


@smooth_losses
@every_bias
def test_optimum_is_that_of_a_convex_solver(name, k, smoothing, bias):
    X, y = make_data(14, 4, 7)
    objective = make_objective(name, k, smoothing, X, y, C=0.5, bias=bias)
    result = run(objective, solver="lbfgs", tol=1e-8)
    assert optimum(objective) == pytest.approx(result.certificate.primal, rel=1e-5)
    assert optimum(objective) == pytest.approx(result.certificate.dual, rel=1e-5)


@every_format
@pytest.mark.parametrize("C", [0.01, 1.0])
def test_softmax_is_logistic_regression(form, C):
    X, y = make_data(120, 8, 6)
    objective = make_objective("softmax", 1, 0.0, FORMATS[form](X), y, C=C)
    primal, _ = check_primal_solver(objective, run(objective, tol=1e-8), 1e-8)
    peer = LogisticRegression(C=C, fit_intercept=False, tol=1e-10, max_iter=10_000)
    assert primal == pytest.approx(objective.primal(peer.fit(objective.X, y).coef_), rel=1e-6)


@with_formats(losses(HINGES, (1, 3), (0.1, 1.0)))
def test_smoothed_hinge_by_both_solvers(name, k, smoothing, form):
    X, y = make_data(80)
    objective = make_objective(name, k, smoothing, FORMATS[form](X), y, bias=1.0)
    _assert_solvers_agree(objective)


@every_bias
@pytest.mark.parametrize("C", [0.01, 10.0])
def test_softmax_by_both_solvers(bias, C):
    X, y = make_data(80)
    _assert_solvers_agree(make_objective("softmax", 1, 0.0, X, y, C=C, bias=bias))


def _assert_solvers_agree(objective):
    primal, _ = check_primal_solver(objective, run(objective, solver="lbfgs", tol=1e-7), 1e-7)
    other, _ = check(objective, run(objective, solver="sdca", tol=1e-7), 1e-7)
    assert primal == pytest.approx(other, rel=2e-7)


@smooth_losses
@every_bias
def test_csr_is_dense(name, k, smoothing, bias):
    X, y = make_sparse_rows()
    results = []
    for form in FORMATS.values():
        objective = make_objective(name, k, smoothing, form(X), y, bias=bias)
        results.append(run(objective, solver="lbfgs", tol=1e-9))
    dense, csr = results
    assert csr.certificate.primal == pytest.approx(dense.certificate.primal, rel=1e-9)
    np.testing.assert_allclose(csr.weights, dense.weights, rtol=0, atol=1e-3)


@smooth_losses
@every_format
def test_bias_is_a_constant_column(name, k, smoothing, form):
    X, y = make_data()
    column = np.hstack([X, np.full((len(y), 1), 2.0)])
    bias = make_objective(name, k, smoothing, FORMATS[form](X), y, bias=2.0)
    explicit = make_objective(name, k, smoothing, FORMATS[form](column), y)
    one, two = (run(objective, solver="lbfgs", tol=1e-9) for objective in (bias, explicit))
    np.testing.assert_allclose(one.weights, two.weights, rtol=0, atol=1e-3)
    assert one.certificate.primal == pytest.approx(two.certificate.primal, rel=1e-9)


def test_entropy_of_k1_is_softmax():
    X, y = make_data()
    values = [
        run(make_objective(name, 1, 0.0, X, y), tol=1e-8).certificate.primal
        for name in ("softmax", "topk_entropy")
    ]
    assert values[0] == pytest.approx(values[1], rel=1e-8)


def test_warm_start_from_the_solution_is_done_at_once():
    X, y = make_data()
    objective = make_objective("softmax", 1, 0.0, X, y)
    first = run(objective, tol=1e-8)
    again = run(objective, tol=1e-7, warm=first)
    assert again.status is Status.SOLVED
    assert again.n_iter <= 2
    assert first.n_iter > 5


@every_format
@every_dtype
def test_input_is_never_written(form, dtype):
    X, y = make_sparse_rows(dtype=dtype)
    X = FORMATS[form](X)
    array = X if form == "dense" else X.data
    array.flags.writeable = False
    before = array.tobytes()
    run(make_objective("softmax", 1, 0.0, X, y, bias=1.0), solver="lbfgs")
    assert array.tobytes() == before
