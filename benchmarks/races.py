"""Who was there first: from the measurements to the times that are compared."""

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

    Parameters
    ----------
    solver : str
        Its name.
    is_ours : bool
        Whether it is one of this package.
    seconds : float or None
        Of the fastest of its fits that reached the goal; None if none did.
    tried : float or None
        Of the longest fit that did not; the budget if not even the first one ended. None if the
        solver could not take part.
    note : str
        Where it was not reached, why.
    megabytes : float or None
        The most memory that a fit used beyond its input.
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
        return _least([a.seconds for a in self.arrivals if a.is_ours])

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
        tried = _least([a.tried for a in self.arrivals if not a.is_ours])
        is_known = self.ours is not None and self.best_peer is None and tried is not None
        return (tried or 0.0) / (self.ours or 1.0) if is_known else None

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
    races = []
    for (data, objective, C, threads), group in _groups(rows, "objective").items():
        dual = _best_dual(rows, data, objective, C)
        if dual is None:
            continue  # Nobody proved anything, so nothing can be said.
        _check(group, dual)

        def gap(row: Row, dual: float = dual) -> float:
            return suboptimality(row["primal"], dual)

        arrivals = _arrivals(
            group, lambda row: gap(row) <= GOAL, lambda row: f"{gap(row):.1e}", gap
        )
        shape = _shape(group)
        races.append(Race(data, shape, objective, C, threads, f"within {GOAL:g}", arrivals))
    return races


def _check(group: list[Row], dual: float) -> None:
    """Raise if a value is below a proven bound: somebody solves another problem."""
    for row in group:
        if row["primal"] is not None and suboptimality(row["primal"], dual) < -1e-6:
            raise RuntimeError(
                f"{row['solver']} on {row['data']}, {row['objective']}: objective "
                f"{row['primal']!r} below the proven bound {dual!r}. One of them is wrong."
            )


def accuracy_races(rows: list[Row]) -> list[Race]:
    """Return the races to the test accuracy of the best peer at the end of its ladder."""
    by_data: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        if row["kind"] == "accuracy":
            by_data[row["data"], row["threads"]].append(row)
    races = []
    for (data, threads), group in by_data.items():
        target = max(_final_accuracies(group), default=None)
        if target is None:
            continue

        def lack(row: Row, target: float = target) -> float:
            return target - row["accuracy"]

        arrivals = _arrivals(
            group, lambda row: lack(row) <= 0.0, lambda row: f"{row['accuracy']:.4f}", lack
        )
        races.append(Race(data, _shape(group), "", 0.0, threads, f"{target:.4f}", arrivals))
    return races


def _final_accuracies(group: list[Row]) -> list[float]:
    last = {r["solver"]: r["accuracy"] for r in group if not r["is_ours"] and _is_point(r)}
    return list(last.values())


def _arrivals(
    group: list[Row],
    is_there: Callable[[Row], bool],
    describe: Callable[[Row], str],
    distance: Callable[[Row], float],
) -> list[Arrival]:
    by_solver: dict[str, list[Row]] = defaultdict(list)
    for row in group:
        by_solver[row["solver"]].append(row)
    arrivals = []
    for solver, rows in by_solver.items():
        points = [row for row in rows if _is_point(row)]
        seconds = _least([row["seconds"] for row in points if is_there(row)])
        note = ""
        if seconds is None:
            nearest = min(points, key=distance, default=None)
            note = rows[0]["reason"] or "not reached"
            if nearest is not None:
                note += f" ({describe(nearest)} after {nearest['seconds']:.2g} s)"
        tried = None if seconds is not None else _tried(rows)
        most = max((row["megabytes"] for row in points if row["megabytes"]), default=None)
        arrivals.append(Arrival(solver, bool(rows[0]["is_ours"]), seconds, tried, note, most))
    return arrivals


def _tried(rows: list[Row]) -> float | None:
    """Return the seconds that a solver that did not arrive was given in one fit, at least."""
    finished = [row["seconds"] for row in rows if _is_point(row)]
    if finished:
        return max(finished)
    return rows[0]["budget"] if rows[0]["status"] == "stopped" else None


def _groups(rows: list[Row], kind: str) -> dict[tuple[str, str, float, int], list[Row]]:
    groups: dict[tuple[str, str, float, int], list[Row]] = defaultdict(list)
    for row in rows:
        if row["kind"] == kind:
            groups[row["data"], row["objective"], row["C"], row["threads"]].append(row)
    return groups


def _best_dual(rows: list[Row], data: str, objective: str, C: float) -> float | None:
    """Return the best bound, whatever the number of threads it was found with."""
    problem = ("objective", data, objective, C)
    return max(
        (
            row["dual"]
            for row in rows
            if (row["kind"], row["data"], row["objective"], row["C"]) == problem
            and row["dual"] is not None
        ),
        default=None,
    )


def _is_point(row: Row) -> bool:
    return row["primal"] is not None or row["accuracy"] is not None


def _shape(group: list[Row]) -> tuple[int, int, int]:
    return group[0]["n"], group[0]["d"], group[0]["m"]


def _least(values: list[float | None]) -> float | None:
    return min((value for value in values if value is not None), default=None)
