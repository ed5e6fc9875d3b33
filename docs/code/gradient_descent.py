"""Gradient descent for smooth losses: a solver in one file.

A step of length ``s`` along the negative gradient ``g`` is taken if the objective falls by
``s/2 ||g||^2`` at least, as it does once ``s`` is below one over the largest curvature. Otherwise a
step of half the length is tried at the next update.
"""

from __future__ import annotations

import numpy as np

from topksvm.solvers import Clock, Estimate, Objective


class GradientDescent:
    """The state of a run, with what :class:`topksvm.solvers.Run` asks of it."""

    duals = None  # They follow from the weights.

    def __init__(self, loss, problem):
        self.clock = Clock()
        self.objective = Objective(loss, problem)
        self.weights = np.zeros((problem.m, problem.d), problem.dtype)
        self.found, self.gradient = self.objective.evaluate(self.weights)
        self.step = 1.0

    @property
    def n_passes(self):
        """Evaluations of the objective, each of which looks at all examples."""
        return self.objective.n_evaluations

    def update(self, stopping):
        """Try a step, and estimate the gap by the objectives at the weights, which are not proven.

        Run asks for a certificate where it is time for one, and stops for good where no step helps.
        """
        weights = self.weights - self.weights.dtype.type(self.step) * self.gradient
        found, gradient = self.objective.evaluate(weights)
        enough = 0.5 * self.step * float(np.vdot(self.gradient, self.gradient))
        is_stuck = np.array_equal(weights, self.weights)
        if found.primal <= self.found.primal - enough:
            self.weights, self.found, self.gradient = weights, found, gradient
            self.step *= 1.5
        else:
            self.step *= 0.5
        return Estimate(
            self.found.relative_gap, self.found.is_within(stopping.tol), is_stuck=is_stuck
        )

    def certify(self):
        """Return the model, and what is proven about it."""
        return self.weights.copy(), self.objective.prove(self.weights)
