"""Many small pictures as one PNG inside the page."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

COLUMNS = 32


def sprite_sheet(images: NDArray[Any]) -> str:
    """Return gray pictures ``(n, height, width)``, bytes, as a data URI of rows of 32."""
    n, height, width = images.shape
    rows = -(-n // COLUMNS)
    sheet = np.zeros((rows * height, COLUMNS * width), np.uint8)
    for i, image in enumerate(images):
        top, left = i // COLUMNS * height, i % COLUMNS * width
        sheet[top : top + height, left : left + width] = image
    return "data:image/png;base64," + base64.b64encode(encode_png(sheet)).decode()


def encode_png(gray: NDArray[np.uint8]) -> bytes:
    """Return a gray picture as PNG (RFC 2083): no filter, 8 bits, one chunk of data."""
    height, width = gray.shape
    lines = np.zeros((height, width + 1), np.uint8)  # Each line begins with its filter: none.
    lines[:, 1:] = gray
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = (
        _chunk(b"IHDR", header),
        _chunk(b"IDAT", zlib.compress(lines.tobytes(), 9)),
        _chunk(b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def _chunk(kind: bytes, content: bytes) -> bytes:
    check = struct.pack(">I", zlib.crc32(kind + content))
    return struct.pack(">I", len(content)) + kind + content + check
