"""Solvers: stochastic dual coordinate ascent and L-BFGS, judged by one certificate."""

from topksvm.solvers._certificate import (
    SCALES as SCALES,
    Certificate,
    make_certificate as make_certificate,
    make_duals_feasible as make_duals_feasible,
    rebuild_weights as rebuild_weights,
    sum_dual_values as sum_dual_values,
    sums_of_losses as sums_of_losses,
)
from topksvm.solvers._checkpoint import CheckpointFolder as CheckpointFolder
from topksvm.solvers._duals import Duals as Duals, snapshot as snapshot
from topksvm.solvers._extrapolation import find_direction as find_direction, move as move
from topksvm.solvers._kernel_sdca import (
    BLOCK as BLOCK,
    KernelOptions as KernelOptions,
    check_dual_step as check_dual_step,
    solve_kernel as solve_kernel,
)
from topksvm.solvers._path import (
    Path,
    check_grid as check_grid,
    loss_for as loss_for,
    path,
    trace as trace,
)
from topksvm.solvers._result import Check, Result, Status
from topksvm.solvers._rounding import (
    Bound as Bound,
    DualSums as DualSums,
    Size as Size,
    gamma as gamma,
    largest_norm as largest_norm,
    lower_bound as lower_bound,
    slack_of_margins as slack_of_margins,
    upper_bound as upper_bound,
)
from topksvm.solvers._run import Report as Report, Run as Run
from topksvm.solvers._sdca import SDCA as SDCA, SDCAOptions as SDCAOptions
from topksvm.solvers._solve import (
    SOLVERS as SOLVERS,
    choose_solver as choose_solver,
    make_loss as make_loss,
    solve,
    solve_checked as solve_checked,
    warn_unless_solved as warn_unless_solved,
)
from topksvm.solvers._start import start_from_duals as start_from_duals
from topksvm.solvers._streaming import (
    StreamedSDCA as StreamedSDCA,
    make_streamed_problem as make_streamed_problem,
    memory_needed as memory_needed,
)
from topksvm.solvers._together import (
    Walk as Walk,
    have_common_work as have_common_work,
    trace_together as trace_together,
)

__all__ = ["Certificate", "Check", "Path", "Result", "Status", "path", "solve"]
