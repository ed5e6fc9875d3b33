"""Real clusters of two worker processes: one for all tests of this folder, and some to break."""

from __future__ import annotations

import warnings
from contextlib import contextmanager

import pytest

SETTINGS = {
    "distributed.comm.timeouts.connect": "10s",
    "distributed.nanny.environ.OMP_NUM_THREADS": "1",
    "distributed.worker.daemon": True,
    # Workers are forks of one process, which has imported what they need.
    "distributed.worker.multiprocessing-method": "forkserver",
}


@contextmanager
def cluster_of_two():
    """Start two worker processes with one thread each; yield a client."""
    pytest.importorskip("distributed", reason="needs topksvm[dask]")
    import dask
    from dask.distributed import Client, LocalCluster
    from distributed.utils import get_mp_context

    with warnings.catch_warnings(), dask.config.set(SETTINGS):
        # Dask's own, about ports in use and clean-up of processes that tests have killed.
        warnings.filterwarnings("ignore", module="distributed")
        get_mp_context().set_forkserver_preload(["distributed", "topksvm.distributed"])
        cluster = LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        )
        with cluster, Client(cluster) as client:
            client.wait_for_workers(2, timeout=60)
            yield client


@pytest.fixture(scope="package")
def client():
    """Two workers that no test kills."""
    with cluster_of_two() as client:
        yield client


@pytest.fixture
def mortal_client():
    """Two workers to be killed. Dask starts them again, but may fail to: no test waits for it."""
    with cluster_of_two() as client:
        yield client
