"""Exact projections onto the simplex and its top-k relatives.

Each minimises ``1/2 ||a - x||^2 + rho/2 <1, x>^2`` over its set, for one vector or row by row, in
time linear in the dimension.
"""

from topksvm.projections._functions import (
    project_capped_simplex,
    project_knapsack,
    project_simplex,
    project_topk_cone,
    project_topk_simplex,
)

__all__ = [
    "project_capped_simplex",
    "project_knapsack",
    "project_simplex",
    "project_topk_cone",
    "project_topk_simplex",
]
