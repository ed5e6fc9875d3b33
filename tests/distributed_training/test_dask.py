"""DaskTopKLinearSVC on a real cluster of two processes."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from solvers.cases import make_data, make_objective

from topksvm import TopKLinearSVC
from topksvm.distributed import DaskTopKLinearSVC
from topksvm.distributed._estimates import choose_passes

da = pytest.importorskip("dask.array", reason="needs topksvm[dask]")
dd = pytest.importorskip("dask.dataframe", reason="needs topksvm[dask]")
import dask  # noqa: E402
import pandas as pd  # noqa: E402
from dask.utils import key_split  # noqa: E402

pytestmark = pytest.mark.usefixtures("client")
OPTIONS = {"k": 2, "C": 0.02, "tol": 1e-2, "random_state": 0}


@pytest.fixture(scope="module")
def data():
    return make_data(120, 6, 15)


def dask_arrays(X, y, rows=35):
    return da.from_array(X, chunks=(rows, -1)), da.from_array(y, chunks=rows)


def check(model, X, y, C=0.02):
    """Assert that the certificate is true, and the optimum that of one machine."""
    codes, bias = np.searchsorted(model.classes_, y), 0.0
    W = model.coef_
    if model.fit_intercept:
        bias = model.intercept_scaling
        W = np.hstack([W, model.intercept_[:, None] / bias])
    objective = make_objective("topk_hinge_alpha", model.k, model.smoothing, X, codes, C, bias=bias)
    assert model.certificate_.primal == pytest.approx(objective.primal(W), rel=1e-6)
    names = ("k", "smoothing", "fit_intercept", "intercept_scaling")
    local = TopKLinearSVC(**{name: getattr(model, name) for name in names}, C=1.0, random_state=0)
    local.fit(X, y, np.broadcast_to(C, y.shape))
    assert -1e-9 <= model.certificate_.relative_gap <= model.tol
    assert model.certificate_.primal >= local.certificate_.dual * (1 - 1e-9)
    assert model.certificate_.dual <= local.certificate_.primal * (1 + 1e-9)


def test_fit_on_dask_arrays_and_history(data, client, capsys):
    X, y = data
    options = {**OPTIONS, "tol": 1e-3}
    model = DaskTopKLinearSVC(**options, verbose=1).fit(*dask_arrays(X, y))
    check(model, X, y)
    assert model.n_shards_ == 2
    assert model.coef_.shape == (15, 6)
    history = model.history_
    assert [line["round"] for line in history] == list(range(1, len(history) + 1))
    assert history[-1]["gap"] == model.certificate_.gap
    assert model.n_iter_ == sum(line["local_passes"] for line in history)
    assert {line["n_bytes"] for line in history} == {15 * 7 * (16 + 8)}
    assert all(line["computation"] > 0 and line["n_lost"] == 0 for line in history)
    assert {line["n_shards"] for line in history} == {2}
    assert [line["snapshot_bytes"] > 0 for line in history[:6]] == [False] * 4 + [True, False]
    again = DaskTopKLinearSVC(**options).fit(*dask_arrays(X, y))
    np.testing.assert_array_equal(again.coef_, model.coef_)
    lines = capsys.readouterr().err.splitlines()
    assert [f"pass {line['epoch']}:" for line in history] == [
        line[: line.find(":") + 1] for line in lines
    ]
    names = client.run_on_scheduler(lambda dask_scheduler: set(dask_scheduler.task_prefixes))
    wanted = "rows survey build local-solve reduce model certify collect snapshot fetch release"
    assert {f"topksvm-{name}" for name in wanted.split()} <= names
    assert "topksvm" not in names  # Dask leaves out words that look like a hash.


def test_one_shard_and_other_parameters(data):
    X, y = data
    weights = np.random.default_rng(0).uniform(0.0, 2.0, len(y))
    model = DaskTopKLinearSVC(
        2, C=0.02, n_jobs=1, fit_intercept=False, class_weight={0: 2.0}, local_passes=2, tol=1e-2
    )
    model.fit(*dask_arrays(X, y), da.from_array(weights, chunks=50))
    assert model.n_shards_ == 1
    check(model, X, y, C=0.02 * weights * np.where(y == 0, 2.0, 1.0))
    balanced = DaskTopKLinearSVC(
        **OPTIONS, class_weight="balanced", intercept_scaling=0.5, smoothing=0.5, dtype="float32"
    )
    balanced.fit(*dask_arrays(X, y))
    assert balanced.coef_.dtype == np.float32
    check(balanced, X.astype(np.float32), y, C=0.02 * len(y) / (15 * np.bincount(y)[y]))


def test_parameters_and_attributes_are_those_of_one_machine(data):
    X, y = data
    local, model = TopKLinearSVC(2, C=0.001), DaskTopKLinearSVC(2, C=0.001, memory_limit=10**9)
    parameters = {**local.get_params(), "memory_limit": 10**9}
    shared = parameters.keys() - {"warm_start", "checkpoint"}
    assert model.get_params() == {"local_passes": None} | {n: parameters[n] for n in shared}
    assert repr(model) == "DaskTopKLinearSVC(C=0.001, k=2, memory_limit=1000000000)"
    fitted = {name for name in vars(local.fit(X, y)) if name.endswith("_")}
    assert not any(hasattr(model, name) for name in fitted)
    with pytest.raises(NotFittedError):
        model.to_local()
    model.fit(*dask_arrays(X, y))
    assert all(hasattr(model, name) for name in fitted)
    assert set(vars(model)) - set(model.get_params()) == {"local_", "n_shards_", "worker_bytes_"}
    assert model.to_local().get_params() == parameters
    assert model.status_ == "solved"
    assert not hasattr(model, "feature_names_in_")
    # Rows come in two parts, so twice; then duals, of 15 classes, and twelve arrays of weights.
    assert model.worker_bytes_ == 2 * 70 * 6 * 8 + 70 * (200 + 64 * 15) + 12 * 8 * 15 * 7
    with pytest.raises(
        ValueError, match=r"worker would need about 0\.\d MB .* memory_limit = 9999"
    ):
        model.set_params(memory_limit=9999).fit(*dask_arrays(X, y))


def test_csr_chunks_and_float32(data):
    X, y = data
    X = np.where(np.abs(X) < 0.7, 0.0, X).astype(np.float32)
    rows, labels = dask_arrays(X, y)
    model = DaskTopKLinearSVC(**OPTIONS).fit(rows.map_blocks(sp.csr_matrix), labels)
    check(model, sp.csr_array(X), y)
    assert model.coef_.dtype == np.float32
    scores = model.decision_function(rows.map_blocks(sp.csr_matrix)).compute()
    np.testing.assert_allclose(scores, model.to_local().decision_function(X), rtol=1e-4, atol=1e-5)


def test_dataframes_with_labels_of_any_kind(data):
    X, y = data
    names = np.array([f"class {label:02d}" for label in range(15)])
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(6)])
    rows = dd.from_pandas(frame, npartitions=3)
    labels = dd.from_pandas(pd.Series(names[y]), npartitions=3)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    series = dd.from_pandas(pd.Series(weights), npartitions=3)
    model = DaskTopKLinearSVC(**OPTIONS).fit(rows, labels, series)
    check(model, X, names[y], C=0.02 * weights)
    assert model.classes_.tolist() == names.tolist()
    assert model.feature_names_in_.tolist() == list(frame.columns)
    assert model.predict(rows).compute().tolist() == model.to_local().predict(frame).tolist()
    score = model.to_local().score_topk(frame, names[y], sample_weight=weights)
    assert model.score_topk(rows, labels, sample_weight=series) == pytest.approx(score)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(rows.rename(columns={"f0": "g0"}))
    # An array of strings, and rows whose number is not known as they come from a dataframe.
    strings, rows = da.from_array(names[y].astype(object), chunks=40), rows.to_dask_array()
    other = DaskTopKLinearSVC(**OPTIONS).fit(rows, strings, series)
    np.testing.assert_array_equal(other.coef_, model.coef_)
    assert other.predict_topk(rows).compute().tolist() == model.predict_topk(frame).tolist()
    assert other.score_topk(rows, strings) == pytest.approx(model.score_topk(frame, names[y]))


def test_lists_of_files_delayed_parts_and_futures(client, data, tmp_path):
    X, y = data
    paths = []
    for number, part in enumerate(np.array_split(X, 3)):
        paths.append(tmp_path / f"{number}.npy")
        np.save(paths[-1], part)
    labels = [dask.delayed(part) for part in np.array_split(y, 3)]
    first = DaskTopKLinearSVC(**OPTIONS).fit(paths, labels)
    check(first, X, y)
    parts = [dask.delayed(np.load)(path) for path in paths]
    second = DaskTopKLinearSVC(**OPTIONS).fit(parts, labels)
    np.testing.assert_array_equal(second.coef_, first.coef_)
    third = DaskTopKLinearSVC(**OPTIONS).fit(client.scatter(np.array_split(X, 3)), labels)
    np.testing.assert_array_equal(third.coef_, first.coef_)
    with pytest.raises(ValueError, match=r"cannot read the part .*missing\.npy on a worker"):
        DaskTopKLinearSVC(**OPTIONS).fit([*paths, tmp_path / "missing.npy"], [*labels, labels[0]])


def test_partitions_that_are_empty_or_of_one_class(data):
    X, y = data
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    rows = da.from_array(X, chunks=((8, 0, 104, 8), (3, 3)))  # The first and the last: one class.
    model = DaskTopKLinearSVC(**OPTIONS).fit(rows, y)
    check(model, X, y)


def test_unknown_and_mismatched_chunks(data):
    X, y = data
    rows, labels = dask_arrays(X, y)
    keep = da.from_array(np.ones(len(y), bool), chunks=35)
    model = DaskTopKLinearSVC(**OPTIONS).fit(rows[keep], labels[keep])
    check(model, X, y)
    other = DaskTopKLinearSVC(**OPTIONS).fit(rows, labels.rechunk(50))
    np.testing.assert_array_equal(other.coef_, model.coef_)
    assert model.predict(rows[keep]).compute().shape == y.shape
    with pytest.raises(ValueError, match=r"Part \d .* 35 rows but y has (30|40)"):
        DaskTopKLinearSVC(**OPTIONS).fit(rows[keep], labels.rechunk(((30, 40, 35, 15),)))
    with pytest.raises(ValueError, match="y has 1 parts but X has 4"):
        DaskTopKLinearSVC(**OPTIONS).fit(rows[keep], y)
    with pytest.raises(ValueError, match="y has 119 entries but X has 120 rows"):
        DaskTopKLinearSVC(**OPTIONS).fit(rows, labels[:-1])


def test_predictions_are_lazy_and_those_of_the_local_model(data, tmp_path):
    X, y = data
    rows, labels = dask_arrays(X, y)
    model = DaskTopKLinearSVC(**OPTIONS).fit(rows.rechunk((35, 2)), labels)
    local = model.to_local()
    assert type(local) is TopKLinearSVC
    assert local.certificate_ == model.certificate_
    for lazy, eager in [
        (model.predict(rows), local.predict(X)),
        (model.predict_topk(rows.rechunk((50, 3))), local.predict_topk(X)),
        (model.decision_function(rows), local.decision_function(X)),
        (model.predict_topk(rows, 4, return_scores=True)[1], local.predict_topk(X, 4, True)[1]),
    ]:
        assert isinstance(lazy, da.Array)
        assert key_split(lazy.name).startswith("topksvm-")
        assert lazy.shape == eager.shape
        np.testing.assert_allclose(lazy.compute(), eager)
        assert lazy.dtype == eager.dtype
    assert model.score_topk(rows, labels) == local.score_topk(X, y)
    assert model.score_topk(X, labels, 3) == local.score_topk(X, y, 3)
    assert model.score(rows, labels) == local.score(X, y)
    assert clone(model).get_params() == model.get_params()
    model.save(tmp_path / "model.safetensors")
    loaded = DaskTopKLinearSVC.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(
        TopKLinearSVC.load(tmp_path / "model.safetensors").coef_, local.coef_
    )
    assert loaded.get_params() == {**model.get_params(), "local_passes": None}
    for again in (pickle.loads(pickle.dumps(model)), loaded):
        np.testing.assert_array_equal(again.predict(rows).compute(), local.predict(X))
        assert again.history_ == model.history_
    np.testing.assert_array_equal(model.predict(X), local.predict(X))
    with pytest.raises(ValueError, match=r"trained with 6 features"):
        model.predict(rows[:, :4])


def test_two_classes(data):
    X, y = data
    rows, labels = dask_arrays(X, np.where(y > 7, "yes", "no"))
    model = DaskTopKLinearSVC(C=0.02, tol=1e-2, random_state=0).fit(rows, labels)
    assert model.classes_.tolist() == ["no", "yes"]
    scores = model.decision_function(rows)
    assert scores.shape == (120,)
    np.testing.assert_allclose(scores.compute(), model.to_local().decision_function(X))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "topk_entropy"}, "needs a dual step, which 'topk_entropy' .*TopKLinearSVC"),
        ({"solver": "lbfgs"}, "'solver' parameter .* must be a str among .*'auto'"),
        ({"k": 15}, "k = 15 but there are 15 classes"),
        ({"dtype": int}, "must be float32, float64"),
        ({"local_passes": 0}, "local_passes"),
        ({"class_weight": {3: -1.0}}, "must be at least 0"),
        ({"memory_limit": 0}, "memory_limit"),
    ],
)
def test_parameters_that_cannot_be(data, options, message):
    with pytest.raises(ValueError, match=message):
        DaskTopKLinearSVC(**{"k": 2, **options}).fit(*dask_arrays(*data))


@pytest.mark.parametrize("name", ["warm_start", "checkpoint"])
def test_parameters_of_one_machine_only(name):
    with pytest.raises(TypeError, match=name):
        DaskTopKLinearSVC(**{name: True})


def test_data_that_cannot_be(data):
    X, y = data
    rows, labels = dask_arrays(X, y)
    model = DaskTopKLinearSVC(k=2)
    with pytest.raises(TypeError, match=r"X is of type ndarray.*TopKLinearSVC"):
        model.fit(X, y)
    with pytest.raises(ValueError, match=r"Part 1 of the data .*NaN"):
        model.fit(da.where(da.arange(120, chunks=35)[:, None] == 40, np.nan, rows), labels)
    with pytest.raises(ValueError, match="Part 1 of X has sparse rows but part 0 has dense"):
        model.fit([dask.delayed(X), dask.delayed(sp.csr_array)(X)], [dask.delayed(y)] * 2)
    with pytest.raises(ValueError, match="Part 1 of X has 5 features but part 0 has 6"):
        model.fit([dask.delayed(X), dask.delayed(X[:, :5])], [dask.delayed(y)] * 2)
    with pytest.raises(ValueError, match="sample_weight has a value that is negative"):
        model.fit(rows, labels, -np.ones(120))
    with pytest.raises(ValueError, match=r"all examples are zero|at least one non-zero"):
        model.fit(rows, labels, np.zeros(120))
    with pytest.raises(ValueError, match="has 1 class"):
        model.fit(rows, da.zeros(120, dtype=int))
    with pytest.raises(TypeError, match="list with a part of type ndarray"):
        model.fit([X], [y])
    with pytest.raises(ValueError, match=r"Part \d of the data .*y contains NaN"):
        model.fit(rows, np.where(y == 3, np.nan, y))
    with pytest.raises(ValueError, match="Part 1 of y has labels that are no numbers but part 0"):
        model.fit([dask.delayed(X)] * 2, [dask.delayed(y), dask.delayed(y.astype(str))])
    with pytest.raises(ValueError, match="labels of a part of y cannot be compared"):
        model.fit(rows, np.where(y == 3, None, "a"))


def test_local_passes_balance_computing_and_communicating():
    assert choose_passes(10**6, 2048, 1000, 5, 10**7) == 2
    assert choose_passes(100, 2048, 1000, 5, 10**9) == 4
    assert choose_passes(20_000, 2048, 1000, 5, 2 * 10**8) == 3
