"""The folder that a run leaves: tables, plots and the page."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from topksvm._files import replacing
from topksvm._matplotlib import BRIGHT, import_pyplot
from topksvm.datasets import Dataset
from topksvm.report import explore, write_report
from topksvm.reproduction._results import (
    Summary,
    columns_of,
    notes_of,
    summarise,
    write_csv,
    write_json,
)
from topksvm.reproduction._store import Row, Store

# What a reader compares first; the other methods are a click away.
_SHOWN = ("top-1-SVM-alpha", "top-5-SVM-alpha", "top-10-SVM-alpha", "top-20-SVM-alpha", "softmax")
_MAX_MODELS = 8


def write_folder(
    folder: Path,
    data: Dataset,
    store: Store,
    rows: Sequence[Row],
    order: Sequence[str],
    about: dict[str, Any],
) -> list[Summary]:
    """Write ``results.csv``, ``results.json``, plots and ``report.html``; return the table."""
    summaries = summarise(rows, order)
    write_csv(folder / "results.csv", summaries)
    write_json(folder / "results.json", summaries, rows, about)
    last = {row.method: row for row in rows if row.split == 0}
    shown = shown_of(summaries)
    _plot(folder, summaries, last, shown)
    arrays = {s.method: store.arrays(s.method, 0) for s in _models(summaries, shown)}
    best = max(summaries, key=lambda s: s.accuracy.get(5, s.accuracy[1])).method
    explorer = explore(data, arrays, best if best in arrays else next(iter(arrays)))
    title = f"{data.name}: {len(summaries)} methods"
    content = {
        "title": title,
        "lead": lead(summaries),
        "note": _note(summaries, data),
        "columns": columns_of(summaries),
        "methods": [_method(s, last[s.method]) for s in summaries],
        "notes": [f"{', '.join(names)}: {note}." for note, names in notes_of(summaries).items()],
        "shown": shown,
        "explorer": explorer,
        "about": _about(about, data),
    }
    write_report(folder / "report.html", title, content)
    return summaries


def shown_of(summaries: Sequence[Summary]) -> list[str]:
    """Return the methods to draw at first: all, unless they are many."""
    names = [s.method for s in summaries]
    if len(names) <= len(_SHOWN):
        return names
    return [name for name in _SHOWN if name in names] or names[:5]


def _models(summaries: Sequence[Summary], shown: Sequence[str]) -> list[Summary]:
    """Return the models of the explorer: those shown, and the best of the others."""
    others = sorted(
        (s for s in summaries if s.method not in shown),
        key=lambda s: -s.accuracy.get(5, s.accuracy[1]),
    )
    chosen = [s for s in summaries if s.method in shown] + others
    return chosen[:_MAX_MODELS]


def lead(summaries: Sequence[Summary]) -> str:
    """Return in words what the table shows."""
    parts = []
    for k in (1, 5, 10):
        able = [s for s in summaries if k in s.accuracy]
        if able:
            best = max(able, key=lambda s: s.accuracy[k])
            parts.append(f"top-{k} {best.accuracy[k]:.1f} % ({best.method})")
    text = f"Best of {len(summaries)}: {', '.join(parts)}."
    named = {s.method: s for s in summaries}
    one, ten = named.get("top-1-SVM-alpha"), named.get("top-10-SVM-alpha")
    if one and ten and 10 in ten.accuracy:
        text += (
            f" Training for ten guesses instead of one: {ten.accuracy[10] - one.accuracy[10]:+.1f} "
            f"points of top-10 accuracy, {ten.accuracy[1] - one.accuracy[1]:+.1f} of top-1."
        )
        if "softmax" in named:
            soft = named["softmax"].accuracy
            text += f" Softmax: {soft[1]:.1f} % top-1, {soft[10]:.1f} % top-10."
    return text


def _method(summary: Summary, row: Row) -> dict[str, Any]:
    return {
        "name": summary.method,
        "setting": summary.setting,
        "seconds": summary.seconds,
        "gap": summary.relative_gap,
        "accuracy": summary.accuracy,
        "std": summary.std,
        "paper": {k: number.accuracy for k, number in summary.paper.items()},
        "curve": [[k, value] for k, value in summary.accuracy.items()],
        "history": _trace(row),
    }


def _trace(row: Row) -> list[list[float]]:
    """Return relative gap against seconds, both above zero for the logarithms."""
    return [
        [max(check["seconds"], 1e-3), max(check["relative_gap"], 1e-12)] for check in row.history
    ]


def _note(summaries: Sequence[Summary], data: Dataset) -> str:
    m, n = len(data.class_names), len(data.y_test)
    note = f"{m} classes, {len(data.y_train)} training rows, {n} test rows"
    note += f" (one is {100 / n:.2f} points). Ties count against the true class."
    if any(s.paper for s in summaries):
        note += " Below each number: the paper's, and the difference. Select a column to sort."
    return note


def _about(about: dict[str, Any], data: Dataset) -> str:
    day = datetime.now(UTC).strftime("%Y-%m-%d")
    facts = ", ".join(f"{name}: {value}" for name, value in about.items())
    return f"Written {day} by topksvm. {facts}. {data.description}"


def _plot(
    folder: Path, summaries: Sequence[Summary], rows: dict[str, Row], shown: Sequence[str]
) -> None:
    try:
        plt = import_pyplot(backend="Agg")
    except ImportError:  # matplotlib is an extra; the page has the same pictures.
        return
    chosen = [s for s in summaries if s.method in shown]
    colours = list(BRIGHT.values())
    figure, axes = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
    for s, colour in zip(chosen, colours, strict=False):
        axes.plot(*zip(*s.accuracy.items(), strict=True), "o-", ms=3, color=colour, label=s.method)
    axes.set(xlabel="guesses k", ylabel="top-k accuracy, per cent")
    _save(plt, figure, axes, folder / "curves.png")
    figure, axes = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
    for s, colour in zip(chosen, colours, strict=False):
        points = _trace(rows[s.method])
        if points:
            axes.loglog(*zip(*points, strict=True), "o-", ms=3, color=colour, label=s.method)
    axes.set(xlabel="seconds", ylabel="relative duality gap")
    _save(plt, figure, axes, folder / "convergence.png")


def _save(plt: Any, figure: Any, axes: Any, path: Path) -> None:
    axes.grid(visible=True, alpha=0.3)
    if axes.lines:
        axes.legend(frameon=False)
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=150)
    plt.close(figure)
