"""Small problems, and their objective computed anew."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import make_classification

M = 6


def problem(dtype=np.float64, n=150, seed=0, classes=M):
    """Return examples of classes that overlap, so that no loss is zero."""
    X, y = make_classification(
        n_samples=n,
        n_features=12,
        n_informative=8,
        n_classes=classes,
        n_clusters_per_class=1,
        class_sep=0.7,
        random_state=seed,
    )
    return np.ascontiguousarray(X / np.sqrt(X.shape[1]), dtype=dtype), y


def objective(model, X, y, weights=1.0):
    """Return the objective of a top-k hinge alpha model: wrong classes only."""
    W, b = model.coef_.astype(float), model.intercept_.astype(float)
    labels = np.searchsorted(model.classes_, y)
    scores = np.asarray(X @ W.T) + b
    rows = np.arange(len(labels))
    margins = scores - scores[rows, labels][:, None] + 1.0
    margins[rows, labels] = -np.inf
    best = -np.sort(-margins, axis=1)[:, : model.k]
    losses = np.maximum(0.0, best.mean(axis=1))
    constant = (b / model.intercept_scaling) @ (b / model.intercept_scaling)
    return 0.5 * ((W * W).sum() + constant) + model.C * float(np.sum(weights * losses))
