"""Features and labels in the formats that people keep them in."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["find", "read_features", "read_labels", "read_lines"]

_FEATURES = (".npy", ".npz", ".parquet")
_LABELS = (".npy", ".txt")


def find(folder: Path, name: str, suffixes: tuple[str, ...] = _FEATURES) -> Path | None:
    """Return the one file of that name, whatever its suffix, or None."""
    found = [path for suffix in suffixes if (path := folder / f"{name}{suffix}").is_file()]
    if len(found) > 1:
        raise ValueError(f"{folder} has {' and '.join(p.name for p in found)}. Keep one of them.")
    return found[0] if found else None


def read_features(folder: Path, name: str) -> NDArray[Any]:
    """Return a matrix of floats, memory-mapped if the file allows it; integers become float32."""
    file = _existing(folder, name, _FEATURES)
    X = _read_parquet(file) if file.suffix == ".parquet" else _read_numpy(file)
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"{file}: features of shape {X.shape}; expected rows and columns.")
    if X.dtype in (np.float16, np.float32, np.float64):
        return X
    if X.dtype.kind not in "buif":
        raise ValueError(f"{file}: features of type {X.dtype}; expected real numbers.")
    return X.astype(np.float32)


def read_labels(folder: Path, name: str) -> NDArray[Any]:
    """Return labels: integers if all are, else strings."""
    file = _existing(folder, name, _LABELS)
    if file.suffix == ".txt":
        y = np.array(read_lines(file))
        try:
            return y.astype(np.int64)
        except ValueError:
            return y
    y = _read_numpy(file)
    if y.ndim != 1 or y.dtype.kind not in "uiU":
        raise ValueError(
            f"{file}: labels of shape {y.shape} and type {y.dtype}; expected a vector of integers "
            "or strings."
        )
    return np.array(y, dtype=np.int64) if y.dtype.kind in "ui" else np.array(y)


def read_lines(file: Path) -> list[str]:
    """Return the lines of a text file, without blanks at their ends and empty ones at the end."""
    try:
        lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"cannot read {file}: {error}. It must be a UTF-8 text.") from error
    while lines and not lines[-1]:
        lines.pop()
    if "" in lines:
        raise ValueError(f"{file}: line {lines.index('') + 1} is empty. Write one entry per line.")
    return lines


def _existing(folder: Path, name: str, suffixes: tuple[str, ...]) -> Path:
    file = find(folder, name, suffixes)
    if file is None:
        raise FileNotFoundError(
            f"{folder} has no {name}{{{','.join(suffixes)}}}. See help(topksvm.datasets."
            "load_features) for the files that are read."
        )
    return file


def _read_numpy(file: Path) -> NDArray[Any]:
    try:
        content = np.load(file, mmap_mode="r" if file.suffix == ".npy" else None)
        if isinstance(content, np.ndarray):
            return content
        with content:
            names = content.files
            name = names[0] if len(names) == 1 else "features"
            if name not in names:
                raise ValueError(f"holds {', '.join(names) or 'nothing'}, none called features")
            return content[name]
    except (OSError, EOFError, ValueError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"cannot read {file}: {error}. It must be written by numpy.save or numpy.savez, "
            "without objects."
        ) from error


def _read_parquet(file: Path) -> NDArray[Any]:
    try:
        import pyarrow as pa  # type: ignore[import, unused-ignore]
        import pyarrow.parquet as parquet  # type: ignore[import, unused-ignore]
    except ImportError as error:
        raise ImportError(
            f"{file} needs pyarrow. Install it: pip install 'topksvm[parquet]'."
        ) from error
    try:
        table = parquet.read_table(file)
    except (OSError, pa.ArrowException) as error:
        raise ValueError(f"cannot read {file} as Parquet: {error}.") from error
    if table.num_columns == 1 and pa.types.is_nested(table.schema.types[0]):
        return _from_lists(file, table.column(0).combine_chunks())
    _refuse_nulls(file, table.columns)
    # float32 unless a column needs more, or is no number, which the caller refuses.
    least = np.empty((table.num_rows, 0), dtype=np.float32)
    return np.column_stack([least, *(column.to_numpy() for column in table.columns)])


def _from_lists(file: Path, rows: Any) -> NDArray[Any]:
    values = rows.flatten()
    _refuse_nulls(file, [rows, values])
    lengths = np.unique(rows.value_lengths().to_numpy(zero_copy_only=False))
    if len(lengths) != 1:
        raise ValueError(f"{file}: lists of different lengths; each must hold all features.")
    return values.to_numpy(zero_copy_only=False).reshape(len(rows), int(lengths[0]))


def _refuse_nulls(file: Path, columns: list[Any]) -> None:
    if any(column.null_count for column in columns):
        raise ValueError(f"{file}: values are missing. Fill them in first.")
