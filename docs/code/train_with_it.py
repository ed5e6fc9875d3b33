"""Train with the loss of this folder, without installing it."""

import numpy as np
from topk_squared_hinge import TopKSquaredHinge

import topksvm
from topksvm.losses import LOSSES

LOSSES["topk_squared_hinge"] = TopKSquaredHinge

rng = np.random.default_rng(0)
X, y = rng.standard_normal((30, 4)), np.arange(30) % 5
result = topksvm.solve(X, y, "topk_squared_hinge", C=0.3, k=2, tol=1e-7)

print(f"primal {result.certificate.primal:.6f}")
print(f"dual   {result.certificate.dual:.6f}")
