"""See what training for the best k guesses buys, on sketches.

Trains on Quick, Draw! (345 classes of sketches, in the package) for 1, 5 and 10 guesses, and
softmax for comparison; prints the table and writes a page with the classes that are taken for each
other. Takes about two minutes on two processors.

Examples
--------
  topksvm demo                         about two minutes; then open demo/report.html
  topksvm demo --out sketches          write elsewhere
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from topksvm.cli._options import add_command
from topksvm.cli._output import check_writable
from topksvm.cli._warmup import compile_kernels

_METHODS = {
    "top-1-SVM-alpha": 0.3,
    "top-5-SVM-alpha": 3.0,
    "top-10-SVM-alpha": 3.0,
    "softmax": 5.0,
}
"""What is compared, each with the C that is best for it on the validation rows."""


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(commands, "demo", run, __doc__)
    text = "where to write the page, tables and plots (demo)"
    parser.add_argument("--out", type=Path, default=Path("demo"), metavar="DIR", help=text)


def run(options: argparse.Namespace) -> None:
    """Run the command."""
    from topksvm.cli._reproduce import print_summaries, run_table
    from topksvm.datasets import load_quickdraw
    from topksvm.reproduction import Settings, Source, lead

    print("Quick, Draw!: 24,150 sketches of 345 things to train on, 6,900 to test with.")
    print("Often nobody can tell from one guess; so how good are the best 5, the best 10?\n")
    check_writable(options.out, "--out")
    compile_kernels(("topk_hinge_alpha", "softmax"), ("float32",))
    source = Source(load_quickdraw, (("features", "hog"),))
    values = tuple((name, (C,)) for name, C in _METHODS.items())
    settings = Settings(quick=True, values=values)
    summaries = run_table(source, list(_METHODS), settings, options.out)
    print_summaries(summaries, options.out)
    print(f"\n{lead(summaries)}")
