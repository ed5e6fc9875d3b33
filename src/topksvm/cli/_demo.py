"""``topksvm demo``: see what the library does."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from topksvm._files import replacing
from topksvm.cli._errors import UserError
from topksvm.cli._output import print_table
from topksvm.projections import project_topk_simplex


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "demo",
        help="see the top-k simplex, in numbers and as a picture",
        description="Project one vector onto the top-k simplex for several k and draw the sets.",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("demo"),
        metavar="DIR",
        help="where to write simplex.png (default: demo)",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Run the command."""
    margins = np.array([2.0, 1.4, 1.3, 0.9, 0.2, -0.5])
    rows = [
        [str(k)] + [f"{x:.3f}" for x in project_topk_simplex(margins, k)] for k in (1, 2, 3, 4, 5)
    ]
    print("Six wrong classes compete for the weight that one training example may give.")
    print("No class may take more than a k-th of it: the larger k, the wider it is shared.\n")
    print_table(["margin", *(f"{a:.1f}" for a in margins)], [["k", *["weight"] * 6], *rows])
    from topksvm.experiments.figures import draw_simplices

    path = options.out / "simplex.png"
    try:
        with replacing(path) as temporary:
            draw_simplices().savefig(temporary, dpi=150)
    except OSError as error:
        raise UserError(
            f"cannot write {path}: {error.strerror}. Choose another folder with --out."
        ) from error
    print(f"\nThe sets behind this, drawn for three classes: {path}")
