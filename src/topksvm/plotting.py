"""Plots of cross-validation, convergence and top-k accuracy (matplotlib, an extra)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from topksvm._matplotlib import BRIGHT, import_pyplot
from topksvm._scores_and_labels import check_k
from topksvm.metrics import _scores_of, topk_accuracy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_convergence", "plot_path", "plot_topk_curve"]

Floats = NDArray[np.float64]

_FINAL = "final gap"
_MARKERS = "osD^vPX"
_STAR: dict[str, Any] = {
    "marker": "*",
    "markersize": 14,
    "markeredgecolor": "0.1",
    "linestyle": "none",
}
_LEAST_GAP = float(np.finfo(np.float64).eps)
"""Where a gap is drawn that is zero but for rounding; a log axis has no zero."""


def plot_path(cv: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the top-k accuracy on held-out folds against C, a line per wanted k.

    Where several losses or training k were tried, each point is the best of them for its C. The
    band is one standard deviation over the folds to either side, and a star marks what was chosen.

    Parameters
    ----------
    cv : fitted cross-validation
        With ``ks``, ``cv_results_`` and ``best_params_``. The columns of ``cv_results_`` are
        ``param_C``, the other ``param_*``, and ``mean_test_top{k}`` and ``std_test_top{k}`` for
        each of ``ks``; ``best_params_`` has for each of ``ks`` the parameters chosen.
    ax : matplotlib.axes.Axes, optional
        Draw there; by default in a new figure of pyplot.

    Returns
    -------
    ax : matplotlib.axes.Axes
        Where it was drawn.

    See Also
    --------
    plot_topk_curve : The accuracy of fitted models against k.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from matplotlib.figure import Figure
    >>> from topksvm.plotting import plot_path
    >>> cv = SimpleNamespace(
    ...     ks=(1,),
    ...     cv_results_={
    ...         "param_C": [0.1, 1.0, 10.0],
    ...         "mean_test_top1": [0.7, 0.9, 0.8],
    ...         "std_test_top1": [0.02, 0.01, 0.03],
    ...     },
    ...     best_params_={1: {"C": 1.0}},
    ... )
    >>> figure = Figure(layout="constrained")
    >>> ax = plot_path(cv, ax=figure.subplots())
    >>> ax.get_xscale()
    'log'
    >>> figure.savefig("path.png")  # doctest: +SKIP
    """
    _check_kind(cv, "cv", ("ks",), ("cv_results_", "best_params_"), "a cross-validation over C")
    ks = [int(k) for k in cv.ks]
    C = _column(cv.cv_results_, "param_C")
    means = {k: _column(cv.cv_results_, f"mean_test_top{k}") for k in ks}
    stds = {k: _column(cv.cv_results_, f"std_test_top{k}") for k in ks}
    best = {k: _best_rows(C, means[k]) for k in ks}
    chosen = {k: _chosen_row(cv, k, means[k]) for k in ks}

    is_new = ax is None
    ax = _new_axes(width=7.6) if ax is None else ax
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch
    from matplotlib.ticker import PercentFormatter

    styles = _styles(ax)
    for k in ks:
        rows, (colour, marker) = best[k], next(styles)
        mean, std = means[k][rows], stds[k][rows]
        ax.plot(C[rows], mean, color=colour, marker=marker, markersize=4, label=f"top-{k}")
        # No accuracy is outside of 0 and 1, even if the standard deviation reaches there.
        low, high = np.clip(mean - std, 0, 1), np.clip(mean + std, 0, 1)
        if rows.size > 1:
            ax.fill_between(C[rows], low, high, color=colour, alpha=0.2, linewidth=0)
        else:  # A band of one point has no width.
            ax.vlines(C[rows], low, high, color=colour, alpha=0.2, linewidth=20)
        ax.plot(C[chosen[k]], means[k][chosen[k]], color=colour, zorder=3, **_STAR)
    ax.set(xscale="log", xlabel="C, the weight of the loss (log scale)")
    ax.set_ylabel("mean top-k accuracy on held-out folds")
    ax.yaxis.set_major_formatter(PercentFormatter(xmax=1))
    others = _count_settings(C)
    if others > 1:
        ax.set_title(f"At each C, the best of {others} settings tried", fontsize="medium")
    ax.grid(visible=True, which="major", alpha=0.3)
    handles = [
        *reversed(ax.get_legend_handles_labels()[0]),  # As the lines lie: a larger k is higher.
        Line2D([], [], color="white", label="chosen C", **_STAR),
        Patch(color="0.5", alpha=0.3, linewidth=0, label="± 1 standard deviation\nover folds"),
    ]
    # Beside the bands where the layout makes room for it, which the axes of others may not.
    place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1, 1)} if is_new else {}
    ax.legend(handles=handles, framealpha=0.8, edgecolor="none", **place)
    return ax


