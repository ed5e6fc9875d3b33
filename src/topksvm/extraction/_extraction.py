"""Features of a folder of pictures, in shards, so that a killed run goes on where it was."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from topksvm._files import replacing
from topksvm.extraction._network import Network, Preparation

__all__ = ["SPLITS", "extract_features", "list_images"]

SPLITS = {"train": "train_labels", "val": "val_labels", "test": "test_labels", "features": "labels"}
"""What the files of features may be called, and the files of their labels."""

_SUFFIXES = {".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp"}
_PLAN = "plan.json"


def extract_features(
    folder: Path,
    out: Path,
    network: Network,
    preparation: Preparation,
    *,
    split: str,
    model: Path,
    shard_rows: int,
    on_progress: Callable[[int, int], None],
) -> tuple[int, int]:
    """Write ``out/split.npy`` and its labels as `load_features` reads them; return its shape.

    Finished shards stay in ``out/split.shards`` until all are there and in one file. A second run
    with the same pictures and options takes them over; with others it is an error.
    """
    images = list_images(folder)
    shards = out / f"{split}.shards"
    target = out / f"{split}.npy"
    if target.exists() and not shards.exists():
        raise ValueError(f"{target} is there already. Remove it, or choose another folder.")
    _keep_plan(shards, _plan(folder, images, network, preparation, model, shard_rows))
    for start in range(0, len(images), shard_rows):
        shard = shards / f"{start // shard_rows:06d}.npy"
        if not shard.exists():
            features = network(images[start : start + shard_rows], preparation)
            with replacing(shard) as path:
                np.save(path, features)
        on_progress(min(start + shard_rows, len(images)), len(images))
    _write_lines(out / f"{SPLITS[split]}.txt", [image.parent.name for image in images])
    _write_lines(out / f"{split}_files.txt", [_name(folder, image) for image in images])
    shape = _join(sorted(shards.glob("*.npy")), target, len(images))
    shutil.rmtree(shards)
    return shape


def list_images(folder: Path) -> list[Path]:
    """Return the pictures in the sub-folders, one per class, in the order of names.

    Hidden files and folders are passed over: they are what systems leave behind.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is not a folder. Pass one with a sub-folder per class.")
    images = [
        image
        for sub_folder in sorted(path for path in folder.iterdir() if path.is_dir())
        if not sub_folder.name.startswith(".")
        for image in sorted(sub_folder.iterdir())
        if image.suffix.lower() in _SUFFIXES and not image.name.startswith(".")
    ]
    if not images:
        raise ValueError(
            f"{folder} has no pictures in sub-folders. Make a sub-folder for each class, with "
            f"files that end in {', '.join(sorted(_SUFFIXES))}."
        )
    return images


def _name(folder: Path, image: Path) -> str:
    return image.relative_to(folder).as_posix()


def _plan(
    folder: Path,
    images: Sequence[Path],
    network: Network,
    preparation: Preparation,
    model: Path,
    shard_rows: int,
) -> dict[str, Any]:
    """Return all that the features depend on: shards of two plans must never meet."""
    names = "\n".join(_name(folder, image) for image in images)
    with model.open("rb") as stream:
        model_hash = hashlib.file_digest(stream, "sha256").hexdigest()
    return {
        "model_sha256": model_hash,
        "output": network.output,
        "images": len(images),
        "names_sha256": hashlib.sha256(names.encode()).hexdigest(),
        "size": preparation.size,
        "mean": list(preparation.mean),
        "std": list(preparation.std),
        "shard_rows": shard_rows,
    }


def _keep_plan(shards: Path, plan: dict[str, Any]) -> None:
    file = shards / _PLAN
    if not file.exists():
        with replacing(file) as path:
            path.write_text(json.dumps(plan, indent=2))
        return
    kept = json.loads(file.read_text())
    changed = [name for name, value in plan.items() if kept.get(name) != value]
    if changed:
        raise ValueError(
            f"{shards} holds shards of another run: {', '.join(changed)} differ. Run it again as "
            "it was, or remove that folder to begin anew."
        )


def _join(shards: Sequence[Path], target: Path, rows: int) -> tuple[int, int]:
    """Write the shards into one file, which can be memory-mapped."""
    columns = np.load(shards[0], mmap_mode="r").shape[1]
    with replacing(target) as path:
        joined = np.lib.format.open_memmap(path, "w+", np.float32, (rows, columns))
        start = 0
        for shard in shards:
            part = np.load(shard)
            joined[start : start + len(part)] = part
            start += len(part)
        joined.flush()
        del joined  # Windows renames no file that is mapped.
    return rows, columns


def _write_lines(file: Path, lines: Sequence[str]) -> None:
    with replacing(file) as path:
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
