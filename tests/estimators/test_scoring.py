"""Predictions and scores are the same, and so are their errors, wherever the rows are."""

from __future__ import annotations

import os

import numpy as np
import pytest
import scipy.sparse as sp

from topksvm import TopKLinearSVC
from topksvm.data import _sources, is_streamed
from topksvm.datasets import make_ambiguous_classes
from topksvm.estimators import _base
from topksvm.metrics import Tally, topk_scorer

N, D, M = 200, 6, 5


def arrow(X, folder):
    pa = pytest.importorskip("pyarrow")
    dataset = pytest.importorskip("pyarrow.dataset")
    parquet = pytest.importorskip("pyarrow.parquet")
    lists = pa.FixedSizeListArray.from_arrays(pa.array(X.astype(np.float32).ravel()), D)
    parquet.write_table(pa.table({"x": lists}), folder / "x.parquet", row_group_size=30)
    return dataset.dataset(folder / "x.parquet")


def files(X, folder):
    for i, part in enumerate(np.array_split(X, 3)):
        np.save(folder / f"{i}.npy", part)
    return [folder / f"{i}.npy" for i in range(3)]


def mapped(X, folder):
    np.save(folder / "x.npy", X.astype(np.float32))
    return np.load(folder / "x.npy", mmap_mode="r")


def dask_array(X, _):
    da = pytest.importorskip("dask.array", reason="needs topksvm[dask]")
    return da.from_array(X.astype(np.float32), chunks=(37, 4))


def half_dask_array(X, _):
    da = pytest.importorskip("dask.array", reason="needs topksvm[dask]")
    return da.from_array(X, chunks=(37, -1))


KINDS = {
    "memory": lambda X, _: X.astype(np.float32),
    "double": lambda X, _: X.astype(np.float64),
    "lists": lambda X, _: X.tolist(),
    "sparse": lambda X, _: sp.csr_array(X.astype(np.float32)),
    "half": lambda X, _: X,
    "files": files,
    "map": mapped,
    "arrow": arrow,
    "dask": dask_array,
    "half dask": half_dask_array,
}
LAZY = {"dask", "half dask"}


@pytest.fixture(scope="module")
def data():
    X, y = make_ambiguous_classes(N, D, M, random_state=0)
    X = X.astype(np.float16)
    X[X == 0] = 1.0  # Sparse rows have all entries, so that any can be made NaN.
    model = TopKLinearSVC(2, C=0.1, random_state=0, n_jobs=1).fit(X.astype(np.float32), y)
    return model, X, y


@pytest.fixture(params=KINDS)
def case(request, data, tmp_path, monkeypatch):
    """Return a model, a function that puts rows where they are to be, and whether it is lazy."""
    model = data[0]
    monkeypatch.setattr(_base, "BLOCK_BYTES", 8 * (D + M) * 23)
    kind = request.param
    if kind not in LAZY:
        yield model, lambda X: KINDS[kind](X, tmp_path), kind
        return
    dask = pytest.importorskip("dask", reason="needs topksvm[dask]")
    pytest.importorskip("distributed", reason="needs topksvm[dask]")
    from topksvm.distributed import DaskTopKLinearSVC

    lazy = DaskTopKLinearSVC()
    lazy.local_ = model
    with dask.config.set(scheduler="synchronous"):
        yield lazy, lambda X: KINDS[kind](X, tmp_path), kind


METHODS = ("predict", "decision_function", "predict_topk")


def test_predictions_and_scores_are_the_same(case, data):
    found, rows, _ = case
    model, X, y = data
    wide = X.astype(np.float32)
    for method in METHODS:
        expected = getattr(model, method)(wide)
        np.testing.assert_allclose(getattr(found, method)(rows(X)), expected, rtol=1e-4, atol=1e-5)
    weights = np.random.default_rng(0).uniform(size=N)
    names = {99: y.copy(), None: y}
    names[99][:50] = 99  # Unseen in training: an error for every k.
    for labels in names.values():
        for k in (1, 2, M):
            assert found.score_topk(rows(X), labels, k) == model.score_topk(wide, labels, k)
            score = found.score_topk(rows(X), labels, k, weights)
            assert score == pytest.approx(model.score_topk(wide, labels, k, weights), rel=1e-12)
    assert model.score_topk(wide, names[99], M) == 0.75


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("method", [*METHODS, "score_topk"])
def test_rows_that_are_not_finite_are_named(case, data, method, value):
    model, rows, kind = case
    X = data[1].copy()
    X[137, 2] = value
    arguments = (data[2],) if method == "score_topk" else ()
    # The blocks of 37 rows of a dask collection are counted, and the rows within.
    number = r"(Part|Block) 3 of .*in row 26;" if kind in LAZY else "in row 137;"
    with pytest.raises(ValueError, match=number):
        np.asarray(getattr(model, method)(rows(X), *arguments))


LABELS = {
    "tuples": (lambda y: [(v,) for v in y.tolist()], r"\(\d,\) of type tuple \(entry 0\)|2 dim"),
    "text": (lambda y: [str(v) for v in y], r"'\d' of type str \(entry 0\).* 0, 1, 2, 3, 4"),
    "text array": (lambda y: y.astype(str), r"'\d' of type str \(entry 0\)"),
    "column": (lambda y: y[:, None], r"y has shape \(200, 1\)|y has 2 dimensions"),
    "too few": (lambda y: y[:-1], r"y has 199 labels but X has 200 rows|y has 199 entries but X"),
    "too many": (lambda y: [*y, 0], r"y has 201 labels but X has 200 rows|y has 201 entries"),
    "none": (lambda _: [], r"y is empty|y has 0 entries"),
    "NaN": (lambda y: np.where(np.arange(N) == 150, np.nan, y), r"y contains NaN"),
}


