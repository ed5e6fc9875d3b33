"""Inputs that have broken projections before, and random ones around them."""

from __future__ import annotations

import numpy as np

RHOS = (0.0, 0.3, 1.0, 5.0)


def _ties(rng, d):
    return rng.integers(-2, 3, d).astype(float)


def _all_equal(rng, d):
    return np.full(d, rng.choice([-3.0, 0.0, 0.1, 7.0, 250.0]))


def _all_negative(rng, d):
    return -np.abs(rng.standard_normal(d)) - 0.1


def _one_huge(rng, d):
    a = rng.standard_normal(d)
    a[rng.integers(d)] = rng.choice([-1.0, 1.0]) * 10.0 ** rng.integers(3, 13)
    return a


def _few_levels_far_apart(rng, d):
    return rng.choice([-1e6, -1.0, 0.0, 1e-6, 1.0, 1e6], d)


def _offset(rng, d):
    """Large numbers that differ little: where absolute tolerances and cancellation hurt."""
    return 10.0 ** rng.integers(2, 13) + rng.standard_normal(d)


KINDS = {
    "normal": lambda rng, d: rng.standard_normal(d),
    "positive": lambda rng, d: rng.exponential(size=d),
    "heavy tails": lambda rng, d: rng.standard_cauchy(d),
    "ties": _ties,
    "all equal": _all_equal,
    "all negative": _all_negative,
    "one huge entry": _one_huge,
    "levels far apart": _few_levels_far_apart,
    "large offset": _offset,
    "1e12": lambda rng, d: 1e12 * rng.standard_normal(d),
    "1e-12": lambda rng, d: 1e-12 * rng.standard_normal(d),
    "denormal": lambda rng, d: 5e-324 * rng.integers(-50, 50, d),
    "zeros": lambda _, d: np.zeros(d),
    "sorted": lambda rng, d: np.sort(rng.standard_normal(d)),
}


def generate(n_per_kind, seed, dtype=np.float64):
    """Yield ``(kind, a, k, r, rho)``: every kind, dimension 1 to 300, k from 1 to d."""
    rng = np.random.default_rng(seed)
    for kind, make in KINDS.items():
        for i in range(n_per_kind):
            d = int(rng.integers(1, 301)) if i % 3 else int(rng.integers(1, 13))
            k = int(rng.choice([1, d, min(5, d), rng.integers(1, d + 1), rng.integers(1, d + 1)]))
            r = float(10.0 ** rng.uniform(-6, 6))
            with np.errstate(under="ignore"):
                a = make(rng, d).astype(dtype)
            yield kind, a, k, r, RHOS[i % len(RHOS)]
