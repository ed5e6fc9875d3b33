"""The best k labels, and models in files."""

from __future__ import annotations

import json
import pickle
import sys

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from estimators.data import M, problem
from topksvm import TopKLinearSVC
from topksvm.estimators import _persistence
from topksvm.metrics import topk_accuracy


@pytest.fixture(scope="module")
def fitted():
    X, y = problem()
    return TopKLinearSVC(2, C=0.1, random_state=0).fit(X, y), X, y


def constant_model(scores):
    """Return a model with these scores for every row."""
    X, y = problem()
    model = TopKLinearSVC(2, C=0.1).fit(X, y)
    model.coef_ = np.zeros_like(model.coef_)
    model.intercept_ = np.array(scores, dtype=float)
    return model, X


@pytest.mark.parametrize("k", [None, 1, 4, M, np.int64(3)])
def test_predict_topk(fitted, k):
    model, X, _ = fitted
    labels, scores = model.predict_topk(X, k, return_scores=True)
    number = 2 if k is None else k
    all_scores = model.decision_function(X)
    order = np.argsort(-all_scores, axis=1, kind="stable")[:, :number]
    np.testing.assert_array_equal(labels, order)
    np.testing.assert_array_equal(scores, np.take_along_axis(all_scores, order, axis=1))
    np.testing.assert_array_equal(model.predict_topk(X, k), labels)
    np.testing.assert_array_equal(labels[:, 0], model.predict(X))


@pytest.mark.parametrize(
    ("scores", "order"),
    [
        ([0, 0, 0, 0, 0, 0], [0, 1, 2, 3, 4, 5]),
        ([1, 2, 2, 0, 2, 1], [1, 2, 4, 0, 5, 3]),
        ([-1, 5, -1, 5, -1, 7], [5, 1, 3, 0, 2, 4]),
    ],
)
def test_ties_go_to_the_first_class(scores, order):
    model, X = constant_model(scores)
    for k in range(1, M + 1):
        np.testing.assert_array_equal(model.predict_topk(X[:3], k), [order[:k]] * 3)
    np.testing.assert_array_equal(model.predict(X[:3]), order[0])


def test_score_topk(fitted):
    model, X, y = fitted
    weights = np.arange(len(y))
    for k in (1, 2, M):
        expected = topk_accuracy(y, model.decision_function(X), k)
        assert model.score_topk(X, y, k) == expected
    assert model.score_topk(X, y) == model.score_topk(X, y, 2)
    assert model.score_topk(X, y, M) == 1.0
    found = (model.predict_topk(X) == y[:, None]).any(axis=1)
    assert model.score_topk(X, y, 2, weights) == pytest.approx(np.average(found, weights=weights))
    # Labels never seen are errors, as they are for `score`.
    unseen = np.where(np.arange(len(y)) < 50, 99, y)
    assert model.score_topk(X, unseen, 1) == pytest.approx(model.score(X, unseen))


def test_ties_count_against_the_true_class():
    model, X = constant_model([0] * M)
    assert model.score_topk(X, np.zeros(len(X), int), M - 1) == 0.0


@pytest.mark.parametrize("method", ["predict_topk", "score_topk"])
@pytest.mark.parametrize("k", [0, -1, M + 1])
def test_bad_k(fitted, method, k):
    model, X, y = fitted
    arguments = (X,) if method == "predict_topk" else (X, y)
    with pytest.raises(ValueError, match=f"k = {k} but the model has {M} classes"):
        getattr(model, method)(*arguments, k=k)
    with pytest.raises(TypeError, match=r"2\.5 of type float"):
        getattr(model, method)(*arguments, k=2.5)


