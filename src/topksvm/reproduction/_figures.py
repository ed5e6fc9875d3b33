"""The paper's figures on projections, drawn from the code (matplotlib, an extra)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm._matplotlib import BRIGHT, import_pyplot
from topksvm.projections import project_topk_simplex
from topksvm.reproduction._scaling import Measurement

__all__ = ["draw_scaling", "draw_simplices", "topk_simplex_vertices"]

Points = NDArray[np.float64]

_COLOURS = {1: BRIGHT["blue"], 2: BRIGHT["yellow"], 3: BRIGHT["red"]}


def topk_simplex_vertices(m: int, k: int) -> Points:
    """Return the vertices of the top-k simplex of radius 1: zero, and k entries of ``1 / k``."""
    vertices = [np.zeros(m)]
    for chosen in combinations(range(m), k):
        vertex = np.zeros(m)
        vertex[list(chosen)] = 1 / k
        vertices.append(vertex)
    return np.array(vertices)


def draw_simplices(*, seed: int = 0, points: int = 300) -> Any:
    """Draw the top-k simplex for m = 3 and k = 1, 2, 3 and return the matplotlib figure.

    The facets come from the vertices; the dots are projections of random points from outside, so
    the picture also shows that the code projects onto the set that the theory names.
    """
    plt = import_pyplot(backend="Agg")
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection
    from scipy.spatial import ConvexHull

    figure = plt.figure(figsize=(10, 3.8), layout="constrained")
    rng = np.random.default_rng(seed)
    outside = rng.uniform(-0.2, 1.3, (points, 3))
    for k in (1, 2, 3):
        axes = figure.add_subplot(1, 3, k, projection="3d")
        vertices = topk_simplex_vertices(3, k)
        colour = _COLOURS[k]
        if k < 3:
            faces = [vertices[simplex] for simplex in ConvexHull(vertices).simplices]
            axes.add_collection3d(
                Poly3DCollection(faces, facecolor=colour, edgecolor="0.25", alpha=0.25)
            )
        else:  # A segment: all entries are equal.
            axes.plot(*vertices.T, color=colour, linewidth=3)
        axes.scatter(*project_topk_simplex(outside, k).T, s=5, color=colour, alpha=0.8)
        axes.scatter(*vertices.T, s=25, color="0.1", depthshade=False)
        axes.set(xlim=(0, 1), ylim=(0, 1), zlim=(0, 1), aspect="equal")
        axes.set(xlabel="$x_1$", ylabel="$x_2$", zlabel="$x_3$")
        axes.set(xticks=[0, 0.5, 1], yticks=[0, 0.5, 1], zticks=[0, 0.5, 1])
        axes.set_title(f"k = {k}: {len(vertices)} vertices")
        axes.view_init(elev=22, azim=38)
    figure.suptitle("The top-k simplex in three dimensions, with projections of random points")
    return figure


def draw_scaling(measurements: Sequence[Measurement]) -> Any:
    """Draw time against dimension, log-log, and return the matplotlib figure."""
    plt = import_pyplot(backend="Agg")
    figure, axes = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
    dimensions = [m.dimension for m in measurements]
    markers = iter("sovD^")
    for name in measurements[0].seconds:
        style = {"color": "0.6", "linestyle": "--"} if name == "sort" else {}
        label = "np.sort, for comparison" if name == "sort" else name
        seconds = [m.seconds[name] for m in measurements]
        axes.loglog(dimensions, seconds, marker=next(markers), markersize=5, label=label, **style)
    axes.set(
        xlabel="dimension",
        ylabel="CPU time in seconds",
        title=f"Projecting {measurements[0].points} points from N(0, 1), one thread",
    )
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.legend(frameon=False)
    return figure
