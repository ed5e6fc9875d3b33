"""Solvers, the run loop that they share, and the certificate that judges them.

:func:`solve` and :func:`path` train without an estimator. A solver of one's own is a class with the
methods of :class:`Solver`; :class:`Run` does the rest.
"""

from topksvm._clock import Clock
from topksvm.solvers._certificate import (
    SCALES as SCALES,
    Certificate,
    make_certificate as make_certificate,
    make_duals_feasible as make_duals_feasible,
    rebuild_weights as rebuild_weights,
    sum_dual_values as sum_dual_values,
    sums_of_losses as sums_of_losses,
)
from topksvm.solvers._checkpoint import (
    CheckpointError as CheckpointError,
    CheckpointFolder as CheckpointFolder,
)
from topksvm.solvers._choice import (
    SOLVERS as SOLVERS,
    check_dual_step as check_dual_step,
    choose_solver as choose_solver,
    loss_for as loss_for,
    make_loss as make_loss,
)
from topksvm.solvers._duals import Duals as Duals, snapshot as snapshot
from topksvm.solvers._extrapolation import (
    find_direction as find_direction,
    make_line as make_line,
    move as move,
    next_limit as next_limit,
)
from topksvm.solvers._kernel_sdca import BLOCK as BLOCK
from topksvm.solvers._lbfgs import Objective
from topksvm.solvers._path import (
    Path,
    check_grid as check_grid,
    path,
    solve_path as solve_path,
)
from topksvm.solvers._result import Check, Result, Status
from topksvm.solvers._resume import Checkpoints as Checkpoints
from topksvm.solvers._rounding import (
    DualSums as DualSums,
    Size as Size,
    gamma as gamma,
    largest_norm as largest_norm,
    lower_bound as lower_bound,
    slack_of_margins as slack_of_margins,
    upper_bound as upper_bound,
)
from topksvm.solvers._run import Callback as Callback, Estimate, Progress, Run, Solver, Stopping
from topksvm.solvers._sdca import SDCA as SDCA, SDCAOptions as SDCAOptions
from topksvm.solvers._solve import solve
from topksvm.solvers._start import start_from_duals as start_from_duals
from topksvm.solvers._together import (
    PathTask as PathTask,
    have_common_work as have_common_work,
    solve_paths as solve_paths,
)
from topksvm.solvers._train import (
    Setup as Setup,
    TrainingData as TrainingData,
    run_fit as run_fit,
    train as train,
    train_on as train_on,
    warn_unless_solved as warn_unless_solved,
)

__all__ = [
    "Certificate",
    "Check",
    "Clock",
    "Estimate",
    "Objective",
    "Path",
    "Progress",
    "Result",
    "Run",
    "Solver",
    "Status",
    "Stopping",
    "path",
    "solve",
]
