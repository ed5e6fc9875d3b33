"""What the losses are, written from their definitions: extended precision, and a convex solver.

Everything a loss needs is a row of these tables: its margin, the sums that the vertices of its dual
set can have, its largest linear value over that set, the constraints for the solver.
"""

from __future__ import annotations

import cvxpy as cp
import numpy as np

MARGIN = {
    "softmax": 0.0,
    "topk_entropy": 0.0,
    "topk_hinge_alpha": 1.0,
    "topk_hinge_beta": 1.0,
    "topk_hinge_full": 1.0,
}


def margins(name, row, base):
    """Return ``h``."""
    return row.astype(np.longdouble) - np.longdouble(base) + MARGIN[name]


def _hinge_alpha(h, k):
    return max(np.longdouble(0), np.sort(h)[-k:].mean())


def _hinge_beta(h, k):
    return np.sort(np.maximum(h, 0))[-k:].mean()


def _hinge_full(h, k):
    return _hinge_alpha(np.append(h, np.longdouble(0)), k)


SUPPORT_FUNCTION = {
    "softmax": lambda h, _: _hinge_alpha(h, 1),
    "topk_entropy": _hinge_alpha,
    "topk_hinge_alpha": _hinge_alpha,
    "topk_hinge_beta": _hinge_beta,
    "topk_hinge_full": _hinge_full,
}
"""``max <h, b>`` over the dual set of radius 1: the loss itself if it is a plain hinge."""


def softplus(t):
    return np.logaddexp(np.longdouble(0), t)


def topk_entropy(h, k):
    """Return ``log(1 + exp(E))``, ``E = max <h, q> - sum q log q``, ``q <= 1/k``, ``<1, q> = 1``.

    The maximiser is ``min(exp(h - t), 1/k)``; its sum gives ``t`` by bisection. There is mass left
    for the k-th largest entry and those below it, so ``t`` is near that entry.
    """
    kth = np.sort(h)[-k]
    low, high = np.longdouble(-1), np.log(np.longdouble(h.size * k)) + 1
    for _ in range(70):
        t = (low + high) / 2
        q = np.minimum(np.exp(np.minimum(h - kth - t, 0)), 1 / np.longdouble(k))
        low, high = (t, high) if q.sum() > 1 else (low, t)
    return softplus(kth + (h - kth) @ q - q @ np.log(np.where(q > 0, q, 1)))


def omega(name, b, smoothing):
    """Return the conjugate at a point of the dual set of radius 1."""
    if MARGIN[name]:
        return smoothing / 2 * (b @ b)
    left = max(1 - b.sum(), np.longdouble(0))
    p = np.append(b, left)
    return p @ np.log(np.where(p > 0, p, 1))


def dual_value(name, x, C, smoothing):
    x = x.astype(np.longdouble)
    return MARGIN[name] * x.sum() - C * omega(name, x / C, smoothing)


def step_objective(name, x, row, base, norm, C, smoothing):
    """Return what the dual step maximises."""
    x, total = x.astype(np.longdouble), x.sum(dtype=np.longdouble)
    scores = row.astype(np.longdouble) - np.longdouble(base)
    return dual_value(name, x, C, smoothing) + scores @ x - norm / 2 * (x @ x + total * total)


def suboptimality(name, b, h, k, smoothing):
    """Bound how far `b` is from maximising ``<h, b> - omega(b)``, by the Fenchel-Young inequality.

    The quadratic part of the smoothed hinges is replaced by its tangent at `b`, which lies above.
    """
    b = b.astype(np.longdouble)
    if name == "softmax":
        return softplus(np.logaddexp.reduce(h)) - (h @ b - omega(name, b, smoothing))
    if name == "topk_entropy":
        return topk_entropy(h, k) - (h @ b - omega(name, b, smoothing))
    slope = h - smoothing * b
    return SUPPORT_FUNCTION[name](slope, k) - slope @ b


def violation(name, x, k, r):
    """Return by how much `x` is outside of the dual set of radius `r`."""
    x = x.astype(np.longdouble)
    total = x.sum()
    cap = {
        "softmax": r,
        "topk_entropy": total / k,
        "topk_hinge_alpha": total / k,
        "topk_hinge_beta": r / k,
        "topk_hinge_full": min(total / max(k - 1, 1), r / k),
    }[name]
    return float(max(total - r, x.max() - cap, -x.min(), 0))


VERTEX_SIZES = {
    "softmax": lambda _: [0, 1],
    "topk_entropy": lambda k: [0, k],
    "topk_hinge_alpha": lambda k: [0, k],
    "topk_hinge_beta": lambda k: range(k + 1),
    "topk_hinge_full": lambda k: [0, k - 1, k],
}
"""Vertices of the dual sets of radius r have that many entries of r/k and no others."""


def random_dual(name, rng, n, k, r):
    """Return a random point of the dual set: on a vertex, on a face or inside."""
    count = rng.integers(1, 6)
    points = np.zeros((count, n))
    for point in points:
        point[rng.permutation(n)[: rng.choice(VERTEX_SIZES[name](k))]] = r / k
    return rng.dirichlet(np.ones(count)) @ points


def _dual_set(name, x, k, r):
    total = cp.sum(x)
    caps = {
        "softmax": [],
        "topk_entropy": [k * x <= total],
        "topk_hinge_alpha": [k * x <= total],
        "topk_hinge_beta": [k * x <= r],
        "topk_hinge_full": [(k - 1) * x <= total, k * x <= r],
    }
    return [x >= 0, total <= r, *caps[name]]


def _omega_expression(name, b, smoothing):
    if MARGIN[name]:
        return smoothing / 2 * cp.sum_squares(b)
    return -cp.sum(cp.entr(b)) - cp.entr(1 - cp.sum(b))


def solve_value(name, h, k, smoothing):
    """Return ``max <h, b> - omega(b)`` by the solver."""
    b = cp.Variable(h.size)
    objective = h.astype(float) @ b - _omega_expression(name, b, smoothing)
    return cp.Problem(cp.Maximize(objective), _dual_set(name, b, k, 1.0)).solve(solver=cp.CLARABEL)


def solve_step(name, row, base, norm, C, k, smoothing):
    """Return the largest value of the step's objective by the solver."""
    b = cp.Variable(row.size)  # x / C, so that all problems have one scale.
    h = margins(name, row, base).astype(float)
    quadratic = norm * C / 2 * (cp.sum_squares(b) + cp.square(cp.sum(b)))
    objective = h @ b - _omega_expression(name, b, smoothing) - quadratic
    problem = cp.Problem(cp.Maximize(objective), _dual_set(name, b, k, 1.0))
    return C * problem.solve(solver=cp.CLARABEL)
