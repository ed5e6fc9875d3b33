"""The workers of a cluster: who is there, tasks for them, and results for as long as they live."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from typing import Any

from topksvm._interrupts import raise_if_abandoned
from topksvm.distributed._parts import import_dask
from topksvm.distributed._tasks import ShardLostError

POLL = 0.5
"""Seconds between two looks at which workers there are."""

PATIENCE = 60.0
"""Seconds to wait for a worker if there is none, or for a result that is there."""


class WorkersLostError(RuntimeError):
    """What was asked of the workers cannot be had any more."""


class ClientClosedError(RuntimeError):
    """The client was closed while it was needed."""


def is_closed(client: Any) -> bool:
    """Return whether a client has been closed, or is about to be."""
    return getattr(client, "status", None) in ("closing", "closed")


def current_client() -> Any:
    """Return the client of the cluster; complain if there is none, or no worker."""
    try:
        client = import_dask().distributed.get_client()
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


@contextmanager
def explain_closed(client: Any) -> Iterator[None]:
    """Say so if what the block raises is due to a client that somebody has closed meanwhile.

    Which error that is depends on what the client was about to do.
    """
    try:
        yield
    except (Exception, CancelledError, asyncio.CancelledError):
        if not is_closed(client):
            raise
        raise ClientClosedError(
            "The Dask client was closed during the fit; nothing was trained. Connect again, with a "
            "new Client, and fit again."
        ) from None


class Workers:
    """What a fit, of the name `token`, wants of the workers of a client."""

    def __init__(self, client: Any, token: str) -> None:
        self.client, self.token = client, token
        self.n_submitted = 0

    def threads(self) -> dict[str, int]:
        """Return the workers with their threads."""
        self.check_client()
        return dict(self.client.nthreads())

    def check_client(self) -> None:
        """Complain if the client is closed, which might look like lost workers, or no answer."""
        if is_closed(self.client):
            raise ClientClosedError("The Dask client was closed.")

    def wait(self) -> dict[str, int]:
        """Return the workers with their threads; wait for one if there is none."""
        deadline = time.monotonic() + PATIENCE
        while not (alive := self.threads()):
            if time.monotonic() > deadline:
                raise RuntimeError(
                    f"The cluster has had no worker for {PATIENCE:.0f} s; start workers and fit "
                    "again."
                )
            time.sleep(POLL)
        return alive

    def submit(self, name: str, task: Any, *args: Any, **options: Any) -> Any:
        """Return a future of the task, which is called ``topksvm-name`` on the dashboard.

        Dask takes words of eight letters, the first from a to f, for a hash and leaves them out.
        """
        self.check_client()
        # Numbered, as a task that changes a shard must never be taken for one that is done.
        self.n_submitted += 1
        key = f"topksvm-{name}-{self.n_submitted}-{self.token}"
        return self.client.submit(task, *args, key=key, pure=False, **options)

    def results(self, futures: Sequence[Any], needed: Collection[str]) -> list[Any]:
        """Return the results of all; they should be small."""
        if not futures:
            return []
        together = self.submit("collect", list, futures)
        results: list[Any] = self.result(together, needed)
        # Or else Dask would compute them again if they were lost, until they are garbage here.
        for future in (together, *futures):
            future.release()
        return results

    def result(self, future: Any, needed: Collection[str]) -> Any:
        """Return the result, unless it can never be had, since one of the `needed` is gone.

        Tasks that are tied to a worker that is gone would wait for it for ever. Looking after the
        workers now and then must not interrupt Dask while it fetches the result: it would begin
        anew each time, and on a slow connection never come to an end.
        """
        distributed = import_dask().distributed
        has_ended = threading.Event()
        future.add_done_callback(lambda _: has_ended.set())
        while True:
            raise_if_abandoned()
            if has_ended.wait(POLL):
                try:
                    return future.result(timeout=PATIENCE)
                except TimeoutError:
                    if future.status == "error":
                        raise
                except (ShardLostError, distributed.KilledWorker, CancelledError) as error:
                    self.check_client()
                    raise WorkersLostError from error
            if not set(needed) <= set(self.threads()):
                raise WorkersLostError

    def settle(self, futures: Sequence[Any]) -> None:
        """Wait until the tasks have ended, however they do, but not for long."""
        distributed = import_dask().distributed
        deadline = time.monotonic() + PATIENCE
        for future in futures:
            with suppress(TimeoutError, CancelledError, distributed.KilledWorker):
                future.result(timeout=max(0.0, deadline - time.monotonic()))
