"""The scaling experiment: what is measured, and what is drawn."""

from __future__ import annotations

import numpy as np
import pytest

from topksvm.projections import project_topk_simplex
from topksvm.reproduction._figures import draw_scaling, draw_simplices, topk_simplex_vertices
from topksvm.reproduction._scaling import Measurement, measure_scaling


def _made_up():
    names = ("sort", "knapsack", "top-1 simplex", "top-5 simplex", "top-10 simplex")
    return [
        Measurement(100, 10, dict(zip(names, (1.0, 2.0, 2.0, 2.2, 2.4), strict=True))),
        Measurement(1000, 10, dict(zip(names, (50.0, 20.0, 21.0, 22.0, 23.0), strict=True))),
        Measurement(10**6, 10, dict(zip(names, (9e4, 4e4, 2.1e4, 2.2e4, 2.3e4), strict=True))),
    ]


def test_measurements_cover_all_points_in_batches():
    (measurement,) = measure_scaling([2**19], points=5, repeats=1)
    assert (measurement.dimension, measurement.points) == (2**19, 5)
    assert all(seconds > 0 for seconds in measurement.seconds.values())


@pytest.mark.parametrize(("m", "k", "count"), [(3, 1, 4), (3, 2, 4), (3, 3, 2), (5, 2, 11)])
def test_vertices_of_the_top_k_simplex(m, k, count):
    """The paper: binomial(m, k) + 1 vertices. Each is its own projection, hence in the set."""
    vertices = topk_simplex_vertices(m, k)
    assert len(np.unique(vertices, axis=0)) == count
    np.testing.assert_allclose(project_topk_simplex(vertices, k), vertices, atol=1e-15)


def test_figures_have_what_they_promise():
    simplices = draw_simplices(points=20)
    assert [axes.get_title()[:5] for axes in simplices.axes] == ["k = 1", "k = 2", "k = 3"]
    (axes,) = draw_scaling(_made_up()).axes
    assert axes.get_xscale() == axes.get_yscale() == "log"
    assert [text.get_text() for text in axes.get_legend().get_texts()][1] == "knapsack"