@pytest.mark.parametrize(("change", "message"), LABELS.values(), ids=LABELS)
def test_bad_labels_are_one_clear_error(case, data, change, message):
    model, rows, _ = case
    with pytest.raises(ValueError, match=message):
        model.score_topk(rows(data[1]), change(data[2]))


WEIGHTS = {
    "negative": (np.where(np.arange(N) == 150, -1.0, 1.0), r"sample_weight contains -1.0"),
    "NaN": (np.where(np.arange(N) == 150, np.nan, 1.0), r"sample_weight contains nan"),
    "infinite": (np.where(np.arange(N) == 150, np.inf, 1.0), r"sample_weight contains inf"),
    "zero": (np.zeros(N), r"sample_weight is 0 for all examples"),
    "too few": (np.ones(N - 1), r"sample_weight has shape \(199,\)|sample_weight has 199 entries"),
}


@pytest.mark.parametrize(("weights", "message"), WEIGHTS.values(), ids=WEIGHTS)
def test_bad_weights_are_one_clear_error(case, data, weights, message):
    model, rows, _ = case
    with pytest.raises(ValueError, match=message):
        model.score_topk(rows(data[1]), data[2], 2, weights)


def test_wrong_numbers_of_features(case, data):
    model, rows, kind = case
    if kind == "arrow":
        pytest.skip("written with as many as there are")
    with pytest.raises(ValueError, match=r"(X has 5 features, but|X has shape \(200, 5\) but the)"):
        np.asarray(model.predict(rows(data[1][:, :5])))


def test_weights_that_would_overflow_and_parts_without_weight(case, data):
    model, rows, _ = case
    X, y = data[1], data[2]
    weights = np.where(np.arange(N) < 100, 0.0, 1e308)
    expected = data[0].score_topk(X[100:].astype(np.float32), y[100:], 2)
    assert model.score_topk(rows(X), y, 2, weights) == pytest.approx(expected, rel=1e-12)


def test_the_scorer_and_the_method_agree(data):
    model, X, y = data
    for labels in (y, np.where(y == 0, 77, y)):
        assert topk_scorer(2)(model, X, labels) == model.score_topk(X, labels, 2)
    with pytest.raises(ValueError, match="of type tuple"):
        topk_scorer(2)(model, X, [(v,) for v in y.tolist()])


def test_scores_that_overflow_are_an_error(data):
    model, X, _ = data
    rows = X.astype(np.float32)
    rows[7] = 3e38 * np.sign(model.coef_[0])
    big = TopKLinearSVC(2).set_params(**model.get_params())
    for name, value in vars(model).items():
        setattr(big, name, value)
    big.coef_ = 100 * model.coef_.astype(np.float32)
    for method in METHODS:
        with pytest.raises(ValueError, match=r"scores of row 7 of X are too large for float32"):
            getattr(big, method)(rows)


def test_names_of_features_are_compared_for_streams_too(data, tmp_path):
    pd = pytest.importorskip("pandas")
    pa = pytest.importorskip("pyarrow")
    dataset = pytest.importorskip("pyarrow.dataset")
    _, X, y = data
    names = [f"f{j}" for j in range(D)]
    model = TopKLinearSVC(2, C=0.1, random_state=0).fit(
        pd.DataFrame(X.astype(np.float32), columns=names), y
    )
    for rows in (X, X.astype(np.float32), files(X, tmp_path)):
        with pytest.warns(UserWarning, match="X does not have valid feature names"):
            model.predict(rows)
    table = {name: X[:, j].astype(np.float32) for j, name in enumerate(names)}
    right = dataset.dataset(pa.table(table))
    np.testing.assert_array_equal(model.predict(right), model.predict(pd.DataFrame(table)))
    wrong = dataset.dataset(pa.table({name: table[name] for name in names[::-1]}))
    with pytest.raises(ValueError, match="must be in the same order"):
        model.predict(wrong)


def test_tallies_of_parts_make_that_of_all():
    rng = np.random.default_rng(0)
    ranks, weights = rng.integers(1, 7, 100), rng.uniform(0, 1e300, 100)
    whole = Tally.of_ranks(ranks, weights, 5)
    parts = Tally.of_ranks(ranks[:30], weights[:30], 5) + Tally.of_ranks(
        ranks[30:], weights[30:], 5
    )
    np.testing.assert_allclose(parts.accuracies([1, 3, 5]), whole.accuracies([1, 3, 5]), rtol=1e-12)


@pytest.mark.parametrize("answer", [AttributeError, ValueError, OSError, -1])
def test_systems_that_do_not_say_how_much_memory_they_have(answer, monkeypatch, tmp_path):
    def sysconf(_):
        if isinstance(answer, int):
            return answer if _ == "SC_PHYS_PAGES" else 4096
        raise answer

    if answer is AttributeError:
        monkeypatch.delattr(os, "sysconf")
    else:
        monkeypatch.setattr(os, "sysconf", sysconf)
    rows = mapped(np.zeros((N, D)), tmp_path)
    assert not is_streamed(rows)
    monkeypatch.setattr(_sources, "UNKNOWN_LIMIT", rows.nbytes - 1)
    assert is_streamed(rows)
