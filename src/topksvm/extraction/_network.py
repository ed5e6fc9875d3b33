"""An ONNX network as a function from pictures to features."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topksvm._threads import n_threads

__all__ = ["Network", "Preparation", "read_image"]

_INSTALL = "Install what it takes: pip install 'topksvm[onnx]'."
_DEFAULT_SIZE = 224
_DEFAULT_BATCH = 32


class Preparation(NamedTuple):
    """How a picture becomes the input of a network: size, then ``(rgb / 255 - mean) / std``."""

    size: int
    mean: tuple[float, ...]
    std: tuple[float, ...]


class Network:
    """One output of an ONNX file with one input of pictures, of shape (batch, 3, size, size).

    Parameters
    ----------
    file : Path
        The ``.onnx`` file.
    output_name : str, optional
        The output to take as features; not needed if there is only one.
    size, batch : int, optional
        Default to what the file fixes, else to 224 pixels and 32 pictures.
    """

    def __init__(
        self,
        file: Path,
        *,
        output_name: str | None = None,
        size: int | None = None,
        batch: int | None = None,
    ) -> None:
        self._session = _open(file)
        inputs = self._session.get_inputs()
        shape = inputs[0].shape
        if len(inputs) != 1 or len(shape) != 4 or (_fixed(shape[1]) and shape[1] != 3):
            raise ValueError(
                f"{file} takes {', '.join(f'{i.name} {i.shape}' for i in inputs)}; expected one "
                "input of shape (batch, 3, size, size)."
            )
        self._input = inputs[0].name
        self.output = _choose_output(file, self._session.get_outputs(), output_name)
        self.size = _agree(file, "size", size, shape[2], _DEFAULT_SIZE)
        _agree(file, "size", self.size, shape[3], self.size)
        self.batch = _agree(file, "batch", batch, shape[0], _DEFAULT_BATCH)

    def __call__(self, files: Sequence[Path], preparation: Preparation) -> NDArray[np.float32]:
        """Return the features of pictures, a row each."""
        parts = []
        with ThreadPoolExecutor(n_threads()) as pool:
            for start in range(0, len(files), self.batch):
                chosen = files[start : start + self.batch]
                images = np.stack(list(pool.map(lambda f: read_image(f, preparation), chosen)))
                # A file may fix the size of the batch: fill the last one up, and cut.
                missing = self.batch - len(images)
                padded = np.concatenate([images, np.repeat(images[:1], missing, axis=0)])
                (features,) = self._session.run([self.output], {self._input: padded})
                parts.append(features.reshape(len(padded), -1)[: len(images)])
        return np.concatenate(parts).astype(np.float32, copy=False)


def read_image(file: Path, preparation: Preparation) -> NDArray[np.float32]:
    """Return a picture as (3, size, size): the largest square in its middle, resized."""
    try:
        from PIL import Image, ImageOps  # type: ignore[import, unused-ignore]
    except ImportError as error:
        raise ImportError(f"reading pictures needs Pillow. {_INSTALL}") from error
    size = (preparation.size, preparation.size)
    try:
        with Image.open(file) as image:
            upright = ImageOps.exif_transpose(image).convert("RGB")
            square = ImageOps.fit(upright, size, method=Image.Resampling.BILINEAR)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise ValueError(
            f"cannot read the picture {file}: {error}. Put a good one in its place and run again: "
            "what is done is kept."
        ) from error
    rgb = np.asarray(square, dtype=np.float32) / np.float32(255)
    mean, std = (np.array(part, np.float32) for part in (preparation.mean, preparation.std))
    return ((rgb - mean) / std).transpose(2, 0, 1)


def _open(file: Path) -> Any:
    try:
        import onnxruntime  # type: ignore[import, unused-ignore]
    except ImportError as error:
        raise ImportError(f"running a network needs onnxruntime. {_INSTALL}") from error
    if not file.is_file():
        raise FileNotFoundError(f"{file} is not a file. Pass an ONNX network.")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = n_threads()
    options.log_severity_level = 3
    available = onnxruntime.get_available_providers()
    providers = [p for p in ("CUDAExecutionProvider", "CPUExecutionProvider") if p in available]
    try:
        return onnxruntime.InferenceSession(str(file), options, providers=providers)
    except Exception as error:  # onnxruntime's own classes of errors share no base of theirs.
        reason = str(error).splitlines()[0]
        raise ValueError(f"cannot open {file} as an ONNX network: {reason}") from error


def _fixed(dimension: Any) -> bool:
    return isinstance(dimension, int)  # Else it is a name, or None: any size will do.


def _agree(file: Path, what: str, given: int | None, fixed: Any, default: int) -> int:
    """Return the size that the user and the file agree on."""
    if not _fixed(fixed):
        return default if given is None else given
    if given is not None and given != fixed:
        raise ValueError(f"{file} is made for a {what} of {fixed}, not {given}. Leave it out.")
    return int(fixed)


def _choose_output(file: Path, outputs: Any, name: str | None) -> str:
    names = [output.name for output in outputs]
    if name is None and len(names) == 1:
        return str(names[0])
    if name is None or name not in names:
        what = "has several outputs" if name is None else f"has no output {name}"
        raise ValueError(f"{file} {what}. Choose one by its name: {', '.join(names)}.")
    return name
