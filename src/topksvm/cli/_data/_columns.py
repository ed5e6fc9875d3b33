"""Which columns of a table are features, and which one is the label."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from topksvm._scores_and_labels import some
from topksvm.cli._data._request import Request
from topksvm.cli._errors import UserError

_USUAL_NAMES = ("label", "target", "y")


@dataclass(frozen=True)
class Columns:
    """Names of columns, and notes that say what was chosen."""

    features: list[str]
    target: str | None = None
    notes: tuple[str, ...] = ()


def choose_columns(header: list[str], request: Request) -> Columns:
    """Return the columns to read; complain about names that are missing or stand twice."""
    _check_header(header, request)
    if request.names is not None:
        return _columns_of_model(header, list(request.names), request)
    target, why = _target(header, request)
    others = [name for name in header if name != target]
    if not request.wants_own_labels:
        # A file to predict for may have labels, such as the one that the model was tested on.
        if len(others) == request.n_features or _is_given(request):
            return Columns(others, notes=(f"column {target!r} is not used, {why}",))
        return Columns(header)
    if not others:
        raise UserError(
            f"{request.path} has one column only, {target!r}; there must be features and "
            "labels. Separate the columns by commas, or by tabs in a .tsv file."
        )
    return _with_labels(others, target, why)


def choose_labels(header: list[str], request: Request) -> Columns:
    """Return the column of a file of labels: the one named by --target, else the last."""
    name = header[-1] if request.target is None else request.target
    if name not in header:
        raise UserError(
            f"{request.labels} has no column {name!r}. It has {some(header)}; choose one of them "
            "with --target."
        )
    return Columns([], name)


def _columns_of_model(header: list[str], names: list[str], request: Request) -> Columns:
    missing = sorted(set(names) - set(header), key=names.index)
    if missing:
        raise UserError(
            f"{request.path} lacks {len(missing)} of the {len(names)} columns that the model was "
            f"trained on: {some(missing)}. It has {some(header)}; rename or add columns."
        )
    known = set(names)
    others = [name for name in header if name not in known]
    if not request.wants_own_labels:
        return Columns(names, notes=(f"columns not used: {some(others)}",) if others else ())
    if not others and not _is_given(request):
        raise UserError(
            f"{request.path} has no column of labels, only the features of the model. Add one, or "
            "give a file of labels with --labels."
        )
    return _with_labels(names, *_target(others, request))


def _target(names: list[str], request: Request) -> tuple[str, str]:
    """Return the column of the labels, and why it is that one."""
    if request.target is not None and _is_given(request):
        return request.target, "by --target"
    for name in names:
        if name.lower() in _USUAL_NAMES:
            return name, "by its name"
    return names[-1], "the last"


def _is_given(request: Request) -> bool:
    """Return whether --target names a column of this file, not of a file of labels."""
    return request.target is not None and request.labels is None


def _with_labels(features: list[str], target: str, why: str) -> Columns:
    return Columns(features, target, (f"labels from column {target!r}, {why}",))


def _check_header(header: list[str], request: Request) -> None:
    for i, name in enumerate(header):
        if not name:
            raise UserError(
                f"{request.path}: column {i + 1} has no name. If it is the index of a data frame, "
                "write the file without it (index=False); else give it a name in the first line."
            )
    if _looks_like_data(header):
        raise UserError(
            f"{request.path}: the first line holds numbers ({some(header)}), but it must hold the "
            "names of the columns. Add such a line."
        )
    twice = [name for name, times in Counter(header).items() if times > 1]
    if twice:
        raise UserError(
            f"{request.path} has more than one column named {some(twice)}; the first line must "
            "hold a different name for each column. Rename them."
        )
    if _is_given(request) and request.target not in header:
        raise UserError(
            f"{request.path} has no column {request.target!r}. It has {some(header)}; choose one "
            "of them with --target."
        )


def _looks_like_data(header: list[str]) -> bool:
    """Return whether the names are numbers, other than those that data frames count with."""
    try:
        numbers = [float(name) for name in header]
    except ValueError:
        return False
    return numbers not in (
        [float(i) for i in range(len(header))],
        [float(i) for i in range(1, len(header) + 1)],
    )
