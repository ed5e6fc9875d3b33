"""How much memory the machine has."""

from __future__ import annotations

import os


def physical_memory() -> int | None:
    """Return the memory of the machine in bytes, or None where the system does not say."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf, others lack a name.
        return None
    return memory if memory > 0 else None
