"""Make the sketches that ship with the package: same input, same bytes.

    python tools/make_quickdraw.py quickdraw345_28x28.npz

The input holds `X` (34500 x 784, uint16 = 1000 x gray, class by class), `y` and `names`. The output
is `quickdraw.xz` and `quickdraw_classes.txt` in `src/topksvm/datasets/data`.
"""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path

import numpy as np

from topksvm._files import replacing
from topksvm.datasets._packing import pack_images, quantise, unpack_images
from topksvm.datasets._quickdraw import PER_CLASS, SIDE

TOP = 1000
FOLDER = Path(__file__).parents[1] / "src" / "topksvm" / "datasets" / "data"


def read_levels(path: Path) -> tuple[np.ndarray, list[str]]:
    """Return the pictures in four levels, class by class, and the names of the classes."""
    with np.load(path, allow_pickle=False) as content:
        X, y, names = content["X"], content["y"], content["names"]
    expected = np.repeat(np.arange(len(names)), sum(PER_CLASS.values()))
    if not np.array_equal(y, expected):
        raise SystemExit(f"{path}: not {sum(PER_CLASS.values())} drawings of each class, in turn.")
    return quantise(X, TOP).reshape(-1, SIDE, SIDE), [str(name) for name in names]


def main() -> None:
    """Write both files and print their sizes and checksums."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path, help="quickdraw345_28x28.npz")
    levels, names = read_levels(parser.parse_args().source)
    packed = pack_images(levels)
    assert np.array_equal(unpack_images(packed, SIDE), levels)
    classes = "".join(f"{name}\n" for name in names).encode()
    for name, content in (("quickdraw.xz", packed), ("quickdraw_classes.txt", classes)):
        with replacing(FOLDER / name) as path:
            path.write_bytes(content)
        print(f"{name}: {len(content)} bytes, sha256 {hashlib.sha256(content).hexdigest()}")
    print(f"levels: sha256 {hashlib.sha256(levels.tobytes()).hexdigest()}")


if __name__ == "__main__":
    main()
