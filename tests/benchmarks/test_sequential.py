"""Sequential SDCA against the algorithm in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.datasets import make_mixture
from benchmarks.sequential import ONE_BY_ONE, PrintedSDCA
from topksvm.data import make_problem
from topksvm.losses import LOSSES
from topksvm.projections.reference import topk_simplex
from topksvm.solvers import SDCA, SDCAOptions, Stopping


def one_pass(W, A, X, y, C, k, order):
    """Algorithm 1 of the paper, one pass, with the projection by a sort and a search."""
    for i in order:
        x, wrong = X[i], np.arange(len(W)) != y[i]
        norm = x @ x
        q = W @ x - norm * A[i]
        b = (q[wrong] + 1.0 - q[y[i]]) / norm
        old = A[i].copy()
        A[i, wrong] = -topk_simplex(b, k, C, rho=1.0).astype(float)
        A[i, y[i]] = -A[i, wrong].sum()
        W += np.outer(A[i] - old, x)


def one_by_one(loss, problem):
    return SDCA(loss, problem, SDCAOptions(**ONE_BY_ONE))


@pytest.mark.parametrize("make", [PrintedSDCA, one_by_one])
@pytest.mark.parametrize("k", [1, 3])
def test_iterates_are_those_of_the_algorithm(make, k):
    X, y = make_mixture(40, 6, 9, "float64")
    C = 0.4
    solver = make(LOSSES["topk_hinge_alpha"](k), make_problem(X, y, np.full(40, C), 9))
    rng = np.random.default_rng(SDCAOptions().seed)
    W, A = np.zeros((9, 6)), np.zeros((40, 9))
    for _ in range(3):
        solver.update(Stopping(tol=1e-9))
        one_pass(W, A, X, y, C, k, rng.permutation(40))
        np.testing.assert_allclose(solver.weights, W, atol=1e-10)
