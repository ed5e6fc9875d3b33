"""Types of options, and those that the commands which train have in common."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable
from typing import Any

from topksvm.cli._errors import UserError

LOSS_NAMES = ("topk_hinge_alpha", "topk_hinge_beta", "topk_hinge_full", "softmax", "topk_entropy")
"""The losses, here as importing them would load the compiler for every ``--help``."""


def whole(option: str, least: int = 1) -> Callable[[str], int]:
    """Return the type of an option that takes whole numbers."""

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least:
            raise UserError(
                f"{option} {text}: it must be a whole number of at least {least}. Change it; "
                "names of files come before the options."
            )
        return value

    return parse


def number(option: str, *, least: float = 0.0, may_equal: bool = False) -> Callable[[str], float]:
    """Return the type of an option that takes finite numbers above `least`."""

    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not (least < value < math.inf or (may_equal and value == least)):
            relation = "of at least" if may_equal else "above"
            raise UserError(
                f"{option} {text}: it must be a number {relation} {least:g}. Change it; names of "
                "files come before the options."
            )
        return value

    return parse


def size(option: str) -> Callable[[str], int]:
    """Return the type of an option that takes a number of bytes, such as 500M or 4G."""
    units = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}

    def parse(text: str) -> int:
        digits, unit = (text[:-1], text[-1:].upper()) if text[-1:].isalpha() else (text, "")
        try:
            value = float(digits) * units[unit]
        except (KeyError, ValueError):
            value = math.nan
        if not 1 <= value < math.inf:
            raise UserError(f"{option} {text}: it must be a size such as 500M or 4G.")
        return int(value)

    return parse


def one_of(option: str, names: Iterable[str]) -> Callable[[str], str]:
    """Return the type of an option that takes one of several names."""
    known = tuple(names)

    def parse(text: str) -> str:
        if text not in known:
            raise UserError(f"{option} {text}: it must be one of {', '.join(known)}.")
        return text

    return parse


def add_training_options(parser: argparse.ArgumentParser) -> None:
    """Add what is the same for one model and for a search."""
    group = parser.add_argument_group("training")
    group.add_argument(
        "--smoothing",
        type=number("--smoothing", may_equal=True),
        default=0.0,
        metavar="S",
        help="smooth the hinge losses by this much (0)",
    )
    group.add_argument("--no-intercept", action="store_true", help="no constant feature")
    group.add_argument(
        "--class-weight",
        type=one_of("--class-weight", ["balanced"]),
        metavar="balanced",
        help="give all classes the same weight, whatever their size",
    )
    group.add_argument(
        "--tol", type=number("--tol"), default=1e-3, help="the relative duality gap wanted (0.001)"
    )
    group.add_argument(
        "--max-iter",
        type=whole("--max-iter"),
        default=1000,
        metavar="N",
        help="the most passes over the examples (1000)",
    )
    group.add_argument(
        "--max-time",
        type=number("--max-time"),
        metavar="SECONDS",
        help="stop training a model after so long with what has been reached",
    )
    group.add_argument(
        "--dtype",
        type=one_of("--dtype", ["float32", "float64"]),
        metavar="TYPE",
        help="compute in float32 or float64; by default as in DATA",
    )
    group.add_argument(
        "--jobs", type=whole("--jobs"), metavar="N", help="threads; all processors by default"
    )
    group.add_argument(
        "--seed",
        type=whole("--seed", 0),
        default=0,
        metavar="N",
        help="the order of the examples, and of what is held out (0)",
    )


def training_parameters(options: argparse.Namespace) -> dict[str, Any]:
    """Return the parameters of the estimators for the options."""
    return {
        "smoothing": options.smoothing,
        "fit_intercept": not options.no_intercept,
        "class_weight": options.class_weight,
        "tol": options.tol,
        "max_iter": options.max_iter,
        "max_time": options.max_time,
        "dtype": options.dtype,
        "n_jobs": options.jobs,
        "random_state": options.seed,
    }


def add_output_options(parser: argparse.ArgumentParser) -> None:
    """Add how to print."""
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress")
