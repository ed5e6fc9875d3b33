"""One small file per solver; a new one is a file with a subclass of `Solver`, and a line here."""

from __future__ import annotations

from benchmarks.solvers.base import Fit, MissingError, Solver
from benchmarks.solvers.cyanure import Cyanure
from benchmarks.solvers.liblinear import Liblinear
from benchmarks.solvers.lightning import Lightning
from benchmarks.solvers.linear_svc import CrammerSinger, OneVsRest
from benchmarks.solvers.logistic import LogisticLBFGS, LogisticNewtonCG
from benchmarks.solvers.ours import HingeOurs, SoftmaxOurs
from benchmarks.solvers.sequential import Sequential
from benchmarks.solvers.sgd import SGDHinge, SGDLog

__all__ = ["SOLVERS", "Fit", "MissingError", "Solver"]

SOLVERS: dict[str, type[Solver]] = {
    solver.name: solver
    for solver in (
        HingeOurs,  # Ours first: their certificates say when a peer has arrived.
        SoftmaxOurs,
        Sequential,
        CrammerSinger,
        Liblinear,
        Lightning,
        LogisticLBFGS,
        LogisticNewtonCG,
        Cyanure,
        OneVsRest,
        SGDHinge,
        SGDLog,
    )
}
"""All solvers by name."""
