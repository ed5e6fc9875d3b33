"""The plots: what is drawn is what was measured, and errors say what to do."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import same_color
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import IsolationForest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from topksvm import TopKLinearSVC
from topksvm.metrics import topk_scorer
from topksvm.plotting import plot_convergence, plot_path, plot_topk_curve

mpl.use("Agg")
import matplotlib.pyplot as plt


@pytest.fixture(autouse=True)
def _figures():
    """Each test starts without the figures of others, and closes those it has asked for."""
    plt.close("all")
    yield
    plt.close("all")


@pytest.fixture
def ax():
    return Figure(layout="constrained").subplots()


def _cv(**changes):
    """Two training settings per C, in no order; which of them is better depends on C and on k."""
    columns = {
        "param_C": [10.0, 0.1, 1.0, 0.1, 10.0, 1.0],
        "param_k": [1, 1, 1, 3, 3, 3],
        "param_loss": ["topk_hinge_alpha"] * 6,
        "mean_test_top1": [0.70, 0.60, 0.80, 0.50, 0.75, 0.78],
        "std_test_top1": [0.01, 0.02, 0.03, 0.04, 0.05, 0.06],
        "mean_test_top3": [0.90, 0.91, 0.92, 0.97, 0.95, 0.96],
        "std_test_top3": [0.001, 0.002, 0.003, 0.05, 0.005, 0.006],
    }
    loss = {"loss": "topk_hinge_alpha"}
    best = {1: {"C": 1.0, "k": 1, **loss}, 3: {"C": 0.1, "k": 3, **loss}}
    return SimpleNamespace(ks=(1, 3), cv_results_=columns | changes, best_params_=best)


def _model(gaps, tol=1e-3):
    """Return what has a history with these relative gaps; the primal is 4, the larger."""
    history = [
        {"epoch": i, "seconds": 2.0 * i, "primal": 4.0, "dual": 4.0 - 4.0 * gap, "gap": 4.0 * gap}
        for i, gap in enumerate(gaps, start=1)
    ]
    return SimpleNamespace(tol=tol, history_=history)


def _lines(ax):
    return {line.get_label(): line for line in ax.lines if not line.get_label().startswith("_")}


def _stars(ax):
    return [
        (line.get_color(), line.get_xdata().item(), line.get_ydata().item())
        for line in ax.lines
        if line.get_marker() == "*"
    ]


def _legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def _is_inside(ax):
    """Say for each text in `ax` whether it lies within the figure."""
    ax.figure.canvas.draw()
    whole = ax.figure.bbox
    boxes = [text.get_window_extent() for text in ax.texts]
    return [whole.x0 <= b.x0 and b.x1 <= whole.x1 and whole.y0 <= b.y0 for b in boxes]


# The path.


def test_path_draws_the_best_of_each_c():
    ax = plot_path(_cv())
    lines = _lines(ax)
    assert list(lines) == ["top-1", "top-3"]
    for line in lines.values():
        np.testing.assert_array_equal(line.get_xdata(), [0.1, 1, 10])
    np.testing.assert_array_equal(lines["top-1"].get_ydata(), [0.60, 0.80, 0.75])
    np.testing.assert_array_equal(lines["top-3"].get_ydata(), [0.97, 0.96, 0.95])
    assert ax.get_xscale() == "log"
    assert "C" in ax.get_xlabel()
    assert "accuracy" in ax.get_ylabel()
    assert ax.get_title() == "At each C, the best of 2 settings tried"


def test_path_marks_the_chosen_c_in_the_colour_of_its_line():
    ax = plot_path(_cv())
    colours = [line.get_color() for line in _lines(ax).values()]
    assert colours[0] != colours[1]
    assert _stars(ax) == [(colours[0], 1.0, 0.80), (colours[1], 0.1, 0.97)]


def test_path_marks_what_was_chosen_even_if_it_is_not_the_best():
    cv = _cv()
    cv.best_params_[1] = {"C": 10.0, "k": 1, "loss": "topk_hinge_alpha"}
    assert _stars(plot_path(cv))[0][1:] == (10.0, 0.70)


def test_path_has_a_band_of_one_standard_deviation_that_ends_at_100_percent(ax):
    plot_path(_cv(), ax=ax)
    first, second = (band.get_paths()[0].vertices for band in ax.collections)
    expected = {0.1: (0.58, 0.62), 1.0: (0.77, 0.83), 10.0: (0.70, 0.80)}
    for C, ends in expected.items():
        heights = first[first[:, 0] == C, 1]
        assert (heights.min(), heights.max()) == pytest.approx(ends)
    heights = second[second[:, 0] == 0.1, 1]
    assert (heights.min(), heights.max()) == pytest.approx((0.92, 1.0))
    for band, line in zip(ax.collections, _lines(ax).values(), strict=True):
        assert same_color(band.get_facecolor()[0, :3], line.get_color())


def test_path_of_one_c_shows_its_spread(ax):
    columns = {"param_C": [0.5], "mean_test_top1": [0.9], "std_test_top1": [0.02]}
    best = {1: {"C": 0.5}}
    plot_path(SimpleNamespace(ks=(1,), cv_results_=columns, best_params_=best), ax=ax)
    (segment,) = ax.collections[0].get_segments()
    np.testing.assert_allclose(segment, [[0.5, 0.88], [0.5, 0.92]])
    assert ax.get_title() == ""


def test_path_explains_itself_in_percent(ax):
    plot_path(_cv(), ax=ax)
    assert _legend(ax) == ["top-3", "top-1", "chosen C", "± 1 standard deviation\nover folds"]
    ax.figure.canvas.draw()
    ticks = {label.get_text() for label in ax.get_yticklabels()}
    assert ticks & {"60%", "60.0%"}


def test_path_has_its_legend_beside_the_bands_but_inside_the_axes_of_others(ax):
    for axes, is_inside in ((plot_path(_cv()), False), (plot_path(_cv(), ax=ax), True)):
        axes.figure.canvas.draw()
        legend = axes.get_legend().get_window_extent()
        assert (legend.x1 <= axes.bbox.x1) == is_inside
        assert (legend.x0 >= axes.bbox.x1) != is_inside


def test_path_takes_a_failed_fit_for_the_worst(ax):
    means = [0.70, np.nan, 0.80, 0.50, np.nan, 0.78]
    plot_path(_cv(mean_test_top1=means), ax=ax)
    np.testing.assert_array_equal(_lines(ax)["top-1"].get_ydata(), [0.50, 0.80, 0.70])


def test_path_of_something_else_is_a_clear_error():
    search = GridSearchCV(LogisticRegression(), {"C": [1.0]})
    for wrong in (object(), search, TopKLinearSVC):
        with pytest.raises(TypeError, match=r"has no ks; it must be a cross-validation"):
            plot_path(wrong)
    with pytest.raises(TypeError, match="has no best_params_"):
        plot_path(SimpleNamespace(ks=(1,), cv_results_={}))
    cv = _cv(mean_test_top7=[0.5] * 6)
    cv.ks = (7,)
    with pytest.raises(ValueError, match="no 'std_test_top7'; it has 'param_C'"):
        plot_path(cv)
    assert plt.get_fignums() == []


def test_path_before_fitting_says_to_fit():
    class Unfitted(TopKLinearSVC):
        ks = (1, 3)

    with pytest.raises(NotFittedError, match=r"This Unfitted is not fitted.*Call fit"):
        plot_path(Unfitted())
    assert plt.get_fignums() == []


def test_path_with_a_choice_that_was_not_tried_is_a_clear_error():
    cv = _cv()
    cv.best_params_[1] = {"C": 2.0, "k": 1}
    with pytest.raises(ValueError, match=r"best_params_\[1\] = .*'C': 2.0.* no row"):
        plot_path(cv)
    del cv.best_params_[1]
    with pytest.raises(ValueError, match="no entry for k = 1"):
        plot_path(cv)
    with pytest.raises(ValueError, match=r"'param_C'\] is empty"):
        plot_path(_cv(param_C=[]))
    assert plt.get_fignums() == []


# Convergence.


def test_convergence_draws_the_relative_gaps_of_a_model():
    X, y = load_digits(return_X_y=True)
    model = TopKLinearSVC(k=2, C=0.01, tol=1e-4, random_state=0).fit(X[:500] / 16, y[:500])
    ax = plot_convergence(model)
    tol, gaps = ax.lines
    assert gaps.get_xdata().tolist() == [check["seconds"] for check in model.history_]
    # The primal is positive and the larger, so that the gap is relative to it.
    expected = [check["gap"] / check["primal"] for check in model.history_]
    np.testing.assert_allclose(gaps.get_ydata(), expected)
    assert gaps.get_ydata()[-1] == pytest.approx(model.certificate_.relative_gap)
    assert 0 < gaps.get_ydata()[-1] <= 1e-4
    assert set(tol.get_ydata()) == {1e-4}
    assert ax.get_yscale() == "log"
    assert ax.get_xscale() == "linear"
    assert ax.get_xlabel() == "training time in seconds"
    assert ax.get_ylabel() == "relative duality gap"


def test_convergence_is_annotated_with_tol_and_the_final_gap(ax):
    plot_convergence(_model([0.5, 0.01, 0.00025]), ax=ax)
    tol, final = ax.texts
    assert tol.get_text() == "tol = 0.001"
    assert final.get_text() == "final gap 0.00025\nafter 6 s"
    assert final.xy == pytest.approx((6.0, 0.00025))
    np.testing.assert_allclose(ax.lines[1].get_ydata(), [0.5, 0.01, 0.00025])


@pytest.mark.parametrize("gap", [1e-6, 1e-3, 0.5])
def test_convergence_with_one_check_shows_a_point_and_tol(ax, gap):
    plot_convergence(_model([gap]), ax=ax)
    low, high = ax.get_ylim()
    assert low < 0.5 * min(gap, 1e-3)
    assert max(gap, 1e-3) < 0.8 * high
    assert ax.get_xlim()[0] == 0
    assert ax.get_xlim()[1] > 2
    assert ax.lines[1].get_marker() not in ("None", "")
    assert _is_inside(ax) == [True, True]


@pytest.mark.parametrize("gap", [0.0, -1e-12])
def test_convergence_draws_a_gap_of_zero(ax, gap):
    plot_convergence(_model([0.1, gap]), ax=ax)
    assert 0 < ax.lines[1].get_ydata()[-1] < 1e-15
    assert ax.get_ylim()[0] < ax.lines[1].get_ydata()[-1]
    assert ax.texts[1].get_text().startswith(f"final gap {gap:.0g}")


@pytest.mark.parametrize("first_is_long", [True, False])
def test_convergence_of_two_models_fits_in_one_plot(ax, first_is_long):
    long, short = _model([0.1] * 50 + [1e-5]), _model([0.3], tol=1e-2)
    for model in (long, short) if first_is_long else (short, long):
        assert plot_convergence(model, ax=ax) is ax
    assert ax.lines[1].get_color() != ax.lines[3].get_color()
    assert _is_inside(ax) == [True] * 4
    low, high = ax.get_ylim()
    assert low < 1e-5
    assert high > 0.3


def test_convergence_of_something_else_is_a_clear_error():
    X, y = load_digits(return_X_y=True)
    with pytest.raises(NotFittedError, match=r"TopKLinearSVC is not fitted.*Call fit first"):
        plot_convergence(TopKLinearSVC())
    for wrong in (3, make_pipeline(TopKLinearSVC())):
        with pytest.raises(TypeError, match=r"has no tol; it must be a TopKLinearSVC.*pipeline"):
            plot_convergence(wrong)
    other = LinearDiscriminantAnalysis().fit(X[:, 20:22], y)  # It has a tol as well.
    with pytest.raises(TypeError, match="LinearDiscriminantAnalysis, which has no history_"):
        plot_convergence(other)
    with pytest.raises(ValueError, match="history_ is empty"):
        plot_convergence(_model([]))
    assert plt.get_fignums() == []


# Top-k accuracy.


class Scores:
    """A classifier that knows its scores."""

    classes_ = np.array(["a", "b", "c", "d"])

    def __init__(self, scores):
        self.scores = np.array(scores, dtype=float)

    def decision_function(self, X):
        return self.scores[X]


GOOD = Scores([[9, 1, 2, 3], [9, 8, 7, 6], [9, 8, 7, 6], [9, 8, 7, 6]])
BAD = Scores([[6, 7, 8, 9]] * 4)
ROWS, TRUE = np.arange(4), ["a", "b", "c", "a"]  # Ranks 1, 2, 3, 1 and 4, 3, 2, 4.


def test_curve_draws_the_accuracy_of_each_model():
    ax = plot_topk_curve({"good": GOOD, "bad": BAD}, ROWS, TRUE)
    lines = _lines(ax)
    assert list(lines) == _legend(ax) == ["good", "bad"]
    for line in lines.values():  # With four classes, k = 4 and more say nothing.
        np.testing.assert_array_equal(line.get_xdata(), [1, 2, 3])
    np.testing.assert_array_equal(lines["good"].get_ydata(), [0.5, 0.75, 1.0])
    np.testing.assert_array_equal(lines["bad"].get_ydata(), [0.0, 0.25, 0.5])
    assert lines["good"].get_color() != lines["bad"].get_color()
    assert lines["good"].get_marker() != lines["bad"].get_marker()
    assert ax.get_xlabel().startswith("k")
    assert ax.get_ylabel() == "top-k accuracy"


def test_curve_has_whole_k_and_percent_at_its_ticks(ax):
    plot_topk_curve(GOOD, ROWS, TRUE, ax=ax)
    ax.figure.canvas.draw()
    left, right = ax.get_xlim()
    assert [tick for tick in ax.get_xticks() if left <= tick <= right] == [1, 2, 3]
    assert {label.get_text() for label in ax.get_yticklabels()} & {"100%", "100.0%"}
    assert _legend(ax) == ["Scores"]


@pytest.mark.parametrize(("ks", "drawn"), [((3, 1, 3, 9), [1, 3]), (2, [2]), (range(2, 4), [2, 3])])
def test_curve_draws_the_ks_asked_for(ax, ks, drawn):
    plot_topk_curve(GOOD, ROWS, TRUE, ks=ks, ax=ax)
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), drawn)
    np.testing.assert_array_equal(
        ax.lines[0].get_ydata(), np.array([0.5, 0.75, 1.0])[np.subtract(drawn, 1)]
    )


def test_curve_of_real_models_with_classes_missing_in_the_test_set(ax):
    X, y = load_digits(return_X_y=True)
    models = {"svm": TopKLinearSVC(k=2, C=0.01, random_state=0), "bayes": GaussianNB()}
    for model in models.values():
        model.fit(X[:500] / 16, y[:500])
    held_out = np.flatnonzero(y[500:] > 3) + 500
    plot_topk_curve(models, X[held_out] / 16, y[held_out], ax=ax)
    for name, model in models.items():
        line = _lines(ax)[name]
        assert line.get_xdata().tolist() == list(range(1, 10))
        expected = [topk_scorer(k)(model, X[held_out] / 16, y[held_out]) for k in range(1, 10)]
        assert line.get_ydata().tolist() == expected
        assert 0.5 < expected[0] < expected[4] <= 1


def test_curve_of_two_classes_is_a_point(ax):
    X, y = load_digits(n_class=2, return_X_y=True)
    model = TopKLinearSVC(C=1e-6, random_state=0).fit(X[:100] / 16, y[:100])
    plot_topk_curve(model, X / 16, y, ax=ax)
    assert ax.lines[0].get_xdata().tolist() == [1]
    assert ax.lines[0].get_ydata() == [model.score(X / 16, y)]


def test_curve_errors_are_clear():
    X, y = load_digits(return_X_y=True)
    with pytest.raises(ValueError, match="models is empty"):
        plot_topk_curve({}, ROWS, TRUE)
    with pytest.raises(ValueError, match=r"ks = \[4, 10\] has no k below .* Scores, 4"):
        plot_topk_curve(GOOD, ROWS, TRUE, ks=(4, 10))
    with pytest.raises(ValueError, match="k must be between 1 and 4"):
        plot_topk_curve(GOOD, ROWS, TRUE, ks=(0, 1))
    with pytest.raises(TypeError, match="it must be a whole number"):
        plot_topk_curve(GOOD, ROWS, TRUE, ks=(1.5,))
    with pytest.raises(TypeError, match="LinearRegression has neither decision_function"):
        plot_topk_curve(LinearRegression().fit(X, y), X, y)
    with pytest.raises(TypeError, match="IsolationForest has no classes_"):
        plot_topk_curve(IsolationForest(n_estimators=2).fit(X), X, y)
    with pytest.raises(NotFittedError):
        plot_topk_curve(TopKLinearSVC(), X, y)
    assert plt.get_fignums() == []


# All of them.

DRAW = {
    "path": lambda ax=None: plot_path(_cv(), ax=ax),
    "convergence": lambda ax=None: plot_convergence(_model([0.1, 1e-4]), ax=ax),
    "curve": lambda ax=None: plot_topk_curve(GOOD, ROWS, TRUE, ax=ax),
}


@pytest.mark.parametrize("draw", DRAW.values(), ids=DRAW)
def test_given_axes_are_used_and_no_figure_is_opened(draw, ax):
    assert draw(ax) is ax
    assert ax.lines
    assert plt.get_fignums() == []


@pytest.mark.parametrize("draw", DRAW.values(), ids=DRAW)
def test_without_axes_each_call_opens_one_figure_of_pyplot(draw):
    first, second = draw(), draw()
    assert first is not second
    assert [plt.figure(n) for n in plt.get_fignums()] == [first.figure, second.figure]
    assert second.figure.axes == [second]


@pytest.mark.parametrize("draw", DRAW.values(), ids=DRAW)
def test_nothing_is_cut_off(draw):
    ax = draw()
    ax.figure.canvas.draw()
    box, whole = ax.get_tightbbox(), ax.figure.bbox
    assert whole.x0 <= box.x0 < box.x1 <= whole.x1
    assert whole.y0 <= box.y0 < box.y1 <= whole.y1


def test_the_backend_of_the_user_is_left_alone():
    code = (
        "import matplotlib; matplotlib.use('svg')\n"
        "from types import SimpleNamespace\n"
        "from topksvm.plotting import plot_convergence\n"
        "check = {'seconds': 1.0, 'primal': 1.0, 'dual': 0.9}\n"
        "plot_convergence(SimpleNamespace(tol=0.1, history_=[check]))\n"
        "print(matplotlib.get_backend())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "svg"


def test_without_matplotlib_the_error_says_how_to_install_it():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from types import SimpleNamespace\n"
        "from topksvm.plotting import plot_convergence\n"
        "check = {'seconds': 1.0, 'primal': 1.0, 'dual': 0.9}\n"
        "plot_convergence(SimpleNamespace(tol=0.1, history_=[check]))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "ImportError: Plots need matplotlib" in done.stderr
    assert 'pip install "topksvm[plot]"' in done.stderr
