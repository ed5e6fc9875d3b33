"""TopPush: the projection, the optimum against a QP solver, the certificate, the estimator."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from topksvm.baselines._equal_sums import project_equal_sums
from topksvm.baselines._top_push import TopPush
from topksvm.baselines._top_push_solver import Options, Problem, Stop, solve_top_push

REDUCTIONS = ("multiclass", "ovr")


def data(n=36, d=5, m=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % m
    X = rng.normal(size=(n, d)) + 1.5 * rng.normal(size=(m, d))[y]
    return X, y


def pairs(X, y):
    """Write the reduction down: all pairs of an example and a class, and which are positive."""
    n, d = X.shape
    m = y.max() + 1
    Z = np.zeros((n * m, m * d))
    for i in range(n):
        for c in range(m):
            Z[i * m + c, c * d : (c + 1) * d] = X[i]
    return Z, (np.arange(m) == y[:, None]).ravel()


def binary_problems(X, y, reduction):
    """Return the binary problems ``(examples, is positive)``, in the order of the weights."""
    if reduction == "multiclass":
        return [pairs(X, y)]
    return [(X, y == c) for c in range(y.max() + 1)]


def primal(Z, positive, w, C):
    scores = Z @ w
    losses = np.maximum(0.0, 1.0 + scores[~positive].max() - scores[positive])
    return 0.5 * w @ w + C * np.sum(losses**2)


def optimum(Z, positive, C):
    """Return the optimal value and weights by Clarabel."""
    cp = pytest.importorskip("cvxpy")
    w = cp.Variable(Z.shape[1])
    best = cp.max(Z[~positive] @ w)
    losses = cp.sum_squares(cp.pos(1.0 + best - Z[positive] @ w))
    task = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(w) + C * losses))
    task.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return task.value, w.value


def random_points():
    rng = np.random.default_rng(0)
    for n_pos, n_neg, shift in [(1, 1, 0), (3, 7, 0), (50, 2, 1), (2, 50, -1), (20, 20, -3)]:
        a, b = shift + rng.normal(size=n_pos), shift + rng.normal(size=n_neg)
        yield a, b
        yield np.round(a), np.round(b)  # Ties.
        yield 1e6 * a, 1e6 * b


@pytest.mark.parametrize(("a", "b"), list(random_points()))
def test_projection_satisfies_the_optimality_conditions(a, b):
    alpha, beta = project_equal_sums(a, b)
    scale = max(1.0, np.abs(a).max(), np.abs(b).max())
    assert (alpha >= 0).all()
    assert (beta >= 0).all()
    assert abs(alpha.sum() - beta.sum()) <= 1e-12 * scale * (a.size + b.size)
    # alpha = max(0, a - t) and beta = max(0, b + t) for one t.
    moved = np.append((a - alpha)[alpha > 0], (beta - b)[beta > 0])
    if moved.size:
        t = moved.mean()
        np.testing.assert_allclose(moved, t, atol=1e-9 * scale)
        assert (a[alpha == 0] <= t + 1e-9 * scale).all()
        assert (-b[beta == 0] >= t - 1e-9 * scale).all()
    else:
        assert a.max() <= (-b).min()


def test_projection_equals_a_qp_solver():
    cp = pytest.importorskip("cvxpy")
    for a, b in random_points():
        scale = max(1.0, np.abs(a).max(), np.abs(b).max())
        x, z = cp.Variable(a.size, nonneg=True), cp.Variable(b.size, nonneg=True)
        distance = cp.sum_squares(x - a / scale) + cp.sum_squares(z - b / scale)
        cp.Problem(cp.Minimize(distance), [cp.sum(x) == cp.sum(z)]).solve(
            solver=cp.CLARABEL, tol_gap_abs=1e-13, tol_gap_rel=1e-13, tol_feas=1e-12
        )
        alpha, beta = project_equal_sums(a, b)
        np.testing.assert_allclose(alpha / scale, x.value, atol=1e-4)
        np.testing.assert_allclose(beta / scale, z.value, atol=1e-4)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("C", [0.003, 0.3, 30.0])
@pytest.mark.parametrize("shape", [(36, 5, 3), (24, 30, 4), (60, 2, 2)])
def test_optimum_of_a_qp_solver(reduction, C, shape):
    X, y = data(*shape)
    model = TopPush(C, reduction=reduction, tol=1e-7, max_iter=100_000).fit(X, y)
    problems = binary_problems(X, y, reduction)
    weights = model.coef_.reshape(len(problems), -1)
    best = [optimum(*problem, C) for problem in problems]
    ours = sum(primal(*p, w, C) for p, w in zip(problems, weights, strict=True))
    value = sum(v for v, _ in best)
    assert model.certificate_.primal == pytest.approx(ours, rel=1e-12)
    assert ours == pytest.approx(value, rel=1e-6)
    assert model.certificate_.dual <= value * (1 + 1e-7)
    exact = np.stack([w for _, w in best])
    assert np.linalg.norm(weights - exact) <= 2e-3 * np.linalg.norm(exact)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_the_duals_prove_the_certificate(reduction):
    X, y = data()
    C, rows = 0.5, np.arange(len(data()[1]))
    result = solve_top_push(Problem(X, y, 3, reduction, C), Options(tol=1e-5))
    alpha, beta = result.duals[rows, y], -result.duals
    beta[rows, y] = 0.0
    assert (alpha >= 0).all()
    assert (beta >= 0).all()
    if reduction == "multiclass":
        assert alpha.sum() == pytest.approx(beta.sum(), rel=1e-12)
    else:
        np.testing.assert_allclose(np.bincount(y, alpha), beta.sum(axis=0), rtol=1e-12)
    W = sum(np.outer(result.duals[i], X[i]) for i in rows)
    dual = alpha.sum() - np.sum(alpha**2) / (4 * C) - 0.5 * np.sum(W * W)
    assert result.certificate.dual == pytest.approx(dual, rel=1e-12)
    assert 0 <= result.certificate.relative_gap <= 1e-5


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_warm_start_gives_the_same_optimum_in_fewer_steps(reduction):
    X, y = data(120, 8, 5)
    options = Options(tol=1e-6, max_iter=20_000)
    first = solve_top_push(Problem(X, y, 5, reduction, 0.1), options)
    again = solve_top_push(Problem(X, y, 5, reduction, 0.12), options, first.duals)
    cold = solve_top_push(Problem(X, y, 5, reduction, 0.12), options)
    assert again.certificate.primal == pytest.approx(cold.certificate.primal, rel=2e-6)
    assert again.n_iter < cold.n_iter


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_sparse_float32_and_threads(reduction):
    X, y = data(90, 6, 4)
    X[np.abs(X) < 0.5] = 0.0
    plain = TopPush(0.1, reduction=reduction, n_jobs=1).fit(X, y)
    jobs = TopPush(0.1, reduction=reduction, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(plain.coef_, jobs.coef_)
    sparse = TopPush(0.1, reduction=reduction).fit(sp.csr_array(X), y)
    assert sparse.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=2e-3)
    single = TopPush(0.1, reduction=reduction).fit(X.astype(np.float32), y)
    assert single.coef_.dtype == np.float32
    wide = single.coef_.astype(np.float64)
    problems = binary_problems(X.astype(np.float32).astype(np.float64), y, reduction)
    weights = wide.reshape(len(problems), -1)
    value = sum(primal(*p, w, 0.1) for p, w in zip(problems, weights, strict=True))
    assert single.certificate_.primal == pytest.approx(value, rel=1e-12)


def unequal(sizes=(4, 9, 20), d=4, seed=3):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(sizes)), sizes)
    return rng.normal(size=(y.size, d)) + rng.normal(size=(len(sizes), d))[y], y


def paper_optimum(Z, positive, strength):
    """Return the weights of ``lambda / 2 ||w||^2 + 1 / n+ sum_i l``, as the paper has it."""
    cp = pytest.importorskip("cvxpy")
    w = cp.Variable(Z.shape[1])
    losses = cp.pos(1.0 + cp.max(Z[~positive] @ w) - Z[positive] @ w)
    risk = cp.sum_squares(losses) / np.count_nonzero(positive)
    task = cp.Problem(cp.Minimize(strength / 2 * cp.sum_squares(w) + risk))
    task.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return w.value


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("strength", [0.01, 1.0])
def test_lambda_of_the_paper_with_classes_of_unequal_size(reduction, strength):
    X, y = unequal()
    n_positives = y.size if reduction == "multiclass" else np.bincount(y)
    C = 1.0 / (strength * n_positives)
    model = TopPush(C, reduction=reduction, tol=1e-9, max_iter=100_000).fit(X, y)
    problems = binary_problems(X, y, reduction)
    exact = np.concatenate([paper_optimum(*problem, strength) for problem in problems])
    np.testing.assert_allclose(
        model.coef_.ravel(), exact, rtol=0, atol=1e-4 * np.linalg.norm(exact)
    )


def test_a_c_for_each_class_is_that_of_its_problem():
    X, y = unequal()
    Cs = np.array([0.5, 0.02, 3.0])
    options = {"reduction": "ovr", "tol": 1e-8, "max_iter": 100_000}
    together = TopPush(Cs, **options).fit(X, y)
    value = sum(
        primal(X, y == c, w, C) for c, (w, C) in enumerate(zip(together.coef_, Cs, strict=True))
    )
    assert together.certificate_.primal == pytest.approx(value, rel=1e-12)
    for c, C in enumerate(Cs):
        alone = TopPush(C, **options).fit(X, y)
        np.testing.assert_allclose(together.coef_[c], alone.coef_[c], rtol=1e-3, atol=1e-4)
    same = [TopPush(C, reduction="ovr").fit(X, y).coef_ for C in (0.5, np.full(3, 0.5), [0.5] * 3)]
    np.testing.assert_allclose(same[1], same[0], rtol=1e-9)
    np.testing.assert_array_equal(same[1], same[2])
    warm = solve_top_push(
        Problem(X, y, 3, "ovr", 1.1 * Cs),
        Options(tol=1e-6),
        solve_top_push(Problem(X, y, 3, "ovr", Cs), Options(tol=1e-6)).duals,
    )
    assert 0 <= warm.certificate.relative_gap <= 1e-6


@pytest.mark.parametrize(
    ("C", "reduction", "message"),
    [
        ([1.0, 2.0, 3.0], "multiclass", r"shape \(3,\) with reduction = 'multiclass'"),
        ([1.0, 2.0], "ovr", r"shape \(2,\) .* 3 classes; it must be"),
        ([1.0, 0.0, 1.0], "ovr", "not positive and finite"),
        ([1.0, np.inf, 1.0], "ovr", "not positive and finite"),
        ([1.0, np.nan, 1.0], "ovr", "not positive and finite"),
        (-1.0, "ovr", "'C' parameter"),
    ],
)
def test_bad_c(C, reduction, message):
    with pytest.raises(ValueError, match=message):
        TopPush(C, reduction=reduction).fit(*unequal())


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_a_small_change_is_not_a_solution(reduction):
    """The first steps of a hard problem change little, far from its optimum."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 10)), np.arange(200) % 4
    problem = Problem(X, y, 4, reduction, 100.0)
    far = solve_top_push(problem, Options(tol=1e-3, change=0.5))
    assert far.status is Stop.SMALL_CHANGE
    assert far.certificate.relative_gap > 0.5
    with pytest.warns(
        ConvergenceWarning, match=r"Not solved .* change_tol\. .* gap is 0\.\d+: .*Lower change_tol"
    ):
        model = TopPush(100.0, reduction=reduction, change_tol=0.5).fit(X, y)
    assert model.certificate_ == far.certificate
    near = solve_top_push(problem, Options(tol=1.0, change=0.5))
    assert near.status is Stop.SOLVED  # Without a warning: the gap is within tol.
    short = solve_top_push(problem, Options(tol=1e-3, max_iter=3))
    assert short.status is Stop.MAX_ITER


def test_rows_of_zeros():
    X, y = np.zeros((6, 2)), np.arange(6) % 3
    for reduction in REDUCTIONS:
        model = TopPush(2.0, reduction=reduction).fit(X, y)
        assert model.certificate_.primal == 12.0  # C times the examples.
        assert not model.coef_.any()


def test_warning_states_the_gap():
    X, y = data()
    with pytest.warns(ConvergenceWarning, match=r"relative duality gap is .*Raise max_iter"):
        model = TopPush(100.0, max_iter=3).fit(X, y)
    assert model.n_iter_ == 3
    assert model.history_[-1]["gap"] == model.certificate_.gap > 0


def test_progress(capsys):
    X, y = data()
    TopPush(0.1, verbose=1).fit(X, y)
    assert "relative gap" in capsys.readouterr().err


@parametrize_with_checks([TopPush(max_iter=300), TopPush(reduction="ovr", max_iter=300)])
@pytest.mark.filterwarnings("ignore")
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)
