"""The parser, types of options, and the options that several commands have."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from topksvm.cli._errors import UserError

T = TypeVar("T")

LOSSES = {
    "topk_hinge_alpha": True,
    "topk_hinge_beta": True,
    "topk_hinge_full": True,
    "softmax": False,
    "topk_entropy": True,
}
"""The losses and whether they have a k; listed here because importing them is slow."""


class Parser(argparse.ArgumentParser):
    """A parser that reports a wrong option in one line, like any other bad input."""

    def error(self, message: str) -> NoReturn:
        """Raise an error instead of printing how the command is used."""
        raise UserError(f"{message}. See {self.prog} --help.")


def add_command(
    commands: Any, name: str, run: Callable[[argparse.Namespace], None], text: str | None
) -> Any:
    """Add a command and return its parser.

    `text` is the docstring of its module: a summary, more about it, and examples.
    """
    about, _, examples = (text or "").partition("Examples\n--------\n")
    parser = commands.add_parser(
        name,
        help=about.partition("\n")[0],
        description=about,
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    return parser


def _type(
    convert: Callable[[str], T], accepts: Callable[[T], bool], expected: str
) -> Callable[[str], T]:
    """Return the type of an option: `convert`, for values that it `accepts`."""

    def parse(text: str) -> T:
        wrong = f"{text!r} is not {expected}"
        try:
            value = convert(text)
        except (ValueError, OverflowError):
            wrong += "; names of files come before the options"
            raise argparse.ArgumentTypeError(wrong) from None
        if not accepts(value):
            raise argparse.ArgumentTypeError(wrong)
        return value

    return parse


def whole(least: int = 1) -> Callable[[str], int]:
    """Return the type of options that take whole numbers."""
    return _type(int, lambda value: value >= least, f"a whole number of at least {least}")


number = _type(float, math.isfinite, "a finite number")
above_0 = _type(float, lambda value: 0 < value < math.inf, "a number above 0")
at_least_0 = _type(float, lambda value: 0 <= value < math.inf, "a number of at least 0")


def _bytes(text: str) -> int:
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
    unit = units.get(text[-1:].upper())
    return int(float(text[:-1]) * unit) if unit else int(float(text))


size = _type(_bytes, lambda value: value >= 1, "a size such as 500M or 4G")


def add_output_options(parser: Any, *, is_quiet: bool = False) -> None:
    """Add how to print, with or without progress."""
    parser.add_argument("--json", action="store_true", help="print JSON")
    if is_quiet:
        parser.add_argument("-q", "--quiet", action="store_true", help="no progress")


def add_training_options(parser: Any) -> None:
    """Add what is the same for one model and for a search."""
    add = parser.add_argument_group("training").add_argument
    for name, type_, default, metavar, text in (
        ("--smoothing", at_least_0, 0.0, "S", "smooth the hinge losses by this much (0)"),
        ("--tol", above_0, 1e-3, "GAP", "the relative duality gap wanted (0.001)"),
        ("--max-iter", whole(), 1000, "N", "the most passes over the examples (1000)"),
        ("--max-time", above_0, None, "SECONDS", "stop with the model reached after so long"),
        ("--jobs", whole(), None, "N", "threads; all processors by default"),
        ("--seed", whole(0), 0, "N", "the order of the examples, and of what is held out (0)"),
    ):
        add(name, type=type_, default=default, metavar=metavar, help=text)
    for name, choices, text in (
        ("--dtype", ["float32", "float64"], "the precision; by default as in DATA"),
        ("--class-weight", ["balanced"], "give all classes the same weight, whatever their size"),
    ):
        add(name, choices=choices, help=text)
    add("--no-intercept", action="store_true", help="no constant feature")


def training_parameters(options: argparse.Namespace) -> dict[str, Any]:
    """Return the parameters of the estimators for the options."""
    names = ("smoothing", "class_weight", "tol", "max_iter", "max_time", "dtype")
    return {name: getattr(options, name) for name in names} | {
        "fit_intercept": not options.no_intercept,
        "n_jobs": options.jobs,
        "random_state": options.seed,
    }


def check_k(option: str, k: int, m: int, most: int) -> int:
    """Return a number of guesses if it is at most `most` of `m` classes."""
    if k > most:
        raise UserError(
            f"{option} {k}, but there are {m} classes; k must be between 1 and {most}. Choose a "
            "smaller one."
        )
    return k
