"""The data that benchmarks share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from topksvm.cli._errors import UserError
from topksvm.cli._output import in_options

_WORDS = {
    "pass path=": "pass --silhouettes FILE",
    "path=": "--silhouettes ",
    " To read it nevertheless pass check=False.": "",
}
"""What the loader calls its arguments, and the command line its options."""


def silhouettes(path: Path | None) -> tuple[Any, Any, float]:
    """Return the training data of Caltech 101 Silhouettes, or a problem like it, and its C."""
    from benchmarks.solver_speed import make_mixture
    from topksvm.datasets import load_silhouettes

    if path is None:
        X, y = make_mixture(4100, 784, 101, "float32")
        return X, y, 1.0
    try:
        data = load_silhouettes(path)
    except (OSError, ValueError) as error:
        raise UserError(in_options(error, _WORDS)) from error
    return data.X_train, data.y_train, 0.01
