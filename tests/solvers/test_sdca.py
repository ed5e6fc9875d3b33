"""Dual coordinate ascent against its definition, a convex solver, and itself in other modes."""

from __future__ import annotations

import inspect
import warnings
from collections import Counter
from itertools import pairwise, permutations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import LinearSVC

from solvers.cases import (
    FORMATS,
    ROWS,
    SMOOTHING,
    TOLERANCE,
    dual_steps,
    every_bias,
    every_hinge,
    every_step,
    full_pass,
    make_data,
    make_objective,
    make_parts,
    make_sdca,
    make_sparse_rows,
    optimum,
    plain_hinges,
    run,
    some_dual_steps,
    with_formats,
    with_rows,
)
from solvers.objective import check
from topksvm.solvers import SDCA, SDCAOptions, Status, Stopping
from topksvm.solvers._passes import (
    HIGHEST_RATE,
    LOWEST_RATE,
    RATE_STEP,
    choose_visits,
    shuffle,
)
from topksvm.solvers._steps import make_candidates


@with_rows(dual_steps)
@every_bias
def test_certificate_is_true_and_the_gap_is_reached(name, k, smoothing, dtype, form, bias):
    X, y = make_sparse_rows(dtype=dtype)
    objective = make_objective(name, k, smoothing, FORMATS[form](X), y, bias=bias)
    result = run(objective, solver="sdca", tol=TOLERANCE[dtype])
    assert result.status is Status.SOLVED
    assert result.weights.shape == (7, 12 + (bias != 0))
    assert result.weights.dtype == dtype
    check(objective, result, TOLERANCE[dtype])


@with_formats(some_dual_steps)
@every_bias
def test_optimum_is_that_of_a_convex_solver(name, k, smoothing, form, bias):
    X, y = make_data(15, 4, 5)
    objective = make_objective(name, k, smoothing, FORMATS[form](X), y, C=0.5, bias=bias)
    result = run(objective, solver="sdca", tol=1e-7)
    primal, dual = check(objective, result, 1e-7)
    found = optimum(objective)
    assert found == pytest.approx(primal, rel=1e-5)
    assert found == pytest.approx(dual, rel=1e-5)


@pytest.mark.parametrize("smoothing", [0.0, SMOOTHING])
@every_hinge
def test_candidates_do_not_change_a_full_pass(name, smoothing):
    """The step on the classes in play is the step on all of them, or is taken again."""
    X, y = make_data(300, 5, 40)
    objective = make_objective(name, 3, smoothing, X, y, C=0.3)
    solvers = [make_sdca(objective, active=active, block_size=16) for active in (True, False)]
    assert solvers[0].use_active
    assert not solvers[1].use_active
    for _ in range(5):
        for solver in solvers:
            full_pass(solver)
        estimates = [solver.gap + solver.dual for solver in solvers]
        if smoothing == 0.0:
            assert estimates[0] == pytest.approx(estimates[1], rel=1e-9)
        assert solvers[0].dual == pytest.approx(solvers[1].dual, rel=1e-9)
        weights = [solver.weights for solver in solvers]
        np.testing.assert_allclose(weights[0], weights[1], rtol=0, atol=1e-8)


@some_dual_steps
@every_bias
def test_blocks_make_the_iterates_of_sequential_steps(name, k, smoothing, bias):
    X, y = make_sparse_rows(n=150)
    results = []
    kinds = [("dense", size) for size in (1, 7, 64, 256)]
    if ("csr", np.float64) in ROWS[name]:
        kinds.append(("csr", None))
    for form, block_size in kinds:
        objective = make_objective(name, k, smoothing, FORMATS[form](X), y, bias=bias)
        options = {"block_size": block_size, "active": False, "tol": 0.0, "max_iter": 4}
        result = run(objective, solver="sdca", **options)
        assert result.status is Status.MAX_ITER
        assert result.n_iter == 4
        check(objective, result, np.inf)
        results.append((result, objective.dense(result.duals)))
    (sequential, duals), *blocked = results
    # Far from converged, so that other iterates would be seen.
    assert sequential.certificate.relative_gap > 1e-6
    scale = np.abs(sequential.weights).max()
    for other, other_duals in blocked:
        np.testing.assert_allclose(other.weights, sequential.weights, rtol=0, atol=1e-8 * scale)
        np.testing.assert_allclose(other_duals, duals, rtol=0, atol=1e-8 * 0.3)
        assert other.certificate.primal == pytest.approx(sequential.certificate.primal, rel=1e-8)
        assert other.certificate.dual == pytest.approx(sequential.certificate.dual, rel=1e-8)


