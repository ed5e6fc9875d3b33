"""Which columns of a table are features, and which one is the label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from topksvm.cli._data._table import Request
from topksvm.cli._errors import UserError
from topksvm.cli._output import some

_USUAL_NAMES = ("label", "target", "y")


@dataclass(frozen=True)
class Columns:
    """Positions of columns, and a note that says what was chosen."""

    features: list[int]
    target: int | None
    notes: tuple[str, ...]


def choose_columns(header: Sequence[str], request: Request) -> Columns:
    """Return the columns to read; complain about names that are missing or stand twice."""
    _check_header(header, request)
    if request.names is not None:
        return _by_name(header, request, request.names)
    everything = list(range(len(header)))
    target, why = _target(header, everything, request)
    others = [i for i in everything if i != target]
    if not request.wants_own_labels:
        # A file to predict for may have labels, such as the one that the model was tested on.
        is_one_more = request.n_features is not None and len(others) == request.n_features
        if not is_one_more and not _is_given(request):
            return Columns(everything, None, ())
        return Columns(others, None, (f"column {header[target]!r} is not used, {why}",))
    if not others:
        raise UserError(
            f"{request.path} has one column only, {header[0]!r}; there must be features and "
            "labels. Separate the columns by commas, or by tabs in a .tsv file."
        )
    return Columns(others, target, _note(header, target, why))


def _by_name(header: Sequence[str], request: Request, names: Sequence[str]) -> Columns:
    position = {name: i for i, name in enumerate(header)}
    missing = [name for name in names if name not in position]
    if missing:
        raise UserError(
            f"{request.path} lacks {len(missing)} of the {len(names)} columns that the model was "
            f"trained on: {some(missing)}. It has {some(header)}; rename or add columns."
        )
    features = [position[name] for name in names]
    others = sorted(set(range(len(header))) - set(features))
    if not request.wants_own_labels:
        unused = [header[i] for i in others]
        return Columns(features, None, (f"columns not used: {some(unused)}",) if unused else ())
    if not others and not _is_given(request):
        raise UserError(
            f"{request.path} has no column of labels, only the features of the model. Add one, or "
            "give a file of labels with --labels."
        )
    target, why = _target(header, others, request)
    return Columns(features, target, _note(header, target, why))


def _target(header: Sequence[str], others: list[int], request: Request) -> tuple[int, str]:
    """Return the column of the labels, and why it is that one."""
    if _is_given(request):
        return header.index(request.target or ""), "by --target"
    for i in others:
        if header[i].lower() in _USUAL_NAMES:
            return i, "by its name"
    return others[-1], "the last"


def _is_given(request: Request) -> bool:
    """Return whether --target names a column of this file, not of a file of labels."""
    return request.target is not None and request.labels is None


def _note(header: Sequence[str], target: int, why: str) -> tuple[str, ...]:
    return (f"labels from column {header[target]!r}, {why}",)


def _check_header(header: Sequence[str], request: Request) -> None:
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


def _looks_like_data(header: Sequence[str]) -> bool:
    """Return whether the names are numbers, other than those that data frames count with."""
    try:
        numbers = [float(name) for name in header]
    except ValueError:
        return False
    return numbers not in (
        [float(i) for i in range(len(header))],
        [float(i) for i in range(1, len(header) + 1)],
    )
