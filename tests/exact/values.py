"""The losses in exact arithmetic: rationals for the hinges, rigorous enclosures for the entropies.

Written from the definitions in the documentation, not from the code of the library. Every function
takes the margins `h` of the wrong classes of one example as rationals.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from flint import arb, ctx, fmpq

ctx.prec = 256
DIGITS = 2000
TINY = fmpq(1, 1 << DIGITS)
ZERO, ONE = fmpq(0), fmpq(1)
ENTROPIES = ("softmax", "topk_entropy")


class Interval(NamedTuple):
    """Two rationals with the exact value between them."""

    lower: fmpq
    upper: fmpq


def rational_ends(ball: arb) -> Interval:
    """Return the ends of a ball, moved outwards to multiples of `TINY`."""
    return Interval(_rational(ball.lower(), math.floor), _rational(ball.upper(), math.ceil))


def _rational(point: arb, rounding=math.floor) -> fmpq:
    """Return a binary fraction as it is, unless its digits are below `TINY`."""
    mantissa, exponent = (int(part) for part in point.man_exp())
    if exponent >= 0:
        return fmpq(mantissa << exponent)
    if exponent >= -DIGITS:
        return fmpq(mantissa, 1 << -exponent)
    drop = -exponent - DIGITS
    floor = mantissa >> min(drop, 10_000)
    return (floor + (rounding is math.ceil)) * TINY


# -- hinges -----------------------------------------------------------------------------------


def hinge(loss: str, h: list[fmpq], k: int) -> fmpq:
    """Return the plain hinge, the maximum of ``<h, b>`` over the dual domain of radius 1."""
    if loss == "topk_hinge_beta":
        return sum(sorted((max(v, ZERO) for v in h), reverse=True)[:k], ZERO) / k
    if loss == "topk_hinge_full":
        h = [*h, ZERO]
    return max(ZERO, sum(sorted(h, reverse=True)[:k], ZERO) / k)


def smoothed_hinge(loss: str, h: list[fmpq], k: int, gamma: fmpq) -> fmpq:
    """Return the maximum of ``<h, b> - gamma/2 <b, b>`` over the dual domain of radius 1."""
    p = project(loss, h, k, gamma)
    return sum((a * b - b * b / 2 for a, b in zip(h, p, strict=True)), ZERO) / gamma


def project(loss: str, h: list[fmpq], k: int, r: fmpq) -> list[fmpq]:
    """Return the Euclidean projection of `h` on the dual domain of radius `r`.

    The candidates are the solutions for every active set. Accepted is the one that satisfies the
    variational inequality exactly, so nothing depends on how they were derived.
    """
    for t, u in _thresholds(loss, sorted(h, reverse=True), k, r):
        p = [min(max(v - t, ZERO), u) for v in h]
        if u >= 0 and is_feasible(loss, p, k, r) and _is_nearest(loss, h, p, k, r):
            return p
    raise AssertionError(f"no active set solves the projection: {loss}, {h}, k={k}, r={r}")


def _is_nearest(loss, h, p, k, r):
    rest = [a - b for a, b in zip(h, p, strict=True)]
    return r * hinge(loss, rest, k) == sum((a * b for a, b in zip(rest, p, strict=True)), ZERO)


def _thresholds(loss, h, k, r):
    """Yield ``(t, u)`` with ``p = min(max(h - t, 0), u)`` for all active sets; `h` descends."""
    yield ZERO, r / k
    if loss == "topk_hinge_alpha":
        yield from _on_cone(h, k)
    elif loss == "topk_hinge_full" and k > 1:
        yield from _on_cone(h, k - 1)
        yield from _on_simplex(h, k - 1, r * (k - 1) / k)
    yield from _on_simplex(h, k, r)


def _on_simplex(h, k, r):
    """Yield the solutions with sum `r` and caps ``r/k``."""
    u = r / k
    yield h[k - 1] - u, u
    for capped in range(k):
        free = ZERO
        for count, v in enumerate(h[capped:], start=1):
            free += v
            yield (capped * u + free - r) / count, u


def _on_cone(h, k):
    """Yield the solutions of the cone ``x <= <1, x> / k``."""
    yield h[0], ZERO
    mean = sum(h[:k], ZERO) / k
    yield h[k - 1] - mean, mean
    top = ZERO
    for capped in range(k):
        free, left = ZERO, k - capped
        for count, v in enumerate(h[capped:], start=1):
            free += v
            t = (capped * free - left * top) / (left * left + capped * count)
            yield t, (free - count * t) / left
        top += h[capped]


# -- entropies --------------------------------------------------------------------------------


def entropy(h: list[fmpq], k: int) -> arb:
    """Return a ball with the top-k entropy loss in it; k = 1 is softmax.

    With multipliers ``v >= 0`` of the caps, the loss is at most ``log(1 + sum exp(h_j - v_j +
    <1, v>/k))``; with any `q` of the capped simplex it is at least ``log(1 + exp(<h, q> + H(q)))``.
    """
    if k == 1:
        return _softplus(_log_sum_exp([arb(v) for v in h]))
    clip = _clip(h, k)
    cut = [max(v - clip, ZERO) for v in h]
    shift = sum(cut, ZERO) / k
    upper = _softplus(_log_sum_exp([arb(v - c + shift) for v, c in zip(h, cut, strict=True)]))
    q = entropy_point(h, k)
    lower = _softplus(sum((arb(v * p) - xlogx(arb(p)) for v, p in zip(h, q, strict=True)), arb(0)))
    return lower.union(upper)


def entropy_duals(h: list[fmpq], k: int) -> list[fmpq]:
    """Return exactly feasible duals of radius 1 within 2^-200 of the gradient of the loss."""
    q = entropy_point(h, k)
    gain = sum((arb(v * p) - xlogx(arb(p)) for v, p in zip(h, q, strict=True)), arb(0))
    share = rational_ends((gain - _softplus(gain)).exp()).lower
    return [share * p for p in q]


def entropy_point(h: list[fmpq], k: int) -> list[fmpq]:
    """Return the distribution over the wrong classes that is optimal, rounded but feasible."""
    clip = _clip(h, k) if k > 1 else max(h)
    terms = [_rational(arb(min(v, clip) - clip).exp().mid()) for v in h]
    return capped([v / total for v in terms], k) if (total := sum(terms, ZERO)) else terms


def capped(x: list[fmpq], k: int) -> list[fmpq]:
    """Return `x` with its largest entries cut to ``<1, x> / k`` of what is left, sum unchanged.

    The sum that is cut off is spread in proportion, so that a distribution stays one.
    """
    total = sum(x, ZERO)
    cut = cut_to_cone(x, k)
    left = sum(cut, ZERO)
    return [v * total / left for v in cut] if left else cut


def cut_to_cone(x: list[fmpq], k: int) -> list[fmpq]:
    """Return the largest point below `x` with no entry above ``<1, .> / k``."""
    ordered = sorted(x, reverse=True)
    rest = sum(ordered, ZERO)
    for count, v in enumerate(ordered[:k]):
        if v * (k - count) <= rest:
            u = rest / (k - count)
            return [min(a, u) for a in x]
        rest -= v
    return [ZERO] * len(x)


def _clip(h, k):
    """Return a rational within 2^-200 of the margin above which classes are clipped."""
    ordered = sorted(h, reverse=True)
    for count in range(k):
        rest = _log_sum_exp([arb(v) for v in ordered[count:]])
        clip = _rational((rest - arb(k - count).log()).mid())
        if ordered[count] <= clip:
            break
    return clip


def _log_sum_exp(values):
    top = max(values, key=lambda v: float(v.mid()))
    return top + sum(((v - top).exp() for v in values), arb(0)).log()


def _softplus(v):
    return v.exp().log1p() if v < 0 else v + (-v).exp().log1p()


def xlogx(v: arb) -> arb:
    """Return ``v log v``, continued by 0."""
    return arb(0) if v == 0 else v * v.log()


# -- dual domains -----------------------------------------------------------------------------


def is_feasible(loss: str, x: list[fmpq], k: int, r: fmpq) -> bool:
    """Whether `x` lies in the dual domain of radius `r`, exactly."""
    total, top = sum(x, ZERO), max(x)
    if min(x) < 0 or total > r:
        return False
    if loss in ("topk_hinge_alpha", "topk_entropy"):
        return k * top <= total
    if loss == "topk_hinge_full":
        return k * top <= r and (k - 1) * top <= total
    return loss == "softmax" or k * top <= r


def make_feasible(loss: str, x: list[fmpq], k: int, r: fmpq) -> list[fmpq]:
    """Return a point of the dual domain near `x`: clipped, cut and scaled."""
    if is_feasible(loss, x, k, r):
        return x
    x = [max(v, ZERO) for v in x]
    if loss in ("topk_hinge_beta", "topk_hinge_full"):
        x = [min(v, r / k) for v in x]
    if (total := sum(x, ZERO)) > r:
        x = [v * r / total for v in x]
    if loss in ("topk_hinge_alpha", "topk_entropy"):
        return cut_to_cone(x, k)
    return cut_to_cone(x, k - 1) if loss == "topk_hinge_full" and k > 1 else x
