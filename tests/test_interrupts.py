"""Ctrl-C at any moment: a model with a right certificate, or KeyboardInterrupt."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings

import pytest

from topksvm._interrupts import StopRequested, raise_if_abandoned, raise_if_stopped, stoppable

PROGRAM = """
import json, os, signal, sys, threading, time, warnings
import numpy as np
signal.signal(signal.SIGINT, signal.default_int_handler)  # Shells may have it ignored.
warnings.simplefilter("ignore")
import topksvm
from topksvm import TopKLinearSVC, TopKLinearSVCCV, TopKSVC
from topksvm.datasets import make_ambiguous_classes

what, delays = sys.argv[1], json.loads(sys.argv[2])
rng = np.random.default_rng(0)
X = rng.standard_normal((3000, 40)).astype(np.float32)
y = (X[:, :12] + 2 * rng.standard_normal((3000, 12))).argmax(axis=1)

def fit(X, tol, n=None):
    kind = {"tol": tol, "random_state": 0, "max_iter": 100_000}
    if what == "hinge":
        return TopKLinearSVC(k=3, C=100.0, **kind).fit(X, y[:n])
    if what == "softmax":
        return TopKLinearSVC(loss="softmax", C=1e4, **kind).fit(X, y[:n])
    if what == "streamed":
        return TopKLinearSVC(k=3, C=100.0, **kind).fit(X.astype(np.float16), y[:n])
    if what == "kernel":
        return TopKSVC(k=3, C=100.0, **kind).fit(X[:1500], y[:n][:1500])
    if what == "cv":
        return TopKLinearSVCCV(ks=(3,), Cs=[0.1, 100.0], **kind).fit(X, y[:n])
    Cs = [0.01, 1.0, 100.0, 1e3, 1e4]
    return topksvm.path(X, y[:n], "topk_hinge_alpha", Cs, tol=tol, k=3, seed=0)

fit(X[:300], 0.5, 300)  # Compiles.

def interrupt():
    for delay in delays:
        time.sleep(delay)
        os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.01)
    has_ended.set()

def objective(square, scores, C, k=3):
    n = len(scores)
    h = scores - scores[np.arange(n), y[:n]][:, None]
    if what == "softmax":
        top = h.max(axis=1)
        losses = top + np.log(np.exp(h - top[:, None]).sum(axis=1))
    else:
        h[np.arange(n), y[:n]] = -np.inf
        losses = np.maximum(0.0, np.sort(h + 1.0, axis=1)[:, -k:].mean(axis=1))
    return 0.5 * square + C * float(losses.sum())

def of_weights(W, X, C):
    W = W.astype(np.float64)
    return objective(float((W**2).sum()), X.astype(np.float64) @ W.T, C)

thread = threading.Thread(target=interrupt, daemon=True)
has_ended = threading.Event()
outcome, claims = "model", []
handler = signal.getsignal(signal.SIGINT)
try:
    thread.start()
    found = fit(X, 1e-12)
except KeyboardInterrupt:
    outcome = "KeyboardInterrupt"
while not has_ended.is_set():  # An interrupted join would take the thread for ended.
    try:
        time.sleep(0.01)
    except KeyboardInterrupt:
        pass
if outcome == "model":
    if what == "path":
        claims = [(r.certificate, of_weights(r.weights, X, C)) for C, r in found]
    elif what == "kernel":
        square = 0.0
        if len(found.support_):  # Without any there was no time for a step.
            at_support = found.decision_function(found.support_vectors_).astype(np.float64)
            square = float(np.vdot(found.dual_coef_.T, at_support))
        scores = found.decision_function(X[:1500]).astype(np.float64)
        claims = [(found.certificate_, objective(square, scores, 100.0))]
    else:
        wide = X.astype(np.float16).astype(np.float32) if what == "streamed" else X
        with_one = np.column_stack([wide, np.ones(len(wide), np.float32)])
        W = np.column_stack([found.coef_, found.intercept_])
        C = found.best_params_[3]["C"] if what == "cv" else 1e4 if what == "softmax" else 100.0
        claims = [(found.certificate_, of_weights(W, with_one, C))]
errors = [abs(true - claimed.primal) / true for claimed, true in claims]
is_same = signal.getsignal(signal.SIGINT) is handler
print(json.dumps([outcome, len(claims), max(errors, default=0.0), is_same]))
"""


def run(what, delays):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM), what, json.dumps(delays)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("what", ["hinge", "softmax", "streamed", "kernel", "path", "cv"])
@pytest.mark.parametrize(
    "delays", [[0.003], [0.4], [0.3, 0.01], [0.1] + 9 * [0.002]], ids=["early", "1", "2", "10"]
)
def test_interrupted_fits(what, delays):
    """A streamed fit returned a wrong certificate after two; a path went on for 11 seconds."""
    outcome, n_points, error, is_same = run(what, delays)
    assert is_same
    assert error < (1e-4 if what == "kernel" else 1e-6)  # K and its duals are float32.
    if len(delays) > 1 or what == "cv":
        assert outcome in ("model", "KeyboardInterrupt")
    elif delays == [0.4]:
        assert outcome == "model"
        assert n_points < 5


def test_work_stops_at_a_safe_place():
    seen = []

    def work():
        try:
            while True:
                time.sleep(0.01)
                raise_if_stopped()
        except StopRequested:
            seen.append("stopped")
            return "result"

    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    assert stoppable(work) == "result"
    assert seen == ["stopped"]


def test_a_second_interrupt_does_not_wait_for_a_result():
    def work():
        while True:
            time.sleep(0.01)
            raise_if_abandoned()

    for delay in (0.1, 0.2):
        threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT)).start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        stoppable(work)
    assert time.monotonic() - start > 0.15


def test_errors_of_the_work_are_raised_here_and_nested_work_is_called_as_it_is():
    def fail():
        raise ValueError("of the work")

    with pytest.raises(ValueError, match="of the work"):
        stoppable(lambda: stoppable(fail))
    names = []
    stoppable(lambda: stoppable(lambda: names.append(threading.current_thread().name)))
    assert names == ["topksvm-work"]


def test_an_exception_of_a_signal_handler_ends_the_work_first():
    ended = []

    def work():
        try:
            while True:
                time.sleep(0.01)
                raise_if_stopped()
        finally:
            ended.append(True)

    def leave(number, frame):  # noqa: ARG001
        raise SystemExit(143)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGTERM)).start()
        with pytest.raises(SystemExit):
            stoppable(work)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert ended == [True]


def test_a_fit_changes_nothing_of_the_process():
    import numpy as np
    from threadpoolctl import threadpool_info

    from topksvm import TopKLinearSVC

    def state():
        mask = os.umask(0)
        os.umask(mask)
        return (
            [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)],
            mask,
            [entry["num_threads"] for entry in threadpool_info()],
            list(warnings.filters),
            np.random.get_state()[1].tolist(),  # noqa: NPY002 -- it must not change.
        )

    X = np.random.default_rng(0).standard_normal((40, 3))
    y = np.arange(40) % 4
    before = state()
    TopKLinearSVC(C=0.01).fit(X, y)
    TopKLinearSVC(C=0.01).fit(X.astype(np.float16), y)
    TopKLinearSVC(loss="softmax", C=0.01).fit(X, y)
    assert state() == before
