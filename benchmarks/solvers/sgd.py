"""scikit-learn's `SGDClassifier`: one problem per class, for the race to an accuracy."""

from __future__ import annotations

import warnings
from typing import Any

from benchmarks.solvers.base import Fit, Solver


class SGDHinge(Solver):
    """Linear SVMs."""

    name = "SGDClassifier hinge"
    package = "scikit-learn"
    module = "sklearn.linear_model"
    ladder = (1, 2, 5, 10, 20, 50, 100)
    usual = 100
    cheap = 5
    uses_threads = True
    loss = "hinge"

    def fit(self, X: Any, y: Any, setting: int) -> Any:
        """Make a number of passes, less if the loss no longer falls."""
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import SGDClassifier

        model = SGDClassifier(
            loss=self.loss,
            alpha=1.0 / (self.C * len(y)),
            fit_intercept=False,
            max_iter=setting,
            n_jobs=self.threads,
            random_state=0,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return model.fit(X, y)

    def weights_of(self, model: Any) -> Fit:
        """Return the weights."""
        return Fit(model.coef_)


class SGDLog(SGDHinge):
    """Logistic regressions."""

    name = "SGDClassifier log_loss"
    loss = "log_loss"
