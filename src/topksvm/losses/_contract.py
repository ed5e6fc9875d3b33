"""What a loss is to the solvers: a few functions of one example, compiled for each loss.

A kernel that is given a loss and calls the functions below is compiled for the class of the loss,
and the machine code is found in the cache by the next process; without compilation the same sources
run as ordinary Python. What they do is said once, by :class:`Loss`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar

from topksvm._numba import dispatched

__all__ = [
    "Loss",
    "Traits",
    "declare",
    "dual_step",
    "dual_value",
    "feasible_step",
    "gradient",
    "is_smooth",
    "make_feasible",
    "traits_of",
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
        Whether it has a `feasible_step`. The dual value of such a loss must be that of a smoothed
        hinge, ``<1, x> - smoothing / (2 C) <x, x>``.
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


class Loss(Protocol):
    """What a loss must have: a ``NamedTuple`` of its parameters with these static methods.

    All are about *one* example, and work on the scores of its *wrong* classes (`row`, in any order)
    and of its true class (`base`); ``h = row - base + margin``. The dual variables ``x >= 0`` are
    those of the wrong classes, and the conjugate of ``C phi`` at ``x`` is
    ``C omega(x / C) - margin <1, x>``. `loss` is the loss itself, for its parameters, and `work` is
    scratch memory, a :class:`~topksvm.projections.Workspace`.

    The first three are needed for the certificate, besides one of `dual_step` and `gradient` for a
    solver. They are compiled by Numba, which must know all that they call.

    Attributes
    ----------
    traits : Traits
        Set by :func:`declare`.

    Examples
    --------
    The guide for contributors has :ref:`a loss in one file <add-a-loss>`.

    >>> from topksvm.losses import Loss
    >>> [name for name in vars(Loss) if not name.startswith("_")]
    ['value', 'dual_value', 'make_feasible', 'dual_step', 'gradient', 'feasible_step']
    """

    traits: Traits

    @staticmethod
    def value(loss: Any, row: Any, base: Any, work: Any) -> Any:
        """Return ``phi(h)``, which must not fall when a score of a wrong class rises."""

    @staticmethod
    def dual_value(loss: Any, values: Any, n: int, C: float) -> Any:
        """Return ``margin <1, x> - C omega(x / C)`` for duals of which ``values[:n]`` are not 0."""

    @staticmethod
    def make_feasible(loss: Any, values: Any, n: int, C: float) -> Any:
        """Lower ``values[:n]`` until they are in the domain of the dual, whatever they were.

        In exact arithmetic, so that the dual value there is a bound; :func:`into_domain` does it
        for most domains. Return the largest share of its value that one has lost: 0, or a few units
        in the last place, for points that were feasible but for rounding.
        """

    @staticmethod
    def dual_step(loss: Any, row: Any, base: Any, norm: float, C: float, work: Any) -> Any:
        """Maximise the dual over the variables of one example; return how many are not zero.

        `row` and `base` are scores *without* the example's own part: with ``norm = <x_i, x_i>``,
        the step maximises ``dual_value(x) + <row - base, x> - norm/2 (<x, x> + <1, x>^2)``. The
        positions within `row` and the values of the non-zeros are written to `positions` and
        `values` of `work`.
        """

    @staticmethod
    def gradient(loss: Any, row: Any, base: Any, out: Any, work: Any) -> Any:
        """Write the derivative of ``phi`` by ``h`` to ``out[: row.size]`` and return ``phi(h)``.

        Smooth losses only. One function for both, as they share most of the work.
        """

    @staticmethod
    def feasible_step(loss: Any, values: Any, change: Any, n: int, r: float, limit: float) -> Any:
        """Return the largest step up to `limit` for which ``values + step * change`` is feasible.

        `values` and `change` are those of the ``n`` entries that are not zero, `r` is the weight
        `C` of the example. With it, training goes on in the direction of its last pass.
        """


def declare(**traits: Any) -> Callable[[type[T]], type[T]]:
    """Return a decorator that gives the class of a loss its :class:`Traits`.

    It complains about a class that lacks what they promise, or what every loss needs.

    Parameters
    ----------
    **traits : bool or float
        Those of :class:`Traits` that are not at their defaults.

    Returns
    -------
    decorator : callable
        For a class with the methods of :class:`Loss`.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> from topksvm.losses import declare
    >>> @declare(smooth=True)
    ... class Half(NamedTuple):
    ...     k: int
    Traceback (most recent call last):
    ...
    TypeError: The loss Half lacks value, dual_value, make_feasible, dual_step, gradient; see ...
    """

    def decorate(loss: type[T]) -> type[T]:
        promised = Traits(**traits)
        _check_complete(loss, promised)
        loss.traits = promised  # type: ignore[attr-defined]
        return loss

    return decorate


def _check_complete(loss: Any, traits: Traits) -> None:
    """Complain about a class that lacks parameters or methods."""
    needed = {
        "k": traits.uses_k,
        "smoothing": traits.uses_smoothing or traits.has_feasible_step,
        "value": True,
        "dual_value": True,
        "make_feasible": True,
        "dual_step": traits.has_dual_step,
        "gradient": traits.smooth or traits.uses_smoothing,
        "feasible_step": traits.has_feasible_step,
    }
    missing = [name for name, is_needed in needed.items() if is_needed and name not in dir(loss)]
    if missing:
        raise TypeError(
            f"The loss {loss.__name__} lacks {', '.join(missing)}; see topksvm.losses.Loss for "
            "what they do, and topksvm.losses.Traits for what it need not have."
        )


def traits_of(loss: Any) -> Traits:
    """Return the traits of a loss or of its class; complain if it has none."""
    try:
        return loss.traits
    except AttributeError:
        name = getattr(loss, "__name__", type(loss).__name__)
        raise TypeError(
            f"The loss {name} declares no traits; decorate its class with topksvm.losses.declare."
        ) from None


def is_smooth(loss: Any) -> bool:
    """Return whether the loss, with its parameters, has a gradient everywhere."""
    traits = traits_of(loss)
    return traits.smooth or (traits.uses_smoothing and loss.smoothing > 0.0)


@dispatched
def value(loss, row, base, work):
    """See :class:`Loss`."""
    return loss.value(loss, row, base, work)


@dispatched
def gradient(loss, row, base, out, work):
    """See :class:`Loss`."""
    return loss.gradient(loss, row, base, out, work)


@dispatched
def dual_value(loss, values, n, C):
    """See :class:`Loss`."""
    return loss.dual_value(loss, values, n, C)


@dispatched
def make_feasible(loss, values, n, C):
    """See :class:`Loss`."""
    return loss.make_feasible(loss, values, n, C)


@dispatched
def dual_step(loss, row, base, norm, C, work):
    """See :class:`Loss`."""
    return loss.dual_step(loss, row, base, norm, C, work)


@dispatched
def feasible_step(loss, values, change, n, r, limit):
    """See :class:`Loss`."""
    return loss.feasible_step(loss, values, change, n, r, limit)
