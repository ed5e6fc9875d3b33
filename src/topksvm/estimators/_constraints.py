"""Constraints on parameters that scikit-learn's own do not cover."""

from __future__ import annotations

from typing import Any

from sklearn.utils._param_validation import _Constraint

from topksvm.losses import LOSSES


class LossName(_Constraint):
    """A name in the registry of losses, as it is when an estimator is fitted."""

    def is_satisfied_by(self, val: Any) -> bool:
        """Return whether `val` is a registered name."""
        return isinstance(val, str) and val in LOSSES

    def __str__(self) -> str:
        return f"a str among {set(LOSSES)}"
