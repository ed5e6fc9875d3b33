"""What a fit of dense rows passes through: our files and functions, and the frames above a kernel.

``python tools/trace_fit.py``: without the compiler, so kernels are functions like the others.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

os.environ["NUMBA_DISABLE_JIT"] = "1"
os.environ["TOPKSVM_NUM_THREADS"] = "1"

import numpy as np
from sklearn.datasets import load_digits

import topksvm
from topksvm import TopKLinearSVC

PACKAGE = str(Path(topksvm.__file__).parent)
KERNELS = ("block_pass", "sequential_pass", "active_pass", "differentiate")


class Tracer:
    """Notes every function of ours that is called, in any thread."""

    def __init__(self) -> None:
        self.functions: set[tuple[str, str]] = set()
        self.deepest: list[str] = []

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:  # noqa: ARG002
        """See :func:`sys.setprofile`."""
        if event != "call" or not frame.f_code.co_filename.startswith(PACKAGE):
            return
        name = frame.f_code.co_qualname
        self.functions.add((frame.f_code.co_filename[len(PACKAGE) + 1 :], name))
        if not self.deepest and name in KERNELS:
            self.deepest = self._stack(frame)

    def _stack(self, frame: FrameType | None) -> list[str]:
        """Return the frames of ours, the kernel last, from where the work began."""
        names: list[str] = []
        while frame is not None:
            if frame.f_code.co_filename.startswith(PACKAGE):
                names.append(f"{Path(frame.f_code.co_filename).name}: {frame.f_code.co_qualname}")
            frame = frame.f_back
        return names[::-1]


def trace(fit: Callable[[], Any]) -> Tracer:
    """Return what a call passes through."""
    tracer = Tracer()
    threading.setprofile(tracer)
    sys.setprofile(tracer)
    try:
        fit()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return tracer


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--loss", default="topk_hinge_alpha")
    options = parser.parse_args()
    X, y = load_digits(return_X_y=True)
    X = X[:60] / 16.0
    model = TopKLinearSVC(loss=options.loss, tol=0.1, random_state=0)
    found = trace(lambda: model.fit(X, np.asarray(y[:60])))
    files = {file for file, _ in found.functions}
    print(f"{len(files)} files, {len(found.functions)} functions of ours")
    print("frames of ours from the start of the work to the first pass:")
    for name in found.deepest:
        print(f"  {name}")
    for file in sorted(files):
        print(f"{file}: {sum(other == file for other, _ in found.functions)}")


if __name__ == "__main__":
    main()
