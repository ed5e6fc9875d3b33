"""The steps of Wsabie++: draw a violating class, weigh it by its rank, descend by AdaGrad."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topksvm._numba import borrow, kernel, summing_kernel

Array = NDArray[Any]


class Examples(NamedTuple):
    """The rows in CSR form, float32, and their labels."""

    data: Array
    indices: Array
    indptr: Array
    labels: Array


class Model(NamedTuple):
    """What training changes.

    The embedding is kept as ``(d, dim)``, so that a feature meets contiguous memory.
    """

    features: Array
    """The vector of each feature, ``V'``: ``(d, dim)``."""
    classes: Array
    """The vector of each class, ``U``: ``(m, dim)``."""
    squares: Array
    """AdaGrad's sums of mean squares: of the gradients of each class, and last of ``V``."""
    queue: Array
    """The last violators of each class, ``(m, Q)``, -1 where there is none yet."""
    head: Array
    """Where the queue of each class is written next."""
    random: Array
    """The state of the random numbers, one uint64."""
    z: Array
    """Scratch: ``V x`` of the example at hand."""
    difference: Array
    """Scratch: the weighted difference of the vectors of two classes."""


class Options(NamedTuple):
    """The parameters of a step, float32; a `max_norm` of infinity is none."""

    learning_rate: Any
    margin: Any
    max_norm: Any


def rank_weights(m: int) -> Array:
    """Return ``L(r) = sum_{j <= r} 1 / j`` for the ranks ``0 ... m - 1``, which grows ever slower.

    So a mistake costs the more the nearer to the top it is made.
    """
    return np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, m))]).astype(np.float32)


@kernel
def draw_below(random, n):
    """Return a random integer from 0 to ``n - 1``, by SplitMix64 (Steele, Lea, Flood 2014).

    A generator of its own makes a model reproducible, whatever else runs in the process.
    """
    random[0] += np.uint64(0x9E3779B97F4A7C15)
    z = random[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    # The upper half as a fraction of n: no division, and no bias to speak of below 2^32.
    return np.int64(((z >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


@summing_kernel
def embed(examples, i, features, z):
    """Set `z` to ``V x_i``; return ``||x_i||^2``."""
    z[:] = 0.0
    norm = 0.0
    for p in range(examples.indptr[i], examples.indptr[i + 1]):
        value, feature = examples.data[p], examples.indices[p]
        norm += np.float64(value) * np.float64(value)
        for c in range(z.size):
            z[c] += value * features[feature, c]
    return norm


@summing_kernel
def score(classes, j, z):
    """Return ``<u_j, z>``."""
    total = np.float32(0.0)
    for c in range(z.size):
        total += classes[j, c] * z[c]
    return total


@kernel
def find_violator(model, label, margin):
    """Draw classes until one comes within `margin` of the label and is not in the label's queue.

    Return it, or -1 after m - 1 draws, and the number of draws.
    """
    m = model.classes.shape[0]
    bound = score(model.classes, label, model.z) - margin
    for draw in range(1, m):
        j = draw_below(model.random, m - 1)
        j += j >= label
        if score(model.classes, j, model.z) > bound and not is_queued(model.queue, label, j):
            return j, draw
    return -1, m - 1


@kernel
def is_queued(queue, label, j):
    """Return whether class `j` is among the last violators of the label."""
    for q in range(queue.shape[1]):  # noqa: SIM110, any() does not compile
        if queue[label, q] == j:
            return True
    return False


@kernel
def push(model, label, violator):
    """Let the violator take the place of the oldest one in the label's queue."""
    size = model.queue.shape[1]
    if size:
        model.queue[label, model.head[label]] = violator
        model.head[label] = (model.head[label] + 1) % size


@kernel
def step_size(squares, i, square, learning_rate):
    """Add the mean square of a gradient to its sum; return the factor of the gradient."""
    squares[i] += square
    return np.float32(learning_rate / np.sqrt(squares[i])) if squares[i] > 0.0 else np.float32(0.0)


@summing_kernel
def add_within(rows, i, factor, direction, max_norm):
    """Add `factor` times `direction` to row `i` and shrink it to `max_norm` if it is longer."""
    square = np.float32(0.0)
    for c in range(direction.size):
        rows[i, c] += factor * direction[c]
        square += rows[i, c] * rows[i, c]
    if square > max_norm * max_norm:
        shrink = max_norm / np.sqrt(square)
        for c in range(direction.size):
            rows[i, c] *= shrink


@summing_kernel
def update(examples, model, options, i, norm, violator, weight):
    """Step against the gradient of ``weight * (margin + <u_violator - u_label, V x_i>)``."""
    z, difference = model.z, model.difference
    label, dim, rate = examples.labels[i], z.size, options.learning_rate
    class_square, feature_square = 0.0, 0.0  # float64: squares overflow first.
    for c in range(dim):
        difference[c] = weight * (model.classes[label, c] - model.classes[violator, c])
        feature_square += np.float64(difference[c]) ** 2
        class_square += np.float64(weight * z[c]) ** 2
    for j, sign in ((label, 1.0), (violator, -1.0)):
        factor = step_size(model.squares, j, class_square / dim, rate) * weight
        add_within(model.classes, j, np.float32(sign * factor), z, options.max_norm)
    mean = feature_square * norm / (dim * model.features.shape[0])
    factor = step_size(model.squares, model.classes.shape[0], mean, rate)
    for p in range(examples.indptr[i], examples.indptr[i + 1]):
        value, feature = examples.data[p], examples.indices[p]
        add_within(model.features, feature, factor * value, difference, options.max_norm)


@kernel
def run_steps(examples, model, options, weights, n_steps):
    """Take `n_steps` steps on examples drawn at random; return how many found a violator."""
    examples, model = borrow(examples), borrow(model)
    m, found = model.classes.shape[0], 0
    for _ in range(n_steps):
        i = draw_below(model.random, examples.labels.size)
        label = examples.labels[i]
        norm = embed(examples, i, model.features, model.z)
        violator, draws = find_violator(model, label, options.margin)
        if violator < 0:
            continue
        found += 1
        push(model, label, violator)
        weight = weights[(m - 1) // draws]
        update(examples, model, options, i, norm, violator, weight)
    return found
