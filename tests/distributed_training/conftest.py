"""Real clusters of two worker processes: one for all tests of this folder, and some to break."""

from __future__ import annotations

import subprocess
import sys
import warnings
from contextlib import ExitStack, contextmanager

import pytest

SETTINGS = {
    "distributed.comm.timeouts.connect": "10s",
    "distributed.nanny.environ.OMP_NUM_THREADS": "1",
    "distributed.worker.daemon": True,
}


@contextmanager
def cluster(n_workers):
    """Start a scheduler, and workers in processes that are started again if they die."""
    pytest.importorskip("distributed", reason="needs topksvm[dask]")
    import dask
    from dask.distributed import Client, LocalCluster

    with warnings.catch_warnings(), dask.config.set(SETTINGS):
        # Dask's own, about ports in use and clean-up of processes that tests have killed.
        warnings.filterwarnings("ignore", module="distributed")
        local = LocalCluster(
            n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=":0"
        )
        with local, Client(local) as client:
            yield client


@pytest.fixture(scope="package")
def client():
    """Two workers that no test kills."""
    with cluster(2) as client:
        client.wait_for_workers(2, timeout=60)
        yield client


@pytest.fixture
def mortal_client():
    """Two workers to be killed: Dask does not start them again, and so cannot fail to."""
    command = [sys.executable, "-m", "distributed.cli.dask_worker", "--no-nanny", "--nthreads=1"]
    with cluster(0) as client, ExitStack() as stack:
        for _ in range(2):
            address = client.scheduler.address
            worker = stack.enter_context(subprocess.Popen([*command, address]))
            stack.callback(worker.kill)
        client.wait_for_workers(2, timeout=60)
        yield client
