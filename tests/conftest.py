"""Shared set-up of the tests."""

from __future__ import annotations

import signal

from hypothesis import settings

# Kernels compile on their first call, which a deadline would take for a slow example.
settings.register_profile("topksvm", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("topksvm")


def pytest_configure():
    """Let Ctrl-C interrupt: a process that a shell starts in the background ignores it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items):
    """Begin with what takes long for its few tests, lest one process does it alone in the end."""
    items.sort(key=lambda item: item.path.name != "test_cache.py")
