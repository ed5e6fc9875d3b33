"""
Where the second guess matters
==============================

:class:`~topksvm.TopKSVC` is the machine with a kernel, for borders that are not straight. In the
plane one can see what it does with classes that overlap: there is a first guess everywhere, and
regions where the second is the one that is right as often.
"""

# %%
# Six classes on three arms of a spiral. Each arm starts as one class and ends as another; in
# between, either may turn up, and nothing tells them apart.
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap

from topksvm import TopKSVC


def make_spirals(n, seed):
    """Return points and classes; arm `a` goes from class ``2 a`` to class ``2 a + 1``."""
    rng = np.random.default_rng(seed)
    arm, t = rng.integers(3, size=n), rng.random(n)
    angle, radius = 2 * np.pi * arm / 3 + 4.0 * t, 0.25 + 1.75 * t
    X = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    is_second = rng.random(n) < np.clip((t - 0.3) / 0.4, 0, 1)
    return X + rng.normal(scale=0.11, size=X.shape), 2 * arm + is_second


X, y = make_spirals(600, seed=0)
X_test, y_test = make_spirals(3000, seed=1)

# %%
# Two machines, trained for one guess and for two.
models = {k: TopKSVC(k=k, kernel="rbf", gamma=2.0, C=1.0, random_state=0).fit(X, y) for k in (1, 2)}
for k, model in models.items():
    first, either = (model.score_topk(X_test, y_test, j) for j in (1, 2))
    print(
        f"trained for {k}: first guess right {first:.1%}, one of two {either:.1%}; "
        f"{len(model.support_)} support vectors, gap {model.certificate_.relative_gap:.0e}"
    )

# %%
# Training for two gives up some right first guesses, where they are a toss-up anyway, for second
# guesses that are right nearly always, and needs fewer support vectors. The pictures are of this
# machine. A pair of colours is an arm, dark where it starts. In the middle of an arm the first
# guess has no lead (right, white), and the second is the other class of the *same* arm. Where the
# first is sure, the second does not matter.
t = np.linspace(-2.4, 2.4, 241)
grid = np.stack(np.meshgrid(t, t), axis=-1).reshape(-1, 2)
model = models[2]
guesses, scores = model.predict_topk(grid, return_scores=True)
shape = (len(t), len(t))
PAIRS = ["#1f5b94", "#8fc1ea", "#b35f00", "#f6c37f", "#7a2a6b", "#d8a2cc"]
cmap = ListedColormap(PAIRS)
place = {"extent": (t[0], t[-1], t[0], t[-1]), "origin": "lower"}

figure, axes = plt.subplots(1, 3, figsize=(9.6, 3.5), layout="constrained")
for ax, guess, title in zip(axes, guesses.T, ("First guess", "Second guess"), strict=False):
    ax.imshow(guess.reshape(shape), cmap=cmap, vmin=0, vmax=5, alpha=0.55, **place)
    ax.set(title=title)
lead = (scores[:, 0] - scores[:, 1]).reshape(shape)
image = axes[2].imshow(lead, cmap="Greys", vmin=0, **place)
axes[2].set(title="Lead of the first")
figure.colorbar(image, ax=axes[2], shrink=0.85)
for ax in axes:
    ax.scatter(*X.T, c=y, cmap=cmap, vmin=0, vmax=5, s=9, linewidth=0.3, edgecolor="white")
    ax.set(xticks=[], yticks=[], xlim=(t[0], t[-1]), ylim=(t[0], t[-1]))
plt.show()
