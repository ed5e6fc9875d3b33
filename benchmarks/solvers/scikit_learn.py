"""scikit-learn's linear classifiers."""

from __future__ import annotations

from typing import Any, ClassVar

from benchmarks.solvers.base import Solver


class CrammerSinger(Solver):
    """`LinearSVC` with the multiclass hinge loss: LIBLINEAR with one thread, in float64."""

    name = "LinearSVC crammer_singer"
    package = "scikit-learn"
    module = "sklearn.svm"
    losses: ClassVar[tuple[str, ...]] = ("hinge-1",)
    settings: ClassVar[tuple[Any, ...]] = (1.0, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 1e-4)
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


class OneVsRest(CrammerSinger):
    """One squared hinge loss per class; for the race to an accuracy."""

    name = "LinearSVC one-vs-rest"
    losses = ()
    settings = (1.0, 0.1, 1e-2, 1e-4)
    kind = "ovr"


class LogisticLBFGS(Solver):
    """`LogisticRegression` by L-BFGS, the default."""

    name = "LogisticRegression lbfgs"
    package = "scikit-learn"
    module = "sklearn.linear_model"
    losses = ("softmax",)
    settings: ClassVar[tuple[Any, ...]] = (5, 10, 20, 30, 50, 75, 100, 150, 250, 400, 800)
    usual = 100
    cheap = 50
    uses_threads = True
    algorithm = "lbfgs"

    def fit(self, X: Any, y: Any, setting: int) -> Any:
        """Make at most so many iterations, less if they no longer help."""
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression(
            C=self.C,
            solver=self.algorithm,
            fit_intercept=False,
            max_iter=setting,
            tol=1e-6,
            random_state=0,
        ).fit(X, y)


class LogisticNewtonCG(LogisticLBFGS):
    """Truncated Newton."""

    name = "LogisticRegression newton-cg"
    algorithm = "newton-cg"
    settings = (1, 2, 3, 4, 5, 6, 8, 10, 13, 17, 25, 50, 100)
    is_for_large = False


class SGDHinge(Solver):
    """`SGDClassifier`, a linear SVM per class; for the race to an accuracy."""

    name = "SGDClassifier hinge"
    package = "scikit-learn"
    module = "sklearn.linear_model"
    settings = (1, 2, 5, 10, 20, 50, 100)
    usual = 100
    cheap = 5
    uses_threads = True
    loss = "hinge"

    def fit(self, X: Any, y: Any, setting: int) -> Any:
        """Make a number of passes, less if the loss no longer falls."""
        from sklearn.linear_model import SGDClassifier

        return SGDClassifier(
            loss=self.loss,
            alpha=1.0 / (self.C * len(y)),
            fit_intercept=False,
            max_iter=setting,
            n_jobs=self.threads,
            random_state=0,
        ).fit(X, y)


class SGDLog(SGDHinge):
    """A logistic regression per class."""

    name = "SGDClassifier log_loss"
    loss = "log_loss"
