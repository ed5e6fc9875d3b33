"""The arrays in a .npz file, one after the other: rows in one file."""

from __future__ import annotations

from itertools import accumulate, pairwise

import numpy as np


class NpzRows:
    """A :class:`topksvm.data.RowSource` that holds no rows, but reads an array when it is needed.

    A piece is an array, as none can be read in part. Memory is needed for one of them, besides the
    two windows that the solver keeps, into which it must fit.
    """

    def __init__(self, path, dtype=np.float32):
        self.path, self.dtype = path, np.dtype(dtype)
        with np.load(path) as arrays:
            shapes = [arrays[name].shape for name in arrays.files]
            self.arrays = list(arrays.files)
        widths = {shape[1:] for shape in shapes}
        if len(widths) != 1:
            raise ValueError(f"The arrays of {path} differ in their features: {sorted(widths)}.")
        self.first = [0, *accumulate(shape[0] for shape in shapes)]
        self.shape = (self.first[-1], *widths.pop())

    def pieces(self, size):  # noqa: ARG002 (a wish that cannot be granted)
        """Return the first row of each array, and the row after its last one."""
        return list(pairwise(self.first))

    def read(self, start, stop, out):  # noqa: ARG002 (a piece is a whole array)
        """Write the rows of the array that begins at `start` to `out`."""
        with np.load(self.path) as arrays:
            out[...] = arrays[self.arrays[self.first.index(start)]]
