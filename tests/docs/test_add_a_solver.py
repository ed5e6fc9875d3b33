"""The solver of the contributor guide, as the page prints it, against the package's own."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from estimators.data import problem

import topksvm
from topksvm.data import make_problem
from topksvm.losses import LOSSES
from topksvm.solvers import Run, Solver, Stopping

CODE = Path(__file__).parents[2] / "docs" / "code"

_spec = spec_from_file_location("gradient_descent", CODE / "gradient_descent.py")
_module = module_from_spec(_spec)
_spec.loader.exec_module(_module)
GradientDescent = _module.GradientDescent


def _solve(X, y, loss, stopping=None, callback=None, C=0.1):
    made = make_problem(X, y, np.full(len(y), C), int(y.max()) + 1, bias=1.0)
    run = Run(GradientDescent(loss, made), stopping or Stopping(max_iter=3000), callback)
    return run.complete()


def test_the_script_of_the_page():
    done = subprocess.run(
        [sys.executable, CODE / "solve_with_it.py"], capture_output=True, text=True, check=True
    )
    page = (CODE.parent / "contributing.rst").read_text()
    printed = re.search(r"docs/code/solve_with_it.py\n((?:   .*\n)+)", page)[1]
    assert done.stdout.split() == printed.split()
    assert done.stdout.startswith("SOLVED")


@pytest.mark.parametrize("rows", [np.asarray, sp.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("name", ["softmax", "topk_entropy"])
def test_it_reaches_the_optimum(name, rows):
    X, y = problem()
    k = {"softmax": 1, "topk_entropy": 2}[name]
    loss = LOSSES[name](**({"k": k} if k > 1 else {}))
    result = _solve(rows(X), y, loss, Stopping(tol=1e-6, max_iter=3000))
    ours = topksvm.solve(rows(X), y, name, C=0.1, k=k, bias=1.0, tol=1e-6)
    assert result.status.name == "SOLVED"
    assert result.certificate.relative_gap <= 1e-6
    assert result.certificate.primal == pytest.approx(ours.certificate.primal, rel=2e-6)
    assert result.weights.shape == ours.weights.shape


def test_the_run_does_the_rest():
    """Budget, history, callback and Ctrl-C, of which the solver knows nothing."""
    X, y = problem()
    loss, passes = LOSSES["softmax"](), []

    def count(progress):
        passes.append(progress.passes)

    result = _solve(X, y, loss, Stopping(tol=1e-9, max_iter=6), count)
    assert result.status.name == "MAX_ITER"
    assert passes == list(range(2, 7))
    assert result.history[-1].gap == result.certificate.gap

    def interrupt(progress):
        if progress.passes > 4:
            raise KeyboardInterrupt

    result = _solve(X, y, loss, callback=interrupt)
    assert result.status.name == "INTERRUPTED"
    assert result.certificate.relative_gap < 1.0
    stuck = _solve(X.astype(np.float32), y, loss, Stopping(tol=1e-12, max_iter=100_000))
    assert stuck.status.name == "STALLED"


def test_it_has_what_the_protocol_asks_for():
    names = {name for name in vars(Solver) if not name.startswith("_")}
    X, y = problem()
    solver = GradientDescent(LOSSES["softmax"](), make_problem(X, y, np.ones(len(y)), 6))
    assert all(hasattr(solver, name) for name in names)
