r"""
When it helps, and when not
===========================

Top-k training is no free lunch: it gives up first guesses that are a toss-up anyway, and where
classes can be told apart there is nothing to gain. This example turns one knob, the share of
examples that are ambiguous, and compares the top-k SVM with softmax and with the methods that the
paper compares with, from :mod:`topksvm.baselines`.
"""

# %%
# :func:`~topksvm.datasets.make_ambiguous_classes` makes classes in groups of five. An ambiguous
# example lies in the middle of its group, where only chance can name its class. For overlap
# :math:`\omega`, and noise aside, no classifier has more than :math:`1 - \omega + \omega k / 5` of
# its examples right within :math:`k \le 5` guesses: all of them for five.
import warnings

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import PercentFormatter
from sklearn.exceptions import ConvergenceWarning

from topksvm import TopKLinearSVC
from topksvm.baselines import NChooseK, OneVsRestSVC, TopPush, WsabiePP
from topksvm.datasets import make_ambiguous_classes

methods = {
    "SVM, k = 1": [TopKLinearSVC(k=1, C=C, random_state=0) for C in (0.01, 0.1, 1)],
    "SVM, k = 5": [TopKLinearSVC(k=5, C=C, random_state=0) for C in (0.01, 0.1, 1)],
    "softmax": [TopKLinearSVC(loss="softmax", C=C, random_state=0) for C in (0.1, 1, 10)],
    "one-vs-rest": [OneVsRestSVC(C=C, random_state=0) for C in (0.1, 1)],
    "TopPush": [TopPush(C=C, change_tol=5e-4) for C in (0.01, 1)],
    "Wsabie++": [
        WsabiePP(32, learning_rate=rate, max_iter=10, random_state=0) for rate in (0.01, 0.1)
    ],
    "n-choose-k, k = 5": [NChooseK(k=5, C=C) for C in (0.1, 1)],
}

# %%
# Each method gets, for each number of guesses, the setting that is best on validation examples. The
# test examples are many, so that differences of a point are real.
overlaps = np.array([0, 0.2, 0.4, 0.6, 0.8, 1])
accuracy = {name: np.empty((2, overlaps.size)) for name in methods}
for column, overlap in enumerate(overlaps):
    X, y = make_ambiguous_classes(8000, 64, 20, overlap=overlap, noise=0.6, random_state=0)
    train, val, test = slice(1000), slice(1000, 2000), slice(2000, None)
    for name, settings in methods.items():
        for model in settings:
            with warnings.catch_warnings():
                # TopPush is stopped early, as by its authors, and says how far from the optimum.
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit(X[train], y[train])
        for row, k in enumerate((1, 5)):
            best = max(settings, key=lambda model: model.score_topk(X[val], y[val], k))
            accuracy[name][row, column] = best.score_topk(X[test], y[test], k)

print("top-1 and top-5 accuracy at overlap 0.4:")
for name, table in accuracy.items():
    print(f"{name:17} {table[0, 2]:.1%}  {table[1, 2]:.1%}")

# %%
# For one guess we draw the difference to the SVM that is trained for it, for five the accuracy
# itself.
colours = ["#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "0.5"]
figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 4.2), layout="constrained")
first = accuracy["SVM, k = 1"][0]
for (name, (top1, top5)), colour, marker in zip(accuracy.items(), colours, "osD^vPX", strict=True):
    style = {"color": colour, "marker": marker, "markersize": 5}
    left.plot(overlaps, 100 * (top1 - first), label=name, **style)
    right.plot(overlaps, top5, **style)
left.set(title="One guess: against the SVM with k = 1", ylabel="percentage points")
right.set(title="Five guesses", ylabel="the true class is among them")
right.yaxis.set_major_formatter(PercentFormatter(xmax=1, decimals=0))
for ax in (left, right):
    ax.set_xlabel("share of ambiguous examples")
    ax.grid(visible=True, alpha=0.3)
figure.legend(loc="outside right center", frameon=False)
plt.show()

# %%
# The methods fall into two camps. Those that ask for the true class to be *first* (the SVM with
# k = 1, one-vs-rest, TopPush) spend their effort on what cannot be decided: where all is ambiguous,
# they miss a tenth to three tenths of the examples within five guesses. Those that count what lies
# below (the SVM with k = 5, softmax, Wsabie++, n-choose-k) have nearly all of them, whatever the
# overlap. For one guess the SVM with k = 5 pays for it with some points, where some examples are
# ambiguous and some are not. Without ambiguous examples there is little to choose. Softmax does
# well on both counts here. With two or three settings for each method this is an illustration, not
# a benchmark.
