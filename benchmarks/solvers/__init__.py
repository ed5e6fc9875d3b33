"""One file per package; a new solver is a subclass of `Solver`, and a line here."""

from __future__ import annotations

from benchmarks.solvers.base import Fit, MissingError, Solver
from benchmarks.solvers.cyanure import Cyanure
from benchmarks.solvers.liblinear import Liblinear
from benchmarks.solvers.lightning import Lightning
from benchmarks.solvers.ours import HingeOurs, Sequential, SoftmaxOurs
from benchmarks.solvers.scikit_learn import (
    CrammerSinger,
    LogisticLBFGS,
    LogisticNewtonCG,
    OneVsRest,
    SGDHinge,
    SGDLog,
)

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
