"""The algorithm of the paper, on the kernels of this package, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.solvers.base import Fit, Solver


class Sequential(Solver):
    """One example at a time, all classes, no active passes: a stand-in for the authors' C++.

    Faster than what the paper prints: it updates the weights of the classes alone that changed.
    """

    name = "sequential SDCA"
    package = "topksvm"
    module = "topksvm"
    losses = ("hinge-1", "hinge-5")
    ladder = (1e-1, 1e-2, 3e-3, 1e-3)
    usual = 1e-3
    cheap = 1e-2
    is_for_large = False

    def prepare(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Return the rows in float64, in which the authors' program works."""
        return X.astype(np.float64), y

    def fit(self, X: Any, y: Any, setting: float) -> Any:
        """Stop at a proven relative gap."""
        from threadpoolctl import threadpool_limits

        from benchmarks.sequential import SequentialSDCA
        from topksvm._threads import thread_limit
        from topksvm.data._problem import make_problem
        from topksvm.losses import LOSSES
        from topksvm.solvers._sdca import SDCAOptions

        loss: Any = LOSSES["topk_hinge_alpha"]
        m = int(y.max()) + 1
        with thread_limit(self.threads), threadpool_limits(self.threads, user_api="blas"):
            problem = make_problem(X, y, np.full(len(y), self.C), m)
            options = SDCAOptions(setting, max_iter=100_000)
            return SequentialSDCA(loss(self.objective.k), problem, options).run()

    def weights_of(self, model: Any) -> Fit:
        """Return weights and the proven bound."""
        return Fit(model.weights, model.certificate.dual)
