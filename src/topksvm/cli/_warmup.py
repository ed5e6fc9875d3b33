"""Compile the kernels now, so that no later command has to.

The first fit after an installation compiles for some seconds; so does the first one with another
loss or precision. This compiles what is common, in several processes.

Examples
--------
  topksvm warmup                              all losses, float32 and float64
  topksvm warmup --loss softmax --dtype float32
"""

from __future__ import annotations

import argparse
from typing import Any

from topksvm._progress import CountBar
from topksvm.cli._options import LOSSES, add_command


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(commands, "warmup", run, __doc__)
    text = "only for these losses (all)"
    parser.add_argument("--loss", nargs="+", choices=tuple(LOSSES), default=(), help=text)
    dtypes = ("float32", "float64")
    text = "only for these precisions (both)"
    parser.add_argument("--dtype", nargs="+", choices=dtypes, default=dtypes, help=text)


def run(options: argparse.Namespace) -> None:
    """Run the command."""
    compile_kernels(options.loss, options.dtype)


def compile_kernels(losses: Any = (), dtypes: Any = ("float32", "float64")) -> None:
    """Compile with a bar."""
    from topksvm.estimators import warm_up

    with CountBar("compiling") as bar:
        warm_up(losses, dtypes, lambda done, total: bar.show(done, total))
