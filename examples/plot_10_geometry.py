r"""
The geometry of the top-k hinge
===============================

Why does training for :math:`k` guesses differ from training for one? Two pictures for three classes
show it: the losses, as functions of the scores, and the set in which the dual variables of an
example live, the *top-k simplex*, with the projection onto it that the solver computes for every
example in every pass.
"""

# %%
# What the losses punish
# ----------------------
# Let :math:`s_y` be the score of the true class and :math:`s_1, s_2` those of the two wrong ones.
# Only the differences :math:`s_j - s_y` matter, so a loss for three classes is a surface over a
# plane. With :math:`h_j = 1 + s_j - s_y`:
#
# * the hinge for one guess (Crammer and Singer) is :math:`\max(0, \max_j h_j)`,
# * *alpha*, the loss of the paper, is :math:`\max(0, \text{mean of the k largest } h_j)`,
# * *beta* is the mean of the k largest :math:`\max(0, h_j)`,
# * softmax is :math:`\log(1 + \sum_j e^{s_j - s_y})`.
import matplotlib.pyplot as plt
import numpy as np
from mpl_toolkits.mplot3d.art3d import Poly3DCollection
from scipy.spatial import ConvexHull

from topksvm.projections import project_topk_simplex

t = np.linspace(-3, 3, 301)
differences = np.stack(np.meshgrid(t, t), axis=-1)
h = 1 + differences
losses = {
    "hinge, k = 1": np.maximum(0, h.max(axis=-1)),
    "top-2 hinge, alpha": np.maximum(0, h.mean(axis=-1)),
    "top-2 hinge, beta": np.maximum(0, h).mean(axis=-1),
    "softmax": np.log1p(np.exp(differences).sum(axis=-1)),
}

# %%
# Two guesses fail only where both wrong classes are ahead of the true one, in the hatched quarter.
# In the quarters at the upper left and the lower right just one of them is ahead. The hinge for one
# guess punishes that as if both were. Alpha forgives it if the other one is far enough behind:
# inside the purple line, where :math:`s_1 + s_2 \le 2 s_y - 2`, it is zero. Beta counts it by half.
figure, axes = plt.subplots(1, 4, figsize=(9.6, 2.7), sharey=True, layout="constrained")
for ax, (name, values) in zip(axes, losses.items(), strict=True):
    filled = ax.contourf(t, t, values, levels=np.arange(0, 4.01, 0.25), cmap="Blues", extend="max")
    ax.contour(t, t, values, levels=[0.5, 1, 2, 3], colors="0.35", linewidths=0.6)
    if values.min() == 0:
        ax.contour(t, t, values, levels=[1e-9], colors="#aa3377", linewidths=2)
    ax.fill([0, 3, 3, 0], [0, 0, 3, 3], fill=False, hatch="///", edgecolor="#cc4455", linewidth=1)
    ax.axhline(0, color="0.35", linewidth=0.6)
    ax.axvline(0, color="0.35", linewidth=0.6)
    ax.set(title=name, aspect="equal", xlabel="$s_1 - s_y$", xticks=range(-3, 4, 1))
axes[0].set_ylabel("$s_2 - s_y$")
figure.colorbar(filled, ax=axes, label="loss", ticks=range(5), shrink=0.8)
plt.show()

# %%
# The set of the duals
# --------------------
# The dual variables of an example under *alpha* live, up to the factor :math:`C`, in
# :math:`\{x : 0 \le x_j \le \langle 1, x \rangle / k,\ \langle 1, x \rangle \le 1\}`: no wrong
# class may have more than a :math:`k`-th of the blame. Its vertices are zero and all vectors with
# :math:`k` entries of :math:`1/k`. Below, for three wrong classes, each line
# leads from a random point to its projection by
# :func:`~topksvm.projections.project_topk_simplex`. Points that land on a face, an edge or a
# vertex have fewer classes in play, which is why duals are sparse.

# sphinx_gallery_thumbnail_number = 2


def vertices_of(k):
    """Return zero and the vectors with `k` of three entries ``1 / k``, the others zero."""
    corners = np.array([[a, b, c] for a in (0, 1) for b in (0, 1) for c in (0, 1)])
    return np.vstack([np.zeros(3), corners[corners.sum(axis=1) == k] / k])


rng = np.random.default_rng(0)
outside = rng.uniform(-0.1, 1.1, (60, 3))
figure = plt.figure(figsize=(9, 3.6), layout="constrained")
for k, colour in ((1, "#4477aa"), (2, "#ccbb44"), (3, "#ee6677")):
    ax = figure.add_subplot(1, 3, k, projection="3d", computed_zorder=False)
    vertices = vertices_of(k)
    if k < 3:
        faces = vertices[ConvexHull(vertices).simplices]
        ax.add_collection3d(Poly3DCollection(faces, facecolor=colour, edgecolor="0.25", alpha=0.3))
    projected = project_topk_simplex(outside, k)
    for start, end in zip(outside, projected, strict=True):
        ax.plot(*np.transpose([start, end]), color=colour, linewidth=0.7, alpha=0.6)
    ax.scatter(*projected.T, s=9, color=colour, depthshade=False)
    ax.scatter(*vertices.T, s=30, color="0.1", depthshade=False)
    ax.set(xlim=(0, 1), ylim=(0, 1), zlim=(0, 1), aspect="equal", title=f"k = {k}")
    ax.set(xticks=[0, 0.5, 1], yticks=[0, 0.5, 1], zticks=[0, 0.5, 1])
    ax.set(xlabel="$x_1$", ylabel="$x_2$", zlabel="$x_3$")
    ax.view_init(elev=22, azim=38)
plt.show()
