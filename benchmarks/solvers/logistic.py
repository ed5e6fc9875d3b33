"""scikit-learn's `LogisticRegression`."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

from benchmarks.solvers.base import Fit, Solver


class LogisticLBFGS(Solver):
    """L-BFGS, the default."""

    name = "LogisticRegression lbfgs"
    package = "scikit-learn"
    module = "sklearn.linear_model"
    losses = ("softmax",)
    ladder: ClassVar[tuple[Any, ...]] = (5, 10, 20, 40, 80, 160, 320, 640, 1280)
    usual = 100
    uses_threads = True
    algorithm = "lbfgs"

    def fit(self, X: Any, y: Any, setting: int) -> Any:
        """Make at most so many iterations, less if they no longer help."""
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(
            C=self.C,
            solver=self.algorithm,
            fit_intercept=False,
            max_iter=setting,
            tol=1e-6,
            random_state=0,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # That is what the ladder is.
            return model.fit(X, y)

    def weights_of(self, model: Any) -> Fit:
        """Return the weights."""
        return Fit(model.coef_)


class LogisticNewtonCG(LogisticLBFGS):
    """Truncated Newton."""

    name = "LogisticRegression newton-cg"
    algorithm = "newton-cg"
    ladder = (1, 2, 3, 5, 8, 13, 21, 34)
    is_for_large = False


class LogisticSaga(LogisticLBFGS):
    """Stochastic averaged gradients."""

    name = "LogisticRegression saga"
    algorithm = "saga"
    ladder = (5, 10, 20, 40, 80, 160, 320, 640, 1280)
    uses_threads = False
    is_for_large = False
