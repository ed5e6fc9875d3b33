"""What a solver returns."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm.solvers._certificate import Certificate


class Status(Enum):
    """Why a solver stopped.

    Examples
    --------
    >>> from topksvm.solvers import Status
    >>> for status in Status:
    ...     print(f"{status.name}: {status.value}")
    SOLVED: the gap is within tol
    MAX_ITER: max_iter passes were made
    MAX_TIME: max_time seconds were used up
    STALLED: no further progress is possible in this precision
    INTERRUPTED: interrupted by the user
    """

    SOLVED = "the gap is within tol"
    MAX_ITER = "max_iter passes were made"
    MAX_TIME = "max_time seconds were used up"
    STALLED = "no further progress is possible in this precision"
    INTERRUPTED = "interrupted by the user"


@dataclass(frozen=True)
class Check:
    """One line of the history: what was proven, and when.

    Attributes
    ----------
    epoch : int
        Passes over the examples so far.
    seconds : float
        The time so far.
    primal, dual, gap : float
        The certificate at that time.
    details : dict
        What a solver has to say besides, such as the bytes that a round on a cluster has sent.

    Examples
    --------
    >>> import numpy as np, topksvm
    >>> result = topksvm.solve(np.eye(4), np.array([0, 1, 2, 2]))
    >>> last = result.history[-1]
    >>> last.gap == result.certificate.gap
    True
    """

    epoch: int
    seconds: float
    primal: float
    dual: float
    gap: float
    details: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return all of it in one dict."""
        line = asdict(self)
        return line | line.pop("details")


@dataclass
class Result:
    """The solution of a training problem.

    Attributes
    ----------
    weights : ndarray of shape (m, d)
        What the certificate is about.
    certificate : Certificate
        How far from the optimum they are at most.
    duals : Duals or None
        The dual variables, for a warm start; smooth losses solved by L-BFGS have none.
    history : list of Check
        A line per certificate.
    n_iter : int
        Passes over the examples.
    status : Status
        Why the solver stopped.
    seconds : dict
        Where the time went.
    C : ndarray of shape (n,), optional
        The weights of the examples that it was trained with, for a warm start with others.

    See Also
    --------
    topksvm.solve : What makes one.

    Examples
    --------
    >>> import numpy as np, topksvm
    >>> result = topksvm.solve(np.eye(4), np.array([0, 1, 2, 2]))
    >>> result.weights.shape, result.status.name
    ((3, 4), 'SOLVED')
    >>> result.certificate.relative_gap <= 1e-3
    True
    """

    weights: NDArray[np.floating[Any]]
    certificate: Certificate
    duals: Any
    history: list[Check]
    n_iter: int
    status: Status
    seconds: dict[str, float] = field(default_factory=dict)
    C: NDArray[np.floating[Any]] | None = None