LABELS = {
    "int": np.arange(M) * 10 - 7,
    "uint8": np.arange(M, dtype=np.uint8),
    "float": np.arange(M).astype(float),
    "str": np.array(["ä", "b", "c c", "d", "ee", "\U0001f431"]),
    "object": np.array(list("abcdef"), dtype=object),
    "bool": np.array([False, True]),
}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_round_trip(labels, dtype, tmp_path):
    X, y = problem(dtype, classes=labels.size)
    y = labels[y]
    settings = {"C": 0.1, "dtype": dtype, "random_state": np.random.RandomState(0)}
    model = TopKLinearSVC(class_weight={labels[0]: 2.0}, **settings).fit(X, y)
    model.save(tmp_path / "model.safetensors")
    same = TopKLinearSVC.load(str(tmp_path / "model.safetensors"))
    assert same.classes_.dtype == model.classes_.dtype
    for name in ("coef_", "intercept_", "classes_"):
        np.testing.assert_array_equal(getattr(same, name), getattr(model, name))
        assert getattr(same, name).dtype == getattr(model, name).dtype
    for name in ("certificate_", "history_", "n_iter_", "n_features_in_"):
        assert getattr(same, name) == getattr(model, name)
    np.testing.assert_array_equal(same.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(same.predict_topk(X, 2), model.predict_topk(X, 2))
    kept = {**model.get_params(), "random_state": None, "dtype": np.dtype(dtype).name}
    assert same.get_params() == kept
    assert not hasattr(same, "feature_names_in_")
    same.fit(X, y)


def test_round_trip_of_feature_names_and_numpy_parameters(tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y = problem()
    frame = pandas.DataFrame(X, columns=[f"é{j}" for j in range(X.shape[1])])
    model = TopKLinearSVC(np.int64(2), C=np.float64(0.1), random_state=3).fit(frame, y)
    model.save(tmp_path / "model")
    same = TopKLinearSVC.load(tmp_path / "model")
    assert same.feature_names_in_.tolist() == frame.columns.tolist()
    assert same.feature_names_in_.dtype == object
    assert same.get_params() == model.get_params()
    np.testing.assert_array_equal(same.predict(frame), model.predict(frame))


class Bomb:
    """Tells whether unpickling has run it."""

    def __reduce__(self):
        return exec, ("raise SystemExit('code was run')",)


def rewritten(path, change=None, tensors=None, metadata=None, is_signed=True):
    """Write the model file again, with something changed in it, and a checksum that fits."""
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as stream:
        old = stream.metadata()
    header = json.loads(old["header"])
    if change is not None:
        change(header)
    new = {**old, "header": json.dumps(header), **(metadata or {})}
    tensors = {**load_file(path), **(tensors or {})}
    if is_signed:
        new["sha256"] = _persistence.checksum(new["header"], tensors)
    save_file(tensors, path, metadata=new)


def header_with(**changes):
    return lambda path: rewritten(path, lambda header: header.update(changes))


def certificate_with(**changes):
    return lambda path: rewritten(path, lambda header: header["certificate"].update(changes))


def line_with(**changes):
    return lambda path: rewritten(path, lambda header: header["history"][-1].update(changes))


def truncate(path, share):
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])


def write_npz(path):
    with path.open("wb") as stream:
        np.savez(stream, coef=np.ones(3))


