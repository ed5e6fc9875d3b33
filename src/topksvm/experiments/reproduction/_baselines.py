"""The baselines of the paper's tables as methods, with what its protocol leaves open settled here.

The choices are those that come closest to the published numbers on Caltech 101 Silhouettes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from topksvm.baselines import NChooseK, OneVsRestSVC, SVMPerf, WsabiePP
from topksvm.baselines._cutting_planes import Stopping, svm_perf_path
from topksvm.baselines._svm_perf import multiclass_reduction
from topksvm.baselines._top_push_solver import Options, Problem, solve_top_push
from topksvm.experiments.reproduction._candidates import TOL, Candidate, Method, Training

PASSES = tuple(float(passes) for passes in range(2, 31, 2))
"""Passes of Wsabie++ after which the model is looked at."""


def _estimator(make: Callable[[float, int], Any], note: str = "") -> Any:
    """Return the candidates of an estimator; `make` takes the parameter and the seed."""

    def candidates(training: Training, values: Sequence[float]) -> Iterator[Candidate]:
        for value in values:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # The gap is in the table.
                model = make(value, training.seed).fit(training.X, training.labels)
            certificate = getattr(model, "certificate_", None)
            gap = None if certificate is None else certificate.relative_gap
            yield Candidate(value, model.coef_, gap, note=note)

    return candidates


def one_vs_rest(name: str) -> Method:
    """Return SVM-OVA: LIBLINEAR with the hinge loss."""
    note = "LIBLINEAR with the hinge loss, one class against the rest"

    def make(C: float, seed: int) -> OneVsRestSVC:
        return OneVsRestSVC(C, loss="hinge", n_jobs=1, random_state=seed)

    return Method(name, _estimator(make, note), quick_grid=(1e-2, 1e-1, 1.0))


def top_push(name: str, ova: str | None) -> Method:
    """Return TopPush, a path over growing C."""
    reduction = "multiclass" if ova is None else "ovr"

    def candidates(training: Training, Cs: Sequence[float]) -> Iterator[Candidate]:
        table = None
        for C in sorted(Cs):
            problem = Problem(training.X, training.labels, training.m, reduction, C)
            result = solve_top_push(problem, Options(tol=TOL), table)
            table = result.duals
            yield Candidate(C, result.weights, result.certificate.relative_gap)

    return Method(name, candidates, quick_grid=(1e-3, 1e-2, 1e-1))


def svm_perf(name: str, measure: str, k: str, ova: str | None) -> Method:
    """Return SVM^perf; with the accuracy that the program has by default."""
    full_name = {"Prec": "precision", "Recall": "recall"}[measure]
    note = f"k = {k} times as many predicted as there are positives, as in SVM^perf"
    grid = tuple(10.0**e for e in range(7))
    if ova is not None:

        def make(C: float, seed: int) -> SVMPerf:  # noqa: ARG001
            return SVMPerf(full_name, k=int(k), C=C, reduction="ovr", epsilon=0.1, n_jobs=1)

        return Method(name, _estimator(make, note), grid=grid, quick_grid=(1e3, 1e4, 1e5))

    def candidates(training: Training, Cs: Sequence[float]) -> Iterator[Candidate]:
        X = np.asarray(training.X, dtype=np.float64)
        problem = multiclass_reduction(X, training.labels, training.m, full_name, int(k), "bound")
        for solution in svm_perf_path(problem, sorted(Cs), Stopping(TOL, 0.1, 1000)):
            weights = solution.weights.reshape(training.m, -1)
            yield Candidate(solution.C, weights, solution.certificate.relative_gap, note=note)

    return Method(name, candidates, grid=grid, quick_grid=(1e3, 1e4, 1e5))


def wsabie(name: str, dimension: str, queue: str) -> Method:
    """Return Wsabie++, stopped early."""
    note = "rate 0.01, margin 1, norms at most 1; the number of passes is chosen"

    def candidates(training: Training, values: Sequence[float]) -> Iterator[Candidate]:
        model = WsabiePP(
            training.m if dimension == "m" else int(dimension),
            int(queue),
            max_iter=int(max(values)),
            random_state=training.seed,
        )
        for passes, stage in enumerate(model.staged_fit(training.X, training.labels), 1):
            if passes in values:
                yield Candidate(float(passes), stage.coef_.copy(), note=note)

    return Method(
        name, candidates, grid=PASSES, quick_grid=PASSES, parameter="passes", extends=False
    )


def swersky(name: str, k: str) -> Method:
    """Return the n-choose-k model."""
    note = "the likelihood that the true class is in a random set of k; not convex for k > 1"

    def make(C: float, seed: int) -> NChooseK:  # noqa: ARG001
        return NChooseK(int(k), C=C, tol=1e-3)

    grid = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0)
    return Method(name, _estimator(make, note), grid=grid, quick_grid=(3e-2, 1e-1))


BASELINES: dict[str, Callable[..., Method]] = {
    r"SVM-OVA": one_vs_rest,
    r"TopPush(-OVA)?": top_push,
    r"(Prec|Recall)@(\d+)(-OVA)?": svm_perf,
    r"Wsabie\+\+ dim=(m|\d+) queue=(\d+)": wsabie,
    r"Swersky-Top-(\d+)": swersky,
}