@with_formats(some_dual_steps)
@pytest.mark.parametrize("kind", ["full", "active"])
def test_dual_never_falls(name, k, smoothing, form, kind):
    X, y = make_sparse_rows(n=120, d=10, m=30)
    X = FORMATS[form](X)
    objective = make_objective(name, k, smoothing, X, y, C=1.0)
    solver = make_sdca(objective, block_size=16)
    steps = [full_pass] + [full_pass if kind == "full" else SDCA.active_pass] * 8
    values = [0.0]
    for step in steps:
        step(solver)
        values.append(objective.dual(solver.duals))
        assert objective.violation(solver.duals) <= 1e-9
    assert all(after >= before - 1e-12 * abs(before) for before, after in pairwise(values))
    assert values[2] > values[1] * (1 + 1e-6), "the passes do nothing"
    assert solver.certify()[1].dual == pytest.approx(values[-1], rel=1e-9)


def test_visits_keep_to_the_rates():
    rng = np.random.default_rng(0)
    members, idle = np.arange(1, 41), rng.random(50) < 0.3
    rates = rng.uniform(LOWEST_RATE, HIGHEST_RATE, 50)
    candidates = make_candidates(50, 1)._replace(idle=idle, visit_rate=rates)
    visits, order = np.zeros(50), np.empty(2 * members.size, np.int64)
    for seed in range(1, 201):
        n = choose_visits(members, candidates, seed, order)
        visits += np.bincount(order[:n], minlength=50)
    taking_part = np.isin(np.arange(50), members) & ~idle
    assert not visits[~taking_part].any()
    share = rates[taking_part] / rates[taking_part].sum()
    expected = 200 * members.size * share  # So few that all are visited more than once.
    np.testing.assert_allclose(visits[taking_part], expected, rtol=0, atol=1.0 + 1e-9)


def test_visits_come_in_any_order():
    """Each of the 24 orders about as often, and each number at each place."""
    found = Counter()
    for seed in np.random.default_rng(0).integers(1, 1 << 62, 4800).tolist():
        order = np.arange(4)
        shuffle(order, 4, seed)
        found[tuple(order.tolist())] += 1
    assert set(found) == set(permutations(range(4)))
    # Chi squared with 23 degrees of freedom is above 50 once in a thousand.
    assert sum((count - 200) ** 2 / 200 for count in found.values()) < 50


def test_examples_that_gain_are_visited_more_often():
    X, y = make_data(200, 8, 30)
    solver = make_sdca(make_objective("topk_hinge_alpha", 2, 0.0, X, y, C=1.0))
    full_pass(solver)
    gain, n_visits = solver.active_pass()
    mean_gain, rates = gain / n_visits, solver.state.candidates.visit_rate
    assert (rates == 1.0).all()
    left_alone = solver.state.candidates.idle.copy()
    assert left_alone.any()
    solver.active_pass(mean_gain)
    assert 1.0 - RATE_STEP <= rates.min() < 1.0 - 0.9 * RATE_STEP
    assert rates.max() > 1.0 + 0.5 * RATE_STEP
    assert (rates[left_alone] == 1.0).all()
    for _ in range(100):
        solver.active_pass(mean_gain)
    assert rates.min() == LOWEST_RATE, "all gains are small in the end"


def test_active_passes_wait_for_the_second_full_one_of_a_cold_start():
    objective = make_objective("topk_hinge_alpha", 2, 0.0, *make_data(120, 8, 30), C=1.0)
    cold = make_sdca(objective)
    made = []
    for solver in (cold, SDCA(*make_parts(objective), SDCAOptions(), cold.duals)):
        for _ in range(2):
            before = solver.n_passes
            full_pass(solver)
            solver.continue_phase(Stopping())
            made.append(solver.n_passes - before)
    assert made[0] == 1
    assert min(made[1:]) > 1


