"""What DaskTopKLinearSVC says about parameters and clusters that it cannot work with."""

from __future__ import annotations

from typing import Any

import numpy as np

from topksvm.distributed._parts import import_dask


def check_supported(name: str, loss: Any, solver: str, warm_start: bool) -> None:
    """Complain about parameters of TopKLinearSVC that have no meaning on shards."""
    if not hasattr(type(loss), "dual_step"):
        raise ValueError(
            f"loss = {name!r} has no dual step, which training on shards is made of. Use a top-k "
            "hinge or 'softmax', or TopKLinearSVC on one machine."
        )
    if solver == "lbfgs":
        raise ValueError(
            "solver = 'lbfgs' does not run on shards; use 'auto' or 'sdca', or TopKLinearSVC on "
            "one machine."
        )
    if warm_start:
        raise ValueError(
            "warm_start = True is not possible here, as the dual variables are gone when a fit "
            "ends; set it to False."
        )


def current_client() -> Any:
    """Return the client of the cluster; complain if there is none, or no worker."""
    dask = import_dask()
    try:
        client = dask.distributed.get_client()
    except ValueError as error:
        raise ValueError(
            "There is no Dask client; make one before fit: from dask.distributed import Client; "
            "client = Client() for this machine, Client(address) for a cluster."
        ) from error
    if not client.nthreads():
        raise ValueError(
            "The Dask cluster has no workers; start some, and client.wait_for_workers(1) before "
            "fit."
        )
    return client


def supported_dtype(dtype: Any) -> str:
    """Return the name of a precision to compute in; complain unless it is one."""
    name = np.dtype(dtype).name
    if name not in ("float32", "float64"):
        raise ValueError(
            f"dtype = {dtype!r} is not supported; it must be float32, float64, or None for that "
            "of X."
        )
    return name
