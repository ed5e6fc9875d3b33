r"""
Reading the certificate
=======================

Training stops when the model is *proven* to be close to the best one. The proof is two numbers:
the objective of the model, ``primal``, and a lower bound on what any model can reach, ``dual``.
This example shows how they meet, and how close is close enough for the guesses.
"""

# %%
# A problem of 69 classes: sketches from *Quick, Draw!*, 70 of each to train on, 20 to test with.
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import PercentFormatter

from topksvm import TopKLinearSVC
from topksvm.datasets import load_quickdraw

data = load_quickdraw(features="hog")
X_train, y_train = (part[data.y_train % 5 == 0] for part in data.split("train"))
X_test, y_test = (part[data.y_test % 5 == 0] for part in data.split("test"))

# %%
# ``tol`` is the relative gap at which training stops. We lower it step by step; with
# ``warm_start=True`` each fit goes on from the one before. Nothing is saved by stopping at every
# step, and one fit with the last ``tol`` would do: this is to look at the way.
model = TopKLinearSVC(k=5, C=1.0, warm_start=True, random_state=0)
passes, certificates, guesses = [], [], []
for tol in np.geomspace(0.5, 1e-5, 12):
    model.set_params(tol=tol).fit(X_train, y_train)
    passes.append(model.n_iter_)
    certificates.append(model.certificate_)
    guesses.append(model.predict_topk(X_test))
passes = np.cumsum(passes)
primal = np.array([c.primal for c in certificates])
dual = np.array([c.dual for c in certificates])
gaps = np.array([c.relative_gap for c in certificates])
print(f"{passes[-1]} passes, {certificates[-1]}, relative gap {gaps[-1]:.1e}")

# %%
# The accuracy settles before the guesses for every single row do. So besides the accuracy on the
# test rows we count those of them whose guesses differ from the last model's.
guesses = np.array(guesses)
is_right = guesses == y_test[:, None]
top1, top5 = is_right[..., 0].mean(axis=1), is_right.any(axis=2).mean(axis=1)
first_differs = (guesses[..., 0] != guesses[-1, :, 0]).mean(axis=1)
five_differ = (np.sort(guesses) != np.sort(guesses[-1])).any(axis=2).mean(axis=1)
print("    gap   top-1  top-5  first guess differs  five differ")
for line in zip(gaps, top1, top5, first_differs, five_differ, strict=True):
    print("{:.1e}  {:.1%}  {:.1%}  {:19.1%}  {:11.1%}".format(*line))

# %%
# On the left, primal and dual close in on the optimum, which lies between them. In the middle, the
# accuracies with a band of one standard error for 1380 test rows. On the right, the guesses that
# still differ from those at the end. The default, ``tol=1e-3``, is the dashed line.
BLUE, RED, GREY = "#4477aa", "#ee6677", "0.35"
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(9.8, 3.7), layout="constrained")
left.plot(passes, primal, color=RED, marker="o", markersize=4, label="primal, of the model")
left.plot(passes, dual, color=BLUE, marker="s", markersize=4, label="dual, a bound on the best")
left.fill_between(passes, dual, primal, color="0.5", alpha=0.2, linewidth=0)
left.set(title="The optimum lies between", xlabel="passes over the examples", ylabel="objective")
left.legend(frameon=False, loc="lower right")
for accuracy, k, colour in ((top5, 5, BLUE), (top1, 1, RED)):
    error = np.sqrt(accuracy * (1 - accuracy) / len(y_test))
    middle.plot(gaps, accuracy, color=colour, marker="o", markersize=4)
    middle.fill_between(gaps, accuracy - error, accuracy + error, color=colour, alpha=0.15, lw=0)
    middle.annotate(f"top-{k}", (gaps[-1], accuracy[-1] + 0.02), ha="right", color=colour)
middle.set(title="Accuracy on the test rows", ylim=(0.35, 0.8))
right.plot(gaps, five_differ, color=BLUE, marker="o", markersize=4, label="the set of five")
right.plot(gaps, first_differs, color=RED, marker="s", markersize=4, label="the first guess")
right.set(title="Guesses not yet final")
right.legend(frameon=False, loc="upper right")
for ax in (middle, right):
    ax.axvline(1e-3, color=GREY, linestyle="--", linewidth=1)
    ax.set(xscale="log", xlabel="relative gap")
    ax.invert_xaxis()
    ax.yaxis.set_major_formatter(PercentFormatter(xmax=1, decimals=0))
for ax in (left, middle, right):
    ax.grid(visible=True, alpha=0.3)
plt.show()

# %%
# From a gap of one per cent on, the accuracy changes no more than chance would have it, while many
# rows still get other guesses: about as many for the better as for the worse. So 1e-3 is a safe
# default, 1e-2 will often do while one searches for :math:`C`, and a smaller ``tol`` is for those
# who want the same guesses whatever the seed.
