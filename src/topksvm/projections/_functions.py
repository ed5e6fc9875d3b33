"""The public projections."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from topksvm._numba import on_warm_up
from topksvm.projections._candidates import make_workspace
from topksvm.projections._knapsack import Knapsack
from topksvm.projections._rows import project_rows_knapsack, project_rows_topk
from topksvm.projections._validation import check_flag, check_k, check_number, project_rows

Floats = NDArray[np.floating[Any]]


def project_knapsack(
    a: ArrayLike,
    r: float = 1.0,
    lo: float = 0.0,
    hi: float = 1.0,
    *,
    equality: bool = False,
    rho: float = 0.0,
    out: Floats | None = None,
) -> Floats:
    r"""Project onto a box cut by a budget, the continuous quadratic knapsack problem.

    .. math::
        \operatorname*{argmin}_x \; \tfrac12 \|a - x\|^2 + \tfrac{\rho}{2} \langle 1, x\rangle^2
        \quad\text{s.t.}\quad \langle 1, x \rangle \le r, \; lo \le x_j \le hi

    Parameters
    ----------
    a : array-like of shape (d,) or (n, d)
        The vector to project, or one vector per row; rows are handled in parallel.
        float32 stays float32.
    r : float
        The budget for the sum of the entries. It must be within reach: ``r >= d * lo``, and
        ``r <= d * hi`` if `equality`.
    lo, hi : float
        The bounds of each entry; `hi` may be infinite.
    equality : bool
        Require ``<1, x> = r``. The bias `rho` is then a constant and changes nothing.
    rho : float
        The weight of the bias towards vectors orthogonal to the vector of ones, at least 0.
    out : ndarray, optional
        Where to write the result; it may be `a` itself.

    Returns
    -------
    x : ndarray of the shape of `a`
        The projection.

    Notes
    -----
    Solved by variable fixing [1]_ on the entries that can be above the threshold, found without
    sorting; the time is linear in ``d``.

    References
    ----------
    .. [1] K. C. Kiwiel, "Variable fixing algorithms for the continuous quadratic knapsack problem",
       Journal of Optimization Theory and Applications 136, 2008.

    Examples
    --------
    >>> from topksvm.projections import project_knapsack
    >>> project_knapsack([0.9, 0.8, 0.1], r=1.0, hi=0.5)
    array([0.5, 0.5, 0. ])
    """
    radius = check_number("r", r)
    low = check_number("lo", lo)
    high = check_number("hi", hi, infinite=True)
    bias = check_number("rho", rho, minimum=0.0)
    exact = check_flag("equality", equality)
    _check_reach(np.shape(a), radius, low, high, exact)
    return _knapsack(a, radius, low, high, bias, exact, out)


def project_simplex(
    a: ArrayLike,
    r: float = 1.0,
    *,
    equality: bool = False,
    rho: float = 0.0,
    out: Floats | None = None,
) -> Floats:
    r"""Project onto the simplex of radius `r`.

    .. math::
        \operatorname*{argmin}_x \; \tfrac12 \|a - x\|^2 + \tfrac{\rho}{2} \langle 1, x\rangle^2
        \quad\text{s.t.}\quad \langle 1, x \rangle \le r, \; 0 \le x_j

    Parameters
    ----------
    a : array-like of shape (d,) or (n, d)
        The vector to project, or one vector per row; rows are handled in parallel.
        float32 stays float32.
    r : float
        The radius, at least 0.
    equality : bool
        Require ``<1, x> = r``: the simplex in the narrow sense. The bias `rho` is then a constant
        and changes nothing.
    rho : float
        The weight of the bias towards vectors orthogonal to the vector of ones, at least 0.
    out : ndarray, optional
        Where to write the result; it may be `a` itself.

    Returns
    -------
    x : ndarray of the shape of `a`
        The projection.

    See Also
    --------
    project_knapsack : The same with bounds on the entries.

    Examples
    --------
    >>> from topksvm.projections import project_simplex
    >>> project_simplex([0.8, 0.6, -1.0])
    array([0.6, 0.4, 0. ])
    >>> project_simplex([0.2, 0.1], equality=True)
    array([0.55, 0.45])
    """
    radius = check_number("r", r, minimum=0.0)
    bias = check_number("rho", rho, minimum=0.0)
    return _knapsack(a, radius, 0.0, np.inf, bias, check_flag("equality", equality), out)


def project_capped_simplex(
    a: ArrayLike, k: int, r: float = 1.0, *, rho: float = 0.0, out: Floats | None = None
) -> Floats:
    r"""Project onto the simplex with entries of at most ``r / k``.

    .. math::
        \operatorname*{argmin}_x \; \tfrac12 \|a - x\|^2 + \tfrac{\rho}{2} \langle 1, x\rangle^2
        \quad\text{s.t.}\quad \langle 1, x \rangle \le r, \; 0 \le x_j \le r / k

    The domain of the dual of the loss `topk_hinge_beta` [1]_.

    Parameters
    ----------
    a : array-like of shape (d,) or (n, d)
        The vector to project, or one vector per row; rows are handled in parallel.
        float32 stays float32.
    k : int
        The least number of entries that can share the radius, between 1 and ``d``.
    r : float
        The radius, at least 0.
    rho : float
        The weight of the bias towards vectors orthogonal to the vector of ones, at least 0.
    out : ndarray, optional
        Where to write the result; it may be `a` itself.

    Returns
    -------
    x : ndarray of the shape of `a`
        The projection.

    References
    ----------
    .. [1] M. Lapin, M. Hein, B. Schiele, "Top-k Multiclass SVM", NIPS 2015, section 5; the bound
       is printed there as ``1 / k``, for a radius of 1.

    Examples
    --------
    >>> from topksvm.projections import project_capped_simplex
    >>> project_capped_simplex([0.8, 0.3, -1.0], k=2)
    array([0.5, 0.3, 0. ])
    """
    size = check_k(k, a)
    radius = check_number("r", r, minimum=0.0)
    bias = check_number("rho", rho, minimum=0.0)
    return _knapsack(a, radius, 0.0, radius / size, bias, False, out)


def project_topk_cone(
    a: ArrayLike, k: int, *, rho: float = 0.0, out: Floats | None = None
) -> Floats:
    r"""Project onto the top-k cone.

    .. math::
        \operatorname*{argmin}_x \; \tfrac12 \|a - x\|^2 + \tfrac{\rho}{2} \langle 1, x\rangle^2
        \quad\text{s.t.}\quad 0 \le x_j \le \tfrac1k \langle 1, x \rangle

    Parameters
    ----------
    a : array-like of shape (d,) or (n, d)
        The vector to project, or one vector per row; rows are handled in parallel.
        float32 stays float32.
    k : int
        Between 1 and ``d``. A vector of the cone is zero or has at least `k` positive entries.
    rho : float
        The weight of the bias towards vectors orthogonal to the vector of ones, at least 0.
    out : ndarray, optional
        Where to write the result; it may be `a` itself.

    Returns
    -------
    x : ndarray of the shape of `a`
        The projection. It is zero if and only if the sum of the `k` largest entries of `a` is not
        positive.

    See Also
    --------
    project_topk_simplex : The same with a bound on the sum.

    Examples
    --------
    >>> from topksvm.projections import project_topk_cone
    >>> project_topk_cone([3.0, 1.0, -2.0], k=2)
    array([2., 2., 0.])
    """
    return _topk(a, check_k(k, a), np.inf, check_number("rho", rho, minimum=0.0), out)


def project_topk_simplex(
    a: ArrayLike, k: int, r: float = 1.0, *, rho: float = 0.0, out: Floats | None = None
) -> Floats:
    r"""Project onto the top-k simplex of radius `r`.

    .. math::
        \operatorname*{argmin}_x \; \tfrac12 \|a - x\|^2 + \tfrac{\rho}{2} \langle 1, x\rangle^2
        \quad\text{s.t.}\quad \langle 1, x \rangle \le r, \;
        0 \le x_j \le \tfrac1k \langle 1, x \rangle

    The domain of the dual of the loss `topk_hinge_alpha`; with ``rho = 1`` the dual step of the
    top-k multiclass SVM [1]_.

    Parameters
    ----------
    a : array-like of shape (d,) or (n, d)
        The vector to project, or one vector per row; rows are handled in parallel.
        float32 stays float32.
    k : int
        Between 1 and ``d``. No entry may exceed a k-th of the sum.
    r : float
        The radius, at least 0.
    rho : float
        The weight of the bias towards vectors orthogonal to the vector of ones, at least 0.
    out : ndarray, optional
        Where to write the result; it may be `a` itself.

    Returns
    -------
    x : ndarray of the shape of `a`
        The projection.

    References
    ----------
    .. [1] M. Lapin, M. Hein, B. Schiele, "Top-k Multiclass SVM", NIPS 2015, section 4.

    Examples
    --------
    >>> from topksvm.projections import project_topk_simplex
    >>> project_topk_simplex([3.0, 1.0, 0.9], k=2)
    array([0.5, 0.3, 0.2])
    """
    size = check_k(k, a)
    radius = check_number("r", r, minimum=0.0)
    return _topk(a, size, radius, check_number("rho", rho, minimum=0.0), out)


def _knapsack(
    a: ArrayLike,
    r: float,
    lo: float,
    hi: float,
    rho: float,
    equality: bool,
    out: Floats | None,
) -> Floats:
    def project(rows: Floats, start: int, stop: int, target: Floats, scale: float) -> None:
        work = make_workspace(rows.shape[1], rows.dtype)
        base = rows.shape[1] * (lo * scale)  # What the lower bounds use of the budget.
        low, high = lo * scale, hi * scale
        knapsack = Knapsack(max(r * scale - base, 0.0), high - low, rho, base, equality)
        project_rows_knapsack(rows, start, stop, low, high, knapsack, target, work)

    length = max(abs(lo), -hi, r if equality else 0.0)
    return project_rows(a, project, length, out)


def _topk(a: ArrayLike, k: int, r: float, rho: float, out: Floats | None) -> Floats:
    def project(rows: Floats, start: int, stop: int, target: Floats, scale: float) -> None:
        work = make_workspace(rows.shape[1], rows.dtype)
        project_rows_topk(rows, start, stop, k, r * scale, rho, target, work)

    return project_rows(a, project, 0.0, out)


def _check_reach(shape: tuple[int, ...], r: float, lo: float, hi: float, equality: bool) -> None:
    """Complain if no vector within the bounds has a sum of at most, or exactly, `r`."""
    if hi < lo:
        raise ValueError(f"hi = {hi} is below lo = {lo}; the bounds must satisfy lo <= hi.")
    size = shape[-1] if shape else 0
    rounding = 1e-12 * max(abs(r), size * abs(lo))
    if r < size * lo - rounding:
        raise ValueError(
            f"r = {r} cannot be met: {size} entries of at least lo = {lo} have a sum of at least "
            f"{size * lo}. Raise r or lower lo."
        )
    if equality and r > size * hi + rounding:
        raise ValueError(
            f"r = {r} cannot be met: {size} entries of at most hi = {hi} have a sum of at most "
            f"{size * hi}. Lower r, raise hi, or use equality=False."
        )


@on_warm_up
def _touch() -> None:
    for dtype in (np.float32, np.float64):
        rows = np.linspace(-1.0, 1.0, 64, dtype=dtype)
        project_simplex(rows)
        project_topk_simplex(rows, 2)
