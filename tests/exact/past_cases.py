"""Problems whose certificate was once wrong, with the part of the objective it was wrong by."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from exact.problems import Problem


def case(X, y, C, loss, k, m, bias, run, *, smoothing=0.0, dtype=np.float64, csr=False):
    """Return a problem; `run` is (solver, tol, max_iter, seed)."""
    X = np.array(X, dtype)
    definition = {"loss": loss, "k": k, "smoothing": smoothing, "n_classes": m, "bias": bias}
    options = dict(zip(("solver", "tol", "max_iter", "seed"), run, strict=True))
    C = np.array(C) if isinstance(C, list) else C
    return Problem(-1, sp.csr_matrix(X) if csr else X, np.array(y), C, definition, options)


ALPHA, BETA, FULL = "topk_hinge_alpha", "topk_hinge_beta", "topk_hinge_full"
HALF = [66.60000000000001, -37.5, -68.7, -15.100000000000001]
PAST_CASES = {
    "a tiny objective, large terms: 1e-6": case(
        [[-900], [0], [0], [0], [0], [0]],
        [1, 0, 0, 0, 0, 0],
        84335.0,
        *(ALPHA, 1, 2, 1000.0, ("sdca", 1e-9, 1000, 0)),
    ),
    "one huge sample weight: 1": case(
        [[1e-06], [0.0], [0.0], [1e-06], [0.0], [0.0], [1e-06]],
        [0] * 7,
        [
            *(10617185.84598304, 171730.80999640987, 274195588.50062156, 7922124.259181146),
            *(766.5751107569786, 4672.840839140023, 5799594266452169.0),
        ],
        *(ALPHA, 1, 2, 30.0, ("sdca", 3e-4, 5, 45)),
    ),
    "large equal features: 0.99": case(
        [[1e6] * 3] * 2,
        [0, 0],
        123025.11284747136,
        *(ALPHA, 4, 5, 1000.0, ("sdca", 9e-4, 1, 57)),
    ),
    "one row counts, 1e9 beside 10: 8e-3": case(
        [
            *([-10.540000000000001, -1e9], [-8.280000000000001, 1e9], [14.260000000000002, -1e9]),
            *([7.620000000000001, -1e9], [6.640000000000001, 1e9]),
        ],
        [3, 0, 0, 1, 0],
        [0.0, 0.0, 0.0012316118672721073, 0.0, 0.0],
        *(BETA, 1, 5, 1000.0, ("sdca", 1.9e-9, 5, 5)),
        csr=True,
    ),
    "C of a million: 2e-4": case(
        [[-1841.0, 738.0], [-887.0, -2153.0]],
        [0, 2],
        1e6,
        *(ALPHA, 2, 4, 1000.0, ("sdca", 7e-4, 30, 89)),
        csr=True,
    ),
    "one class only: 9e-5": case(
        [[-30000.0, 30000.0], [-30000.0, 0.0], [-20000.0, 20000.0]],
        [0, 0, 0],
        16642.824034238594,
        *(ALPHA, 3, 4, 0.0, ("sdca", 6e-9, 5, 44)),
    ),
    "a row of zeros and a bias: 8e-6": case(
        [[0.0] * 4],
        [0],
        749133.8473177936,
        *(ALPHA, 2, 5, 1000.0, ("sdca", 1.7e-6, 1, 79)),
    ),
    "the same row with two weights: 7e-7": case(
        [[102.66330200017828, 100.81606712764031]] * 2,
        [3, 3],
        [10000.0, 1e-06],
        *(BETA, 1, 6, 1000.0, ("sdca", 1.1e-9, 5, 88)),
    ),
    "weights from 1e-8 to 1e5: 1e-7": case(
        [
            [-76.3, 13.9, -7.6000000000000005, 9.700000000000001],
            HALF,
            [132.0, -7.7, -20.8, 221.0],
            HALF,
            [-40.0, -27.700000000000003, -130.6, -74.10000000000001],
            [66.10000000000001, -66.5, -86.2, 15.100000000000001],
            HALF,
        ],
        [0] * 7,
        [
            *(5.547056315618115e-06, 2.0221129238570076e-08, 100000.00000000001),
            *(0.00015170014148325133, 4.3397678454336063e-07, 0.0002964703241899129),
            7.822710065597031e-08,
        ],
        *(BETA, 1, 2, 0.0, ("sdca", 6.6e-12, 5, 73)),
    ),
    "smoothed, single precision: 5e-8": case(
        [[1e6, 0.0]],
        [0],
        1e6,
        *(FULL, 1, 2, 30.0, ("sdca", 2e-8, 5, 21)),
        smoothing=1.0954007698948023,
        dtype=np.float32,
        csr=True,
    ),
    "softmax, mixed columns: 1e-14": case(
        [
            *([0, 0, 0], [0, 0, 0], [-0.1, 0.2, -2e4], [0.1, -0.3, -2e4], [-0.1, -0.3, -3e4]),
            *([0, 0, 0], [0, 0, 0]),
        ],
        [2, 3, 3, 3, 1, 3, 1],
        10.0,
        *("softmax", 1, 4, 1.0, ("lbfgs", 6.5e-10, 200, 23)),
        dtype=np.float32,
    ),
    "top-k entropy: 4e-16": case(
        [[1033.0, 30.0, 1043.0, -4.0]],
        [1],
        323.06912731982413,
        *("topk_entropy", 1, 3, 1.0, ("lbfgs", 1e-7, 200, 88)),
        dtype=np.float32,
        csr=True,
    ),
}
