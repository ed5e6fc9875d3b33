"""Small problems, and every loss that a solver can be asked for."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from solvers.objective import HINGES, Objective
from topksvm import solve
from topksvm.data import make_problem
from topksvm.solvers import SDCA, Run, SDCAOptions, Stopping, make_loss

SMOOTHING = 0.5
TOLERANCE = {np.float64: 1e-6, np.float32: 1e-3}
FORMATS = {"dense": np.ascontiguousarray, "csr": sp.csr_array}

every_dtype = pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["f64", "f32"])
every_format = pytest.mark.parametrize("form", FORMATS)
every_bias = pytest.mark.parametrize("bias", [0.0, 1.5], ids=["no-bias", "bias"])


ROWS = {
    "topk_hinge_alpha": (("dense", np.float64), ("dense", np.float32), ("csr", np.float64)),
    "topk_hinge_beta": (("dense", np.float64), ("csr", np.float32)),
    "topk_hinge_full": (("dense", np.float64), ("csr", np.float32)),
    "softmax": (("dense", np.float64), ("csr", np.float32)),
}
"""The formats and types of rows with which dual coordinate ascent is tested for a loss: each two of
the three occur together. To compile its kernels for one of them takes up to half a minute."""


def with_rows(mark):
    """Add ``form`` and ``dtype`` to a parametrisation by losses."""
    return _extended(mark, ("form", "dtype"), lambda form, dtype: (form, dtype))


def with_formats(mark):
    """Add ``form`` alone: that of rows in double precision."""
    return _extended(mark, ("form",), lambda form, dtype: (form,) if dtype is np.float64 else None)


def _extended(mark, more, choose):
    names, cases = mark.args
    names = (names,) if isinstance(names, str) else tuple(names)
    extended = []
    for case in cases:
        case = case if hasattr(case, "marks") else pytest.param(*np.atleast_1d(case).tolist())
        known = dict(zip(names, case.values, strict=True))
        everything = [(form, dtype) for form in FORMATS for dtype in TOLERANCE]
        rows = everything if known.get("solver") == "lbfgs" else ROWS[known["name"]]
        for values in filter(None, (choose(*pair) for pair in rows)):
            words = [case.id or "-".join(map(str, case.values))]
            words += [value if isinstance(value, str) else value.__name__ for value in values]
            extended.append(pytest.param(*case.values, *values, id="-".join(words)))
    return pytest.mark.parametrize((*names, *more), extended)


def _case(name, k=1, smoothing=0.0):
    smoothed = f"-smoothed{smoothing:g}" if smoothing else ""
    return pytest.param(name, k, smoothing, id=f"{name}-k{k}{smoothed}")


def losses(names, ks, smoothings):
    """Parametrise a test by losses."""
    cases = [_case(name, k, gamma) for name in names for k in ks for gamma in smoothings]
    return pytest.mark.parametrize(("name", "k", "smoothing"), cases)


def with_softmax(mark):
    """Add softmax, which has neither k nor smoothing."""
    return pytest.mark.parametrize(mark.args[0], [*mark.args[1], _case("softmax")])


every_hinge = pytest.mark.parametrize("name", HINGES)
every_step = pytest.mark.parametrize("name", [*HINGES, "softmax"])
plain_hinges = losses(HINGES, (1, 3), (0.0,))
dual_steps = with_softmax(losses(HINGES, (1, 3, 6), (0.0, SMOOTHING)))
some_dual_steps = with_softmax(losses(HINGES, (1, 3), (0.0, SMOOTHING)))


def make_data(n=40, d=6, m=7, *, seed=0, dtype=np.float64, overlap=1.0):
    """Return X and y: every class occurs, and some examples are on the wrong side."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % m)
    centres = rng.standard_normal((m, d))
    return (centres[y] + overlap * rng.standard_normal((n, d))).astype(dtype), y


def make_sparse_rows(n=40, d=12, m=7, *, seed=0, dtype=np.float64):
    """Return X with about two thirds of zeros, as an array, and y."""
    X, y = make_data(n, d, m, seed=seed, dtype=dtype)
    X[np.random.default_rng(seed).random(X.shape) < 0.65] = 0.0
    return X, y


