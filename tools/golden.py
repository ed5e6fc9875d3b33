"""Hashes of models over a dozen kinds of fits: what a change of structure must leave as it is.

``python tools/golden.py write FILE`` before the change, ``python tools/golden.py compare FILE``
after it, on the same machine: the last bits of a model depend on the processor and on BLAS.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import topksvm
from topksvm import TopKLinearSVC, TopKLinearSVCCV, TopKSVC

Fit = Callable[[], list[np.ndarray]]
HINGES = ("topk_hinge_alpha", "topk_hinge_beta", "topk_hinge_full")
COMMON = {"C": 0.3, "random_state": 0, "tol": 1e-5}


def make_data() -> tuple[np.ndarray, np.ndarray]:
    """Return rows whose classes overlap."""
    rng = np.random.default_rng(7)
    X = rng.standard_normal((700, 30))
    y = (X[:, :17] + 1.5 * rng.standard_normal((700, 17))).argmax(axis=1)
    X[np.abs(X) < 0.4] = 0.0
    return X, y


def weights(model: Any) -> list[np.ndarray]:
    """Return what a linear model has learned."""
    return [model.coef_, model.intercept_]


def fits(X: np.ndarray, y: np.ndarray) -> Iterator[tuple[str, Fit]]:
    """Yield names and fits; each returns the arrays to be hashed."""
    formats = {"dense": np.asarray, "CSR": sp.csr_matrix}
    for loss in (*HINGES, "softmax", "topk_entropy"):
        for dtype in (np.float32, np.float64):
            for name, form in formats.items():
                rows = form(X.astype(dtype))
                model = TopKLinearSVC(1 if loss == "softmax" else 3, loss=loss, **COMMON)
                yield (
                    f"{loss}, {dtype.__name__}, {name}",
                    lambda model=model, rows=rows: weights(model.fit(rows, y)),
                )
    for loss in HINGES:
        model = TopKLinearSVC(3, loss=loss, smoothing=0.5, n_jobs=2, **COMMON)
        yield f"{loss}, smooth, 2 threads", lambda model=model: weights(model.fit(X, y))
    softmax = TopKLinearSVC(loss="softmax", solver="sdca", **COMMON)
    yield "softmax by SDCA", lambda: weights(softmax.fit(X, y))
    half = TopKLinearSVC(3, **COMMON)
    yield "float16, streamed", lambda: weights(half.fit(X.astype(np.float16), y))
    kernel = TopKSVC(3, kernel="rbf", **COMMON)
    yield "kernel machine", lambda: [kernel.fit(X, y).dual_coef_]
    search = TopKLinearSVCCV(ks=(1, 3), Cs=[0.01, 0.1], cv=3, random_state=0)
    yield "cross-validation", lambda: weights(search.fit(X, y))
    yield (
        "path",
        lambda: [
            result.weights
            for _, result in topksvm.path(X, y, "topk_hinge_alpha", [0.1, 1.0], k=3, seed=0)
        ],
    )
    yield "shards", lambda: fit_shards(X, y)


def fit_shards(X: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    """Return the model of three shards, in threads of this process."""
    import dask.array as da
    from dask.distributed import Client

    from topksvm.distributed import DaskTopKLinearSVC

    with Client(n_workers=3, threads_per_worker=1, processes=False, dashboard_address=":0"):
        model = DaskTopKLinearSVC(3, C=0.3, random_state=0, local_passes=3)
        return weights(model.fit(da.from_array(X, chunks=(100, -1)), y))


def digest(arrays: list[np.ndarray]) -> str:
    """Return a hash of the bits."""
    sha = hashlib.sha256()
    for array in arrays:
        sha.update(np.ascontiguousarray(array).tobytes())
    return sha.hexdigest()[:16]


def main() -> int:
    """Write the hashes, or compare them and say which have changed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=("write", "compare"))
    parser.add_argument("file", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    found = {name: digest(fit()) for name, fit in fits(*make_data())}
    if args.what == "write":
        args.file.write_text(json.dumps(found, indent=1))
        return 0
    known = json.loads(args.file.read_text())
    changed = sorted(name for name in known | found if known.get(name) != found.get(name))
    print(f"{len(found)} models, {len(changed)} changed", *changed, sep="\n  ")
    return bool(changed)


if __name__ == "__main__":
    sys.exit(main())
