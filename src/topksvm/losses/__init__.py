"""The losses, each one file; a new one is a file and a line in the registry.

What a loss must have is in :class:`Loss` and :class:`Traits`; :func:`declare` gives it the latter.
:func:`into_domain`, :func:`gather_largest` and :func:`shifted_sum` are compiled functions from
which others can be made.
"""

from __future__ import annotations

from topksvm.losses._contract import (
    Loss,
    Traits,
    declare,
    dual_step as dual_step,
    dual_value as dual_value,
    feasible_step as feasible_step,
    gradient as gradient,
    is_smooth as is_smooth,
    make_feasible as make_feasible,
    traits_of as traits_of,
    value as value,
)
from topksvm.losses._domain import into_domain
from topksvm.losses._hinge import gather_largest, shifted_sum
from topksvm.losses._softmax import Softmax
from topksvm.losses._topk_entropy import TopKEntropy
from topksvm.losses._topk_hinge_alpha import TopKHingeAlpha
from topksvm.losses._topk_hinge_beta import TopKHingeBeta
from topksvm.losses._topk_hinge_full import TopKHingeFull

__all__ = [
    "LOSSES",
    "Loss",
    "Softmax",
    "TopKEntropy",
    "TopKHingeAlpha",
    "TopKHingeBeta",
    "TopKHingeFull",
    "Traits",
    "declare",
    "gather_largest",
    "into_domain",
    "shifted_sum",
]

LOSSES = {
    "softmax": Softmax,
    "topk_entropy": TopKEntropy,
    "topk_hinge_alpha": TopKHingeAlpha,
    "topk_hinge_beta": TopKHingeBeta,
    "topk_hinge_full": TopKHingeFull,
}
"""The losses by the names that ``loss=`` takes. A new one is a line here."""
