"""The methods of the tables by their names there, and some that came later."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from topksvm.data import make_problem
from topksvm.reproduction._baselines import BASELINES
from topksvm.reproduction._candidates import (
    MAX_ITER,
    TOL,
    Candidate,
    Method,
    Training,
)
from topksvm.solvers import SDCAOptions, Setup, Stopping, loss_for, solve, solve_path

FLOAT32_TOL = 1e-4
"""Relative gap that can be reached in float32."""

MAX_WIDENED = 1 << 30
"""Bytes of X beyond which it is not copied to float64."""


def make_method(name: str) -> Method:
    """Return the method of that name; complain with the names there are."""
    for pattern, make in _FAMILIES.items():
        if found := re.fullmatch(pattern, name):
            return make(name, *found.groups())
    raise ValueError(
        f"there is no method {name!r}; methods have names like top-5-SVM-alpha, top-5-SVM-beta, "
        "softmax, top-5-entropy, smooth-top-1-SVM, SVM-OVA, TopPush, TopPush-OVA, Prec@5, "
        "Recall@5, Recall@5-OVA, 'Wsabie++ dim=m queue=0', Swersky-Top-2."
    )


def _certified(
    name: str, loss: str, k: int, *, smoothing: float = 0.0, quick: tuple[float, ...]
) -> Method:
    """Return a method that is one of this library's losses."""

    def candidates(training: Training, Cs: Sequence[float]) -> Iterator[Candidate]:
        ones = np.ones(len(training.labels))
        problem = make_problem(training.X, training.labels, ones, training.m, 0.0)
        setup = Setup(stopping=Stopping(TOL, MAX_ITER), options=SDCAOptions(seed=training.seed))
        parts = loss_for(training.m, loss, k, smoothing)
        for C, result in solve_path(problem, parts, sorted(Cs), setup):
            yield Candidate(C, result.weights, result.certificate.relative_gap)

    def finish(training: Training, C: float, tol: float) -> Candidate:
        history: list[dict[str, float]] = []

        def note(passes: int, seconds: float, gap: float) -> None:
            history.append({"passes": passes, "seconds": seconds, "relative_gap": gap})

        X, reachable = _widened(training.X, tol)
        result = solve(
            X,
            training.labels,
            loss,
            C,
            k=k,
            smoothing=smoothing,
            n_classes=training.m,
            tol=reachable,
            max_iter=MAX_ITER,
            seed=training.seed,
            callback=lambda at: note(at.passes, at.seconds, at.relative_gap),
        )
        gap = result.certificate.relative_gap
        note(result.n_iter, result.history[-1].seconds, gap)
        return Candidate(C, result.weights, gap, history)

    return Method(name, candidates, quick_grid=quick, finish=finish, least_classes=k + 1)


def _widened(X: Any, tol: float) -> tuple[Any, float]:
    """Return X in a precision that `tol` can be reached in, or a `tol` if X is too large for it."""
    if tol >= FLOAT32_TOL or X.dtype == np.float64:
        return X, tol
    return (X.astype(np.float64), tol) if X.nbytes <= MAX_WIDENED else (X, FLOAT32_TOL)


def _hinge(name: str, k: str, letter: str) -> Method:
    return _certified(name, f"topk_hinge_{letter}", int(k), quick=(1e-3, 1e-2, 1e-1))


def _smooth_hinge(name: str, k: str) -> Method:
    return _certified(name, "topk_hinge_alpha", int(k), smoothing=1.0, quick=(1e-2, 3e-2, 1e-1))


def _entropy(name: str, k: str) -> Method:
    return _certified(name, "topk_entropy", int(k), quick=(1e-2, 3e-2, 1e-1))


def _softmax(name: str) -> Method:
    return _certified(name, "softmax", 1, quick=(1e-2, 3e-2, 1e-1))


_FAMILIES: dict[str, Callable[..., Method]] = {
    r"top-([1-9]\d*)-SVM-(alpha|beta)": _hinge,
    r"smooth-top-([1-9]\d*)-SVM": _smooth_hinge,
    r"top-([1-9]\d*)-entropy": _entropy,
    r"softmax": _softmax,
    **BASELINES,
}
