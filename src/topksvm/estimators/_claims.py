"""What a model file claims about its model, and whether it can be true.

The data are not in the file, so a certificate cannot be evaluated again. But much that is false
can be told from the model: the objective is at least half the squared norm of the weights, a gap is
not negative, the last line of the history is the certificate, and a fit that is solved is within
`tol`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm.solvers import Certificate, Status

ULP = 2.0**-52
"""The relative distance of numbers in float64."""

SAME = 1e-12
"""How far numbers may differ, relatively, that should be the same."""


def write_certificate(certificate: Certificate) -> dict[str, float]:
    """Return a certificate as it is in a file.

    A solver's bound on the rounding may be larger than the gap; all of the gap is room for it then.
    """
    rounding = min(certificate.rounding, certificate.gap)
    return {
        "primal": float(certificate.primal),
        "dual": float(certificate.dual),
        "rounding": float(rounding),
    }


def get_certificate(values: Any) -> Certificate:
    """Return the certificate in a file."""
    if set(values) != {"primal", "dual", "rounding"}:
        raise ValueError(f"{sorted(values)} instead of primal, dual and rounding")
    certificate = Certificate(**{name: finite(name, value) for name, value in values.items()})
    _check_bounds(certificate.primal, certificate.dual)
    if not 0.0 <= certificate.rounding <= certificate.gap * (1.0 + ULP):
        raise ValueError(
            f"a rounding of {certificate.rounding!r}, which must be between 0 and the gap of "
            f"{certificate.gap!r}"
        )
    return certificate


def check_norm(model: Any) -> None:
    """Complain about a primal below ``1/2 ||V||^2``, of which it is a sum with losses."""
    least = 0.5 * least_square(model)
    if not model.certificate_.primal >= least:
        raise ValueError(
            f"a primal of {model.certificate_.primal!r} is below half the squared norm of the "
            f"weights, {least!r}"
        )


def least_square(model: Any) -> float:
    """Return ``||V||^2`` of the weights, with those of the constant feature, less all rounding."""
    coef = model.coef_.astype(np.float64)
    with np.errstate(over="ignore"):
        square = float(np.vdot(coef, coef)) + _square_of_constant(model)
    return square * (1.0 - (coef.size + model.intercept_.size + 8) * ULP)


def _square_of_constant(model: Any) -> float:
    """Return the part of the intercept, which is the weight times the scaling, rounded."""
    intercept: NDArray[Any] = np.abs(model.intercept_)
    scaling = float(model.coef_.dtype.type(model.intercept_scaling))
    if not model.fit_intercept or scaling == 0.0:
        return 0.0
    unit = np.spacing(intercept).astype(np.float64)
    weights = np.maximum(intercept.astype(np.float64) - unit, 0.0) / scaling
    return float(np.vdot(weights, weights))


def get_history(lines: Any, certificate: Certificate) -> list[dict[str, Any]]:
    """Return the history in a file, which ends with the certificate."""
    if not isinstance(lines, list) or not lines:
        raise ValueError("not a list of lines, one at least")
    for number, line in enumerate(lines):
        try:
            _check_line(line)
        except KeyError as error:
            raise ValueError(f"line {number}: {error} is missing") from error
        except (TypeError, ValueError) as error:
            raise ValueError(f"line {number}: {error}") from error
    last = lines[-1]
    for name in ("primal", "dual"):
        known = getattr(certificate, name)
        if not math.isclose(last[name], known, rel_tol=SAME):
            raise ValueError(
                f"the last line has a {name} of {last[name]!r}, but the certificate has {known!r}"
            )
    return lines


def _check_line(line: Any) -> None:
    if not isinstance(line, dict):
        raise TypeError("not a line with names")
    numbers = {k: finite(k, v) for k, v in line.items() if not isinstance(v, bool)}
    whole_number(line["epoch"], "epoch")
    primal, dual, gap = (numbers[name] for name in ("primal", "dual", "gap"))
    _check_bounds(primal, dual)
    if gap < 0.0 or abs(gap - (primal - dual)) > ULP * max(abs(primal), abs(dual)):
        raise ValueError(f"a gap of {gap!r} is not that of {primal!r} and {dual!r}")
    if numbers["seconds"] < 0.0:
        raise ValueError(f"a time of {numbers['seconds']!r} seconds")


def _check_bounds(primal: float, dual: float) -> None:
    if primal < 0.0:
        raise ValueError(f"a primal of {primal!r}, below 0")
    if dual > primal:
        raise ValueError(f"a dual of {dual!r} above the primal of {primal!r}")
    if not math.isfinite(primal - dual):
        raise ValueError(f"a primal of {primal!r} and a dual of {dual!r}, whose gap is not finite")


def check_status(status: Any, certificate: Certificate, tol: float) -> str:
    """Return the status if it is one, and says solved just where the gap is within `tol`."""
    if status not in [known.name.lower() for known in Status]:
        raise ValueError(f"{status!r} is not one of a fit")
    if (status == "solved") != certificate.is_within(tol):
        raise ValueError(
            f"{status!r} does not fit a relative gap of {certificate.relative_gap!r} and "
            f"tol = {tol!r}"
        )
    return str(status)


def finite(name: str, value: Any) -> float:
    """Return a number; complain unless it is one, and finite."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{name} is {value!r}, not a finite number")
    return float(value)


def whole_number(value: Any, name: str = "it") -> int:
    """Return a whole number that is at least 0; complain about anything else."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{name} is {value!r}, not a whole number that is at least 0")
    return value