@plain_hinges
def test_active_and_full_passes_agree_on_the_optimum(name, k, smoothing):
    X, y = make_data(120, 8, 30)
    objective = make_objective(name, k, smoothing, X, y)
    primals = []
    for active in (True, False):
        result = run(objective, solver="sdca", active=active, tol=1e-6, max_iter=5000)
        primals.append(check(objective, result, 1e-6)[0])
    assert primals[0] == pytest.approx(primals[1], rel=1e-6)


@with_formats(every_hinge)
@pytest.mark.parametrize("k", [13, 20, 59])
def test_k_beyond_the_number_of_candidates(name, k, form):
    """The sets of the duals may need more classes than an active pass looks at."""
    X, y = make_data(120, 8, 60)
    objective = make_objective(name, k, 0.0, FORMATS[form](X), y, C=1.0)
    result = run(objective, solver="sdca", tol=1e-5)
    assert result.status is Status.SOLVED
    check(objective, result, 1e-5)


@every_hinge
@pytest.mark.parametrize("k", [13, 20])
def test_dual_never_falls_with_k_beyond_the_number_of_candidates(name, k):
    X, y = make_data(120, 8, 60)
    objective = make_objective(name, k, 0.0, X, y, C=1.0)
    solver = make_sdca(objective)
    last = 0.0
    for _ in range(15):
        for step in (full_pass, SDCA.active_pass, SDCA.active_pass):
            step(solver)
            assert objective.violation(solver.duals) <= 1e-9
            dual = objective.dual(solver.duals)
            assert dual >= last - 1e-12 * abs(last)
            last = dual


@dual_steps
def test_same_seed_gives_the_same_result(name, k, smoothing):
    X, y = make_data(60)
    objective = make_objective(name, k, smoothing, X, y)
    one, two = (run(objective, solver="sdca", tol=1e-4, seed=3) for _ in range(2))
    np.testing.assert_array_equal(one.weights, two.weights)
    np.testing.assert_array_equal(objective.dense(one.duals), objective.dense(two.duals))
    assert one.certificate == two.certificate
    assert one.n_iter == two.n_iter
    other = run(objective, solver="sdca", tol=1e-4, seed=4)
    assert not np.array_equal(one.weights, other.weights)


@with_formats(every_hinge)
def test_k1_is_crammer_and_singer(name, form):
    X, y = make_data(80, 6, 5)
    objective = make_objective(name, 1, 0.0, FORMATS[form](X), y, C=0.2)
    ours, _ = check(objective, run(objective, tol=1e-7), 1e-7)
    if "crammer_singer" not in (inspect.getdoc(LinearSVC) or ""):
        pytest.fail("scikit-learn has removed crammer_singer: compare with optimum() instead")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # In case it is deprecated.
        peer = LinearSVC(
            multi_class="crammer_singer", fit_intercept=False, C=0.2, tol=1e-9, max_iter=100_000
        ).fit(objective.X, y)
    assert ours == pytest.approx(objective.primal(peer.coef_), rel=1e-4)


@with_formats(some_dual_steps)
def test_warm_start_with_a_larger_weight_of_the_loss(name, k, smoothing, form):
    X, y = make_data(120, 8, 10)
    X = FORMATS[form](X)
    small = make_objective(name, k, smoothing, X, y, C=0.1)
    large = make_objective(name, k, smoothing, X, y, C=0.12)
    first = run(small, solver="sdca", tol=1e-6)
    cold = run(large, solver="sdca", tol=1e-6)
    warm = run(large, solver="sdca", tol=1e-6, warm=first)
    assert check(large, warm, 1e-6)[0] == pytest.approx(check(large, cold, 1e-6)[0], rel=1e-6)
    one_pass = {"solver": "sdca", "tol": 0.0, "max_iter": 1, "active": False}
    early = run(large, warm=first, **one_pass)
    assert early.certificate.dual > run(large, **one_pass).certificate.dual


@every_hinge
@pytest.mark.parametrize("m", [3, 10, 40])
def test_warm_start_leaves_the_earlier_result_alone(name, m):
    """Whether or not there is room left in its log."""
    X, y = make_data(80, 6, m)
    objective = make_objective(name, 2, 0.0, X, y, C=1.0)
    for max_iter in (1, 2, 5):
        first = run(objective, tol=1e-9, max_iter=max_iter)
        before = objective.dense(first.duals), first.weights.copy()
        run(objective, tol=1e-9, max_iter=3, warm=first)
        np.testing.assert_array_equal(objective.dense(first.duals), before[0])
        np.testing.assert_array_equal(first.weights, before[1])


