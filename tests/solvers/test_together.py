"""Paths that are solved together: as if each were alone, with the common work done once."""

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np
import pytest

import topksvm
from solvers.cases import make_data, make_objective
from solvers.objective import check
from topksvm.data import make_problem
from topksvm.solvers import (
    SDCA,
    PathTask,
    Setup,
    Status,
    Stopping,
    _together,
    have_common_work,
    make_loss,
    solve_paths,
)

N, D, M = 150, 140, 60  # Weights too many for the first cache, so that passes go by blocks.
CS = [1e-3, 1e-2, 0.1]
HINGES = [("topk_hinge_alpha", 1), ("topk_hinge_alpha", 3), ("topk_hinge_beta", 3)]
ALPHAS = [("topk_hinge_alpha", k) for k in (1, 2, 5)]


def data(dtype=np.float64):
    return make_data(N, D, M, dtype=dtype, overlap=3.0)


def some_weights():
    """A third of the examples do not count."""
    return np.random.default_rng(1).uniform(0.5, 2.0, N) * (np.arange(N) % 3 > 0)


def problem_of(X, y, weights=None, bias=0.0):
    return make_problem(X, y, np.ones(len(y)) if weights is None else weights, M, bias)


def tasks_of(losses, Cs=CS):
    return [PathTask(make_loss(name, k), Cs) for name, k in losses]


def paths_of(problem, tasks, **stopping):
    """Return the points of each path."""
    found = [[] for _ in tasks]
    for i, C, result in solve_paths(problem, tasks, Setup(stopping=Stopping(**stopping))):
        found[i].append((C, result))
    return found


def assert_same(some, others):
    """Assert that two paths are the same to the last bit."""
    assert [C for C, _ in some] == [C for C, _ in others]
    for (_, a), (_, b) in zip(some, others, strict=True):
        assert (a.n_iter, a.status, a.certificate) == (b.n_iter, b.status, b.certificate)
        np.testing.assert_array_equal(a.weights, b.weights)
        used = int(a.duals.used[0])
        assert used == b.duals.used[0]
        for name in ("start", "count"):
            np.testing.assert_array_equal(getattr(a.duals, name), getattr(b.duals, name))
        for name in ("classes", "values"):
            np.testing.assert_array_equal(
                getattr(a.duals, name)[:used], getattr(b.duals, name)[:used]
            )


@pytest.mark.parametrize("weights", [None, some_weights()], ids=["all", "some"])
@pytest.mark.parametrize(("dtype", "losses"), [(np.float64, HINGES), (np.float32, ALPHAS)])
def test_a_path_is_the_same_in_any_company(dtype, losses, weights):
    problem = problem_of(*data(dtype), weights, bias=1.0)
    assert have_common_work(problem)
    tasks = tasks_of(losses)
    together = paths_of(problem, tasks)
    backwards = paths_of(problem, tasks[::-1])[::-1]
    for path, other, one in zip(together, backwards, tasks, strict=True):
        (alone,) = paths_of(problem, [one])
        assert_same(path, alone)
        assert_same(other, alone)


def test_every_point_is_certified_and_as_good_as_on_a_path_of_its_own():
    X, y = data()
    weights, tol = some_weights(), 1e-5
    found = paths_of(problem_of(X, y, weights, bias=1.5), tasks_of(HINGES), tol=tol)
    for (name, k), path in zip(HINGES, found, strict=True):
        own = topksvm.path(X, y, name, CS, k=k, sample_weight=weights, bias=1.5, tol=tol)
        assert [C for C, _ in path] == CS
        for (C, result), (_, expected) in zip(path, own, strict=True):
            objective = make_objective(name, k, 0.0, X, y, C=C * weights, bias=1.5)
            primal, _ = check(objective, result, tol)
            assert result.status is Status.SOLVED
            assert primal == pytest.approx(expected.certificate.primal, rel=2 * tol)


def test_float32_is_certified_too():
    X, y = data(np.float32)
    found = paths_of(problem_of(X, y), tasks_of(ALPHAS))
    for (name, k), path in zip(ALPHAS, found, strict=True):
        for C, result in path:
            assert result.weights.dtype == np.float32
            check(make_objective(name, k, 0.0, X, y, C=C), result, 1e-3)


