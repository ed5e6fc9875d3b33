"""A training problem whose rows are known by a kernel alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm.data._gram import Gram
from topksvm.data._gram_checks import check_diagonal
from topksvm.data._problem import Examples

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class KernelProblem:
    """``min_W 1/2 ||W||^2 + sum_i C_i phi(F_i, y_i)`` with ``F = A K`` and `m` classes."""

    gram: Gram
    examples: Examples
    m: int


def make_kernel_problem(
    gram: Gram, labels: NDArray[np.integer[Any]], C: Floats, m: int
) -> KernelProblem:
    """Return the problem for labels from 0 to ``m - 1``; complain about a negative diagonal."""
    norms = gram.diagonal()
    check_diagonal(norms)
    weights = np.array(C, dtype=np.float64)  # A copy: kernels are compiled for what is writable.
    return KernelProblem(gram, Examples(labels.astype(np.int32), weights, norms), m)
