"""How many threads are used, and how rows are divided among them."""

from __future__ import annotations

import threading
from itertools import pairwise

import joblib
import pytest

from topksvm._threads import map_row_ranges, n_threads, thread_limit


def test_the_number_comes_from_limit_then_environment_then_machine(monkeypatch):
    monkeypatch.delenv("TOPKSVM_NUM_THREADS", raising=False)
    assert n_threads() == joblib.cpu_count()
    monkeypatch.setenv("TOPKSVM_NUM_THREADS", "7")
    assert n_threads() == 7
    with thread_limit(3):
        assert n_threads() == 3
        with thread_limit(1):
            assert n_threads() == 1
        assert n_threads() == 3
    assert n_threads() == 7


@pytest.mark.parametrize("setting", ["0", "-1", "two", "1.5"])
def test_a_bad_environment_variable_is_an_error(monkeypatch, setting):
    monkeypatch.setenv("TOPKSVM_NUM_THREADS", setting)
    with pytest.raises(ValueError, match=f"TOPKSVM_NUM_THREADS is '{setting}'; it must be"):
        n_threads()


@pytest.mark.parametrize("n_rows", [1, 2, 3, 10, 1001])
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_ranges_cover_all_rows_in_order(n_rows, threads):
    with thread_limit(threads):
        ranges = map_row_ranges(lambda start, stop: (start, stop), n_rows, 10**6)
    assert len(ranges) == min(n_rows, threads)
    assert ranges[0][0] == 0
    assert ranges[-1][1] == n_rows
    assert all(before[1] == after[0] for before, after in pairwise(ranges))


def test_small_work_stays_in_the_calling_thread():
    with thread_limit(4):
        names = map_row_ranges(lambda *_: threading.current_thread(), 100, 10)
    assert names == [threading.current_thread()]


def test_errors_in_a_thread_reach_the_caller():
    def fail(start, stop):
        raise RuntimeError(f"rows {start} to {stop}")

    with thread_limit(2), pytest.raises(RuntimeError, match="rows 0 to 5"):
        map_row_ranges(fail, 10, 10**6)
