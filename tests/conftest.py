"""Shared set-up of the tests."""

from __future__ import annotations

from hypothesis import settings

# Kernels compile on their first call, which a deadline would take for a slow example.
settings.register_profile("topksvm", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("topksvm")
