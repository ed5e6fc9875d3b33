"""LIBLINEAR by its own Python interface, ``-s 4``."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.solvers.base import Fit, Solver


class Liblinear(Solver):
    """Crammer and Singer's SVM, with shrinking; one thread, float64."""

    name = "LIBLINEAR -s 4"
    package = "liblinear-official"
    module = "liblinear.liblinearutil"
    losses = ("hinge-1",)
    settings = (1.0, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 1e-4)
    usual = 0.1
    cheap = 0.1

    def prepare(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Return LIBLINEAR's list of nodes; it takes long from dense rows, and is not timed."""
        from liblinear.liblinear import problem

        self.shape = int(y.max()) + 1, X.shape[1]
        rows = sp.csr_matrix(X, dtype=np.float64, copy=True)  # It sorts indices in place.
        return problem(y.astype(np.float64), rows), None

    def fit(self, X: Any, y: Any, setting: float) -> Any:  # noqa: ARG002
        """Stop at a violation of the optimality conditions."""
        from liblinear.liblinearutil import train

        return train(X, f"-s 4 -c {self.C!r} -e {setting!r} -B -1 -q")

    def weights_of(self, model: Any) -> Fit:
        """Return the weights, a row per class in the order of the labels."""
        m, d = self.shape
        labels = np.array(model.get_labels(), dtype=int)
        by_feature = np.ctypeslib.as_array(model.w, (d * len(labels),)).reshape(d, -1)
        weights = np.zeros((m, d))
        weights[labels] = by_feature.T
        return Fit(weights)
