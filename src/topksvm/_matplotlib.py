"""What all plots share: matplotlib, which is an extra, and colours that everyone can tell apart."""

from __future__ import annotations

from typing import Any

BRIGHT = {
    "blue": "#4477aa",
    "red": "#ee6677",
    "green": "#228833",
    "purple": "#aa3377",
    "cyan": "#66ccee",
    "yellow": "#ccbb44",
    "grey": "#bbbbbb",
}
"""Paul Tol's bright scheme, safe for the colour-blind, in the order in which lines take them."""


def import_pyplot(*, backend: str | None = None) -> Any:
    """Return ``matplotlib.pyplot``, with `backend` or the one the user has chosen."""
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError(
            'Plots need matplotlib, which is not installed: pip install "topksvm[plot]".'
        ) from error
    if backend is not None:
        matplotlib.use(backend)
    import matplotlib.pyplot as plt

    return plt
