"""The estimator of this package, as users call it."""

from __future__ import annotations

from typing import Any

from benchmarks.solvers.base import Fit, Solver


class _Ours(Solver):
    package = "topksvm"
    module = "topksvm"
    is_ours = True
    uses_threads = True
    ladder = (1e-1, 3e-2, 1e-2, 5e-3, 2e-3, 1e-3, 1e-4)
    usual = 1e-3
    cheap = 1e-2

    def fit(self, X: Any, y: Any, setting: float) -> Any:
        """Stop at a proven relative gap."""
        from topksvm import TopKLinearSVC

        loss = "softmax" if self.objective.loss == "softmax" else "topk_hinge_alpha"
        return TopKLinearSVC(
            k=self.objective.k,
            loss=loss,
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


class HingeOurs(_Ours):
    """Dual coordinate ascent with active passes."""

    name = "topksvm hinge"
    losses = ("hinge-1", "hinge-5")


class SoftmaxOurs(_Ours):
    """L-BFGS with a certificate."""

    name = "topksvm softmax"
    losses = ("softmax",)
    # Accuracy may be best long before the optimum, so there are hasty settings, as for peers.
    ladder = (0.5, 0.3, *_Ours.ladder)
