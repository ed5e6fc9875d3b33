"""Rows read by the piece: the same optimum, nothing lost, and a run that can be killed."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from solvers.cases import complete
from solvers.objective import Objective
from topksvm import TopKLinearSVC
from topksvm.data import WindowReader, is_streamed, make_streamed_problem, open_source
from topksvm.datasets import make_ambiguous_classes
from topksvm.solvers import (
    SCALES,
    CheckpointError,
    CheckpointFolder,
    Checkpoints,
    Run,
    SDCAOptions,
    Setup,
    Status,
    Stopping,
    TrainingData,
    make_loss,
    train_on,
)
from topksvm.solvers._checkpoint import CURRENT, read_state
from topksvm.solvers._streaming import StreamedSDCA

N, D, M = 3000, 800, 15  # Rows so long that a piece of 64 KB holds few of them.
ROWS = 600
LIMIT = 9_580_000
"""Bytes that leave room for windows of that many rows, and not for all."""


def data(dtype=np.float32):
    X, y = make_ambiguous_classes(N, D, M, random_state=0)
    order = np.argsort(y, kind="stable")  # By class, as data sets often are: the hard case.
    return X[order].astype(dtype), y[order]


def model(**options):
    return TopKLinearSVC(
        **{"k": 3, "C": 0.1, "random_state": 0, "n_jobs": 1, "memory_limit": LIMIT} | options
    )


LOSS = make_loss("topk_hinge_alpha", 3)


class SlowSource:
    """Rows on a slow disk: some milliseconds for a piece, ten times that for a window."""

    def __init__(self, X, seconds):
        self.source, self.seconds = open_source(X), seconds
        self.shape, self.dtype = self.source.shape, self.source.dtype
        self.pieces = self.source.pieces

    def read(self, start, stop, out):
        time.sleep(self.seconds)
        self.source.read(start, stop, out)


def problem_of(X, y):
    source = X if isinstance(X, SlowSource) else open_source(X)
    return make_streamed_problem(source, y, np.full(len(y), 0.1), M, 0.0, ROWS)


def make_solver(X, y):
    return StreamedSDCA(LOSS, problem_of(X, y), SDCAOptions())


def one_pass(solver):
    """Visit all windows."""
    while solver.update(Stopping()) is None:
        pass


def position(folder):
    """Return how far the run has come whose checkpoint is there."""
    facts = read_state(folder / CURRENT)[1].facts
    return [facts[name] for name in ("n_passes", "windows_done")]


def half_precision(folder, d=D):
    """Write rows in random order, with the first features only, to one file and to two."""
    X, y = data(np.float16)
    order = np.random.default_rng(0).permutation(N)
    X, y = np.ascontiguousarray(X[order, :d]), y[order]
    np.save(folder / "all.npy", X)
    np.save(folder / "first.npy", X[:1000])
    np.save(folder / "second.npy", X[1000:])
    return X, y


def test_windows_hold_every_row_once_within_their_size():
    X = np.arange(400_000.0).reshape(1000, 400)
    reader = WindowReader(open_source(X), 300)
    for rng in (None, np.random.default_rng(0)):
        index = []
        for window in reader.read(reader.plan(rng)):
            assert len(window.x) <= 300
            np.testing.assert_array_equal(window.x, X[window.index])
            index.append(window.index.copy())
        order = np.concatenate(index)
        np.testing.assert_array_equal(np.sort(order), np.arange(1000))
        assert (rng is None) == (np.diff(order) == 1).all()


def test_the_certificate_is_right_and_the_optimum_that_in_memory():
    X, y = data()
    streamed = model(fit_intercept=False, tol=1e-4).fit(np.asarray(X, np.float16), y)
    wide = X.astype(np.float16).astype(np.float32)
    memory = model(fit_intercept=False, tol=1e-4).fit(wide, y)
    primal = Objective("topk_hinge_alpha", wide, y, 0.1, 3).primal(streamed.coef_)
    assert streamed.certificate_.primal == pytest.approx(primal, rel=1e-9)
    assert streamed.certificate_.relative_gap <= 1e-4
    assert streamed.certificate_.dual <= memory.certificate_.primal
    assert memory.certificate_.dual <= streamed.certificate_.primal
    # Sorted rows, small windows: not many more passes than full ones in memory.
    assert streamed.n_iter_ <= memory.n_iter_


def test_all_kinds_of_input(tmp_path):
    d = 100  # Not many, as Arrow reads column by column.
    X, y = half_precision(tmp_path, d)
    wide = X.astype(np.float32)
    fitting = {"memory_limit": 4_600_000}
    memory = model(**fitting).fit(wide, y)
    inputs = {
        "array": X,
        "map": np.load(tmp_path / "all.npy", mmap_mode="r"),
        "names": [str(tmp_path / "first.npy"), tmp_path / "second.npy"],
        "maps": [np.load(tmp_path / f"{n}.npy", mmap_mode="r") for n in ("first", "second")],
    }
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    dataset = pytest.importorskip("pyarrow.dataset")

    lists = pa.FixedSizeListArray.from_arrays(pa.array(wide.ravel()), d)
    parquet.write_table(pa.table({"x": lists}), tmp_path / "a.parquet", row_group_size=100)
    columns = pa.table({f"f{j}": wide[:, j] for j in range(d)})
    parquet.write_table(columns, tmp_path / "b.parquet", row_group_size=100)
    inputs |= {n: dataset.dataset(tmp_path / f"{n}.parquet") for n in ("a", "b")}
    for name, rows in inputs.items():
        found = model(**fitting).fit(rows, y)
        assert found.certificate_.relative_gap <= 1e-3, name
        assert found.certificate_.primal == pytest.approx(memory.certificate_.primal, rel=1e-3)
        assert found.coef_.dtype == np.float32
        scores = wide @ found.coef_.T + found.intercept_
        np.testing.assert_allclose(found.decision_function(rows), scores, rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(found.predict(rows), found.predict(wide))
        np.testing.assert_array_equal(found.predict_topk(rows), found.predict_topk(wide))
        assert found.score_topk(rows, y, 3) == found.score_topk(wide, y, 3)
        assert found.score(rows, y) == found.score(wide, y)


def test_bfloat16():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    X, y = data()
    found = model().fit(X.astype(ml_dtypes.bfloat16), y)
    wide = X.astype(ml_dtypes.bfloat16).astype(np.float32)
    assert found.score(wide, y) > 0.3
    assert found.certificate_.relative_gap <= 1e-3


def test_large_memory_maps_are_streamed_and_small_ones_are_not(tmp_path):
    X, y = data()
    np.save(tmp_path / "x.npy", X)
    rows = np.load(tmp_path / "x.npy", mmap_mode="r")
    for limit in (None, X.nbytes):
        assert not is_streamed(rows, limit)
        model(memory_limit=limit, warm_start=True).fit(rows, y)
    assert is_streamed(rows, X.nbytes - 1)
    with pytest.raises(ValueError, match="warm_start = True needs all rows in memory"):
        model(memory_limit=X.nbytes - 1, warm_start=True).fit(rows, y)
    found = model(memory_limit=X.nbytes - 1).fit(rows, y)
    assert found.certificate_.relative_gap <= 1e-3


def test_the_dual_never_falls_and_weights_follow_the_duals():
    X, y = data()
    solver, bounds = make_solver(X, y), []
    run = Run(solver, Stopping(max_iter=200))
    status = None
    while status is None:
        status = run.advance()
        bounds.append(solver.whole.dual)
    assert status is Status.SOLVED
    assert len(bounds) > 7
    assert (np.diff(bounds) >= -1e-9 * bounds[-1]).all()
    duals = solver.duals
    exact = np.zeros((M, D))
    for i in range(N):
        part = slice(duals.start[i], duals.start[i] + duals.count[i])
        values, classes = duals.values[part], duals.classes[part]
        np.add.at(exact, classes, -values[:, None] * X[i])
        exact[y[i]] += values.sum() * X[i]
    np.testing.assert_allclose(solver.whole.weights, exact, rtol=1e-4, atol=1e-5)


def test_drift_of_the_weights_is_noticed_and_repaired():
    solver = make_solver(*data())
    one_pass(solver)
    solver.certify()
    assert solver.drift < 1e-5
    right = solver.whole.weights.copy()
    solver.whole.weights[...] *= 1.01
    solver.certify()
    assert solver.drift == pytest.approx(0.01, rel=1e-2)
    np.testing.assert_array_equal(solver.whole.weights, right)


@pytest.mark.parametrize("windows", [3, 11])
def test_time_that_is_up_in_the_middle_of_a_pass(windows):
    """The model is that of the duals so far, and so is the certificate."""
    X, y = data()
    solver = make_solver(X, y)
    run = Run(solver, Stopping(tol=1e-8))
    for _ in range(windows - 1):
        assert run.advance() is None
    run.stopping = Stopping(tol=1e-8, max_time=1e-9)
    result = run.complete()
    per_pass = solver.n_windows
    assert result.status is Status.MAX_TIME
    assert (result.n_iter, solver.windows_done) == divmod(windows, per_pass)
    assert solver.windows_done > 0
    objective = Objective("topk_hinge_alpha", X, y, 0.1, 3, n_classes=M)
    certificate = result.certificate
    assert certificate.primal == pytest.approx(objective.primal(result.weights), rel=1e-9)
    assert certificate.dual == pytest.approx(objective.dual(result.duals), rel=1e-9)
    assert objective.violation(result.duals) <= 1e-9
    if windows < per_pass:
        n_visited = windows * ROWS
        assert np.count_nonzero(result.duals.count) <= n_visited
    exact = objective.weights(objective.dense(result.duals))
    scale = np.vdot(result.weights, exact) / np.vdot(exact, exact)
    assert np.abs(SCALES - scale).min() < 1e-6, "slightly larger weights may be better"
    np.testing.assert_allclose(result.weights, scale * exact, rtol=1e-5, atol=1e-6)


def test_resumed_at_any_window_the_model_is_the_same(tmp_path):
    X, y = data()
    plain = complete(make_solver(X, y), tol=1e-3)
    first_certificate = plain.history[0].epoch
    assert first_certificate < plain.n_iter, "one that is not within tol"

    def resumed(folder):
        return Run(make_solver(X, y), Stopping(1e-3), None, Checkpoints(folder, 0.0))

    with CheckpointFolder(tmp_path, {}) as folder:
        done = [0, 0]
        for windows in (1, 4, 3, 9):
            run = resumed(folder)
            assert [run.solver.n_passes, run.solver.windows_done] == done
            for _ in range(windows):
                assert run.advance() is None
            done = position(tmp_path)
            run.solver.stop_reading()
        run = resumed(folder)
        while run.solver.n_passes < first_certificate:
            assert run.advance() is None
        assert len(run.history) == 1
        run.solver.stop_reading()
        found = resumed(folder).complete()
    np.testing.assert_array_equal(found.weights, plain.weights)
    assert found.certificate == plain.certificate
    assert found.n_iter == plain.n_iter
    assert [line.gap for line in found.history] == [line.gap for line in plain.history]


def interrupt_after(passes, how):
    """Return a callback that interrupts a fit."""

    def callback(progress):
        if progress.passes == passes:
            how()

    return callback


def raise_interrupt():
    raise KeyboardInterrupt


def press_ctrl_c():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.1)  # For the main thread to hear of it.


@pytest.mark.parametrize("how", [raise_interrupt, press_ctrl_c])
def test_an_interrupted_fit_is_certified_and_goes_on_to_the_same_model(tmp_path, how):
    X, y = data()
    plain = model(tol=1e-4, checkpoint=tmp_path / "plain").fit(X, y)
    assert not (tmp_path / "plain" / CURRENT).exists()  # It took less than a minute.
    interrupted = model(tol=1e-4, checkpoint=tmp_path / "c", callback=interrupt_after(2, how))
    with pytest.warns(ConvergenceWarning, match="interrupted by the user"):
        interrupted.fit(X, y)
    assert interrupted.status_ == "interrupted"
    assert 1e-4 < interrupted.certificate_.relative_gap < 0.5
    assert position(tmp_path / "c") == [2, 0]
    found = model(tol=1e-4, checkpoint=tmp_path / "c").fit(X, y)
    np.testing.assert_array_equal(found.coef_, plain.coef_)
    assert found.certificate_ == plain.certificate_
    assert found.n_iter_ == plain.n_iter_


def _run_with_many_checkpoints(problem, folder):
    with CheckpointFolder(folder, {}) as place:
        solver = StreamedSDCA(LOSS, problem, SDCAOptions())
        Run(solver, Stopping(1e-4), None, Checkpoints(place, 0.0)).complete()


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_killed_at_twenty_random_moments(tmp_path):
    X, y = data()
    plain = complete(make_solver(X, y), tol=1e-4)
    problem = problem_of(SlowSource(X, 1e-3), y)
    rng = np.random.default_rng(0)
    positions = []
    for _ in range(20):
        process = multiprocessing.get_context("fork").Process(
            target=_run_with_many_checkpoints, args=(problem, tmp_path)
        )
        process.start()
        time.sleep(rng.uniform(0.05, 0.2))
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        if (tmp_path / CURRENT).exists():
            positions.append(position(tmp_path))
    assert positions == sorted(positions)
    assert len({tuple(place) for place in positions}) > 3
    with CheckpointFolder(tmp_path, {}) as folder:
        run = Run(make_solver(X, y), Stopping(1e-4), None, Checkpoints(folder))
        assert [run.solver.n_passes, run.solver.windows_done] == positions[-1]
        np.testing.assert_array_equal(run.complete().weights, plain.weights)


def _fit_and_leave_on_sigterm(folder, has_begun):
    def leave(number, frame):  # noqa: ARG001
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, leave)
    X, y = data()
    examples = TrainingData(SlowSource(X, 3e-3), y, np.full(N, 0.1), M)
    setup = Setup(stopping=Stopping(1e-9), callback=lambda _: has_begun.set())
    train_on(examples, LOSS, setup, checkpoint=folder, memory_limit=LIMIT)


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_sigterm_saves_and_leaves(tmp_path):
    """The program has the handler, as our command line does; the fit saves and gives way."""
    fork = multiprocessing.get_context("fork")
    has_begun = fork.Event()
    process = fork.Process(target=_fit_and_leave_on_sigterm, args=(tmp_path, has_begun))
    process.start()
    assert has_begun.wait(60)
    assert not (tmp_path / CURRENT).exists()
    os.kill(process.pid, signal.SIGTERM)
    process.join()
    assert process.exitcode == 143
    assert position(tmp_path) >= [1, 1]  # The window in which it came was ended.


@pytest.mark.parametrize(
    ("options", "what"),
    [({"C": 0.2}, "weights"), ({"k": 2}, "loss"), ({"random_state": 1}, "seed")],
)
def test_other_parameters_are_named(tmp_path, options, what):
    X, y = data()
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model(checkpoint=tmp_path, callback=interrupt_after(1, raise_interrupt)).fit(X, y)
    with pytest.raises(CheckpointError, match=f"another run: its {what}"):
        model(checkpoint=tmp_path, **options).fit(X, y)
    changed = X.copy()
    changed[0, 0] += 1
    with pytest.raises(CheckpointError, match="its data"):
        model(checkpoint=tmp_path).fit(changed, y)


def bad_row():
    X, _ = data(np.float16)
    X[1234, 3] = np.nan
    return X


@pytest.mark.parametrize(
    ("options", "X", "message"),
    [
        ({}, bad_row, "Row 1234 of X holds NaN"),
        ({"memory_limit": 1000}, lambda: data(np.float16)[0], "too little.*at least"),
        ({"warm_start": True}, lambda: data(np.float16)[0], "warm_start.*checkpoint"),
        ({"loss": "topk_entropy"}, lambda: data(np.float16)[0], "L-BFGS.*in memory"),
        ({}, lambda: data(np.float16)[0][:-1], "2999 rows but y has 3000"),
        ({}, lambda: ["no-such.npy"], "cannot read the shard no-such.npy"),
    ],
)
def test_bad_input(options, X, message):
    with pytest.raises(ValueError, match=message):
        model(**options).fit(X(), data()[1])


def test_shards_of_other_widths_and_sparse_rows(tmp_path):
    X, y = half_precision(tmp_path)
    np.save(tmp_path / "wide.npy", np.zeros((5, D + 1), np.float16))
    with pytest.raises(ValueError, match=r"wide.npy has 801 features but .*first.npy has 800"):
        model().fit([tmp_path / "first.npy", tmp_path / "wide.npy"], y)
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        model(checkpoint=tmp_path).fit(sp.csr_array(X.astype(np.float32)), y)
    fitted = model(tol=1e-1).fit(X, y)
    with pytest.raises(ValueError, match="801 features"):
        fitted.predict([tmp_path / "wide.npy"])
