"""Cyanure's multinomial logistic regression."""

from __future__ import annotations

from typing import Any

from benchmarks.solvers.base import Fit, Solver


class Cyanure(Solver):
    """Its own choice of algorithm, with a duality gap."""

    name = "Cyanure"
    package = "cyanure"
    module = "cyanure.estimators"
    losses = ("softmax",)
    settings = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4)
    usual = 1e-3
    cheap = 1e-2
    uses_threads = True

    def fit(self, X: Any, y: Any, setting: float) -> Any:
        """Stop at a relative duality gap; the penalty is on the mean loss."""
        from cyanure.estimators import Classifier

        return Classifier(
            loss="multiclass-logistic",
            penalty="l2",
            lambda_1=1.0 / (self.C * len(y)),
            fit_intercept=False,
            tol=setting,
            max_iter=100_000,
            n_threads=self.threads,
            random_state=0,
            verbose=False,
        ).fit(X, y)

    def weights_of(self, model: Any) -> Fit:
        """Return the weights; Cyanure keeps a column per class."""
        return Fit(model.coef_.T)
