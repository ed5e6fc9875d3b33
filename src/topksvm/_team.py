"""Threads that work on one pass together and meet where one needs what another has done.

A block of a pass takes a tenth of a millisecond, a step of an active pass microseconds: too little
for Python to hand out, so each thread of a *team* runs the same kernel, with a *place* of its own,
and the kernel says who does what. Where the threads must wait for one another they *meet*, which
takes a tenth of a microsecond on two processors. Who waits looks again and again, and after a while
lets other threads of the machine go first. The member at place 0 leads.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils, config
from numba.extending import intrinsic
from numpy.typing import NDArray

from topksvm._numba import kernel

__all__ = ["Team", "barrier", "broadcast", "make_team", "read", "share_of", "work_together"]

T = TypeVar("T")

CAN_GIVE_WAY = os.name == "posix" and not getattr(config, "DISABLE_JIT", 0)
"""Whether a thread that waits can let others go first; without that there are no teams."""

PATIENCE = 10_000
"""Looks before a thread that waits lets others go first: some ten microseconds."""

ARRIVED, ROUND, NEWS, GIVEN_UP = 0, 16, 32, 48
"""Places in the memory of a team, on cache lines of their own."""


class Team(NamedTuple):
    """The number of threads, and memory through which they meet."""

    size: int
    memory: NDArray[np.int64]


def make_team(size: int) -> Team:
    """Return a team of `size` threads, or of one where threads cannot wait without harm."""
    return Team(size if CAN_GIVE_WAY else 1, np.zeros(64, np.int64))


def work_together(team: Team, work: Callable[[int], T]) -> T:
    """Call ``work(place)`` for all places at the same time; return the result of the leader.

    If the leader does not come, as after Ctrl-C, the others do not wait for it. They have all gone
    when this returns or raises.
    """
    others = [
        threading.Thread(target=work, args=(place,), name=f"topksvm-{place}", daemon=True)
        for place in range(1, team.size)
    ]
    try:
        for thread in others:
            thread.start()
        result = work(0)
    except BaseException:
        team.memory[GIVEN_UP] = 1
        _join(others)
        team.memory[:] = 0
        raise
    _join(others)
    return result


def _join(threads: list[threading.Thread]) -> None:
    """Wait for all `threads`; Ctrl-C has to wait as well."""
    interrupt: KeyboardInterrupt | None = None
    for thread in threads:
        while thread.is_alive():
            try:
                thread.join()
            except KeyboardInterrupt as error:
                interrupt = error
    if interrupt is not None:
        raise interrupt


def _pointer(context: Any, builder: Any, kind: Any, array: Any, position: Any) -> Any:
    return builder.gep(context.make_array(kind)(context, builder, array).data, [position])


@intrinsic
def _load(typing_context: Any, array: Any, position: Any) -> Any:  # noqa: ARG001
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], args[0], args[1])
        return builder.load_atomic(pointer, "acquire", 8)

    return types.int64(array, types.intp), generate


@intrinsic
def _store(typing_context: Any, array: Any, position: Any, value: Any) -> Any:  # noqa: ARG001
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], args[0], args[1])
        builder.store_atomic(args[2], pointer, "release", 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.int64), generate


@intrinsic
def _count_up(typing_context: Any, array: Any, position: Any) -> Any:  # noqa: ARG001
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], args[0], args[1])
        return builder.atomic_rmw("add", pointer, ir.IntType(64)(1), "acq_rel")

    return types.int64(array, types.intp), generate


@intrinsic
def _give_way(typing_context: Any) -> Any:  # noqa: ARG001
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        if CAN_GIVE_WAY:
            kind = ir.FunctionType(ir.IntType(32), [])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, "sched_yield"), [])
        return context.get_dummy_value()

    return types.void(), generate


@kernel
def barrier(team):
    """Wait until all members are here; what each wrote before, all can read after.

    Return whether they came. If not, there is nothing to do but to go.
    """
    if team.size == 1:
        return True
    memory = team.memory
    now = _load(memory, ROUND)  # type: ignore[call-arg, var-annotated]
    if _count_up(memory, ARRIVED) == team.size - 1:
        _store(memory, ARRIVED, 0)
        _store(memory, ROUND, now + 1)
        return True
    looks = 0
    while _load(memory, ROUND) == now:
        looks += 1
        if looks > PATIENCE:
            _give_way()
            # In this order: who gives up may have been the last to come.
            if _load(memory, GIVEN_UP) and _load(memory, ROUND) == now:
                return False
    return True


@kernel
def broadcast(team, number):
    """Leave a number for all, to be heard after the next meeting."""
    team.memory[NEWS] = number


@kernel
def read(team):
    """Return the number that was left before the last meeting."""
    return team.memory[NEWS]


@kernel
def share_of(place, size, total, unit):
    """Return where the share of `place` in `total` things begins and ends, in whole units."""
    units = (total + unit - 1) // unit
    return (
        min(total, unit * (units * place // size)),
        min(total, unit * (units * (place + 1) // size)),
    )
