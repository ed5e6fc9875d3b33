"""What a loss is to the solvers: a few functions of one example, compiled for each loss.

A loss is a ``NamedTuple`` of its parameters with static methods of the names below. A kernel that
is given a loss and calls these functions is compiled for that loss, and the machine code is found
in the cache by the next process; without compilation the same sources run as ordinary Python.

All work on the scores of the *wrong* classes (`row`, any order) and of the true class (`base`) of
one example; ``h = row - base + margin``. The dual variables ``x >= 0`` belong to the wrong classes,
and the conjugate of ``C phi`` at ``x`` is ``C omega(x / C) - margin <1, x>`` (see the docs on the
maths). `lanes`, `c` and `ranked` are scratch arrays of a
:class:`~topksvm.projections._candidates.Workspace`.
"""

from __future__ import annotations

from topksvm._numba import dispatched

__all__ = ["dual_step", "dual_value", "feasible_step", "gradient", "make_feasible", "value"]


@dispatched
def value(loss, row, base, lanes, c, ranked):
    """Return ``phi(h)``, which must not fall when a score of a wrong class rises."""
    return loss.value(loss, row, base, lanes, c, ranked)


@dispatched
def gradient(loss, row, base, out, lanes, c, ranked):
    """Write the derivative of ``phi`` by ``h`` to ``out[: row.size]`` and return ``phi(h)``.

    Smooth losses only. One function for both, as they share most of the work.
    """
    return loss.gradient(loss, row, base, out, lanes, c, ranked)


@dispatched
def dual_value(loss, values, n, C):
    """Return ``margin <1, x> - C omega(x / C)`` for dual variables with ``values[:n]`` non-zero."""
    return loss.dual_value(loss, values, n, C)


@dispatched
def make_feasible(loss, values, n, C):
    """Lower ``values[:n]`` until they are in the domain of the dual, whatever they were.

    In exact arithmetic, so that the dual value there is a bound. Return the largest share of its
    value that one has lost: 0, or a few units in the last place, for points that were feasible but
    for rounding.
    """
    return loss.make_feasible(loss, values, n, C)


@dispatched
def dual_step(loss, row, base, norm, C, positions, values, lanes, c, ranked):
    """Maximise the dual over the variables of one example; return how many are not zero.

    `row` and `base` are scores *without* the example's own part: with ``norm = <x_i, x_i>``, the
    step maximises ``dual_value(x) + <row - base, x> - norm/2 (<x, x> + <1, x>^2)``. The positions
    within `row` and the values of the non-zeros are written to `positions` and `values`.
    """
    return loss.dual_step(loss, row, base, norm, C, positions, values, lanes, c, ranked)


@dispatched
def feasible_step(loss, values, change, n, r, limit):
    """Return the largest step up to `limit` for which ``values + step * change`` is feasible.

    `values` and `change` are those of the ``n`` entries that are not zero, `r` is the radius.
    """
    return loss.feasible_step(loss, values, change, n, r, limit)
