"""scikit-learn's `LinearSVC`: LIBLINEAR with one thread, in float64."""

from __future__ import annotations

from typing import Any, ClassVar

from benchmarks.solvers.base import Fit, Solver


class CrammerSinger(Solver):
    """The multiclass hinge loss."""

    name = "LinearSVC crammer_singer"
    package = "scikit-learn"
    module = "sklearn.svm"
    losses: ClassVar[tuple[str, ...]] = ("hinge-1",)
    ladder: ClassVar[tuple[Any, ...]] = (1.0, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 1e-4)
    usual = 1e-4
    cheap = 0.1
    kind = "crammer_singer"

    def fit(self, X: Any, y: Any, setting: float) -> Any:
        """Stop at a violation of the optimality conditions."""
        from sklearn.svm import LinearSVC

        return LinearSVC(
            multi_class=self.kind,
            C=self.C,
            fit_intercept=False,
            tol=setting,
            max_iter=1_000_000,
            random_state=0,
        ).fit(X, y)

    def weights_of(self, model: Any) -> Fit:
        """Return the weights."""
        return Fit(model.coef_)


class OneVsRest(CrammerSinger):
    """One squared hinge loss per class; for the race to an accuracy."""

    name = "LinearSVC one-vs-rest"
    losses = ()
    ladder = (1.0, 0.1, 1e-2, 1e-4)
    kind = "ovr"
