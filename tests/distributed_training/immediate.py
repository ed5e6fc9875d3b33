"""A client that runs each task at once in this process, on workers that exist in name only."""

from __future__ import annotations

import dask

from topksvm.distributed import _tasks


class Done:
    """A future whose task has run, or that waits for a worker that is gone."""

    key = ""

    def __init__(self, value=None, error=None):
        self.value, self.error = value, error
        self.status = "finished" if error is None else "pending"

    def release(self):
        """Nothing is kept."""

    def add_done_callback(self, callback):
        """Call back at once, or never."""
        if not isinstance(self.error, TimeoutError):
            callback(self)

    def result(self, timeout=None):  # noqa: ARG002
        if self.error is not None:
            raise self.error
        return self.value


class ImmediateClient:
    """What DaskShards and DaskData want of a client; shards die with their worker."""

    def __init__(self, **threads):
        self.threads, self.places = threads, {}

    def nthreads(self):
        return self.threads

    def who_has(self, blocks):  # noqa: ARG002
        return {}

    def gather(self, futures):
        return [future.result() for future in futures]

    def compute(self, tasks, workers=(), allow_other_workers=True):  # noqa: ARG002
        return [Done(value) for value in dask.compute(*tasks, scheduler="sync")]

    def submit(self, task, *args, key, pure=True, workers=()):  # noqa: ARG002
        if workers and workers[0] not in self.threads:
            return Done(error=TimeoutError())
        try:
            done = Done(task(*values_of(args)))
        except Exception as error:  # As Dask does: it belongs to the future.
            return Done(error=error)
        if "-build-" in key:
            self.places[args[0].key] = workers[0]
        return done

    def lose(self, worker):
        """Take a worker away, with its shards."""
        del self.threads[worker]
        for shard, place in list(self.places.items()):
            if place == worker:
                _tasks._SHARDS.pop(shard, None)


def values_of(value):
    """Replace the futures, however deep in lists, by their results."""
    if isinstance(value, Done):
        return value.result()
    if isinstance(value, list | tuple) and type(value) in (list, tuple):
        return type(value)(map(values_of, value))
    return value