DAMAGE = {
    "empty": lambda path: path.write_bytes(b""),
    "random": lambda path: path.write_bytes(np.random.default_rng(0).bytes(5000)),
    "huge header": lambda path: path.write_bytes(b"\xff" * 5000),
    "truncated": lambda path: truncate(path, 0.9),
    "truncated header": lambda path: truncate(path, 0.1),
    "npz": write_npz,
    "pickle": lambda path: path.write_bytes(pickle.dumps(Bomb())),
    "foreign": lambda path: save_file({"coef": np.ones((6, 12))}, path),
    "newer": lambda path: rewritten(path, metadata={"format": "topksvm-linear-9"}),
    "no JSON": lambda path: rewritten(path, metadata={"header": "{"}),
    "JSON list": lambda path: rewritten(path, metadata={"header": "[1]"}),
    "deep JSON": lambda path: rewritten(path, metadata={"header": "[" * 100_000}),
    "empty JSON": lambda path: rewritten(path, lambda h: h.clear()),
    "coef": lambda path: rewritten(path, tensors={"coef": np.ones((5, 12))}),
    "coef 1-D": lambda path: rewritten(path, tensors={"coef": np.ones(6)}),
    "coef of int": lambda path: rewritten(path, tensors={"coef": np.ones((6, 12), int)}),
    "coef NaN": lambda path: rewritten(path, tensors={"coef": np.full((6, 12), np.nan)}),
    "intercept": lambda path: rewritten(path, tensors={"intercept": np.ones((6, 1))}),
    "classes": lambda path: rewritten(path, tensors={"classes": np.zeros(6, int)}),
    "unknown": lambda path: rewritten(path, lambda h: h["parameters"].update(evil=1)),
    "parameter": lambda path: rewritten(path, lambda h: h["parameters"].update(C=-1)),
    "parameters": lambda path: rewritten(path, lambda h: h.update(parameters=[1])),
    "class_weight": lambda path: rewritten(path, lambda h: h["parameters"].update(class_weight={})),
    "k of 0": lambda path: rewritten(path, lambda h: h["parameters"].update(k=0)),
    "k too large": lambda path: rewritten(path, lambda h: h["parameters"].update(k=M)),
    "names": lambda path: rewritten(path, lambda h: h.update(feature_names=["a"])),
    "names of int": lambda path: rewritten(path, lambda h: h.update(feature_names=[1] * 12)),
    "certificate": header_with(certificate=[1.0]),
    "certificate of one": header_with(certificate={"primal": 1.0}),
    "certificate with more": certificate_with(evil=1.0),
    "primal NaN": certificate_with(primal=float("nan")),
    "primal infinite": certificate_with(primal=float("inf")),
    "primal negative": certificate_with(primal=-1.0, dual=-2.0),
    "primal of text": certificate_with(primal="1.0"),
    "primal of bool": certificate_with(primal=True, dual=0.0),
    "primal too large": certificate_with(primal=10**400),
    "dual NaN": certificate_with(dual=float("nan")),
    "dual infinite": certificate_with(dual=-float("inf")),
    "dual above primal": certificate_with(primal=1.0, dual=1.0 + 1e-6),
    "dual None": certificate_with(dual=None),
    "history": header_with(history=7),
    "history of text": header_with(history=["abc"]),
    "history of pairs": header_with(history=[[["epoch", 1]]]),
    "history without gap": header_with(history=[{"epoch": 1, "seconds": 0.1, "primal": 1.0}]),
    "history NaN": line_with(gap=float("nan")),
    "history dual": line_with(primal=1.0, dual=2.0),
    "history epoch": line_with(epoch=-1),
    "history seconds": line_with(seconds=-1.0),
    "history text": line_with(seconds="soon"),
    "n_iter": header_with(n_iter="many"),
    "n_iter infinite": header_with(n_iter=float("inf")),
    "n_iter NaN": header_with(n_iter=float("nan")),
    "n_iter negative": header_with(n_iter=-1),
    "n_iter fraction": header_with(n_iter=1.5),
    "n_iter bool": header_with(n_iter=True),
    "other weights": lambda path: rewritten(
        path, tensors={"coef": np.ones((6, 12))}, is_signed=False
    ),
    "other header": lambda path: rewritten(path, lambda h: h.update(n_iter=3), is_signed=False),
    "no checksum": lambda path: rewritten(path, metadata={"sha256": ""}, is_signed=False),
    "old format": lambda path: rewritten(path, metadata={"format": "topksvm-linear-1"}),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_bad_files(fitted, damage, tmp_path):
    path = tmp_path / "model.safetensors"
    fitted[0].save(path)
    damage(path)
    with pytest.raises(ValueError, match=r"damaged|no model that") as info:
        TopKLinearSVC.load(path)
    assert type(info.value) is ValueError
    assert str(path) in str(info.value)


def everything(model):
    """Return all that a file holds, in a form in which equal means equal to the bit."""
    arrays = [getattr(model, name) for name in ("coef_", "intercept_", "classes_")]
    facts = [model.get_params(), model.certificate_, model.history_, model.n_iter_]
    return repr(facts), [(a.dtype, a.shape, a.tobytes()) for a in arrays]


@pytest.mark.parametrize("labels", [np.arange(M), np.array(list("abcdef"))], ids=["int", "str"])
def test_no_flipped_bit_changes_a_model(labels, tmp_path):
    X, y = problem()
    model = TopKLinearSVC(2, C=0.1, random_state=0).fit(X, labels[y])
    path = tmp_path / "model"
    model.save(path)
    right, content = everything(TopKLinearSVC.load(path)), path.read_bytes()
    rng = np.random.default_rng(0)
    errors = []
    for bit in rng.choice(8 * len(content), 1500, replace=False).tolist():
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        try:
            found = everything(TopKLinearSVC.load(path))
        except ValueError as error:
            errors.append(error)
        else:
            assert found == right, f"bit {bit}"
    assert len(errors) >= 1490
    assert {type(error) for error in errors} == {ValueError}
    assert all(str(path) in str(error) for error in errors)


def test_a_model_that_could_not_be_loaded_is_not_saved(fitted, tmp_path):
    model = pickle.loads(pickle.dumps(fitted[0]))
    path = tmp_path / "model"
    for change in ({"k": M}, {"C": -1.0}):
        with pytest.raises(ValueError, match=r"cannot be saved.*train it again"):
            pickle.loads(pickle.dumps(model)).set_params(**change).save(path)
    model.coef_ = np.full_like(model.coef_, np.nan)
    with pytest.raises(ValueError, match=r"cannot be saved.*not finite"):
        model.save(path)
    assert not list(tmp_path.iterdir())


def test_k_of_a_loss_without_k(tmp_path):
    X, y = problem(classes=2)
    model = TopKLinearSVC(loss="softmax", C=0.1).fit(X, y)
    model.save(tmp_path / "model")
    assert everything(TopKLinearSVC.load(tmp_path / "model")) == everything(model)


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="no model file"):
        TopKLinearSVC.load(tmp_path / "model")


def test_unfitted_and_unsupported_labels(fitted, tmp_path):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        TopKLinearSVC().save(tmp_path / "model")
    model = pickle.loads(pickle.dumps(fitted[0]))
    model.classes_ = np.arange(M).astype("datetime64[D]")
    with pytest.raises(TypeError, match="only numbers and strings"):
        model.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_failed_save_keeps_the_old_file(fitted, tmp_path, monkeypatch):
    model, X, _ = fitted
    path = tmp_path / "model"
    model.save(path)
    before = path.read_bytes()

    def fail(_, temporary, **__):
        temporary.write_bytes(b"half a mod")
        raise OSError("no space left on device")

    monkeypatch.setattr(_persistence._import_safetensors().numpy, "save_file", fail)
    with pytest.raises(OSError, match="no space"):
        model.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    np.testing.assert_array_equal(TopKLinearSVC.load(path).predict(X), model.predict(X))


@pytest.mark.parametrize("method", ["save", "load"])
def test_without_safetensors(fitted, tmp_path, monkeypatch, method):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(ImportError, match=r"topksvm\[safetensors\]"):
        getattr(fitted[0], method)(tmp_path / "model")
