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
    ladder: ClassVar[tuple[Any, ...]] = (5, 10, 20, 30, 50, 75, 100, 150, 250, 400, 800)
    usual = 100
    cheap = 50
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
    ladder = (1, 2, 3, 4, 5, 6, 8, 10, 13, 17, 25, 50, 100)
    is_for_large = False
