"""Classes that are confused as much as you wish."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

__all__ = ["make_ambiguous_classes"]

_SPREAD = 0.5
"""How far classes lie from the direction of their group, which has length 1."""

_CHUNK_BYTES = 1 << 23


def make_ambiguous_classes(
    n_samples: int = 1000,
    n_features: int = 64,
    n_classes: int = 20,
    *,
    overlap: float = 0.5,
    group_size: int = 5,
    noise: float = 0.2,
    random_state: Any = None,
    dtype: DTypeLike = np.float32,
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    r"""Make classes that come in groups which are easily confused.

    Class c belongs to the group ``c // group_size``. An example is clear, and lies near the centre
    of its class, or it is ambiguous with probability `overlap`, and lies near the centre of its
    group, where nothing tells the classes of the group apart: like a picture that shows several
    things and has one label. Noise aside, the best classifier reaches a top-k accuracy of

    .. math:: 1 - \omega + \omega \frac{\min(k, s)}{s}

    for overlap :math:`\omega` and groups of size s: all examples for k = s, whatever the overlap.

    Parameters
    ----------
    n_samples, n_features, n_classes : int
        The shape. Classes are of equal size, up to one. Groups lie in random directions: few
        features for many groups make groups overlap as well.
    overlap : float
        The share of ambiguous examples: 0 is separable, 1 leaves a guess within the group.
    group_size : int
        The number of classes in a group; the last group may be smaller. At most `n_features`.
    noise : float
        Standard deviation of the noise in any direction, in halves of the least distance of two
        centres of classes: clear examples of two classes are taken for one another with
        probability :math:`\Phi(-1 / \text{noise})` at most, 3e-7 by default.
    random_state : int, Generator, RandomState or None
        The centres depend on it and on the numbers of features, of classes and the group size only:
        a second call with another overlap has the same classes.
    dtype : float32 or float64
        Of the features.

    Returns
    -------
    X : array of shape (n_samples, n_features)
        Centres have length 1, so that a linear classifier needs no bias.
    y : int64 array of shape (n_samples,)
        Classes ``0, ..., n_classes - 1`` in random order.

    Examples
    --------
    >>> from topksvm.datasets import make_ambiguous_classes
    >>> X, y = make_ambiguous_classes(1000, 64, 20, overlap=0.5, random_state=0)
    >>> X.shape, X.dtype, sorted(set(y.tolist())) == list(range(20))
    ((1000, 64), dtype('float32'), True)
    """
    _check(n_samples, n_features, n_classes, overlap, group_size, noise, dtype)
    rng = _generator(random_state)
    classes, groups = _centres(rng, n_features, n_classes, group_size)
    y = rng.permutation(np.arange(n_samples, dtype=np.int64) % n_classes)
    is_ambiguous = rng.random(n_samples) < overlap
    # One table of centres: an ambiguous example takes the row of its group.
    table = np.concatenate([classes, groups]).astype(dtype)
    row = np.where(is_ambiguous, n_classes + y // group_size, y)
    X = np.empty((n_samples, n_features), dtype=table.dtype)
    scale = table.dtype.type(noise * _least_distance(classes) / 2)
    step = max(1, _CHUNK_BYTES // (n_features * X.itemsize))
    for start in range(0, n_samples, step):
        chunk = X[start : start + step]
        rng.standard_normal(dtype=table.dtype, out=chunk)
        chunk *= scale
        chunk += table[row[start : start + step]]
    return X, y


def _centres(
    rng: np.random.Generator, n_features: int, n_classes: int, group_size: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return unit centres of classes and of groups.

    Within a group, classes stand on orthogonal axes around its direction: at equal distances, and
    equally far from the centre of the group.
    """
    n_groups = -(-n_classes // group_size)
    groups = np.empty((n_groups, n_features))
    classes = np.empty((n_classes, n_features))
    for group in range(n_groups):
        axes = np.linalg.qr(rng.standard_normal((n_features, group_size)))[0].T
        direction = rng.standard_normal(n_features)
        # Equal cosines with all axes keep their ends equally far from the direction.
        direction -= axes.T @ (axes @ direction)
        length = np.linalg.norm(direction)
        if length > 1e-8 * np.sqrt(n_features):
            direction /= length
        else:  # As many classes as features: no direction is left outside their axes.
            direction = np.zeros(n_features)
        members = classes[group * group_size : (group + 1) * group_size]
        members[:] = direction + _SPREAD * axes[: len(members)]
        groups[group] = members.mean(axis=0)
    for centres in (classes, groups):
        centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    return classes, groups


def _least_distance(centres: NDArray[np.float64], step: int = 1024) -> float:
    """Return the least distance of two unit vectors, in blocks: m x m is too much for large m."""
    largest = -1.0
    for start in range(0, len(centres), step):
        cosines = centres[start : start + step] @ centres.T
        own = np.arange(len(cosines))
        cosines[own, start + own] = -1
        largest = max(largest, float(cosines.max()))
    return float(np.sqrt(max(0.0, 2 - 2 * largest)))


def _generator(random_state: Any) -> np.random.Generator:
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"random_state={random_state!r} is not a seed. Pass a non-negative integer, a "
            "Generator, a RandomState or None."
        ) from error


def _check(
    n_samples: int,
    n_features: int,
    n_classes: int,
    overlap: float,
    group_size: int,
    noise: float,
    dtype: DTypeLike,
) -> None:
    for name, value, low in (
        ("n_samples", n_samples, 1),
        ("n_features", n_features, 2),
        ("n_classes", n_classes, 2),
        ("group_size", group_size, 1),
    ):
        if not isinstance(value, Integral) or isinstance(value, bool) or value < low:
            raise ValueError(f"{name}={value!r} is not an integer of at least {low}.")
    if group_size > min(n_features, n_classes):
        raise ValueError(
            f"group_size={group_size} is more than n_features={n_features} or "
            f"n_classes={n_classes}. Make groups smaller."
        )
    if not isinstance(overlap, Real) or not 0 <= overlap <= 1:
        raise ValueError(f"overlap={overlap!r} is not a share of examples between 0 and 1.")
    if not isinstance(noise, Real) or not 0 <= noise < np.inf:
        raise ValueError(f"noise={noise!r} is not a finite number of at least 0.")
    try:
        is_known = np.dtype(dtype) in (np.float32, np.float64)
    except TypeError:
        is_known = False
    if not is_known:
        raise ValueError(f"dtype={dtype!r} is neither float32 nor float64.")
