"""What a loss is to the solvers: a few functions of one example, compiled for each loss.

A loss is a ``NamedTuple`` of its parameters with static methods of the names below. A kernel that
is given a loss and calls these functions is compiled for that loss, and the machine code is found
in the cache by the next process; without compilation the same sources run as ordinary Python.

All work on the scores of the *wrong* classes (`row`, any order) and of the true class (`base`) of
one example; ``h = row - base + margin``. The dual variables ``x >= 0`` belong to the wrong classes,
and the conjugate of ``C phi`` at ``x`` is ``C omega(x / C) - margin <1, x>`` (see the docs on the
maths). `work` is scratch memory, a :class:`~topksvm.projections.Workspace`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from topksvm._numba import dispatched

__all__ = [
    "Traits",
    "declare",
    "dual_step",
    "dual_value",
    "feasible_step",
    "gradient",
    "is_smooth",
    "make_feasible",
    "value",
]


T = TypeVar("T")


class Traits(NamedTuple):
    """What a loss can do, declared once by the decorator :func:`declare` of its class.

    Attributes
    ----------
    uses_k, uses_smoothing : bool
        Whether it has these parameters.
    smooth : bool
        Whether it has a gradient whatever its parameters are. (With `smoothing` above 0 every loss
        that uses it has one.)
    has_dual_step : bool
        Whether it has a `dual_step`.
    sparse_duals : bool
        Whether most dual variables of an example are zero at the optimum. A loss of which that is
        true must be 0 where no score of a wrong class exceeds that of the true one less `margin`.
    has_feasible_step : bool
        Whether it has a `feasible_step`.
    margin : float
        The constant in ``h = row - base + margin``.

    Examples
    --------
    >>> from topksvm.losses import Softmax
    >>> Softmax.traits.smooth, Softmax.traits.uses_k
    (True, False)
    """

    uses_k: bool = True
    uses_smoothing: bool = False
    smooth: bool = False
    has_dual_step: bool = True
    sparse_duals: bool = False
    has_feasible_step: bool = False
    margin: float = 1.0


def declare(**traits: Any) -> Callable[[type[T]], type[T]]:
    """Return a decorator that gives the class of a loss its :class:`Traits`."""

    def decorate(loss: type[T]) -> type[T]:
        loss.traits = Traits(**traits)  # type: ignore[attr-defined]
        return loss

    return decorate


def is_smooth(loss: Any) -> bool:
    """Return whether the loss, with its parameters, has a gradient everywhere."""
    traits: Traits = loss.traits
    return traits.smooth or (traits.uses_smoothing and loss.smoothing > 0.0)


@dispatched
def value(loss, row, base, work):
    """Return ``phi(h)``, which must not fall when a score of a wrong class rises."""
    return loss.value(loss, row, base, work)


@dispatched
def gradient(loss, row, base, out, work):
    """Write the derivative of ``phi`` by ``h`` to ``out[: row.size]`` and return ``phi(h)``.

    Smooth losses only. One function for both, as they share most of the work.
    """
    return loss.gradient(loss, row, base, out, work)


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
def dual_step(loss, row, base, norm, C, work):
    """Maximise the dual over the variables of one example; return how many are not zero.

    `row` and `base` are scores *without* the example's own part: with ``norm = <x_i, x_i>``, the
    step maximises ``dual_value(x) + <row - base, x> - norm/2 (<x, x> + <1, x>^2)``. The positions
    within `row` and the values of the non-zeros are written to `positions` and `values` of `work`.
    """
    return loss.dual_step(loss, row, base, norm, C, work)


@dispatched
def feasible_step(loss, values, change, n, r, limit):
    """Return the largest step up to `limit` for which ``values + step * change`` is feasible.

    `values` and `change` are those of the ``n`` entries that are not zero, `r` is the radius.
    """
    return loss.feasible_step(loss, values, change, n, r, limit)
