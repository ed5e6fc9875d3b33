"""Workers that are killed in the middle of a fit, that come back, and that never were."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import ExitStack, contextmanager
from itertools import count, pairwise, product

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from solvers.cases import make_data, make_objective

from topksvm.distributed import DaskTopKLinearSVC, _dask_shards, _estimator, _tasks
from topksvm.distributed._workers import Workers

da = pytest.importorskip("dask.array", reason="needs topksvm[dask]")
from dask.distributed import Client, LocalCluster, Worker  # noqa: E402

from distributed_training.immediate import Done, ImmediateClient  # noqa: E402


@pytest.fixture
def all_shards(monkeypatch):
    """Return a list that receives the shards of each fit."""
    found = []

    class Watched(_dask_shards.DaskShards):
        def __init__(self, *args):
            super().__init__(*args)
            found.append(self)
            self.first_homes = list(self.homes)

    monkeypatch.setattr(_estimator, "DaskShards", Watched)
    return found


def kill(client, worker, after):
    """Kill a worker with SIGKILL, after a while, in the background."""
    pid = client.run(os.getpid, workers=[worker])[worker]
    timer = threading.Timer(after, os.kill, (pid, signal.SIGKILL))
    timer.start()
    return timer


def fit_and_kill(client, all_shards, at_round=0, n_killed=1, look=None):
    """Fit with workers that are killed while the round after `at_round` runs.

    `look` is called with the number of each round that has ended.
    """
    X, y = make_data(400, 30, 15)
    timers, rounds = [], count(1)

    def report(progress):  # noqa: ARG001
        number = next(rounds)
        if len(timers) < n_killed and number >= at_round:
            timers.extend(kill(client, home, 0.01) for home in all_shards[0].homes[:n_killed])
        if look is not None:
            look(number)

    model = DaskTopKLinearSVC(k=2, C=0.01, tol=1e-5, random_state=0, callback=report)
    model.fit(da.from_array(X, chunks=(90, -1)), y)
    assert len(timers) == n_killed
    objective = make_objective("topk_hinge_alpha", 2, 0.0, X, y, C=0.01, bias=1.0)
    W = np.hstack([model.coef_, model.intercept_[:, None]])
    assert model.certificate_.relative_gap <= 1e-5
    assert model.certificate_.primal == pytest.approx(objective.primal(W), rel=1e-9)
    return model


def lost_in(model):
    return [line["round"] - 1 for line in model.history_ if line["n_lost"]]


def shards_on(client):
    """Return the workers that hold shards."""
    return {worker for worker, n in client.run(lambda: len(_tasks._SHARDS)).items() if n}


@contextmanager
def another_worker(client):
    """One more worker, in a thread of this process, which is quick to start."""

    async def start():
        return await Worker(client.scheduler.address, nthreads=1)

    worker = client.sync(start)
    try:
        yield worker.address
    finally:
        client.sync(worker.close)


def test_a_worker_is_killed_and_its_shard_continues_from_the_snapshot(mortal_client, all_shards):
    """On the other worker, and then on a new one."""
    client, found = mortal_client, []
    with ExitStack() as stack:

        def look(number):
            if number > 12 and not found:
                found.extend([number, stack.enter_context(another_worker(client))])
            elif len(found) == 2 and number > found[0] + 2:
                found.append(shards_on(client))

        model = fit_and_kill(client, all_shards, at_round=7, look=look)
    (place,) = lost_in(model)
    history = model.history_
    assert history[place]["n_lost"] == 1
    assert history[place]["dual"] > 0.9 * history[place - 1]["dual"]
    (shards,) = all_shards
    _, newcomer, holders = found
    assert newcomer in holders
    assert shards.first_homes[0] not in holders
    assert holders <= set(shards.homes)


def test_a_worker_that_joins_without_a_loss_is_used(client, all_shards):
    found = []
    with ExitStack() as stack:

        def look(number):
            if number == 3:
                found.append(stack.enter_context(another_worker(client)))
            elif number == 8:
                found.append(shards_on(client))

        model = fit_and_kill(client, all_shards, n_killed=0, look=look)
    newcomer, holders = found
    assert newcomer in holders
    assert model.n_shards_ == len(holders) == 3
    assert [line["n_shards"] for line in model.history_[2:5]] == [2, 3, 3]
    assert not lost_in(model)
    duals = [line["dual"] for line in model.history_]
    assert all(later >= dual * (1 - 1e-12) for dual, later in pairwise(duals))


def test_all_workers_are_killed_and_nothing_was_kept(mortal_client, all_shards, monkeypatch):
    """New ones come up, are used, and the fit starts from zero."""
    client = mortal_client
    monkeypatch.setattr(_dask_shards, "SNAPSHOT_BYTES", 0)
    with ExitStack() as stack:
        later = threading.Timer(2.0, lambda: stack.enter_context(another_worker(client)))

        def look(number):
            if number == 3:
                later.start()

        model = fit_and_kill(client, all_shards, at_round=3, n_killed=2, look=look)
        later.join()
    assert sum(line["n_lost"] for line in model.history_) == 2
    (shards,) = all_shards
    assert not set(shards.first_homes) & set(shards.homes)


def workers_are_empty(client, seconds=10.0):
    """Shards are dropped by tasks that nobody waits for."""
    end = time.monotonic() + seconds
    while any(client.run(lambda: len(_tasks._SHARDS)).values()):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def test_nothing_stays_on_the_workers(client):
    X, y = make_data(60, 5, 7)
    DaskTopKLinearSVC(C=0.01).fit(da.from_array(X, chunks=(20, -1)), y)
    assert workers_are_empty(client)
    with pytest.raises(ValueError, match="contains NaN"):
        DaskTopKLinearSVC(C=0.01).fit(da.from_array(X * np.nan, chunks=(20, -1)), y)
    assert workers_are_empty(client)


def test_a_cluster_without_workers():
    X, y = make_data(60, 5, 7)
    cluster = LocalCluster(n_workers=0, processes=False, dashboard_address=":0")
    with (
        cluster,
        Client(cluster),
        pytest.raises(ValueError, match="has no workers; start some"),
    ):
        DaskTopKLinearSVC().fit(da.from_array(X, chunks=(20, -1)), y)


CLOSE_AT = ("survey", "build", "local-solve", "certify", "snapshot")


@contextmanager
def threads_as_workers():
    """Two workers in threads of this process, and a client of which nobody else knows."""
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client
    # A client that is closed cannot have them dropped; workers do so on their own, in time.
    _tasks._SHARDS.clear()


def fit_in_thread(model, X, y):
    """Fit in a thread, as a fit that hangs must not hang the test; return what it raised."""
    raised = []

    def fit():
        try:
            model.fit(X, y)
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=fit, daemon=True)
    thread.start()
    thread.join(40.0)
    assert not thread.is_alive(), "the fit hangs"
    return raised


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    ("task", "delay"),
    # After the last task there is nothing left to fail.
    [*product(CLOSE_AT, (None, 0.0, 0.02)), ("fetch", None)],
)
def test_a_client_that_is_closed_in_the_middle_of_a_fit(monkeypatch, task, delay):
    """Before a task is submitted, or from another thread while it runs."""
    X, y = make_data(200, 10, 8)
    closers = []
    with threads_as_workers() as client:
        submit = Client.submit

        def submit_and_close(self, function, *args, key=None, **options):
            is_time = f"topksvm-{task}-" in key and not closers
            if is_time and delay is None:
                closers.append(None)
                client.close()
            future = submit(self, function, *args, key=key, **options)
            if is_time and delay is not None:
                closers.append(threading.Timer(delay, client.close))
                closers[0].start()
            return future

        monkeypatch.setattr(Client, "submit", submit_and_close)
        model = DaskTopKLinearSVC(k=2, C=10.0, tol=1e-12, max_iter=200)
        model.local_ = "what was trained before"
        began = time.monotonic()
        (error,) = fit_in_thread(model, da.from_array(X, chunks=(50, -1)), y)
        if delay is not None:
            closers[0].join()
        assert type(error).__mro__[1] is RuntimeError
        assert str(error).startswith("The Dask client was closed during the fit; nothing was")
        assert error.__cause__ is None
        assert time.monotonic() - began < 30.0
        assert model.local_ == "what was trained before"
        assert not hasattr(model, "n_shards_")


def test_interrupts_during_a_fit(client):
    """One ends it with the model of the last round, a second one without a model."""
    X, y = make_data(400, 30, 15)
    rounds = count(1)
    pressed = 1

    def report(progress):  # noqa: ARG001
        if next(rounds) == 3:
            for _ in range(pressed):
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.1)  # Signals of one kind that come together are one.

    model = DaskTopKLinearSVC(k=2, C=1.0, tol=1e-13, random_state=0, callback=report)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model.fit(da.from_array(X, chunks=(90, -1)), y)
    assert len(model.history_) == 3
    objective = make_objective("topk_hinge_alpha", 2, 0.0, X, y, C=1.0, bias=1.0)
    W = np.hstack([model.coef_, model.intercept_[:, None]])
    assert model.certificate_.primal == pytest.approx(objective.primal(W), rel=1e-9)
    pressed, rounds = 2, count(1)
    with pytest.raises(KeyboardInterrupt):
        model.fit(da.from_array(X, chunks=(90, -1)), y)
    np.testing.assert_array_equal(model.coef_, W[:, :-1])
    assert workers_are_empty(client)


def test_an_error_in_the_callback_ends_the_fit(client):
    X, y = make_data(60, 5, 7)
    parts = da.from_array(X, chunks=(20, -1)), y
    model = DaskTopKLinearSVC(C=0.01).fit(*parts)
    old = model.coef_

    def fail(progress):
        raise LookupError(f"after {progress.passes} passes")

    with pytest.raises(LookupError, match=r"after \d+ passes"):
        model.set_params(callback=fail).fit(*parts)
    assert model.coef_ is old
    assert workers_are_empty(client)


def test_no_client(monkeypatch):
    import dask.distributed

    def no_client():
        raise ValueError("No global client found and no address provided")

    monkeypatch.setattr(dask.distributed, "get_client", no_client)
    with pytest.raises(ValueError, match="There is no Dask client; make one before fit"):
        DaskTopKLinearSVC().fit(da.zeros((5, 2)), da.zeros(5))


class SlowToFetch(Done):
    """A future whose result is there, but takes a second to fetch."""

    interruptions = 0

    def result(self, timeout=None):
        if timeout is not None and timeout < 1.0:
            self.interruptions += 1
            assert self.interruptions < 5
            raise TimeoutError
        return super().result()


def test_fetching_a_result_is_not_interrupted_to_look_after_the_workers():
    workers = Workers(ImmediateClient(a=1), "fit")
    assert workers.result(SlowToFetch(7), ["a"]) == 7