def plot_convergence(model: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the relative duality gap of a model against the seconds of its training.

    A point per certificate, and a line at ``tol``, where training stops. The objective of the
    model is at most this gap above the optimum.

    Parameters
    ----------
    model : TopKLinearSVC
        A fitted model, with ``history_`` and ``tol``.
    ax : matplotlib.axes.Axes, optional
        Draw there; by default in a new figure of pyplot.

    Returns
    -------
    ax : matplotlib.axes.Axes
        Where it was drawn.

    Notes
    -----
    The gap is relative to the larger of the primal and the dual objective at that time, as in
    ``model.certificate_.relative_gap``. A gap of zero, for which a log axis has no place, is drawn
    at the precision of float64.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_iris
    >>> from topksvm import TopKLinearSVC
    >>> from topksvm.plotting import plot_convergence
    >>> model = TopKLinearSVC(C=0.1, random_state=0).fit(*load_iris(return_X_y=True))
    >>> figure = Figure(layout="constrained")
    >>> ax = plot_convergence(model, ax=figure.subplots())
    >>> ax.get_yscale()
    'log'
    >>> figure.savefig("convergence.png")  # doctest: +SKIP
    """
    _check_kind(model, "model", ("tol",), ("history_",), "a TopKLinearSVC")
    if not model.history_:
        raise ValueError(
            "model.history_ is empty, so there is no gap to draw. Fit the model again."
        )
    from topksvm.solvers import Certificate

    seconds = np.array([check["seconds"] for check in model.history_], dtype=np.float64)
    gaps = np.array([Certificate(c["primal"], c["dual"]).relative_gap for c in model.history_])
    drawn = np.maximum(gaps, _LEAST_GAP)

    ax = _new_axes() if ax is None else ax
    colour, marker = next(_styles(ax))
    ax.axhline(model.tol, color="0.35", linestyle="--", linewidth=1)
    ax.annotate(
        f"tol = {model.tol:g}",
        xy=(0, model.tol),
        xycoords=ax.get_yaxis_transform(),
        xytext=(5, 3),
        textcoords="offset points",
        color="0.35",
    )
    ax.plot(seconds, drawn, color=colour, marker=marker, markersize=5)
    ax.annotate(
        f"final gap {gaps[-1]:.2g}\nafter {seconds[-1]:.3g} s",
        xy=(seconds[-1], drawn[-1]),
        xytext=(-7, -7),
        textcoords="offset points",
        va="top",
        color=colour,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 1},
        gid=_FINAL,
    )
    ax.set(yscale="log", xlabel="training time in seconds", ylabel="relative duality gap")
    _make_room(ax)
    ax.grid(visible=True, which="major", alpha=0.3)
    return ax


def plot_topk_curve(
    models: Any,
    X: Any,
    y: ArrayLike,
    *,
    ks: int | Iterable[int] = range(1, 11),
    ax: Axes | None = None,
) -> Axes:
    """Draw the top-k accuracy of one or several fitted models against k.

    Parameters
    ----------
    models : fitted classifier, or dict of them
        With `decision_function` or `predict_proba`, and `classes_`. The keys of a dict are the
        names in the legend.
    X : array-like of shape (n_samples, n_features)
        Examples, best such that the models have not been trained on.
    y : array-like of shape (n_samples,)
        Their true labels.
    ks : int or iterable of int
        Each k is at least 1; those that are not below the number of classes are left out, as every
        model is right with as many guesses as classes.
    ax : matplotlib.axes.Axes, optional
        Draw there; by default in a new figure of pyplot.

    Returns
    -------
    ax : matplotlib.axes.Axes
        Where it was drawn.

    See Also
    --------
    topksvm.metrics.topk_accuracy : What is drawn, and how ties are broken.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    >>> from topksvm.plotting import plot_topk_curve
    >>> X, y = load_digits(return_X_y=True)
    >>> model = LinearDiscriminantAnalysis().fit(X[:900], y[:900])
    >>> figure = Figure(layout="constrained")
    >>> ax = plot_topk_curve({"LDA": model}, X[900:], y[900:], ks=(1, 2, 3), ax=figure.subplots())
    >>> ax.lines[0].get_xdata()
    array([1, 2, 3])
    >>> figure.savefig("topk.png")  # doctest: +SKIP
    """
    named = models if isinstance(models, Mapping) else {type(models).__name__: models}
    if not named:
        raise ValueError("models is empty; at least one fitted classifier is required.")
    wanted = [check_k(k) for k in (ks if isinstance(ks, Iterable) else [ks])]
    curves = {str(name): _curve(model, X, y, wanted) for name, model in named.items()}

    ax = _new_axes() if ax is None else ax
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    styles = _styles(ax)
    for name, (numbers, accuracies) in curves.items():
        colour, marker = next(styles)
        ax.plot(numbers, accuracies, color=colour, marker=marker, markersize=5, label=name)
    ax.set(xlabel="k, the number of guesses", ylabel="top-k accuracy")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    ax.yaxis.set_major_formatter(PercentFormatter(xmax=1))
    ax.grid(visible=True, which="major", alpha=0.3)
    ax.legend(frameon=False, loc="lower right")
    return ax


def _curve(model: Any, X: Any, y: ArrayLike, ks: Sequence[int]) -> tuple[NDArray[np.int64], Floats]:
    """Return the `ks` below the number of classes in order, and the accuracy for each."""
    _, scores = _scores_of(model, X)
    classes = getattr(model, "classes_", None)
    if classes is None:
        raise TypeError(
            f"{type(model).__name__} has no classes_, the labels of its scores. Use a classifier."
        )
    numbers = sorted({k for k in ks if k < len(classes)})
    if not numbers:
        raise ValueError(
            f"ks = {list(ks)} has no k below the number of classes of {type(model).__name__}, "
            f"{len(classes)}. Choose a k between 1 and {len(classes) - 1}."
        )
    return np.array(numbers), topk_accuracy(y, scores, numbers, classes)


def _best_rows(C: Floats, means: Floats) -> NDArray[np.intp]:
    """Return the row with the best mean for each C, by rising C; a NaN, a failed fit, is last."""
    order = np.lexsort((-np.nan_to_num(means, nan=-np.inf), C))
    _, first = np.unique(C[order], return_index=True)
    return order[first]


def _chosen_row(cv: Any, k: int, means: Floats) -> int:
    """Return the row of ``cv_results_`` that has the parameters chosen for `k`."""
    if k not in cv.best_params_:
        raise ValueError(f"cv.best_params_ has no entry for k = {k}, which is in cv.ks.")
    chosen = cv.best_params_[k]
    columns = {name: cv.cv_results_.get(f"param_{name}") for name in chosen}
    rows = [
        row
        for row in range(means.size)
        if all(column is None or column[row] == chosen[name] for name, column in columns.items())
    ]
    if not rows:
        raise ValueError(
            f"cv.best_params_[{k}] = {chosen} is no row of cv.cv_results_; it must be one of the "
            "settings tried."
        )
    return max(rows, key=lambda row: np.nan_to_num(means[row], nan=-np.inf))


def _count_settings(C: Floats) -> int:
    """Return the number of settings tried for each C, the largest if it differs."""
    return int(np.unique(C, return_counts=True)[1].max())


def _column(results: Mapping[str, Any], name: str) -> Floats:
    if name not in results:
        raise ValueError(f"cv.cv_results_ has no {name!r}; it has {', '.join(map(repr, results))}.")
    column = np.asarray(results[name], dtype=np.float64)
    if not column.size:
        raise ValueError(f"cv.cv_results_[{name!r}] is empty, so there is nothing to draw.")
    return column


def _check_kind(
    value: Any, name: str, parameters: Sequence[str], results: Sequence[str], kind: str
) -> None:
    """Raise TypeError unless `value` is of the `kind`, NotFittedError unless it has `results`."""
    missing = [a for a in (*parameters, *results) if not hasattr(value, a)]
    if not missing:
        return
    if isinstance(value, BaseEstimator) and missing[0] in results:
        # Passes for another estimator that is fitted and has no such results even so.
        check_is_fitted(
            value, msg="This %(name)s is not fitted, so it has nothing to draw yet. Call fit first."
        )
    raise TypeError(
        f"{name} is of type {type(value).__name__}, which has no {missing[0]}; it must be {kind}, "
        "fitted. Of a pipeline, pass the last step, pipeline[-1]."
    )


def _new_axes(width: float = 6.4) -> Axes:
    return import_pyplot().subplots(figsize=(width, 4.4), layout="constrained")[1]


def _styles(ax: Axes) -> Iterator[tuple[str, str]]:
    """Yield colours and markers, first those that no line in `ax` has."""
    used = {line.get_color() for line in ax.lines}
    pairs = list(zip(BRIGHT.values(), _MARKERS, strict=True))
    return cycle(sorted(pairs, key=lambda pair: pair[0] in used))


def _make_room(ax: Axes) -> None:
    """Leave room for the labels above and below all lines in `ax`, and turn them inwards."""
    from matplotlib.text import Annotation

    ax.autoscale()
    heights = np.log10(np.concatenate([np.asarray(line.get_ydata()) for line in ax.lines]))
    low, high = np.nanmin(heights), np.nanmax(heights)
    room = max(0.3 * (high - low), 0.5)
    ax.set_ylim(10 ** (low - room), 10 ** (high + room / 2))
    ax.set_xlim(left=0)
    for text in ax.texts:
        if isinstance(text, Annotation) and text.get_gid() == _FINAL:
            at_right = text.xy[0] > ax.get_xlim()[1] / 2
            text.set(ha="right" if at_right else "left", x=-7 if at_right else 7)