def run(objective, **options):
    """Solve the problem of an :class:`Objective`."""
    return solve(
        objective.X,
        objective.y,
        objective.name,
        objective.C,
        k=objective.k,
        smoothing=objective.smoothing,
        bias=objective.bias,
        n_classes=objective.n_classes,
        n_jobs=1,
        **options,
    )


def make_parts(objective):
    """Return the loss and the problem of an :class:`Objective` as the solvers take them."""
    loss = make_loss(objective.name, objective.k, objective.smoothing)
    args = objective.X, objective.y, objective.radii, objective.m, objective.bias
    return loss, make_problem(*args)


def make_sdca(objective, **options):
    """Return the solver before its first pass, to be driven by hand."""
    return SDCA(*make_parts(objective), SDCAOptions(**options))


def complete(solver, **stopping):
    """Run a solver until it may stop; return the result."""
    return Run(solver, Stopping(**stopping)).complete()


def full_pass(solver):
    """Step on all classes of all examples once, in the solver's own order."""
    solver.full_pass(solver.rng.permutation(solver.members))
    solver.end_full_pass()


def make_objective(name, k, smoothing, X, y, C=0.3, **more):
    return Objective(name, X, y, C, k, smoothing, **more)


def optimum(objective):
    """Return the optimal value by a convex solver: the primal, or the dual for top-k entropy."""
    if objective.name == "topk_entropy":
        return _largest_dual(objective)
    X, y, m, k = objective.rows, objective.y, objective.m, objective.k
    X = X.toarray() if sp.issparse(X) else X
    W = cp.Variable((m, X.shape[1]))
    total = 0.5 * cp.sum_squares(W)
    for i in np.flatnonzero(objective.radii > 0):
        others = np.delete(np.arange(m), y[i])
        h = (W[others] - np.ones((m - 1, 1)) @ W[[y[i]]]) @ X[i] + objective.margin
        if objective.smoothing:
            # Smoothing the conjugate is taking the Moreau envelope of the loss.
            z = cp.Variable(m - 1)
            loss = _plain_loss(objective.name, z, k)
            loss += cp.sum_squares(h - z) / (2 * objective.smoothing)
        else:
            loss = _plain_loss(objective.name, h, k)
        total += objective.radii[i] * loss
    return _solve(cp.Problem(cp.Minimize(total)))


def _solve(problem):
    value = problem.solve(solver=cp.CLARABEL, tol_gap_rel=1e-9, tol_gap_abs=1e-9, tol_feas=1e-9)
    assert problem.status == cp.OPTIMAL
    return float(value)


def _plain_loss(name, h, k):
    if name == "softmax":
        return cp.log_sum_exp(cp.hstack([h, 0.0]))
    if name == "topk_hinge_beta":
        return cp.sum_largest(cp.pos(h), k) / k
    if name == "topk_hinge_full":
        h = cp.hstack([h, 0.0])
    return cp.pos(cp.sum_largest(h, k) / k)


def _largest_dual(objective):
    """Maximise the dual of top-k entropy, of which there is no primal without a maximum inside."""
    X, y, m, k, C = objective.rows, objective.y, objective.m, objective.k, objective.radii
    X = X.toarray() if sp.issparse(X) else X
    b = cp.Variable((len(y), m))  # x_i / C_i on the wrong classes, what they leave on the true one.
    true = np.eye(m)[y]
    sums = cp.sum(cp.multiply(b, 1.0 - true), axis=1)
    a = cp.multiply(C[:, None] @ np.ones((1, m)), true - b)
    constraints = [cp.sum(b, axis=1) == 1, b >= 0]
    for j in range(m):
        wrong = np.flatnonzero(y != j)
        constraints.append(k * b[wrong, j] <= sums[wrong])
    entropies = cp.sum(cp.multiply(C[:, None] @ np.ones((1, m)), cp.entr(b)))
    return _solve(cp.Problem(cp.Maximize(entropies - 0.5 * cp.sum_squares(a.T @ X)), constraints))
