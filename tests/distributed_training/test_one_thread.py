"""Tasks that run side by side on a worker use one thread each."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Thread

import numpy as np  # noqa: F401  # Loads BLAS.
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from topksvm._threads import n_threads
from topksvm.distributed import _model, _predictions, _tasks
from topksvm.distributed._one_thread import on_one_thread


def blas_threads():
    """Return the threads that matrix products may use now, for each library that has a choice."""
    return [
        entry["num_threads"]
        for entry in threadpool_info()
        if entry["user_api"] == "blas" and entry.get("threading_layer") == "pthreads"
    ]


def set_blas_threads(number):
    """In a thread of its own, as only the one that has set a limit may change it while it lives."""
    thread = Thread(target=lambda: threadpool_limits(number, user_api="blas"))
    thread.start()
    thread.join()


def test_the_first_task_to_end_does_not_free_the_threads_for_the_others():
    both_run, first_has_ended = Barrier(2), Barrier(2)

    @on_one_thread
    def short():
        both_run.wait(10)

    @on_one_thread
    def long():
        both_run.wait(10)
        first_has_ended.wait(10)
        return n_threads(), blas_threads()

    if not blas_threads():
        pytest.skip("needs a BLAS whose threads belong to the process")
    before = max(blas_threads())
    set_blas_threads(3)
    try:
        with ThreadPoolExecutor(2) as pool:
            last, first = pool.submit(long), pool.submit(short)
            first.result()
            first_has_ended.wait(10)
            assert last.result() == (1, [1] * len(blas_threads()))
        assert set(blas_threads()) == {3}
    finally:
        set_blas_threads(before)


def test_all_that_computes_is_limited():
    tasks = ["build", "solve", "contribute", "evaluate", "evaluate_larger", "add"]
    others = _model.make_model, _predictions._predict, _predictions._tally
    for task in [*(getattr(_tasks, name) for name in tasks), *others]:
        assert hasattr(task, "__wrapped__"), task
