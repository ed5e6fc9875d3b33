"""What a solver learns about its own estimates of the gap."""

from __future__ import annotations

import numpy as np

TINY = float(np.finfo(float).tiny)

MARGIN, LARGEST = 1.1, 4.0
"""How much more to ask for after an estimate that was too low, and how many times more at most."""


def corrected(factor: float, certified: float, expected: float) -> float:
    """Return the factor of later estimates, given a gap as certified and as it was expected.

    It does not fall: to certify in vain takes longer than another pass.
    """
    wrong = MARGIN * certified / max(expected, TINY)
    return max(factor, min(LARGEST * factor, wrong))