def test_warm_start_from_the_solution_takes_no_pass():
    X, y = make_data(120, 8, 10)
    objective = make_objective("topk_hinge_alpha", 3, 0.0, X, y)
    first = run(objective, tol=1e-6)
    again = run(objective, tol=2e-6, warm=first)
    assert again.n_iter == 0
    assert again.certificate.relative_gap <= 2e-6
    assert first.n_iter > 1


@with_rows(dual_steps)
def test_input_is_never_written(name, k, smoothing, form, dtype):
    X, y = make_sparse_rows(dtype=dtype)
    X = FORMATS[form](X)
    arrays = (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,)
    y.flags.writeable = False
    for array in arrays:
        array.flags.writeable = False
    before = [array.tobytes() for array in arrays] + [y.tobytes()]
    run(make_objective(name, k, smoothing, X, y), solver="sdca", tol=1e-3)
    assert [array.tobytes() for array in arrays] + [y.tobytes()] == before


@with_formats(every_step)
def test_weights_of_examples(name, form):
    k = 1 if name == "softmax" else 2
    X, y = make_data(15, 4, 5)
    C = np.random.default_rng(5).uniform(0.0, 2.0, len(y))
    C[[2, 7, 8]] = 0.0
    objective = make_objective(name, k, 0.0, FORMATS[form](X), y, C=C, bias=1.0)
    result = run(objective, solver="sdca", tol=1e-7)
    primal, _ = check(objective, result, 1e-7)
    assert optimum(objective) == pytest.approx(primal, rel=1e-5)


@with_formats(every_step)
def test_examples_of_weight_zero_have_no_influence(name, form):
    k = 1 if name == "softmax" else 3
    X, y = make_data(60)
    C = np.full(60, 0.3)
    ignored = np.arange(60) % 4 == 0
    C[ignored] = 0.0
    wild = X.copy()
    wild[ignored] *= -1e3
    objectives = [
        make_objective(name, k, 0.0, FORMATS[form](rows), y[keep], C=C[keep], n_classes=7)
        for rows, keep in [(X, slice(None)), (wild, slice(None)), (X[~ignored], ~ignored)]
    ]
    results = [run(objective, solver="sdca", tol=1e-6) for objective in objectives]
    for objective, result in zip(objectives, results, strict=True):
        check(objective, result, 1e-6)
    # The same steps but for rounding: blocks are cut from the examples that count.
    for other in results[1:]:
        np.testing.assert_allclose(other.weights, results[0].weights, rtol=1e-9, atol=1e-9)


def test_duplicating_an_example_is_doubling_its_weight():
    X, y = make_data(40)
    C = np.full(40, 0.3)
    C[:10] *= 2
    twice = np.concatenate([np.arange(40), np.arange(10)])
    weighted = make_objective("topk_hinge_alpha", 2, 0.0, X, y, C=C)
    repeated = make_objective("topk_hinge_alpha", 2, 0.0, X[twice], y[twice], C=np.full(50, 0.3))
    values = [check(o, run(o, tol=1e-7), 1e-7)[0] for o in (weighted, repeated)]
    assert values[0] == pytest.approx(values[1], rel=1e-6)


def test_smoothing_lowers_the_optimum_by_at_most_its_bound():
    """``phi - gamma/2 <= phi_gamma <= phi``: the dual sets of radius 1 are in the unit ball."""
    X, y = make_data(40)
    plain, smooth = (
        make_objective("topk_hinge_alpha", 2, gamma, X, y) for gamma in (0.0, SMOOTHING)
    )
    values = [run(o, solver="sdca", tol=1e-7).certificate.primal for o in (plain, smooth)]
    assert values[0] - 0.5 * SMOOTHING * 0.3 * 40 <= values[1] < values[0]


def test_history_tells_the_gaps_in_order():
    X, y = make_data(200, 8, 20)
    objective = make_objective("topk_hinge_alpha", 2, 0.0, X, y, C=1.0)
    result = run(objective, tol=1e-6)
    for line in result.history:
        assert line.gap == line.primal - line.dual
    for before, after in pairwise(result.history):
        assert before.epoch < after.epoch
        assert before.seconds <= after.seconds
        assert before.dual <= after.dual * (1 + 1e-12)
    assert result.history[-1].epoch == result.n_iter
