"""What the classifiers share that are trained by a solver."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state, compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from topksvm.data import in_memory
from topksvm.estimators._base import ScoringClassifier, check_two_classes, without_duplicates
from topksvm.solvers import Progress, Result, SDCAOptions, Setup, Stopping

Array = NDArray[Any]


class TopKClassifier(ScoringClassifier):
    """A classifier that is trained by a solver to a gap of `tol`."""

    k: int
    C: float
    class_weight: Any
    dtype: Any
    solver: str = "auto"
    tol: float
    max_iter: int
    max_time: float | None
    random_state: Any
    verbose: int
    callback: Any

    def _validate_examples(self, X: Any, y: Any, accept_sparse: Any = "csr") -> tuple[Any, Array]:
        if self.dtype is not None and np.dtype(self.dtype) not in (np.float32, np.float64):
            raise ValueError(
                f"dtype = {self.dtype!r} is not supported; it must be float32, float64, or None "
                "for that of X."
            )
        X, y = validate_data(
            self,
            in_memory(X),
            in_memory(y),
            accept_sparse=accept_sparse,
            dtype=[np.float64, np.float32] if self.dtype is None else np.dtype(self.dtype),
            order="C",
            accept_large_sparse=True,
        )
        if y.dtype.kind not in "biu":  # Whole numbers are labels without a doubt.
            check_classification_targets(y)
        return without_duplicates(X), y

    def _check_classes(self, classes: Array) -> None:
        check_two_classes(classes)
        m = classes.size
        if self.k >= m:
            raise ValueError(
                f"k = {self.k} but there are {m} classes; k must be between 1 and {m - 1}. Choose "
                "a smaller k."
            )

    def _weights_of_examples(
        self, X: Any, y: Array, classes: Array, labels: Array, sample_weight: Any
    ) -> Array:
        """Return ``C * sample_weight * class_weight``."""
        sample_weight = in_memory(sample_weight)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        factors = self._weights_of_classes(y, classes, labels, weights)
        with np.errstate(over="ignore"):
            weights = self.C * weights * factors[labels]
        if not np.isfinite(weights).all():
            raise ValueError(
                f"C * sample_weight * class_weight is not finite, at C = {self.C:g}. Choose "
                "smaller values."
            )
        if not weights.any():
            raise ValueError(
                "The weights of all examples are zero; sample_weight and class_weight must leave "
                "at least one that is positive."
            )
        return weights

    def _weights_of_classes(self, y: Array, classes: Array, labels: Array, weights: Array) -> Array:
        if self.class_weight is None:
            return np.ones(classes.size)
        if isinstance(self.class_weight, str):
            # By hand, as a class may have lost all its weight, which must not divide by zero.
            sizes = np.bincount(labels, weights, minlength=classes.size)
            return np.divide(
                sizes.sum(), classes.size * sizes, out=np.zeros(classes.size), where=sizes > 0
            )
        factors = np.asarray(compute_class_weight(self.class_weight, classes=classes, y=y))
        if not (factors >= 0).all():
            worst = classes[np.argmin(np.where(factors >= 0, np.inf, -1))]
            raise ValueError(
                f"class_weight of class {worst!r} is {self.class_weight[worst]!r}; class weights "
                "must be at least 0."
            )
        return factors

    def _setup(self) -> Setup:
        """Return what the parameters say about how to solve."""
        limit = np.inf if self.max_time is None else float(self.max_time)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        return Setup(
            self.solver,
            Stopping(self.tol, self.max_iter, limit),
            SDCAOptions(seed=seed),
            self._callback(),
        )

    def _callback(self) -> Any:
        if not self.verbose:
            return self.callback

        def print_and_call(progress: Progress) -> None:
            print_progress(progress)
            if self.callback is not None:
                self.callback(progress)

        return print_and_call

    def _store_outcome(self, result: Result) -> None:
        self.certificate_ = result.certificate
        self.history_ = [check.as_dict() for check in result.history]
        self.n_iter_ = result.n_iter
        self.status_ = result.status.name.lower()


def print_progress(progress: Progress) -> None:
    """Print a line about the progress."""
    print(
        f"pass {progress.passes}: relative gap about {progress.relative_gap:.2e} after "
        f"{progress.seconds:.1f} s",
        file=sys.stderr,
    )
