"""sklearn-contrib-lightning's multiclass hinge loss, where it installs."""

from __future__ import annotations

from typing import Any

from benchmarks.solvers.base import Solver


class Lightning(Solver):
    """Stochastic steps on the multiclass hinge loss: the solver of lightning that minimises it."""

    name = "lightning SGD"
    package = "sklearn-contrib-lightning"
    module = "lightning.classification"
    losses = ("hinge-1",)
    settings = (5, 20, 80, 320, 1280)
    usual = 80
    cheap = 20
    is_for_large = False

    def fit(self, X: Any, y: Any, setting: int) -> Any:
        """Make a number of passes; ``alpha`` is the strength of the penalty on the mean loss."""
        from lightning.classification import SGDClassifier

        return SGDClassifier(
            loss="hinge",
            multiclass="natural",
            alpha=1.0 / (self.C * len(y)),
            fit_intercept=False,
            max_iter=setting,
            random_state=0,
        ).fit(X, y)
