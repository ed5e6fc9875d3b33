"""Parse the command line, run the command, turn errors into one line and an exit code."""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from topksvm import __version__
from topksvm._threads import n_threads
from topksvm.cli import (
    _cv,
    _demo,
    _evaluate,
    _extract,
    _info,
    _predict,
    _reproduce,
    _train,
    _warmup,
)
from topksvm.cli._errors import UserError
from topksvm.cli._options import Parser
from topksvm.cli._output import warn

_COMMANDS = (_demo, _train, _predict, _evaluate, _cv, _reproduce, _extract, _warmup, _info)


def build_parser() -> Parser:
    """Return the parser of the whole command line."""
    parser = Parser(
        prog="topksvm", description="Top-k multiclass SVMs, trained to a proven duality gap."
    )
    parser.add_argument("--version", action="version", version=f"topksvm {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in _COMMANDS:
        command.add_parser(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, 2 for bad input, 130 if interrupted."""
    try:
        options = build_parser().parse_args(arguments)
        _check_environment()
        with _leaving_on_sigterm(), _warnings_as_lines():
            options.run(options)
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("topksvm: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # The reader of our output, such as `head`, has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (UserError, OSError) as error:  # An OSError is a disk that is full, for example.
        print(f"topksvm: error: {error}", file=sys.stderr)
        return 2
    return 0


@contextmanager
def _leaving_on_sigterm() -> Iterator[None]:
    """Leave with an exception on SIGTERM, as on Ctrl-C, so that a fit can write its checkpoint."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """Print what the library warns of in one line each, without the place in the code."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for category in (UserWarning, RuntimeWarning):
            warnings.simplefilter("default", category)
        warnings.showwarning = lambda message, *_, **__: warn(message)
        yield


def _check_environment() -> None:
    try:
        n_threads()
    except ValueError as error:
        raise UserError(str(error)) from error
