"""Solvers: stochastic dual coordinate ascent and L-BFGS, judged by one certificate."""

from topksvm.solvers._certificate import Certificate
from topksvm.solvers._path import Path, path
from topksvm.solvers._result import Check, Result, Status
from topksvm.solvers._solve import solve

__all__ = ["Certificate", "Check", "Path", "Result", "Status", "path", "solve"]
