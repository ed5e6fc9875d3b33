"""The benchmarks are beside the package, not in it: they are imported from the root."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))


@pytest.fixture(autouse=True)
def _no_warm_up(monkeypatch):
    """Compile what a test needs and no more."""
    monkeypatch.setattr("benchmarks.__main__.warm_up", lambda _: None)
