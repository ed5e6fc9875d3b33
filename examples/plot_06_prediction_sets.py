r"""
From scores to probabilities to sets
====================================

The scores of an SVM rank the classes; they are not probabilities. And five guesses are too many for
a clear case, too few for a hard one. Two steps mend that, with some hundred rows that took no part
in training: a *temperature* turns scores into probabilities that can be believed, and a *threshold*
turns those into sets of guesses that hold the true class as often as one wishes.
"""

# %%
# Sketches of 35 things, in four parts that are drawn at random: to train on, for the temperature,
# for the threshold, and to test with. What follows holds for new rows from the same source, which a
# random split makes sure of.
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import PercentFormatter
from scipy.special import softmax
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import train_test_split

from topksvm import TopKLinearSVC
from topksvm.datasets import load_quickdraw
from topksvm.metrics import topk_accuracy

X, y = load_quickdraw(features="hog", return_X_y=True)
X, y = X[y % 10 == 0], y[y % 10 == 0] // 10
names = load_quickdraw().class_names[::10]


def split(X, y, rows):
    """Return `rows` rows and the rest, both with as many of each class."""
    X, X_rest, y, y_rest = train_test_split(X, y, train_size=rows, stratify=y, random_state=0)
    return X, y, X_rest, y_rest


X_train, y_train, X, y = split(X, y, 1750)
X_heat, y_heat, X, y = split(X, y, 350)
X_limit, y_limit, X_test, y_test = split(X, y, 700)
model = TopKLinearSVC(k=5, C=1.0, random_state=0).fit(X_train, y_train)

# %%
# Temperature
# -----------
# scikit-learn finds the one factor by which scores are multiplied before softmax makes them
# probabilities; the order of the guesses stays as it is. (Labels are 0, 1, 2, ... here, as
# scikit-learn 1.9 takes them for columns in this method.)
calibrated = CalibratedClassifierCV(FrozenEstimator(model), method="temperature")
calibrated.fit(X_heat, y_heat)
before = softmax(model.decision_function(X_test), axis=1)
after = calibrated.predict_proba(X_test)
is_right = after.argmax(axis=1) == y_test
print(f"the first guess is right: {is_right.mean():.1%}")
for moment, probabilities in (("before", before), ("after", after)):
    print(f"its mean probability {moment}: {probabilities.max(axis=1).mean():.1%}")

# %%
# The test rows, sorted by the probability of the first guess and cut into ten equal parts. Guesses
# that are called 60 per cent sure should be right in 60 per cent of cases, on the diagonal. The
# bars are two standard errors.
figure, ax = plt.subplots(figsize=(5.6, 5), layout="constrained")
ax.plot([0, 1], [0, 1], color="0.35", linestyle="--", linewidth=1, label="as sure as right")
for probabilities, name, colour, marker in (
    (before, "softmax of the scores", "#ee6677", "s"),
    (after, "with temperature", "#4477aa", "o"),
):
    sure = probabilities.max(axis=1)
    parts = np.array_split(np.argsort(sure), 10)
    x, y = (np.array([v[part].mean() for part in parts]) for v in (sure, is_right))
    error = 2 * np.sqrt(y * (1 - y) / len(parts[0]))
    ax.errorbar(x, y, error, color=colour, marker=marker, capsize=2, linewidth=1.2, label=name)
ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
ax.set(xlabel="probability of the first guess", ylabel="share of first guesses that are right")
ax.legend(frameon=False, loc="lower right")
ax.grid(visible=True, alpha=0.3)
plt.show()

# %%
# Sets
# ----
# A set holds every class with a probability above a threshold. Rows kept for that tell which:
# for 90 per cent, the one that 90 per cent of their true classes pass, with one row more for
# safety. New rows are then covered as often on average, whatever the model is worth (*split
# conformal prediction*); a bad model has large sets.
of_truth = np.sort(calibrated.predict_proba(X_limit)[np.arange(len(y_limit)), y_limit])
levels = np.arange(0.5, 0.96, 0.05)
thresholds = of_truth[np.floor((1 - levels) * (len(of_truth) + 1)).astype(int) - 1]
sets = after >= thresholds[:, None, None]
sizes = sets.sum(axis=2)
is_covered = sets[:, np.arange(len(y_test)), y_test]

wanted = int(np.argmin(abs(levels - 0.9)))
size, covered = sizes[wanted], is_covered[wanted]
print(f"wanted {levels[wanted]:.0%}: covered {covered.mean():.1%}, mean size {size.mean():.1f}")

# %%
# At the upper left, sets of varying size against as many guesses for every row: as many guesses on
# average cover more if the hard rows get more of them. At the upper right, how many classes the
# sets for 90 per cent hold. Below, the small print: 90 per cent is a promise for all rows together,
# not for each class, and what is easily taken for something else is covered less often. (With 20
# test rows of a class, a bar is right to about 7 points.)
BLUE, RED = "#4477aa", "#ee6677"
figure, axes = plt.subplot_mosaic("AB;CC", figsize=(9, 7), layout="constrained")
ax = axes["A"]
fixed = np.arange(1, 16)
ax.plot(
    fixed, topk_accuracy(y_test, after, fixed), color=RED, marker="s", label="k guesses for all"
)
ax.plot(sizes.mean(axis=1), is_covered.mean(axis=1), color=BLUE, marker="o", label="sets")
ax.plot(size.mean(), covered.mean(), color=BLUE, marker="*", markersize=16)
ax.annotate(
    "for 90 %", (size.mean(), covered.mean()), (-12, 8), textcoords="offset points", ha="right"
)
ax.set(title="Sets against a fixed k", xlabel="mean number of guesses", ylabel="true class covered")
ax.set_xticks([1, 5, 10, 15])
ax.legend(frameon=False, loc="lower right")
ax = axes["B"]
ax.hist(size, bins=np.arange(0.5, size.max() + 1), color=BLUE, edgecolor="white")
ax.set(title="Sizes of the sets for 90 %", xlabel="classes in the set", ylabel="test sketches")
ax = axes["C"]
by_class = np.array([covered[y_test == c].mean() for c in range(len(names))])
order = np.argsort(by_class, kind="stable")
ax.bar(range(len(names)), by_class[order], color=BLUE, width=0.75)
ax.axhline(0.9, color="0.2", linestyle="--", linewidth=1)
ax.set(title="Covered by the sets for 90 %, class by class", ylim=(0.5, 1.02), xlim=(-0.7, 34.7))
ax.set_xticks(
    range(len(names)), np.array(names)[order], rotation=60, ha="right", rotation_mode="anchor"
)
for ax in (axes["A"], axes["C"]):
    ax.yaxis.set_major_formatter(PercentFormatter(xmax=1, decimals=0))
for ax in axes.values():
    ax.grid(visible=True, axis="y", alpha=0.3)
    ax.set_axisbelow(True)
plt.show()
