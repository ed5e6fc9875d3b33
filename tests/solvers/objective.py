"""The primal and the dual objective in plain NumPy, float64, from their definitions.

Written from the maths, not from the package: means of sorted entries for the hinges, closed forms
for the entropies, dense duals, ``W = sum_i a_i x_i'`` by one product.

``P = 1/2 ||W||^2 + sum_i C_i phi(h_i)``, ``h_i`` over the wrong classes, and with ``x_i >= 0`` over
the same ``D = sum_i [margin <1, x_i> - C_i omega(x_i / C_i)] - 1/2 ||W||^2``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, logsumexp, xlogy

HINGES = ("topk_hinge_alpha", "topk_hinge_beta", "topk_hinge_full")


def cap(name, k, total, radius):
    """Return the bound on each dual variable, given their sum and the radius of the set."""
    if name == "softmax":
        return radius
    if name == "topk_hinge_beta":
        return radius / k
    if name == "topk_hinge_full" and k > 1:
        return np.minimum(total / (k - 1), radius / k)
    return total / k  # alpha and the entropy; and for k = 1 it binds nobody.


@dataclass(frozen=True)
class Objective:
    """A training problem, judged independently of the package."""

    name: str
    X: np.ndarray | sp.csr_array
    y: np.ndarray
    C: float | np.ndarray
    k: int = 1
    smoothing: float = 0.0
    bias: float = 0.0
    n_classes: int | None = None

    @property
    def margin(self):
        return 1.0 if self.name in HINGES else 0.0

    @property
    def m(self):
        return self.n_classes or int(self.y.max()) + 1

    @property
    def radii(self):
        return np.broadcast_to(np.asarray(self.C, dtype=np.float64), self.y.shape)

    @property
    def rows(self):
        """X in float64, with the constant feature."""
        X = self.X.astype(np.float64)
        if not self.bias:
            return X
        column = np.full((X.shape[0], 1), float(self.bias))
        return sp.csr_array(sp.hstack([X, column])) if sp.issparse(X) else np.hstack([X, column])

    def wrong(self, table):
        """Drop the true class of each row of an ``(n, m)`` table."""
        keep = np.arange(self.m) != self.y[:, None]
        return table[keep].reshape(len(self.y), self.m - 1)

    def margins(self, W):
        scores = np.asarray(self.rows @ W.T.astype(np.float64))
        return self.wrong(scores - scores[np.arange(len(self.y)), self.y][:, None] + self.margin)

    def losses(self, W):
        """Return ``phi(h_i)`` of every example."""
        h = self.margins(W)
        if self.name == "softmax":
            return np.logaddexp(0.0, logsumexp(h, axis=1))
        if self.name == "topk_entropy":
            return np.logaddexp(0.0, entropy_log_odds(h, self.k)[0])
        if self.smoothing:
            return smoothed_hinge(self.name, h, self.k, self.smoothing)[0]
        return plain_hinge(self.name, h, self.k)

    def gradients(self, W):
        """Return the derivatives of ``phi`` by ``h``: points of the dual set of radius 1."""
        h = self.margins(W)
        if self.name == "softmax":
            return np.exp(h - np.logaddexp(0.0, logsumexp(h, axis=1))[:, None])
        if self.name == "topk_entropy":
            log_odds, log_rest, r = entropy_log_odds(h, self.k)
            free = np.log1p(-r / self.k) - log_rest
            return expit(log_odds)[:, None] * np.exp(np.minimum(h + free[:, None], -np.log(self.k)))
        return smoothed_hinge(self.name, h, self.k, self.smoothing)[1]

    def primal(self, W):
        wide = W.astype(np.float64)
        # Rows of weight zero have no part, whatever their loss.
        weighted = np.where(self.radii > 0, self.radii, 0.0) * self.losses(wide)
        return 0.5 * np.sum(wide * wide) + np.sum(weighted[self.radii > 0])

    def dense(self, duals):
        """Return the dual variables of a result as an ``(n, m)`` table."""
        table = np.zeros((len(self.y), self.m))
        for i, (start, count) in enumerate(zip(duals.start, duals.count, strict=True)):
            classes = duals.classes[start : start + count]
            assert np.unique(classes).size == count, f"example {i} has a class twice"
            assert not np.any(classes == self.y[i]), f"example {i} has a dual of its own class"
            table[i, classes] = duals.values[start : start + count]
        return table

    def weights(self, table):
        """Return ``W = sum_i a_i x_i'``."""
        a = -table
        a[np.arange(len(self.y)), self.y] += table.sum(axis=1)
        return np.asarray((self.rows.T @ a).T)

    def dual_of(self, table):
        """Return D of an ``(n, m)`` table of dual variables."""
        some = self.radii > 0
        assert not table[~some].any(), "an example of weight zero has dual variables"
        x, C = self.wrong(table)[some], self.radii[some]
        b, total = x / C[:, None], x.sum(axis=1)
        if self.name in HINGES:
            omega = 0.5 * self.smoothing * np.sum(b * b, axis=1)
        else:
            left = np.maximum(1.0 - b.sum(axis=1), 0.0)
            omega = xlogy(b, b).sum(axis=1) + xlogy(left, left)
        W = self.weights(table)
        return np.sum(self.margin * total - C * omega) - 0.5 * np.sum(W * W)

    def dual(self, duals):
        """Return D of the dual variables of a result."""
        return self.dual_of(self.dense(duals))

    def dual_at(self, W):
        """Return D of ``x_i = C_i phi'(h_i)``, the dual point that belongs to the weights."""
        table = np.zeros((len(self.y), self.m))
        table[np.arange(self.m) != self.y[:, None]] = (
            self.radii[:, None] * self.gradients(W)
        ).ravel()
        return self.dual_of(table)

    def violation(self, duals):
        """Return by how much the duals leave their sets, relative to ``C_i``: the worst example."""
        x, C = self.wrong(self.dense(duals)), self.radii
        total = x.sum(axis=1)
        excess = np.maximum(x.max(axis=1) - cap(self.name, self.k, total, C), total - C)
        excess = np.maximum(excess, -x.min(axis=1))
        some = C > 0
        assert np.all(excess[~some] <= 0)
        return float(np.max(excess[some] / C[some], initial=0.0))


