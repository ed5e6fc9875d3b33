"""Threads that work on one kernel together."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from topksvm import _team
from topksvm._interrupts import StopRequested
from topksvm._numba import kernel
from topksvm._team import barrier, broadcast, make_team, read, share_of, work_together

needs_threads = pytest.mark.skipif(not _team.CAN_GIVE_WAY, reason="no teams on this system")


@kernel
def take_turns(team, place, rounds, shared):
    """Each round another member adds what all have found; return what this one has seen last."""
    seen = shared[0]
    for turn in range(rounds):
        if turn % team.size == place:
            shared[0] = 3 * shared[0] % 1_000_003 + turn
            broadcast(team, turn)
        barrier(team)
        seen = shared[0]
        if read(team) != turn:
            return -1
        barrier(team)
    return seen


@needs_threads
@pytest.mark.parametrize("size", [1, 2, 5])  # The last has more members than many a machine.
def test_members_see_what_others_did_before_they_met(size):
    rounds = 2000
    expected = 1
    for turn in range(rounds):
        expected = 3 * expected % 1_000_003 + turn
    team, shared, seen = make_team(size), np.ones(1, np.int64), {}

    def work(place):
        seen[place] = take_turns(team, place, rounds, shared)
        return seen[place]

    assert work_together(team, work) == expected
    assert seen == dict.fromkeys(range(size), expected)


@needs_threads
def test_the_leader_is_the_calling_thread():
    names = {}

    def work(place):
        names[place] = threading.current_thread()
        return place

    assert work_together(make_team(3), work) == 0
    assert sorted(names) == [0, 1, 2]
    assert names[0] is threading.current_thread()
    assert len(set(names.values())) == 3
    assert threading.active_count() == len(threading.enumerate())
    assert not any(thread.is_alive() for thread in names.values() if thread is not names[0])


@needs_threads
def test_nobody_waits_for_a_leader_who_does_not_come():
    team, shared, seen = make_team(3), np.ones(1, np.int64), {}

    def work(place):
        if place == 0:
            raise StopRequested
        seen[place] = wait(team)

    with pytest.raises(StopRequested):
        work_together(team, work)
    assert seen == {1: False, 2: False}
    # The next time all is well again.
    assert work_together(team, lambda place: take_turns(team, place, 10, shared)) > 0


@kernel
def wait(team):
    """Return whether the others came."""
    return barrier(team)


@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize(("total", "unit"), [(0, 16), (5, 16), (101, 16), (1000, 16), (64, 1)])
def test_shares_are_whole_units_and_cover_all(size, total, unit):
    shares = [share_of(place, size, total, unit) for place in range(size)]
    assert shares[0][0] == 0
    assert shares[-1][1] == total
    for (_, high), (low, _) in itertools.pairwise(shares):
        assert high == low
        assert low % unit == 0 or low == total
    sizes = [high - low for low, high in shares]
    assert max(sizes) - min(sizes) <= 2 * unit


def test_without_compilation_there_are_no_teams():
    code = "from topksvm._team import make_team; print(make_team(4).size)"
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "1"
