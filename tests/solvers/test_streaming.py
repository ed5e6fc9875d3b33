"""Rows read by the piece: the same optimum, nothing lost, and a run that can be killed."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time

import numpy as np
import pytest
import scipy.sparse as sp

from solvers.objective import Objective
from topksvm import TopKLinearSVC
from topksvm.data._sources import open_source
from topksvm.data._windows import WindowReader
from topksvm.datasets import make_ambiguous_classes
from topksvm.estimators import _streamed
from topksvm.solvers import _checkpoint, _sources
from topksvm.solvers._checkpoint import CURRENT, CheckpointError, CheckpointFolder
from topksvm.solvers._sdca import SDCAOptions
from topksvm.solvers._solve import make_loss
from topksvm.solvers._streaming import StreamedSDCA, make_streamed_problem

N, D, M = 3000, 12, 15
LIMIT = 1_726_000
"""Bytes that leave room for windows of some hundred rows."""


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(_sources, "MIN_PIECE", 1500)
    monkeypatch.setattr(_streamed, "MIN_PIECE", 1500)


def data(dtype=np.float32):
    X, y = make_ambiguous_classes(N, D, M, random_state=0)
    order = np.argsort(y, kind="stable")  # By class, as data sets often are: the hard case.
    return X[order].astype(dtype), y[order]


def model(**options):
    return TopKLinearSVC(
        **{"k": 3, "C": 0.1, "random_state": 0, "n_jobs": 1, "memory_limit": LIMIT} | options
    )


def streamed_run(X, y, rows=400, tol=1e-3, after=None):
    problem = make_streamed_problem(open_source(X), y, np.full(len(y), 0.1), M, 0.0, rows)
    loss = make_loss("topk_hinge_alpha", 3)
    return StreamedSDCA(loss, problem, SDCAOptions(tol, 200), after)


def half_precision(folder):
    X, y = data(np.float16)
    np.save(folder / "all.npy", X)
    np.save(folder / "first.npy", X[:1000])
    np.save(folder / "second.npy", X[1000:])
    return X, y


def test_windows_hold_every_row_once_within_their_size():
    X = np.arange(4000.0).reshape(1000, 4)
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
    streamed = model(fit_intercept=False).fit(np.asarray(X, np.float16), y)
    wide = X.astype(np.float16).astype(np.float32)
    memory = model(fit_intercept=False).fit(wide, y)
    primal = Objective("topk_hinge_alpha", wide, y, 0.1, 3).primal(streamed.coef_)
    assert streamed.certificate_.primal == pytest.approx(primal, rel=1e-9)
    assert streamed.certificate_.relative_gap <= 1e-3
    assert streamed.certificate_.dual <= memory.certificate_.primal
    assert memory.certificate_.dual <= streamed.certificate_.primal
    # Sorted rows, small windows: not many more passes than full ones in memory.
    assert streamed.n_iter_ <= memory.n_iter_


def test_all_kinds_of_input(tmp_path):
    X, y = half_precision(tmp_path)
    wide = X.astype(np.float32)
    memory = model().fit(wide, y)
    inputs = {
        "array": X,
        "map": np.load(tmp_path / "all.npy", mmap_mode="r"),
        "names": [str(tmp_path / "first.npy"), tmp_path / "second.npy"],
        "maps": [np.load(tmp_path / f"{n}.npy", mmap_mode="r") for n in ("first", "second")],
    }
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    dataset = pytest.importorskip("pyarrow.dataset")

    lists = pa.FixedSizeListArray.from_arrays(pa.array(wide.ravel()), D)
    parquet.write_table(pa.table({"x": lists}), tmp_path / "a.parquet", row_group_size=100)
    columns = pa.table({f"f{j}": wide[:, j] for j in range(D)})
    parquet.write_table(columns, tmp_path / "b.parquet", row_group_size=100)
    inputs |= {n: dataset.dataset(tmp_path / f"{n}.parquet") for n in ("a", "b")}
    for name, rows in inputs.items():
        found = model().fit(rows, y)
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


def test_large_memory_maps_are_streamed_and_small_ones_are_not(tmp_path, monkeypatch):
    X, y = data()
    np.save(tmp_path / "x.npy", X)
    rows = np.load(tmp_path / "x.npy", mmap_mode="r")
    calls = []
    real = _streamed.train_streamed
    monkeypatch.setattr(_streamed, "train_streamed", lambda task: calls.append(task) or real(task))
    model(memory_limit=None).fit(rows, y)
    model(memory_limit=X.nbytes).fit(rows, y)
    assert not calls
    np.save(tmp_path / "wide.npy", np.pad(X, ((0, 0), (0, 1200))))
    rows = np.load(tmp_path / "wide.npy", mmap_mode="r")
    found = model(memory_limit=rows.nbytes - 1).fit(rows, y)
    assert len(calls) == 1
    assert found.certificate_.relative_gap <= 1e-3


def test_the_dual_never_falls_and_weights_follow_the_duals():
    X, y = data()
    duals = []
    run = streamed_run(X, y, after=lambda run: duals.append(run.dual))
    run.run()
    assert len(duals) > 7
    assert (np.diff(duals) >= -1e-9 * duals[-1]).all()
    exact = np.zeros((M, D))
    count, start = run.all_duals.count, run.all_duals.start
    for i in range(N):
        part = slice(start[i], start[i] + count[i])
        values, classes = run.all_duals.values[part], run.all_duals.classes[part]
        np.add.at(exact, classes, -values[:, None] * X[i])
        exact[y[i]] += values.sum() * X[i]
    np.testing.assert_allclose(run.weights, exact, rtol=1e-4, atol=1e-5)


def test_drift_of_the_weights_is_noticed_and_repaired():
    X, y = data()
    run = streamed_run(X, y)
    run.full_pass()
    run.certify()
    assert run.drift < 1e-5
    right = run.weights.copy()
    run.weights *= 1.01
    run.certify()
    assert run.drift == pytest.approx(0.01, rel=1e-2)
    np.testing.assert_array_equal(run.weights, right)


class EnoughError(Exception):
    pass


def test_going_on_from_a_checkpoint_gives_the_same_model(tmp_path, monkeypatch):
    X, y = data()
    plain = model(tol=1e-4).fit(X, y, checkpoint=tmp_path / "plain")
    assert not (tmp_path / "plain" / CURRENT).exists()  # It took less than a minute.
    monkeypatch.setattr(_streamed, "CHECKPOINT_SECONDS", 0.0)
    save, left = CheckpointFolder.save, [0]

    def save_and_stop(self, state):
        save(self, state)
        left[0] -= 1
        if left[0] == 0:
            raise EnoughError

    monkeypatch.setattr(CheckpointFolder, "save", save_and_stop)
    for stops in (1, 4, 3):
        left[0] = stops
        with pytest.raises(EnoughError):
            model(tol=1e-4).fit(X, y, checkpoint=tmp_path / "c")
    found = model(tol=1e-4).fit(X, y, checkpoint=tmp_path / "c")
    np.testing.assert_array_equal(found.coef_, plain.coef_)
    assert found.certificate_ == plain.certificate_
    assert found.n_iter_ == plain.n_iter_


def _fit_in_a_process(folder, sparse_moments):
    _streamed.CHECKPOINT_SECONDS = 0.0
    X, y = data()
    if sparse_moments:
        _slow_down()
    model(tol=1e-4).fit(X, y, checkpoint=folder)


def _slow_down():
    work = StreamedSDCA._work_on_window

    def slowly(self):
        time.sleep(0.02)
        work(self)

    StreamedSDCA._work_on_window = slowly


def _start(folder):
    process = multiprocessing.get_context("fork").Process(
        target=_fit_in_a_process, args=(folder, True)
    )
    process.start()
    return process


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_killed_at_twenty_random_moments(tmp_path):
    X, y = data()
    plain = model(tol=1e-4).fit(X, y, checkpoint=tmp_path / "plain")
    rng = np.random.default_rng(0)
    passes = []
    for _ in range(20):
        process = _start(tmp_path / "c")
        time.sleep(rng.uniform(0.05, 0.2))
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        path = tmp_path / "c" / CURRENT
        if path.exists():
            _, state = _checkpoint.read_state(path)
            passes.append((state.facts["n_passes"], state.facts["windows_done"]))
    assert passes == sorted(passes)
    assert len(set(passes)) > 3
    found = model(tol=1e-4).fit(X, y, checkpoint=tmp_path / "c")
    np.testing.assert_array_equal(found.coef_, plain.coef_)


def _fit_and_leave_on_sigterm(folder):
    def leave(number, frame):  # noqa: ARG001
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, leave)
    _fit_in_a_process(folder, True)


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_sigterm_saves_and_leaves(tmp_path):
    """The program has the handler, as our command line does; the fit saves and gives way."""
    process = multiprocessing.get_context("fork").Process(
        target=_fit_and_leave_on_sigterm, args=(tmp_path,)
    )
    process.start()
    while process.is_alive() and not (tmp_path / CURRENT).exists():
        time.sleep(0.01)
    before = _checkpoint.read_state(tmp_path / CURRENT)[1].facts
    os.kill(process.pid, signal.SIGTERM)
    process.join()
    assert process.exitcode == 143
    after = _checkpoint.read_state(tmp_path / CURRENT)[1].facts
    key = "n_passes", "windows_done"
    assert [after[name] for name in key] >= [before[name] for name in key]


def test_ctrl_c_leaves_a_certified_model_and_a_checkpoint(tmp_path):
    from sklearn.exceptions import ConvergenceWarning

    X, y = data()
    work, count = StreamedSDCA._work_on_window, [0]

    def interrupt(self):
        work(self)
        count[0] += 1
        if count[0] == 9:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.1)  # For the main thread to hear of it.

    StreamedSDCA._work_on_window = interrupt
    try:
        with pytest.warns(ConvergenceWarning, match="interrupted by the user"):
            found = model(tol=1e-8).fit(X, y, checkpoint=tmp_path)
    finally:
        StreamedSDCA._work_on_window = work
    assert count[0] == 9
    assert 1e-8 < found.certificate_.relative_gap < 0.5
    assert (tmp_path / CURRENT).exists()


@pytest.mark.parametrize(
    ("options", "what"),
    [({"C": 0.2}, "weights"), ({"k": 2}, "loss"), ({"random_state": 1}, "seed")],
)
def test_other_parameters_are_named(tmp_path, monkeypatch, options, what):
    X, y = data()
    monkeypatch.setattr(_streamed, "CHECKPOINT_SECONDS", 0.0)
    model(tol=1e-1).fit(X, y, checkpoint=tmp_path)
    with pytest.raises(CheckpointError, match=f"another run: its {what}"):
        model(**options).fit(X, y, checkpoint=tmp_path)
    changed = X.copy()
    changed[0, 0] += 1
    with pytest.raises(CheckpointError, match="its data"):
        model().fit(changed, y, checkpoint=tmp_path)


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
    with pytest.raises(ValueError, match=r"wide.npy has 13 features but .*first.npy has 12"):
        model().fit([tmp_path / "first.npy", tmp_path / "wide.npy"], y)
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        model().fit(sp.csr_array(X.astype(np.float32)), y, checkpoint=tmp_path)
    fitted = model(tol=1e-1).fit(X, y)
    with pytest.raises(ValueError, match="13 features"):
        fitted.predict([tmp_path / "wide.npy"])