def plain_hinge(name, h, k):
    if name == "topk_hinge_beta":
        return np.sort(np.maximum(h, 0.0), axis=1)[:, -k:].mean(axis=1)
    if name == "topk_hinge_full":
        h = np.hstack([h, np.zeros((len(h), 1))])
    return np.maximum(np.sort(h, axis=1)[:, -k:].mean(axis=1), 0.0)


def smoothed_hinge(name, h, k, gamma):
    """Return ``max <h, b> - gamma/2 <b, b>`` over the dual set of radius 1, and the maximiser.

    For a given sum ``s`` of ``b`` the caps are known, and ``b = clip(h/gamma - t, 0, cap)`` with
    the ``t`` that gives that sum. The best value is concave in ``s``: golden sections find it.
    """

    def best(s):
        u = np.broadcast_to(cap(name, k, s, 1.0), s.shape)[:, None]
        low = h.min(axis=1) / gamma - 1.0
        high = h.max(axis=1) / gamma
        for _ in range(56):
            t = 0.5 * (low + high)
            more = np.clip(h / gamma - t[:, None], 0.0, u).sum(axis=1) > s
            low, high = np.where(more, t, low), np.where(more, high, t)
        b = np.clip(h / gamma - high[:, None], 0.0, u)
        return np.sum(b * (h - 0.5 * gamma * b), axis=1), b

    ratio = (np.sqrt(5.0) - 1.0) / 2.0
    low, high = np.zeros(len(h)), np.ones(len(h))
    for _ in range(60):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        up = best(left)[0] < best(right)[0]
        low, high = np.where(up, left, low), np.where(up, high, right)
    # Golden sections never quite arrive at the end, which is often the best.
    candidates = [best(s) for s in (0.5 * (low + high), np.ones(len(h)))]
    pick = candidates[1][0] >= candidates[0][0]
    return (
        np.where(pick, candidates[1][0], candidates[0][0]),
        np.where(pick[:, None], candidates[1][1], candidates[0][1]),
    )


def entropy_log_odds(h, k):
    """Return ``log(s / (1 - s))`` of the top-k entropy, ``log Z`` and the number clipped."""
    n = len(h)
    falling = -np.sort(-h, axis=1)
    log_odds, log_rest, clipped = np.empty(n), np.empty(n), np.full(n, -1)
    for r in range(k):
        log_Z = logsumexp(falling[:, r:], axis=1)
        fits = falling[:, r] + np.log1p(-r / k) - log_Z <= -np.log(k) + 1e-12
        now = (clipped < 0) & (fits | (r == k - 1))
        value = (1 - r / k) * (log_Z - np.log1p(-r / k))
        value += falling[:, :r].sum(axis=1) / k + r / k * np.log(k)
        log_odds[now], log_rest[now], clipped[now] = value[now], log_Z[now], r
    return log_odds, log_rest, clipped


def check(objective, result, tol, *, rtol=1e-9):
    """Assert that a result of SDCA is what it says it is, and that its gap is within `tol`.

    Return the independent ``(P, D)``.
    """
    primal, dual = objective.primal(result.weights), objective.dual(result.duals)
    assert objective.violation(result.duals) <= 1e-9
    certificate = result.certificate
    scale = max(abs(primal), abs(dual))
    near = rtol * scale + certificate.rounding
    assert abs(certificate.primal - primal) <= near, (certificate.primal, primal)
    assert abs(certificate.dual - dual) <= near, (certificate.dual, dual)
    assert -1e-9 * scale <= primal - dual <= tol * scale + 1e-12 * scale
    assert result.history[-1].primal == certificate.primal
    return primal, dual


def check_primal_solver(objective, result, tol, *, rtol=1e-9):
    """Assert the same of a result without duals; return the independent ``(P, D)``.

    The dual is the best one seen: at least that of the point returned, at most the optimum.
    """
    assert result.duals is None
    primal, dual = objective.primal(result.weights), objective.dual_at(result.weights)
    certificate = result.certificate
    scale = max(abs(primal), abs(dual))
    assert abs(certificate.primal - primal) <= rtol * scale, (certificate.primal, primal)
    assert certificate.dual >= dual - max(rtol, 1e-8) * scale, (certificate.dual, dual)
    assert certificate.dual <= primal + 1e-9 * scale
    assert certificate.gap <= tol * scale * (1 + 1e-9)
    return primal, dual
