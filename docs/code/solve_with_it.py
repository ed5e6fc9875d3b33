"""Train with the solver of this folder."""

import numpy as np
from gradient_descent import GradientDescent

from topksvm.data import make_problem
from topksvm.losses import LOSSES
from topksvm.solvers import Run, Stopping

rng = np.random.default_rng(0)
X, y = rng.standard_normal((60, 4)), np.arange(60) % 3
problem = make_problem(X, y, C=np.full(60, 0.1), m=3)
solver = GradientDescent(LOSSES["softmax"](), problem)
result = Run(solver, Stopping(tol=1e-6, max_iter=500)).complete()

print(result.status.name)
print(f"primal {result.certificate.primal:.6f}")
print(f"dual   {result.certificate.dual:.6f}")
