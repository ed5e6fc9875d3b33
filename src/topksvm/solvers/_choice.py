"""Which loss and which solver: names made into objects, and what a solver needs of a loss."""

from __future__ import annotations

from typing import Any, NamedTuple

from topksvm.losses import LOSSES, is_smooth, traits_of


class Requirement(NamedTuple):
    """What a solver needs of a loss."""

    smooth: bool = False
    dual_step: bool = False


SOLVERS = {
    "sdca": Requirement(dual_step=True),
    "lbfgs": Requirement(smooth=True),
}
"""The solvers by name; ``"auto"`` is the one that suits the loss."""


def make_loss(name: str, k: int = 1, smoothing: float = 0.0) -> Any:
    """Return the loss of that name; complain about parameters that it does not have."""
    if name not in LOSSES:
        raise ValueError(f"loss = {name!r} is not known; it must be one of {', '.join(LOSSES)}.")
    kind: Any = LOSSES[name]
    traits = traits_of(kind)
    parameters: dict[str, Any] = {}
    if traits.uses_k:
        parameters["k"] = int(k)
    elif k != 1:
        raise ValueError(f"k = {k} has no meaning for loss = {name!r}; leave it at 1.")
    if traits.uses_smoothing:
        parameters["smoothing"] = float(smoothing)
    elif smoothing != 0.0:
        raise ValueError(
            f"smoothing = {smoothing} has no meaning for loss = {name!r}, which is smooth already; "
            "leave it at 0."
        )
    return kind(**parameters)


def loss_for(m: int, name: str, k: int = 1, smoothing: float = 0.0) -> Any:
    """Return the loss; complain unless its k is below the number of classes."""
    if not 1 <= k < m:
        raise ValueError(f"k = {k} but there are {m} classes; k must be between 1 and {m - 1}.")
    return make_loss(name, k, smoothing)


def choose_solver(solver: str, loss: Any) -> str:
    """Return ``"sdca"`` or ``"lbfgs"``; complain if the one asked for cannot solve the loss."""
    if solver != "auto" and solver not in SOLVERS:
        names = ("auto", *SOLVERS)
        raise ValueError(f"solver = {solver!r} is not known; it must be one of {names}.")
    if solver == "auto":
        # Smooth losses have dense duals: all classes are always in play.
        if is_smooth(loss):
            return "lbfgs"
        advice = "use smoothing > 0" if loss.traits.uses_smoothing else ""
        check_dual_step("A loss with kinks", loss, advice)
        return "sdca"
    needs = SOLVERS[solver]
    if needs.smooth and not is_smooth(loss):
        raise ValueError(
            f"solver = {solver!r} needs a smooth loss, and {name_of(loss)} has kinks; use "
            "solver='sdca', or smoothing > 0."
        )
    if needs.dual_step:
        check_dual_step(f"solver = {solver!r}", loss, "use solver='lbfgs'")
    return solver


def check_dual_step(what: str, loss: Any, advice: str = "") -> None:
    """Complain about a loss that has no dual step, which `what` needs."""
    if loss.traits.has_dual_step:
        return
    able = [name for name, other in LOSSES.items() if traits_of(other).has_dual_step]
    raise ValueError(
        f"{what} needs a dual step, which {name_of(loss)} does not have; "
        f"{advice or 'choose one of ' + ', '.join(able)}."
    )


def name_of(loss: Any) -> str:
    """Return the name in the registry, quoted."""
    for name, kind in LOSSES.items():
        if kind is type(loss):
            return repr(name)
    return type(loss).__name__
