"""The losses, each one file; a new one is a file and a line in the registry."""

from __future__ import annotations

from topksvm.losses._contract import (
    dual_step as dual_step,
    dual_value as dual_value,
    feasible_step as feasible_step,
    gradient as gradient,
    is_smooth as is_smooth,
    make_feasible as make_feasible,
    value as value,
)
from topksvm.losses._softmax import Softmax
from topksvm.losses._topk_entropy import TopKEntropy
from topksvm.losses._topk_hinge_alpha import TopKHingeAlpha
from topksvm.losses._topk_hinge_beta import TopKHingeBeta
from topksvm.losses._topk_hinge_full import TopKHingeFull

__all__ = [
    "LOSSES",
    "Softmax",
    "TopKEntropy",
    "TopKHingeAlpha",
    "TopKHingeBeta",
    "TopKHingeFull",
]

LOSSES = {
    "softmax": Softmax,
    "topk_entropy": TopKEntropy,
    "topk_hinge_alpha": TopKHingeAlpha,
    "topk_hinge_beta": TopKHingeBeta,
    "topk_hinge_full": TopKHingeFull,
}
"""The losses by the names that ``loss=`` takes. A new one is a line here."""
