"""The child of tools/fuzzing/interrupts.py: fits, catches Ctrl-C, checks the certificate.

It reads a line, says "ready", fits, and says "right", "KeyboardInterrupt" or "failed: why".
"""

from __future__ import annotations

import json
import signal
import sys
import traceback
import warnings

import numpy as np

sys.path.insert(0, __file__.rsplit("/", 2)[0])

import topksvm
from fuzzing.objective import check, linear_objective, objective
from topksvm import TopKLinearSVC, TopKLinearSVCCV, TopKSVC

HINGE, K, C, M = "topk_hinge_alpha", 2, 100.0, 8
LONG = {"tol": 1e-15, "max_iter": 10**6, "max_time": 4.0}
rng = np.random.default_rng(0)
X = rng.standard_normal((1200, 20)).astype(np.float32)
y = (X[:, :M] + rng.standard_normal((1200, M))).argmax(axis=1)


def fit_linear(rows, loss=HINGE, k=K):
    """Fit a linear model; return how to check it."""
    model = TopKLinearSVC(k, loss=loss, C=C, random_state=0, **LONG).fit(rows, y)
    return lambda: check_linear(model, rows, loss, k, C)


def check_linear(model, rows, loss, k, weight):
    """Raise unless the certificate is that of the model."""
    W = np.column_stack([model.coef_, model.intercept_])
    own = linear_objective(W, 1.0, rows, y, loss, weight, k)
    check(model.certificate_, own)


def fit_kernel():
    """Fit a kernel model; return how to check it."""
    model = TopKSVC(K, gamma=0.05, C=C, random_state=0, **LONG).fit(X, y)
    return lambda: check_kernel(model)


def check_kernel(model):
    """Raise unless the certificate is that of the model."""
    support = model.support_vectors_.astype(np.float64)
    A = np.asarray(model.dual_coef_, np.float64)
    scores = rbf(X.astype(np.float64), support) @ A.T
    norm = np.vdot(A, A @ rbf(support, support))
    check(model.certificate_, objective(scores, y, HINGE, C, K, norm))


def rbf(a, b):
    """Return the kernel of all pairs of rows."""
    square = (a**2).sum(1)[:, None] + (b**2).sum(1) - 2 * a @ b.T
    return np.exp(-0.05 * np.maximum(square, 0))


def fit_path():
    """Follow a path; return how to check its points."""
    points = topksvm.path(X, y, HINGE, [0.1, 10.0, 1e3], k=K, bias=1.0, **LONG | {"max_time": 1.3})
    return lambda: check_path(points)


def check_path(points):
    """Raise unless the certificates are those of the points."""
    for weight, result in points:
        own = linear_objective(result.weights, 1.0, X, y, HINGE, weight, K)
        check(result.certificate, own)


def fit_search():
    """Search by cross-validation; return how to check the models."""
    search = TopKLinearSVCCV(
        (1, 2), [0.1, 1.0], cv=2, max_extensions=0, random_state=0, **LONG | {"max_time": 0.3}
    ).fit(X, y)
    models = search.estimators_.values()
    return lambda: [check_linear(model, X, model.loss, model.k, model.C) for model in models]


FITS = {
    "hinge": lambda: fit_linear(X),
    "softmax": lambda: fit_linear(X, "softmax", 1),
    "streamed": lambda: fit_linear(X.astype(np.float16)),
    "kernel": fit_kernel,
    "path": fit_path,
    "search": fit_search,
}


def attempt(fit) -> str:
    """Fit while interrupts may come, then be deaf and check."""
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        print("ready", flush=True)
        check_it = fit()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        check_it()
        return "right"
    except KeyboardInterrupt:
        return "KeyboardInterrupt"
    except Exception:
        return f"failed: {json.dumps(traceback.format_exc()[-1500:])}"
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warnings.simplefilter("ignore")
    LONG["max_time"] = 0.05
    FITS[sys.argv[1]]()  # Compiles.
    LONG["max_time"] = 4.0
    for _ in sys.stdin:
        print(attempt(FITS[sys.argv[1]]), flush=True)
