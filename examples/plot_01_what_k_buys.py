"""
What training for k guesses buys
================================

People who draw on a phone have twenty seconds and no eraser. A sketch of a *bread* may be a
*potato* to anybody, so an application shows several guesses. This example trains linear models on
sketches of 69 things from *Quick, Draw!* for one, five and ten guesses, and softmax regression for
comparison, and counts how often the right name is among the guesses shown.
"""

# %%
# The sketches come with the package. Every fifth of the 345 classes makes a problem that is solved
# in seconds. There are 70 drawings of each thing to train on, 10 to choose :math:`C` with and 20 to
# test with.
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import PercentFormatter

import topksvm
from topksvm.datasets import load_quickdraw
from topksvm.metrics import topk_accuracy, topk_ranks

data = load_quickdraw(features="hog")
kept = np.arange(0, data.n_classes, 5)


def rows_of(split):
    """Return the rows of the classes kept, and their numbers 0, 1, 2, ..."""
    X, y = data.split(split)
    is_kept = np.isin(y, kept)
    return X[is_kept], np.searchsorted(kept, y[is_kept])


X_train, y_train = rows_of("train")
X_val, y_val = rows_of("val")
X_test, y_test = rows_of("test")
print(f"{len(kept)} classes, {len(y_train)} rows to train on, {len(y_test)} to test with")

# %%
# Each method gets the :math:`C` that is best *for it*, by the top-5 accuracy on the validation
# rows; one value for all would favour somebody. :func:`topksvm.path` solves for all of them, each
# starting from the solution before. (For one guess the smallest is taken; 0.03 and 0.01 are no
# better.)
methods = {
    "SVM, trained for 1 guess": ("topk_hinge_alpha", 1),
    "SVM, trained for 5 guesses": ("topk_hinge_alpha", 5),
    "SVM, trained for 10 guesses": ("topk_hinge_alpha", 10),
    "softmax": ("softmax", 1),
}
scores = {}
for name, (loss, k) in methods.items():
    points = topksvm.path(X_train, y_train, loss, [0.1, 0.3, 1, 3, 10], k=k)
    C, best = max(points, key=lambda p: topk_accuracy(y_val, X_val @ p[1].weights.T, ks=5))
    scores[name] = X_test @ best.weights.T
    top1, top5, top10 = topk_accuracy(y_test, scores[name], ks=(1, 5, 10))
    print(f"{name:28} C = {C:<4g} top-1 {top1:.1%}  top-5 {top5:.1%}  top-10 {top10:.1%}")

# %%
# On the left, how often the right name is among the guesses. The lines look alike; the differences
# on the right do not. They are counted on the same test rows, so that hard sketches are hard for
# all; the bands are one standard error of the difference.
shown = np.arange(1, 16)
is_hit = {name: topk_ranks(y_test, s)[:, None] <= shown for name, s in scores.items()}
first = next(iter(is_hit.values()))
styles = zip(["#4477aa", "#ee6677", "#aa3377", "#228833"], "osDv", strict=True)

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
for (name, hits), (colour, marker) in zip(is_hit.items(), styles, strict=True):
    gain = 100 * (hits.astype(float) - first)
    mean, error = gain.mean(axis=0), gain.std(axis=0) / np.sqrt(len(gain))
    style = {"color": colour, "marker": marker, "markersize": 4, "label": name}
    left.plot(shown, hits.mean(axis=0), **style)
    right.plot(shown, mean, **style)
    right.fill_between(shown, mean - error, mean + error, color=colour, alpha=0.15, linewidth=0)
left.yaxis.set_major_formatter(PercentFormatter(xmax=1))
left.set(title="The right name is among the guesses", ylabel="test accuracy")
left.legend(frameon=False, loc="lower right")
right.set(title="Gain over training for 1 guess", ylabel="percentage points")
for ax in (left, right):
    ax.set(xlabel="guesses shown", xticks=[1, 5, 10, 15])
    ax.grid(visible=True, alpha=0.3)
plt.show()

# %%
# Training for more guesses than one helps here at every number of guesses, even at the first: the
# model does not waste itself on sketches that nobody could name. Training for ten is a little
# better than training for five even where five are shown. Softmax is ahead of all three on these
# features, if not by much more than the error, so it belongs in every comparison:
# :class:`~topksvm.TopKLinearSVCCV` tries losses and training k together.
