"""Caltech 101 Silhouettes: the data of the paper's first table."""

from __future__ import annotations

import hashlib
import os
import sys
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topksvm._files import replacing
from topksvm.datasets._dataset import Dataset

__all__ = ["load_silhouettes"]

VARIABLE = "TOPKSVM_DATA"
FILE = "caltech101_silhouettes_28_split1.mat"
URL = f"https://people.cs.umass.edu/~marlin/data/{FILE}"
SHA256 = "eb6735e8d84b1850fabc5590124aab1755e90c9fd28123585324398405e1e42a"
ADVICE = (
    f"Download it yourself from {URL} and pass path=, or set the environment variable "
    f"{VARIABLE} to the file or its folder."
)
SIDE = 28
N_CLASSES = 101
ROWS = {"train": 4100, "val": 2264, "test": 2307}

DESCRIPTION = f"""\
Caltech 101 Silhouettes, 28 x 28, split 1: outlines of the objects of Caltech 101, filled.
Source: {URL}
B. Marlin, K. Swersky, B. Chen, N. de Freitas. Inductive principles for restricted Boltzmann machine
learning. AISTATS 2010. No licence is stated: it is downloaded, not shipped.
"""


def load_silhouettes(path: str | PathLike[str] | None = None, *, check: bool = True) -> Dataset:
    """Load Caltech 101 Silhouettes, 28 x 28 pixels, split 1.

    4100 examples for training, 2264 for validation and 2307 for testing, 101 classes, 784 features:
    the raw pixels, 0 or 1, as in the first table of Lapin, Hein and Schiele (NIPS 2015), who use no
    bias. Note that in the data 0 is the object and 1 the ground.

    Parameters
    ----------
    path : path, optional
        The file ``caltech101_silhouettes_28_split1.mat``, or its folder. Without it the file is
        looked for where ``TOPKSVM_DATA`` says (a file or a folder), else in
        ``$XDG_CACHE_HOME/topksvm`` or ``~/.cache/topksvm``. If it is not there, it is downloaded
        into that folder from the page of Benjamin Marlin, who made it, and checked; this needs
        ``topksvm[datasets]``.
    check : bool
        False: accept a file with another checksum if it holds arrays of the right names and shapes.

    Returns
    -------
    Dataset
        Features in float32; pictures that are upright, as MATLAB stores them column by column.

    References
    ----------
    B. Marlin, K. Swersky, B. Chen, N. de Freitas. Inductive principles for restricted Boltzmann
    machine learning. AISTATS 2010.

    Examples
    --------
    >>> from topksvm.datasets import load_silhouettes
    >>> load_silhouettes()  # doctest: +SKIP
    Dataset('caltech101-silhouettes': 101 classes, 784 features, 4100 train, 2264 val, 2307 test)
    """
    file = _find(path)
    if check and (found := _sha256(file)) != SHA256:
        raise ValueError(
            f"{file} is not the {FILE} expected: sha256 {found} instead of {SHA256}. It may be "
            f"truncated, or another file. {ADVICE} To read it nevertheless pass check=False."
        )
    content = _read(file)
    parts: dict[str, Any] = {}
    for split in ROWS:
        pixels = content[f"{split}_data"]
        parts[f"X_{split}"] = np.ascontiguousarray(pixels, dtype=np.float32)
        parts[f"y_{split}"] = content[f"{split}_labels"].ravel().astype(np.int64) - 1
        parts[f"images_{split}"] = _images(pixels)
    names = tuple(str(np.ravel(name)[0]) for name in content["classnames"].ravel())
    return Dataset("caltech101-silhouettes", class_names=names, description=DESCRIPTION, **parts)


def _find(path: str | PathLike[str] | None) -> Path:
    """Return the file, downloaded if the user named none and there is none."""
    place = _data_folder() if path is None else Path(path).expanduser()
    # A name that ends in .mat means a file, even one that is not there.
    file = place if place.is_file() or place.suffix == ".mat" else place / FILE
    if file.is_file():
        return file
    if path is not None or place.suffix == ".mat":
        origin = (
            f"path={str(path)!r}" if path is not None else f"the environment variable {VARIABLE}"
        )
        raise FileNotFoundError(f"{file}, given by {origin}, is not a file. {ADVICE}")
    _download(file)
    return file


def _data_folder() -> Path:
    """Return where downloaded data are kept: ``TOPKSVM_DATA``, else the user's cache."""
    if given := os.environ.get(VARIABLE):
        return Path(given).expanduser()
    # The XDG specification says to ignore a relative path.
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (cache if cache.is_absolute() else Path.home() / ".cache") / "topksvm"


def _download(file: Path) -> None:
    """Download to `file`, which appears only when all of it is there and is as expected."""
    try:
        import pooch  # type: ignore[import, unused-ignore]
    except ImportError as error:
        raise ImportError(
            f"{FILE} is not there, and to download it needs pooch: pip install "
            f"'topksvm[datasets]'. {ADVICE}"
        ) from error
    # Not by pooch.retrieve, which makes files that nobody else may read.
    download = pooch.HTTPDownloader(progressbar=sys.stderr.isatty())
    try:
        with replacing(file) as temporary:
            download(URL, temporary, None)
            if (found := _sha256(temporary)) != SHA256:
                raise ValueError(
                    f"what {URL} sent is not the file expected: sha256 {found} instead of "
                    f"{SHA256}. Nothing was kept. {ADVICE}"
                )
    except OSError as error:
        raise ConnectionError(f"cannot download {URL} to {file}: {error}. {ADVICE}") from error


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _read(file: Path) -> dict[str, NDArray[Any]]:
    from scipy.io import loadmat

    try:
        content = loadmat(file)
    except Exception as error:  # loadmat raises whatever its parser stumbles over.
        raise ValueError(f"cannot read {file} as a MATLAB file: {error}. {ADVICE}") from error
    shapes: dict[str, tuple[int, ...]] = {"classnames": (1, N_CLASSES)}
    for split, rows in ROWS.items():
        shapes |= {f"{split}_data": (rows, SIDE * SIDE), f"{split}_labels": (rows, 1)}
    for name, shape in shapes.items():
        found = np.shape(content[name]) if name in content else None
        if found != shape:
            what = f"no array {name}" if found is None else f"{name} of shape {found}"
            raise ValueError(f"{file} has {what}; expected shape {shape}. {ADVICE}")
    _check_values(file, content)
    return content


def _check_values(file: Path, content: dict[str, NDArray[Any]]) -> None:
    for split in ROWS:
        for name, low, high in (
            (f"{split}_data", 0, 1),
            (f"{split}_labels", 1, N_CLASSES),
        ):
            values = content[name]
            if values.dtype.kind not in "uif" or values.min() < low or values.max() > high:
                raise ValueError(
                    f"{file} has values in {name} that are not between {low} and {high}. {ADVICE}"
                )


def _images(pixels: NDArray[Any]) -> NDArray[np.uint8]:
    """Turn columns of MATLAB into upright pictures with a light object on dark ground."""
    upright = pixels.reshape(-1, SIDE, SIDE).swapaxes(1, 2)
    return np.ascontiguousarray((1 - upright.astype(np.uint8)) * np.uint8(255))
