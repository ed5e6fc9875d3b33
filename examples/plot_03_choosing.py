"""
Choosing C and the k to train for
=================================

There are two k: the number of guesses one *wants*, and the number one *trains* for. They need not
be the same. :class:`~topksvm.TopKLinearSVCCV` chooses the loss, the training k and :math:`C` by
cross-validation, separately for each number of guesses wanted.
"""

# %%
# Sketches of 35 things, 70 of each to train on. All :math:`C` of a fold are solved along one path,
# from small to large; ``max_extensions=0`` keeps the grid as it is, else it would grow where the
# best :math:`C` lies at its edge.
import matplotlib.pyplot as plt
import numpy as np

from topksvm import TopKLinearSVCCV
from topksvm.datasets import load_quickdraw
from topksvm.plotting import plot_path

data = load_quickdraw(features="hog")
X_train, y_train = (part[data.y_train % 10 == 0] for part in data.split("train"))
X_test, y_test = (part[data.y_test % 10 == 0] for part in data.split("test"))

search = TopKLinearSVCCV(
    ks=(1, 3, 5),
    Cs=[0.1, 0.3, 1, 3, 10],
    losses=("topk_hinge_alpha", "softmax"),
    cv=3,
    tol=1e-2,
    max_extensions=0,
    random_state=0,
).fit(X_train, y_train)

# %%
# What was chosen for each number of guesses, and how good it is on rows that took no part:
for k, params in search.best_params_.items():
    print(f"{k} wanted: {params}, {search.score_topk(X_test, y_test, k):.1%} on the test rows")

# %%
# :func:`~topksvm.plotting.plot_path` draws, for each number wanted, the best setting at each
# :math:`C`. A flat top means that the choice hardly matters; a maximum at the edge would mean that
# the grid is too small.
plot_path(search)
plt.show()

# %%
# All settings are in ``cv_results_``. Below, a row is what one trains for, the star is what was
# chosen, and what is more than eight points below it has the darkest colour.
results = search.cv_results_
rows = {f"SVM, k = {k}": ("topk_hinge_alpha", k) for k in search.ks} | {"softmax": ("softmax", 1)}
figure, axes = plt.subplots(1, 3, figsize=(10, 3), sharey=True, layout="constrained")
for ax, wanted in zip(axes, search.ks, strict=True):
    accuracy = np.empty((len(rows), len(search.Cs_)))
    for i, (loss, k) in enumerate(rows.values()):
        is_row = (results["param_loss"] == loss) & (results["param_k"] == k)
        accuracy[i] = 100 * results[f"mean_test_top{wanted}"][is_row]
    best = accuracy.max()
    ax.imshow(accuracy, cmap="cividis", aspect="auto", vmin=best - 8, vmax=best)
    for (i, j), value in np.ndenumerate(accuracy):
        text = f"{value:.1f}" + "★" * int(value == best)
        ax.text(j, i, text, ha="center", va="center", color="k" if value > best - 4 else "w")
    ax.set(title=f"top-{wanted} accuracy, per cent", xlabel="C")
    ax.set_xticks(range(len(search.Cs_)), [f"{C:g}" for C in search.Cs_])
    ax.set_yticks(range(len(rows)), rows)
plt.show()

# %%
# Among the SVMs, more guesses wanted call for a larger training k: 1 or 3 for the first guess, 5
# for three or five. Softmax is a little better still on these sketches, and worse where :math:`C`
# is small. None of it is a law, so let the search decide.
