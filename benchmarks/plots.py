"""Sub-optimality by time, and how far ahead we are."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from benchmarks.objectives import suboptimality
from benchmarks.races import Race
from benchmarks.rows import Row
from benchmarks.worker import GOAL

COLOURS = ("#b2182b", "#2166ac", "#1b7837", "#762a83", "#e08214", "#35978f", "#8c510a", "#666666")


def draw_paths(rows: list[Row], objective: str) -> Any:
    """Return a figure with a panel per problem, or None if there is none."""
    from matplotlib.figure import Figure

    panels: dict[tuple[str, float, int], dict[str, list[Row]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for row in rows:
        if (row["kind"], row["objective"]) == ("objective", objective) and row["primal"]:
            panels[row["data"], row["C"], row["threads"]][row["solver"]].append(row)
    if not panels:
        return None
    names = list(dict.fromkeys(solver for panel in panels.values() for solver in panel))
    colours = dict(zip(names, COLOURS, strict=False))
    columns = min(3, len(panels))
    lines = -(-len(panels) // columns)
    figure = Figure(figsize=(max(7.0, 3.2 * columns), 2.6 * lines + 0.7), layout="constrained")
    axes = figure.subplots(lines, columns, squeeze=False).ravel()
    for axis, ((data, C, threads), panel) in zip(axes, panels.items(), strict=False):
        duals = [r["dual"] for points in panel.values() for r in points if r["dual"] is not None]
        if duals:
            _draw_panel(axis, panel, max(duals), colours)
        axis.set_title(f"{data}, C = {C:g}" + (f", {threads} threads" * (threads > 1)), fontsize=9)
        axis.set_xlabel("seconds", fontsize=8)
    for axis in axes[len(panels) :]:
        axis.remove()
    figure.supylabel("relative sub-optimality, at most", fontsize=9)
    handles = {h.get_label(): h for axis in figure.axes for h in axis.get_lines()}
    shown = [handles[name] for name in names if name in handles]
    figure.legend(handles=shown, loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    return figure


def _draw_panel(axis: Any, panel: dict[str, list[Row]], dual: float, colours: Any) -> None:
    for solver, points in panel.items():
        times: list[float] = []
        gaps: list[float] = []
        for row in sorted(points, key=lambda row: row["seconds"]):
            gap = max(suboptimality(row["primal"], dual), 1e-6)
            if not gaps or gap < gaps[-1]:  # A fit that took longer for less is of no use.
                times.append(row["seconds"])
                gaps.append(gap)
        width = 2 if points[0]["is_ours"] else 1
        axis.loglog(times, gaps, "o-", color=colours.get(solver, "k"), label=solver, lw=width, ms=3)
    axis.axhline(GOAL, color="0.6", lw=0.8, ls="--")
    axis.grid(color="0.93")
    axis.tick_params(labelsize=8, which="both")
    _plain(axis.xaxis)


def _plain(axis: Any) -> None:
    """Label a logarithmic axis with numbers as people write them."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1.0,) if high > 300 * low else (1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _name(race: Race) -> str:
    name = f"{race.data}, {race.objective or 'top-5'}"
    name += f", C = {race.C:g}" if race.objective else ""
    return name + (f", {race.threads} threads" if race.threads > 1 else "")


def draw_ratios(races: list[Race], accuracies: list[Race]) -> Any:
    """Return a figure with a bar per problem: the time of the fastest peer over ours.

    Where no peer arrived, the bar is a bound, and pale; where it would be below 1, it says nothing.
    """
    from matplotlib.figure import Figure

    shown = [race for race in (*races, *accuracies) if race.ratio is not None or race.is_ahead]
    names = [_name(race) for race in shown][::-1]
    values = [race.ratio or race.least_ratio or 1.0 for race in shown][::-1]
    figure = Figure(figsize=(7, 0.24 * len(shown) + 1), layout="constrained")
    axis = figure.subplots()
    # Bars start at 1, where both take as long.
    bars = axis.barh(names, [value - 1 for value in values], left=1)
    for bar, race, value in zip(bars, shown[::-1], values, strict=True):
        bar.set(color=COLOURS[1] if value > 1 else COLOURS[0], alpha=1 if race.ratio else 0.35)
    axis.set_xscale("log")
    axis.axvline(1, color="k", lw=0.8)
    axis.set_xlabel("time of the fastest peer / ours (pale: no peer arrived, at least this)")
    axis.tick_params(labelsize=8)
    _plain(axis.xaxis)
    axis.grid(axis="x", color="0.93")
    axis.set_axisbelow(True)
    return figure