def test_tasks_with_values_of_c_and_starts_of_their_own():
    X, y = data()
    problem, loss = problem_of(X, y), make_loss("topk_hinge_alpha", 3)
    ((first,),) = paths_of(problem, [PathTask(loss, CS[:1])])
    kept = first[1].duals.values.copy()
    tasks = [PathTask(loss, CS[1:], first), PathTask(loss, [0.5]), PathTask(loss, CS)]
    found = paths_of(problem, tasks)
    for one, path in zip(tasks, found, strict=True):
        assert [C for C, _ in path] == one.Cs
        assert_same(path, *paths_of(problem, [one]))
        for C, result in path:
            check(make_objective("topk_hinge_alpha", 3, 0.0, X, y, C=C), result, 1e-3)
    np.testing.assert_array_equal(first[1].duals.values, kept)
    assert_same(found[2][:1], [first])


def test_a_start_that_is_a_solution_takes_no_pass():
    """Classes that can be separated: from some C on no dual is at its bound."""
    X, y = np.eye(2 * M, D + 1), np.arange(2 * M) % M
    easy = PathTask(make_loss("topk_hinge_alpha", 1), [10.0, 20.0, 40.0])
    other = PathTask(make_loss("topk_hinge_alpha", 3), [0.1, 20.0])
    found = paths_of(problem_of(X, y), [easy, other], tol=1e-6)
    assert [result.n_iter > 0 for _, result in found[0]] == [True, False, False]
    assert [len(path) for path in found] == [3, 2]
    for k, path in zip((1, 3), found, strict=True):
        for C, result in path:
            assert result.status is Status.SOLVED
            check(make_objective("topk_hinge_alpha", k, 0.0, X, y, C=C), result, 1e-6)


def test_a_point_out_of_budget_does_not_end_the_path():
    X, y = data()
    found = paths_of(problem_of(X, y), tasks_of(ALPHAS, [1.0, 2.0]), tol=1e-12, max_iter=5)
    for (name, k), path in zip(ALPHAS, found, strict=True):
        assert [C for C, _ in path] == [1.0, 2.0]
        for C, result in path:
            assert (result.status, result.n_iter) == (Status.MAX_ITER, 5)
            check(make_objective(name, k, 0.0, X, y, C=C), result, np.inf)


def test_blocks_are_gathered_once_for_all(monkeypatch):
    problem, tasks, real = problem_of(*data()), tasks_of(ALPHAS), SDCA.full_pass
    orders = []

    def full_pass(solver, order, blocks, *, gather):
        if gather:
            orders.append(order.copy())
        return real(solver, order, blocks, gather=gather)

    def gathered(tasks):
        orders.clear()
        paths_of(problem, tasks)
        return len(orders)

    monkeypatch.setattr(SDCA, "full_pass", full_pass)
    alone = [gathered([one]) for one in tasks]
    assert min(alone) >= len(CS)
    assert gathered(tasks) == max(alone)
    for order in orders:
        np.testing.assert_array_equal(np.sort(order), np.arange(N))
    assert not any(np.array_equal(a, b) for a, b in pairwise(orders))


def test_the_rows_gathered_at_once_do_not_matter(monkeypatch):
    problem, tasks = problem_of(*data()), tasks_of(ALPHAS)
    at_once = paths_of(problem, tasks)
    monkeypatch.setattr(_together, "GATHERED_BYTES", 1)  # A block at a time, then.
    for path, other in zip(paths_of(problem, tasks), at_once, strict=True):
        assert_same(path, other)


def test_the_seconds_of_a_run_are_its_own():
    problem, tasks = problem_of(*data()), tasks_of(ALPHAS)
    start = time.perf_counter()
    found = paths_of(problem, tasks)
    passed = time.perf_counter() - start
    seconds = [result.history[-1].seconds for path in found for _, result in path]
    assert min(seconds) > 0.0
    assert sum(seconds) <= passed
