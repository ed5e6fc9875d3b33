"""What may be passed as X, and that it is left alone."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import topksvm.estimators._linear as linear
from estimators.data import objective, problem
from topksvm import TopKLinearSVC

SETTINGS = {"C": 0.1, "random_state": 0}


@pytest.fixture
def solved(monkeypatch):
    """The X that reaches the solver."""
    seen = []
    train_on = linear.train_on

    def spy(data, *args, **kwargs):
        seen.append(data.rows)
        return train_on(data, *args, **kwargs)

    monkeypatch.setattr(linear, "train_on", spy)
    return seen


def test_read_only_memory_map_is_not_copied(tmp_path, solved):
    X, y = problem(np.float32)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    model = TopKLinearSVC(**SETTINGS).fit(mapped, y)
    assert np.shares_memory(solved[0], mapped)
    assert solved[0].dtype == np.float32
    assert model.coef_.dtype == model.intercept_.dtype == np.float32
    assert model.decision_function(mapped).dtype == np.float32
    np.testing.assert_array_equal(mapped, X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precision_is_kept_and_x_untouched(dtype, solved):
    X, y = problem(dtype)
    before = X.copy()
    X.flags.writeable = False
    model = TopKLinearSVC(**SETTINGS).fit(X, y)
    assert np.shares_memory(solved[0], X)
    assert model.coef_.dtype == dtype
    assert model.decision_function(X).dtype == dtype
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csr_array])
def test_csr(index, container, solved):
    X, y = problem(np.float32)
    rows = container(X * (np.abs(X) > 0.1))
    rows.indices, rows.indptr = rows.indices.astype(index), rows.indptr.astype(index)
    model = TopKLinearSVC(tol=1e-5, **SETTINGS).fit(rows, y)
    assert np.shares_memory(solved[0].data, rows.data)
    assert solved[0].indices.dtype == rows.indices.dtype == index
    assert model.coef_.dtype == np.float32
    dense = TopKLinearSVC(tol=1e-5, **SETTINGS).fit(rows.toarray(), y)
    assert model.certificate_.primal == pytest.approx(dense.certificate_.primal, rel=2e-5)
    np.testing.assert_allclose(
        model.decision_function(rows), model.decision_function(rows.toarray()), atol=1e-5
    )


@pytest.mark.parametrize("container", [sp.csc_matrix, sp.coo_array])
def test_other_sparse_formats(container):
    X, y = problem()
    X = X * (np.abs(X) > 0.1)
    model = TopKLinearSVC(**SETTINGS).fit(container(X), y)
    same = TopKLinearSVC(**SETTINGS).fit(sp.csr_array(X), y)
    np.testing.assert_array_equal(model.coef_, same.coef_)
    np.testing.assert_array_equal(model.predict(container(X)), same.predict(X))


def test_duplicate_entries_are_summed_in_a_copy():
    X, y = problem()
    n, d = X.shape
    columns = np.tile(np.r_[np.arange(d), np.arange(d)], n)
    twice = sp.csr_array((np.hstack([X, X]).ravel(), columns, 2 * d * np.arange(n + 1)), (n, d))
    model = TopKLinearSVC(tol=1e-6, **SETTINGS).fit(twice, y)
    assert twice.nnz == 2 * n * d
    assert model.certificate_.relative_gap <= 1e-6
    assert objective(model, 2 * X, y) == pytest.approx(model.certificate_.primal, rel=1e-9)


def test_whole_numbers_and_fortran_order():
    X, y = problem()
    whole = np.round(10 * X).astype(np.int64)
    model = TopKLinearSVC(C=0.01, random_state=0).fit(whole, y)
    for other in (whole.astype(float), np.asfortranarray(whole.astype(float))):
        same = TopKLinearSVC(C=0.01, random_state=0).fit(other, y)
        np.testing.assert_array_equal(model.coef_, same.coef_)
    np.testing.assert_array_equal(model.predict(whole), same.predict(other))


def test_strided_float32_stays_float32():
    X, y = problem(np.float32)
    model = TopKLinearSVC(**SETTINGS).fit(X[::2, ::-1], y[::2])
    assert model.coef_.dtype == np.float32
