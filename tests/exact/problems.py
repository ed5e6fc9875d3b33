"""Hostile tiny problems, one for each seed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

HINGES = ("topk_hinge_alpha", "topk_hinge_beta", "topk_hinge_full")
LOSSES = (*HINGES, "softmax", "topk_entropy")
DTYPES = ("float32", "float64")
FORMATS = ("dense", "csr")


@dataclass
class Problem:
    """The arguments of one call of :func:`topksvm.solve`."""

    seed: int
    X: Any
    y: np.ndarray
    C: Any
    definition: dict[str, Any]  # loss, k, smoothing, n_classes, bias
    run: dict[str, Any] = field(default_factory=dict)  # solver, tol, max_iter, seed

    def __str__(self):
        shape = "x".join(map(str, self.X.shape))
        form = "csr" if sp.issparse(self.X) else "dense"
        return f"seed {self.seed}: {shape} {form} {self.X.dtype}, {self.definition}, {self.run}"


def make_problem(
    seed: int, loss: str | None = None, dtype: str | None = None, form: str | None = None
) -> Problem:
    """Return the problem of a seed, the same every time; what is given is not drawn."""
    rng = np.random.default_rng(seed)
    drawn = (rng.choice(LOSSES), rng.choice(DTYPES), rng.choice(FORMATS, p=[0.7, 0.3]))
    loss, dtype, form = (
        given or str(draw) for given, draw in zip((loss, dtype, form), drawn, strict=True)
    )
    n, d, m = (int(rng.integers(low, high + 1)) for low, high in ((1, 8), (1, 4), (2, 6)))
    X = _features(rng, n, d).astype(dtype)
    definition = _definition(rng, loss, m)
    return Problem(
        seed,
        sp.csr_matrix(X) if form == "csr" else X,
        _labels(rng, X, m),
        _weights(rng, n),
        definition,
        _run(rng, loss, definition["smoothing"]),
    )


def _features(rng, n, d):
    kinds = [
        lambda: rng.standard_normal((n, d)),
        lambda: rng.integers(-3, 4, (n, d)).astype(float),
        lambda: rng.integers(0, 2, (n, d)).astype(float),
        lambda: np.round(rng.standard_normal((n, d)) * 1000),
        lambda: np.abs(rng.standard_normal((n, d))) + 100,
    ]
    X = kinds[rng.integers(len(kinds))]()
    if rng.random() < 0.5:
        X = X * 10.0 ** rng.integers(-6, 7)
    if rng.random() < 0.3:
        X = X * 10.0 ** rng.integers(-6, 7, d)
    if rng.random() < 0.3:
        X[rng.random(n) < 0.4] = 0
    if rng.random() < 0.3:
        X = X[rng.integers(0, n, n)]
    return np.clip(X, -1e9, 1e9)


def _labels(rng, X, m):
    y = rng.integers(0, m, len(X))
    kind = rng.random()
    if kind < 0.2:
        y[:] = y[0]
    elif kind < 0.4:
        y[y == m - 1] = 0
    elif kind < 0.6:
        y = (np.abs(X[:, 0]) * 7 % m).astype(int) % m
    return y


def _weights(rng, n):
    C = 10.0 ** rng.uniform(-6, 6)
    if rng.random() < 0.3:
        C = float(10.0 ** rng.integers(-6, 7))
    kind = rng.random()
    if kind < 0.6:
        return C
    weights = 10.0 ** rng.uniform(-3, 3, n) if kind < 0.8 else np.ones(n)
    if rng.random() < 0.3:
        weights[rng.integers(n)] = 1e10
    if rng.random() < 0.5:
        weights[rng.random(n) < 0.3] = 0
    return C * weights


def _definition(rng, loss, m):
    k = 1 if loss == "softmax" else int(rng.integers(1, m))
    smooth = loss in HINGES and rng.random() < 0.4
    return {
        "loss": loss,
        "k": k,
        "smoothing": float(10.0 ** rng.uniform(-3, 1)) if smooth else 0.0,
        "n_classes": m,
        "bias": float(rng.choice([0.0, 1.0, 30.0, 1e3], p=[0.4, 0.3, 0.15, 0.15])),
    }


def _run(rng, loss, smoothing):
    solvers = ["sdca", "lbfgs", "auto"]
    if loss in HINGES and not smoothing:
        solvers = ["sdca"]
    elif loss == "topk_entropy":
        solvers = ["lbfgs"]
    return {
        "solver": str(rng.choice(solvers)),
        "tol": float(10.0 ** rng.uniform(-12, -3)),
        "max_iter": int(rng.choice([1, 5, 30, 200], p=[0.25, 0.35, 0.3, 0.1])),
        "seed": int(rng.integers(100)),
    }
