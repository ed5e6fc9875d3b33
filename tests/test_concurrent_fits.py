"""Fits in several threads at once: the same models as alone, and BLAS as it was."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from topksvm import TopKLinearSVC
from topksvm._threads import resolve_threads, thread_limit


def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 60)).astype(np.float32)
    return X, (X[:, :10] + rng.standard_normal((1500, 10))).argmax(axis=1)


def fit(job):
    loss, n_jobs = job
    X, y = data()
    return TopKLinearSVC(loss=loss, C=0.3, tol=1e-3, random_state=0, n_jobs=n_jobs).fit(X, y)


def blas_threads():
    return [entry["num_threads"] for entry in threadpool_info() if entry["user_api"] == "blas"]


def test_concurrent_fits_are_those_made_alone():
    jobs = [(loss, n_jobs) for loss in ("topk_hinge_alpha", "softmax") for n_jobs in (1, 2, None)]
    before = blas_threads()
    with thread_limit(2):
        alone = [fit(job) for job in jobs]
    assert blas_threads() == before
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(fit, jobs))
    assert blas_threads() == before
    for model, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(model.coef_, other.coef_)
        assert model.certificate_ == other.certificate_


@pytest.mark.parametrize("loss", ["topk_hinge_alpha", "softmax"])
def test_the_number_of_threads_does_not_change_the_model(loss):
    np.testing.assert_array_equal(fit((loss, 1)).coef_, fit((loss, 2)).coef_)


def test_n_jobs_has_one_meaning():
    with thread_limit(4):
        assert [resolve_threads(n) for n in (None, 1, 3, -1, -2, -4, -9)] == [4, 1, 3, 4, 3, 1, 1]
        with pytest.raises(ValueError, match="n_jobs = 0"):
            resolve_threads(0)
