"""topksvm: its estimator as users call it, and the algorithm of the paper on its kernels."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from benchmarks.solvers.base import Fit, Solver


class HingeOurs(Solver):
    """Dual coordinate ascent with active passes."""

    name = "topksvm hinge"
    package = "topksvm"
    module = "topksvm"
    losses: ClassVar[tuple[str, ...]] = ("hinge-1", "hinge-5")
    is_ours = True
    uses_threads = True
    settings: ClassVar[tuple[Any, ...]] = (1e-1, 3e-2, 1e-2, 5e-3, 2e-3, 1e-3, 1e-4)
    usual = 1e-3
    cheap = 1e-2
    loss = "topk_hinge_alpha"

    def fit(self, X: Any, y: Any, setting: float) -> Any:
        """Stop at a proven relative gap."""
        from topksvm import TopKLinearSVC

        return TopKLinearSVC(
            k=self.objective.k,
            loss=self.loss,
            C=self.C,
            fit_intercept=False,
            tol=setting,
            max_iter=100_000,
            n_jobs=self.threads,
            random_state=0,
        ).fit(X, y)

    def weights_of(self, model: Any) -> Fit:
        """Return weights and the proven bound."""
        return Fit(model.coef_, model.certificate_.dual)

    def guess(self, model: Any, X: Any, k: int) -> Any:
        """Return the best classes by the method for it."""
        return model.predict_topk(X, k)


class SoftmaxOurs(HingeOurs):
    """L-BFGS with a certificate."""

    name = "topksvm softmax"
    losses = ("softmax",)
    # Accuracy may be best long before the optimum, so there are loose settings, as for peers.
    settings = (0.5, 0.3, *HingeOurs.settings)
    loss = "softmax"


class Sequential(Solver):
    """One example at a time, all classes, no active passes: a stand-in for the authors' C++.

    Faster than what the paper prints: it updates the weights of the classes alone that changed.
    """

    name = "sequential SDCA"
    package = "topksvm"
    module = "topksvm"
    losses = ("hinge-1", "hinge-5")
    settings = (1e-1, 1e-2, 3e-3, 1e-3)
    usual = 1e-3
    cheap = 1e-2
    is_for_large = False

    def prepare(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Return the rows in float64, in which the authors' program works."""
        return X.astype(np.float64), y

    def fit(self, X: Any, y: Any, setting: float) -> Any:
        """Stop at a proven relative gap."""
        from benchmarks.sequential import ONE_BY_ONE
        from topksvm import solve

        how: dict[str, Any] = {"k": self.objective.k, "max_iter": 100_000, "n_jobs": self.threads}
        return solve(X, y, C=self.C, tol=setting, **how, **ONE_BY_ONE)

    def weights_of(self, model: Any) -> Fit:
        """Return weights and the proven bound."""
        return Fit(model.weights, model.certificate.dual)
