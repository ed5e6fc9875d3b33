"""
The guesses, shown
==================

A model that is trained for five guesses answers with five guesses. This example draws them beside
the sketches that were guessed: those where the first guess is right, those where a later one is,
and those where none is. :meth:`~topksvm.TopKLinearSVC.predict_topk` returns the labels, best first,
and with ``return_scores=True`` their scores.
"""

# %%
# A third of the classes of *Quick, Draw!* is enough for confusion: 115 things, 70 sketches of each
# to train on. Labels may be anything, here they are names.
import matplotlib.pyplot as plt
import numpy as np

from topksvm import TopKLinearSVC
from topksvm.datasets import load_quickdraw

data = load_quickdraw(features="hog")
names = np.array(data.class_names)


def rows_of(split):
    """Return rows, names and pictures of every third class."""
    X, y = data.split(split)
    is_kept = y % 3 == 0
    return X[is_kept], names[y[is_kept]], data.images(split)[is_kept]


X_train, y_train, _ = rows_of("train")
X_test, y_test, images = rows_of("test")
model = TopKLinearSVC(k=5, C=1.0, random_state=0).fit(X_train, y_train)
for k in (1, 5):
    print(f"right within {k}: {model.score_topk(X_test, y_test, k):.1%}")

# %%
# The loss compares scores of one sketch with each other, so their differences have a meaning and
# their size has not. We show by how much each of the five is ahead of the sixth.
guesses, scores = model.predict_topk(X_test, k=6, return_scores=True)
lead = scores[:, :5] - scores[:, 5:]
is_right = guesses[:, :5] == y_test[:, None]
outcomes = {
    "right at once": is_right[:, 0],
    "right among the five": is_right[:, 1:].any(axis=1),
    "not among the five": ~is_right.any(axis=1),
}

# %%
# Four sketches of each kind, drawn at random. The right name is green, with a tick.
RIGHT, WRONG = "#66bb77", "#cccccc"
rng = np.random.default_rng(11)
figure = plt.figure(figsize=(10.5, 7.2), layout="constrained")
rows = figure.subfigures(3, 1, hspace=0.04)
for band, (outcome, is_such) in zip(rows, outcomes.items(), strict=True):
    band.suptitle(f"{outcome}: {is_such.mean():.0%} of the test sketches", x=0.01, ha="left")
    axes = band.subplots(1, 8, width_ratios=[1, 1.35] * 4)
    chosen = rng.choice(np.flatnonzero(is_such), 4, replace=False)
    for i, picture, bars in zip(chosen, axes[::2], axes[1::2], strict=True):
        picture.imshow(255 - images[i], cmap="gray", interpolation="bicubic")
        picture.set_title(y_test[i], fontsize="medium", fontweight="bold")
        picture.set_axis_off()
        bars.barh(range(5), lead[i], color=np.where(is_right[i], RIGHT, WRONG), height=0.8)
        for place, (guess, right) in enumerate(zip(guesses[i], is_right[i], strict=False)):
            bars.text(0, place, f" {guess}" + " ✓" * int(right), va="center", fontsize="small")
        bars.set(xlim=(0, lead[:, 0].max() / 2), ylim=(4.6, -0.6))
        bars.set_axis_off()
plt.show()
