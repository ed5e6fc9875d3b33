"""The solver of kernel machines: judged by NumPy and a convex solver, block by block."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import rbf_kernel

from solvers.cases import SMOOTHING, every_dtype, make_data, make_objective, run, some_dual_steps
from topksvm.data import ComputedGram, GivenGram, make_kernel_problem
from topksvm.solvers import Setup, Status, Stopping, make_loss, train
from topksvm.solvers._kernel_sdca import KernelSDCA


def dot(X, Y):
    product = X @ Y.T
    return product.toarray() if sp.issparse(product) else product


def rbf(X, Y):
    return rbf_kernel(X, Y, gamma=0.1)


def make_parts(objective, gram):
    loss = make_loss(objective.name, objective.k, objective.smoothing)
    return loss, make_kernel_problem(gram, objective.y, objective.radii, objective.m)


def make_solver(objective, gram):
    """Return the solver before its first pass, to be driven by hand."""
    return KernelSDCA(*make_parts(objective, gram))


def fit(objective, gram, callback=None, **stopping):
    """Return the result of a run."""
    loss, problem = make_parts(objective, gram)
    return train(lambda: problem, loss, Setup(stopping=Stopping(**stopping), callback=callback), 1)


def features_of(K):
    """Return rows whose inner products are K, so that the linear objective judges kernels."""
    values, vectors = np.linalg.eigh(K)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def judge(objective, result, K, tol, rtol=1e-9):
    """Compare the certificate with P and D by plain NumPy, for the kernel K."""
    linear = make_objective(
        objective.name, objective.k, objective.smoothing, features_of(K), objective.y, objective.C
    )
    support = np.flatnonzero(result.duals.count)
    weights = result.weights.astype(np.float64) @ linear.X[support]
    primal, dual = linear.primal(weights), linear.dual(result.duals)
    assert linear.violation(result.duals) <= 1e-9
    assert result.certificate.primal == pytest.approx(primal, rel=rtol)
    assert result.certificate.dual == pytest.approx(dual, rel=rtol)
    assert -1e-9 * primal <= primal - dual <= tol * primal * (1 + 1e-6)
    return primal


@some_dual_steps
def test_certificate_is_true(name, k, smoothing):
    X, y = make_data(n=70)
    objective = make_objective(name, k, smoothing, X, y)
    result = fit(objective, ComputedGram(rbf, X, 1.0, 16), tol=1e-7)
    assert result.status is Status.SOLVED
    judge(objective, result, rbf(X, X), 1e-7)


@pytest.mark.parametrize("smoothing", [0.0, SMOOTHING])
def test_certificate_is_true_in_single_precision(smoothing):
    """It is about the coefficients in float32 and the kernel of the rows in float64."""
    X, y = make_data(n=70, dtype=np.float32)
    objective = make_objective("topk_hinge_alpha", 3, smoothing, X, y)
    result = fit(objective, ComputedGram(rbf, X, 1.0, 16), tol=1e-4)
    assert result.status is Status.SOLVED
    assert result.weights.dtype == np.float32
    judge(objective, result, rbf(X.astype(float), X.astype(float)), 1e-4)


@some_dual_steps
def test_linear_kernel_is_the_linear_machine(name, k, smoothing):
    X, y = make_data(n=60)
    objective = make_objective(name, k, smoothing, X, y)
    linear = run(objective, solver="sdca", tol=1e-7, max_iter=10**5)
    result = fit(objective, GivenGram(dot(X, X)), tol=1e-7, max_iter=10**5)
    assert result.certificate.primal == pytest.approx(linear.certificate.primal, rel=2e-7)


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_rbf_agrees_with_a_quadratic_program(C):
    """Of the multiclass SVM of Crammer and Singer: the duals of each example sum to C at most."""
    X, y = make_data(n=25, m=4)
    n, m, K = 25, 4, rbf(X, X)
    x = cp.Variable((n, m), nonneg=True)
    true = np.eye(m)[y]
    a = cp.multiply(true, cp.sum(x, axis=1, keepdims=True) @ np.ones((1, m))) - x
    root = np.linalg.cholesky(K + 1e-13 * np.eye(n))
    dual = cp.sum(x) - 0.5 * cp.sum_squares(root.T @ a)
    constraints = [cp.sum(x, axis=1) <= C, cp.multiply(true, x) == 0]
    best = cp.Problem(cp.Maximize(dual), constraints).solve(
        solver=cp.CLARABEL, tol_gap_rel=1e-10, tol_gap_abs=1e-10, tol_feas=1e-10
    )
    objective = make_objective("topk_hinge_alpha", 1, 0.0, X, y, C)
    result = fit(objective, ComputedGram(rbf, X, 1.0, 8), tol=1e-8, max_iter=10**5)
    assert result.status is Status.SOLVED
    assert result.certificate.primal == pytest.approx(best, rel=1e-7)
    scores = K[:, np.flatnonzero(result.duals.count)] @ result.weights.T
    np.testing.assert_allclose(scores, K @ a.value, atol=2e-3)


@pytest.mark.parametrize("name", ["topk_hinge_alpha", "softmax"])
def test_block_sizes_agree(name):
    """Steps in blocks are steps one by one, but for rounding."""
    X, y = make_data(n=90, m=12)
    objective = make_objective(name, 1, 0.0, X, y)
    scores, duals = [], []
    for block in (1, 7, 16, 50, 64):
        solver = make_solver(objective, ComputedGram(rbf, X, 1.0, block))
        assert solver.block == block
        for _ in range(4):
            solver.full_pass(Stopping())
        scores.append(solver.state.weights)
        duals.append(objective.dense(solver.duals))
    for other in range(1, 5):
        np.testing.assert_allclose(scores[other], scores[0], rtol=0, atol=1e-8)
        np.testing.assert_allclose(duals[other], duals[0], rtol=0, atol=1e-8)


def test_scores_and_gaps_are_kept_up_to_date():
    X, y = make_data(n=90, m=12)
    objective = make_objective("topk_hinge_beta", 3, 0.0, X, y)
    solver = make_solver(objective, ComputedGram(rbf, X, 1.0, 16))
    for _ in range(3):
        solver.full_pass(Stopping())
        table = objective.dense(solver.duals)
        a = -table
        a[np.arange(90), y] += table.sum(axis=1)
        np.testing.assert_allclose(solver.state.weights, (rbf(X, X) @ a).T, atol=1e-12)
        estimate = solver.measure()
        assert (solver.gaps >= -1e-12).all()
        assert solver.gaps.sum() == pytest.approx(estimate.gap, rel=1e-9)
        _, certificate = solver.certify()
        assert estimate.primal == pytest.approx(certificate.primal, rel=1e-12)
        assert estimate.dual == pytest.approx(certificate.dual, rel=1e-12)


class WatchedGram(ComputedGram):
    """Notes the rows that each pass asks for."""

    def __init__(self, *args):
        super().__init__(*args)
        self.visited = []

    def begin_pass(self, visited):
        self.visited.append([])
        super().begin_pass(visited)

    def slots(self, index):
        self.visited[-1].extend(index.tolist())
        return super().slots(index)


def test_the_dual_never_falls_and_settled_examples_are_left_out():
    X, y = make_data(n=120, m=5, overlap=0.4)
    objective = make_objective("topk_hinge_alpha", 1, 0.0, X, y, C=1.0)
    bounds, gram = [], WatchedGram(rbf, X, 1.0, 16)
    solver, visited = make_solver(objective, gram), gram.visited
    for _ in range(12):
        gaps = solver.gaps.copy()
        solver.full_pass(Stopping())
        bounds.append(solver.measure().dual)
        left_out = np.setdiff1d(np.arange(120), visited[-1])
        assert len(set(visited[-1])) == len(visited[-1])
        assert gaps[left_out].sum() <= 0.01 * gaps.sum()
    assert len(visited[0]) == 120
    assert len(visited[-1]) < 120
    assert (np.diff(bounds) >= -1e-12).all()
    assert bounds[-1] > bounds[0]


@every_dtype
@pytest.mark.parametrize("form", [np.ascontiguousarray, sp.csr_array], ids=["dense", "csr"])
def test_the_cache_does_not_change_a_bit(form, dtype):
    X, y = make_data(n=301, m=6, dtype=dtype)
    objective = make_objective("topk_hinge_alpha", 2, 0.0, X, y, C=2.0)
    row = 301 * X.dtype.itemsize / 2**20  # In megabytes.
    results, grams = [], []
    for n_rows in (64, 100, 301):
        gram = ComputedGram(rbf, form(X), (n_rows + 0.5) * row, 64)
        assert gram.store.nbytes <= (n_rows + 0.5) * row * 2**20
        results.append(fit(objective, gram, tol=1e-4))
        grams.append(gram)
    assert grams[0].n_computed > grams[1].n_computed > grams[2].n_computed == 301
    for other in results[:2]:
        np.testing.assert_array_equal(other.weights, results[2].weights)
        assert other.certificate == results[2].certificate
        assert other.n_iter == results[2].n_iter > 1


def test_a_budget_below_one_block_holds_fewer_rows():
    X, y = make_data(n=90, m=5)
    objective = make_objective("topk_hinge_alpha", 1, 0.0, X, y)
    tiny = ComputedGram(rbf, X, 1e-9, 64)
    assert tiny.store.shape == (1, 90)
    result = fit(objective, tiny, tol=1e-6)
    judge(objective, result, rbf(X, X), 1e-6)


def test_rows_in_the_cache_are_those_of_their_owners():
    """Whatever passes ask for, in whatever order, and with whatever left out."""
    X, _ = make_data(n=100)
    K = rbf(X, X)
    gram = ComputedGram(rbf, X, 50.5 * 800 / 2**20, 16)
    assert gram.n_kept == 34
    rng = np.random.default_rng(0)
    for _ in range(20):
        order = rng.permutation(100)[: rng.integers(1, 100)]
        gram.begin_pass(order)
        for start in range(0, order.size, 16):
            index = order[start : start + 16]
            slots = gram.slots(index)
            assert np.unique(slots).size == index.size
            np.testing.assert_allclose(gram.store[slots], K[index], atol=1e-14)
    before = gram.n_computed
    gram.begin_pass(order[:20])
    gram.slots(order[:16])
    gram.slots(order[16:20])
    gram.slots(order[:16])
    assert gram.n_computed - before <= 20


def test_weight_zero_takes_no_part():
    X, y = make_data(n=60)
    C = np.full(60, 0.5)
    C[::3] = 0.0
    objective = make_objective("topk_hinge_alpha", 2, 0.0, X, y, C)
    result = fit(objective, ComputedGram(rbf, X, 1.0, 16), tol=1e-7)
    assert not result.duals.count[::3].any()
    judge(objective, result, rbf(X, X), 1e-7)


def test_examples_of_norm_zero():
    X, y = make_data(n=40)
    X[:5] = 0.0
    objective = make_objective("topk_hinge_beta", 2, 0.0, X, y)
    result = fit(objective, ComputedGram(dot, X, 1.0, 16), tol=1e-7)
    assert result.status is Status.SOLVED
    judge(objective, result, dot(X, X), 1e-7)


def test_budgets():
    X, y = make_data(n=60)
    objective = make_objective("topk_hinge_alpha", 1, 0.0, X, y, C=100.0)
    few = fit(objective, GivenGram(rbf(X, X)), tol=1e-12, max_iter=3)
    assert few.status is Status.MAX_ITER
    assert few.n_iter == 3
    judge(objective, few, rbf(X, X), 1.0)
    result = fit(objective, ComputedGram(rbf, X, 1.0, 8), tol=1e-12, max_time=1e-9)
    assert result.status is Status.MAX_TIME
    assert np.count_nonzero(result.duals.count) <= 8  # Not even the first pass was ended.
    judge(objective, result, rbf(X, X), 1.0)


def test_interrupt_leaves_a_certified_model():
    X, y = make_data(n=60)
    objective = make_objective("topk_hinge_alpha", 1, 0.0, X, y, C=100.0)
    calls = []

    def interrupt(progress):
        calls.append(progress)
        if len(calls) == 2:
            raise KeyboardInterrupt

    result = fit(objective, GivenGram(rbf(X, X)), interrupt, tol=1e-10)
    assert result.status is Status.INTERRUPTED
    assert result.n_iter == 2
    judge(objective, result, rbf(X, X), 1.0)


def test_a_negative_norm_is_noticed():
    """An indefinite K that passed all checks at the door must not be certified."""
    X, y = make_data(n=60)
    K = rbf(X, X) - 0.9 * np.ones((60, 60)) - 0.5 * np.outer(X[:, 0], X[:, 0]) / 9
    np.fill_diagonal(K, 1e-3)
    objective = make_objective("topk_hinge_alpha", 1, 0.0, X, y, C=1.0)
    with pytest.raises(ValueError, match="squared norm -"):
        fit(objective, GivenGram(K), max_iter=5)
