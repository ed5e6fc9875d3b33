"""Checkpoints with a right hash and a wrong content are refused, and the one before is used."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from topksvm.data import make_streamed_problem, open_source
from topksvm.solvers import CheckpointFolder, Checkpoints, Run, SDCAOptions, Stopping, make_loss
from topksvm.solvers._checkpoint import (
    CURRENT,
    PREVIOUS,
    CheckpointError,
    Snapshot,
    read_state,
    write_state,
)
from topksvm.solvers._streaming import StreamedSDCA

N, D, M = 200, 6, 8
STOPPING = Stopping(tol=1e-6, max_iter=40)


@dataclass(frozen=True)
class Rows:
    """Rows in pieces of ten, whatever size is asked for."""

    X: np.ndarray

    @property
    def shape(self):
        return self.X.shape

    @property
    def dtype(self):
        return self.X.dtype

    def pieces(self, size):  # noqa: ARG002
        return [(start, start + 10) for start in range(0, N, 10)]

    def read(self, start, stop, out):
        out[...] = self.X[start:stop]


def make_solver():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((N, D))
    y = (X @ rng.standard_normal((D, M)) + rng.gumbel(size=(N, M))).argmax(axis=1)
    problem = make_streamed_problem(open_source(Rows(X)), y, np.ones(N), M, 1.0, 60)
    return StreamedSDCA(make_loss("topk_hinge_alpha", 2), problem, SDCAOptions(seed=1))


def updates(solver, count):
    run = Run(solver, STOPPING)
    for _ in range(count):
        assert run.advance() is None
    return run


@pytest.fixture
def folder(tmp_path):
    with CheckpointFolder(tmp_path / "state", {}) as opened:
        yield opened


def write_two(folder):
    """Write checkpoints after 9 and after 10 windows."""
    solver = make_solver()
    checkpoints, run = Checkpoints(folder, 0.0), updates(solver, 9)
    checkpoints.save(solver, run.history)
    run.advance()
    checkpoints.save(solver, run.history)


def change(folder, name, edit):
    identity, snapshot = read_state(folder.folder / name)
    facts, arrays = dict(snapshot.facts), {k: v.copy() for k, v in snapshot.arrays.items()}
    edit(facts, arrays)
    write_state(folder.folder / name, identity, Snapshot(facts, arrays))


def damage(name, value):
    def edit(facts, arrays):
        (facts if name in facts else arrays[name])[name if name in facts else ...] = value

    return edit


def stretch(facts, arrays):  # noqa: ARG001
    arrays["values"] *= 1000.0


def true_classes(facts, arrays):  # noqa: ARG001
    labels = make_solver().problem.examples.labels
    some = arrays["count"] > 0
    arrays["classes"][arrays["start"][some]] = labels[some]


def one_line(line):
    def edit(facts, arrays):  # noqa: ARG001
        facts["history"] = [line]

    return edit


GOOD_LINE = {"epoch": 1, "seconds": 0.1, "primal": 3.0, "dual": 2.0, "gap": 1.0}
DAMAGES = {
    "NaN weights": damage("weights", np.nan),
    "huge weights": damage("weights", 1e305),
    "infinite sum of weights": damage("total", np.inf),
    "NaN sums": damage("sums", np.nan),
    "duals outside of their set": stretch,
    "duals of the true classes": true_classes,
    "negative duals": damage("values", -1.0),
    "counts beyond the log": damage("count", 10**6),
    "classes out of range": damage("classes", M),
    "more passes than can be": damage("n_passes", 10**400),
    "more windows than can be": damage("windows_done", 10**6),
    "a correction that is no number": damage("gap_correction", float("nan")),
    "a history with NaN": one_line(GOOD_LINE | {"primal": float("nan")}),
    "a history with a negative gap": one_line(GOOD_LINE | {"dual": 8.0, "gap": -5.0}),
    "a history with another gap": one_line(GOOD_LINE | {"gap": 0.5}),
}


@pytest.mark.parametrize("what", DAMAGES)
def test_a_wrong_content_is_refused_and_the_checkpoint_before_is_used(what, folder):
    write_two(folder)
    change(folder, CURRENT, DAMAGES[what])
    with pytest.warns(RuntimeWarning, match="earlier checkpoint"):
        run = Run(make_solver(), STOPPING, checkpoints=Checkpoints(folder))
    whole = make_solver()
    updates(whole, 9)
    np.testing.assert_array_equal(run.solver.whole.weights, whole.whole.weights)
    change(folder, PREVIOUS, DAMAGES[what])
    fresh = make_solver()
    with pytest.raises(CheckpointError, match="There is no other checkpoint"):
        Run(fresh, STOPPING, checkpoints=Checkpoints(folder))
    assert fresh.n_passes == 0
    assert not fresh.whole.weights.any()


def test_a_run_resumed_after_any_window_is_the_same_to_the_bit(folder):
    """The last certificate may have failed, of which a resumed run must know."""
    stopping = Stopping(tol=1e-4, max_iter=300)
    whole = Run(make_solver(), stopping).complete()
    assert len(whole.history) > 1
    solver = make_solver()
    run, checkpoints = Run(solver, stopping), Checkpoints(folder, 0.0)
    status, n_windows, n_lines = None, 0, 0
    while status is None:
        status = run.advance()
        n_windows += 1
        is_after_certificate, n_lines = len(run.history) > n_lines, len(run.history)
        if status is None and (is_after_certificate or n_windows % 150 == 0):
            checkpoints.save(solver, run.history)
            resumed = Run(make_solver(), stopping, checkpoints=Checkpoints(folder)).complete()
            np.testing.assert_array_equal(resumed.weights, whole.weights)
            assert resumed.n_iter == whole.n_iter
            assert resumed.certificate == whole.certificate
    assert n_lines > 1
