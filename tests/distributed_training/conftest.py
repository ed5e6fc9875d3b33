"""A real cluster of two worker processes, one for all tests of this folder."""

from __future__ import annotations

import warnings

import pytest

SETTINGS = {
    "distributed.comm.timeouts.connect": "10s",
    "distributed.nanny.environ.OMP_NUM_THREADS": "1",
    "distributed.worker.daemon": True,
}


@pytest.fixture(scope="package")
def client():
    """Two processes with one thread each."""
    pytest.importorskip("distributed", reason="needs topksvm[dask]")
    import dask
    from dask.distributed import Client, LocalCluster

    with warnings.catch_warnings(), dask.config.set(SETTINGS):
        # Dask's own, about ports in use and clean-up of processes that tests have killed.
        warnings.filterwarnings("ignore", module="distributed")
        cluster = LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        )
        with cluster, Client(cluster) as client:
            yield client
