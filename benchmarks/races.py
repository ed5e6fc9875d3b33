"""Who reached the goal first: from the measurements to the times that are compared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.objectives import suboptimality
from benchmarks.rows import Row
from benchmarks.worker import GOAL


@dataclass(frozen=True)
class Arrival:
    """When a solver reached the goal.

    `seconds` are those of the fastest of its fits that reached it, None if none did. Then `tried`
    are those of its longest fit, the budget if not even the first one ended, None if it could not
    take part; and `note` says why. `megabytes` is the most memory of a fit beyond its input.
    """

    solver: str
    is_ours: bool
    seconds: float | None
    tried: float | None
    note: str
    megabytes: float | None


@dataclass(frozen=True)
class Race:
    """All solvers on one problem."""

    data: str
    shape: tuple[int, int, int]
    objective: str
    C: float
    threads: int
    goal: str
    arrivals: list[Arrival]

    @property
    def ours(self) -> float | None:
        """Seconds of the faster of ours."""
        return _least(a.seconds for a in self.arrivals if a.is_ours)

    @property
    def best_peer(self) -> Arrival | None:
        """The fastest of the peers that arrived."""
        there = [a for a in self.arrivals if not a.is_ours and a.seconds is not None]
        return min(there, key=lambda a: a.seconds or 0.0, default=None)

    @property
    def ratio(self) -> float | None:
        """How many times as long as ours the fastest peer took."""
        if self.ours is None or self.best_peer is None:
            return None
        return (self.best_peer.seconds or 0.0) / self.ours

    @property
    def least_ratio(self) -> float | None:
        """How many times as long as ours the peers took at least, where none of them arrived."""
        tried = _least(a.tried for a in self.arrivals if not a.is_ours)
        if self.ours is None or self.best_peer is not None or tried is None:
            return None
        return tried / self.ours

    @property
    def has_peers(self) -> bool:
        """Whether a peer took part."""
        return any(not a.is_ours and (a.seconds or a.tried) for a in self.arrivals)

    @property
    def is_ahead(self) -> bool:
        """Whether ours arrived, and before every peer, as far as those were given the time."""
        ratio = self.least_ratio if self.ratio is None else self.ratio
        return ratio is not None and ratio > 1.0

    @property
    def is_open(self) -> bool:
        """Whether ours arrived alone, but the peers were stopped before that time."""
        return self.least_ratio is not None and self.least_ratio <= 1.0


def objective_races(rows: list[Row]) -> list[Race]:
    """Return the races to an objective within a thousandth of the optimum."""
    duals: dict[Any, float] = {}  # The best, whatever the number of threads it was found with.
    for row in rows:
        if row["kind"] == "objective" and row["dual"] is not None:
            problem = row["data"], row["objective"], row["C"]
            duals[problem] = max(row["dual"], duals.get(problem, row["dual"]))
    races = []
    for (*problem, threads), group in _groups(rows, "objective", "objective", "C").items():
        if tuple(problem) not in duals:
            continue  # Without a bound on the optimum nothing can be said.
        dual = duals[tuple(problem)]

        def gap(row: Row, dual: float = dual) -> float:
            return suboptimality(row["primal"], dual)

        for row in filter(_is_point, group):
            if gap(row) < -1e-6:
                raise RuntimeError(
                    f"{row['solver']} on {row['data']}, {row['objective']}: objective "
                    f"{row['primal']!r} below the proven bound {dual!r}. One of them is wrong."
                )
        arrivals = _arrivals(group, gap, GOAL, lambda row: f"{gap(row):.1e}")
        data, objective, C = problem
        goal = f"within {GOAL:g}"
        races.append(Race(data, _shape(group), objective, C, threads, goal, arrivals))
    return races


def accuracy_races(rows: list[Row]) -> list[Race]:
    """Return the races to the test accuracy of the best peer at the end of its settings."""
    races = []
    for (data, threads), group in _groups(rows, "accuracy").items():
        last = {r["solver"]: r["accuracy"] for r in group if not r["is_ours"] and _is_point(r)}
        if not last:
            continue
        target = max(last.values())

        def lack(row: Row, target: float = target) -> float:
            return target - row["accuracy"]

        arrivals = _arrivals(group, lack, 0.0, lambda row: f"{row['accuracy']:.4f}")
        races.append(Race(data, _shape(group), "", 0.0, threads, f"{target:.4f}", arrivals))
    return races


def _arrivals(
    group: list[Row],
    distance: Callable[[Row], float],
    goal: float,
    describe: Callable[[Row], str],
) -> list[Arrival]:
    by_solver: dict[str, list[Row]] = defaultdict(list)
    for row in group:
        by_solver[row["solver"]].append(row)
    arrivals = []
    for solver, rows in by_solver.items():
        points = [row for row in rows if _is_point(row)]
        seconds = _least(row["seconds"] for row in points if distance(row) <= goal)
        note, tried = "", None
        if seconds is None:
            note = rows[0]["reason"] or "not reached"
            if points:
                nearest = min(points, key=distance)
                note += f" ({describe(nearest)} after {nearest['seconds']:.2g} s)"
                tried = max(row["seconds"] for row in points)
            elif rows[0]["status"] == "stopped":
                tried = rows[0]["budget"]
        most = max((row["megabytes"] for row in points if row["megabytes"]), default=None)
        arrivals.append(Arrival(solver, bool(rows[0]["is_ours"]), seconds, tried, note, most))
    return arrivals


def _groups(rows: list[Row], kind: str, *columns: str) -> dict[Any, list[Row]]:
    """Return the rows by data set, `columns`, and threads."""
    groups: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        if row["kind"] == kind:
            groups[tuple(row[name] for name in ("data", *columns, "threads"))].append(row)
    return groups


def _is_point(row: Row) -> bool:
    return row["primal"] is not None or row["accuracy"] is not None


def _shape(group: list[Row]) -> tuple[int, int, int]:
    return group[0]["n"], group[0]["d"], group[0]["m"]


def _least(values: Any) -> float | None:
    return min((value for value in values if value is not None), default=None)
