"""Exact projections onto the simplex and its top-k relatives.

Each minimises ``1/2 ||a - x||^2 + rho/2 <1, x>^2`` over its set, for one vector or row by row, in
time linear in the dimension. Losses have no use for the point itself but for its two thresholds,
which :func:`topk_thresholds` and :func:`knapsack_thresholds` find.
"""

from topksvm.projections._candidates import (
    MIN_LANES as MIN_LANES,
    Workspace,
    gather_above as gather_above,
    gather_guess as gather_guess,
    lane_maxima as lane_maxima,
    largest as largest,
    make_workspace,
    positions_above as positions_above,
    put_largest_first as put_largest_first,
    round_below as round_below,
)
from topksvm.projections._functions import (
    project_capped_simplex,
    project_knapsack,
    project_simplex,
    project_topk_cone,
    project_topk_simplex,
)
from topksvm.projections._knapsack import Knapsack, knapsack_thresholds
from topksvm.projections._topk import topk_thresholds

__all__ = [
    "Knapsack",
    "Workspace",
    "knapsack_thresholds",
    "make_workspace",
    "project_capped_simplex",
    "project_knapsack",
    "project_simplex",
    "project_topk_cone",
    "project_topk_simplex",
    "topk_thresholds",
]
