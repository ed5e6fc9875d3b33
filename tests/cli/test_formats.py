"""All formats hold the same examples, and give the same model."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
import scipy.sparse as sp

from cli.files import (
    FEATURES,
    NAMES,
    examples,
    run_json,
    write_sparse,
    write_svmlight,
    write_table,
)
from topksvm import TopKLinearSVC
from topksvm.cli._data import labels_to_train_on, match_labels, read_examples, request_of
from topksvm.cli._errors import UserError
from topksvm.cli._main import build_parser
from topksvm.cli._options import LOSSES as NAMED
from topksvm.losses import LOSSES


def _write(name, folder):
    """Write the examples, and return the options that read them."""
    X, y = examples()
    path = folder / name
    if name.startswith("table."):
        write_table(path, X, y, delimiter="\t" if ".tsv" in name else ",")
    elif ".svm" in name:
        write_svmlight(path, X, y)
    elif name == "both.npz":
        np.savez(path, X=X, y=y)
    elif name == "keys.npz":
        np.savez(path, a=X, b=y[:, None])
        return [path, "--features-key", "a", "--labels-key", "b"]
    elif name == "sparse.npz":
        write_sparse(path, X)
        np.savetxt(folder / "y.txt.gz", y, fmt="%d")
        return [path, "--labels", folder / "y.txt.gz"]
    elif name == "X.npy":
        np.save(path, X)
        write_table(folder / "y.csv", np.c_[y], header=["kind"])
        return [path, "--labels", folder / "y.csv", "--target", "kind"]
    elif name == "X.npy.gz":
        with gzip.open(path, "wb") as stream:
            np.save(stream, X)
        np.save(folder / "y.npy", y.astype(float))
        return [path, "--labels", folder / "y.npy"]
    elif name == "frame.parquet":
        pandas = pytest.importorskip("pandas")
        pytest.importorskip("pyarrow")
        frame = pandas.DataFrame(X, columns=FEATURES)
        frame.insert(3, "Label", pandas.Categorical(NAMES[y]))
        frame.to_parquet(path)
    return [path]


def _read(*options, **model):
    parsed = build_parser().parse_args(["cv", *map(str, options)])
    return read_examples(request_of(parsed, **model))


@pytest.mark.parametrize(
    ("name", "note"),
    [
        ("table.csv", "labels from column 'kind', the last"),
        ("table.tsv.gz", "labels from column 'kind', the last"),
        ("rows.svm", "features numbered from 1"),
        ("rows.svm.gz", "features numbered from 1"),
        ("both.npz", "features from X, labels from y"),
        ("keys.npz", "features from a, labels from b"),
        ("sparse.npz", "labels: "),
        ("X.npy", "labels: "),
        ("X.npy.gz", "labels: "),
        ("frame.parquet", "labels from column 'Label', by its name"),
    ],
)
def test_every_format_holds_the_same_examples(name, note, tmp_path):
    X, y = examples()
    table = _read(*_write(name, tmp_path))
    is_sparse = ".svm" in name or name == "sparse.npz"
    assert sp.issparse(table.X) == is_sparse
    np.testing.assert_allclose(table.X.toarray() if is_sparse else table.X, X, rtol=1e-15)
    labels = labels_to_train_on(table.labels, name)
    assert labels.tolist() == (NAMES[y] if name == "frame.parquet" else y).tolist()
    assert table.notes[-1].startswith(note)
    assert table.names == (tuple(FEATURES) if name.startswith(("table", "frame")) else None)
    assert isinstance(table.X, np.memmap) == (name == "X.npy")


def test_sparse_rows_train_and_are_tested_as_dense_ones(tmp_path, capsys):
    X, y = examples()
    # The last feature does not occur in the rows to test on: its number comes from the model.
    X[100:, -1] = 0
    train = write_svmlight(tmp_path / "train.svm", X[:100], y[:100])
    test = write_svmlight(tmp_path / "test.libsvm.gz", X[100:], y[100:])
    out = tmp_path / "m.safetensors"
    report = run_json(capsys, "train", train, "--test", test, "-o", out, "-k", 2, "-q")
    model = TopKLinearSVC(2, random_state=0).fit(sp.csr_matrix(X[:100]), y[:100])
    np.testing.assert_allclose(TopKLinearSVC.load(out).coef_, model.coef_, rtol=1e-12)
    share = model.score_topk(X[100:], y[100:])
    assert report["accuracy"]["test"]["topk"]["2"] == pytest.approx(share)
    again = run_json(capsys, "evaluate", out, test, "-k", 2)
    assert again["accuracy"]["2"] == pytest.approx(share)
    np.save(tmp_path / "X.npy", X[100:])
    dense = run_json(capsys, "predict", out, tmp_path / "X.npy")
    assert dense["predictions"] == run_json(capsys, "predict", out, test)["predictions"]
    assert [row["labels"] for row in dense["predictions"]] == model.predict_topk(X[100:]).tolist()


def test_svmlight_numbers_from_0_if_told_so_or_if_a_0_occurs(tmp_path):
    X, y = examples()
    first = write_svmlight(tmp_path / "a.svm", X, y, zero_based=True)
    np.testing.assert_allclose(_read(first).X.toarray(), X)
    X[:, 0] = 0
    lacking = write_svmlight(tmp_path / "b.svm", X, y, zero_based=True)
    np.testing.assert_allclose(_read(lacking, "--zero-based").X.toarray(), X)
    np.testing.assert_allclose(_read(lacking).X.toarray(), X[:, 1:])


def test_spreadsheets_begin_with_a_mark_and_end_with_a_blank_line(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('\ufeffa, b ,y\r\n1,2,"x, y"\r\n3,1e-3, z \r\n\r\n', encoding="utf-8")
    table = _read(path)
    assert table.names == ("a", "b")
    assert table.X.tolist() == [[1, 2], [3, 1e-3]]
    assert table.labels.tolist() == ["x, y", "z"]


def test_a_short_line_is_no_row_of_fewer_features(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("y,a,b\nx,1,2\nx,3\n")
    with pytest.raises(UserError, match=r"line 3: 2 cells, but the first line names 3 columns"):
        _read(path, "--target", "y")


def test_frames_keep_single_precision_and_hold_what_pandas_knows(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"a": np.float32([1, 2]), "b": np.float32([3, 4]), "y": [0, 1]})
    frame.to_parquet(tmp_path / "single.parquet")
    X = _read(tmp_path / "single.parquet").X
    assert X.dtype == np.float32
    assert X.flags.c_contiguous
    frame["b"] = pandas.array([3, 4], dtype="Int64")
    frame["c"] = [True, False]
    frame["y"] = pandas.array([5, 6], dtype="Int64")
    frame.set_index(pandas.Index([7, 8], name="id")).to_parquet(tmp_path / "kinds.parquet")
    table = _read(tmp_path / "kinds.parquet")
    assert table.X.tolist() == [[1, 3, 1], [2, 4, 0]]
    assert labels_to_train_on(table.labels, "").tolist() == [5, 6]
    frame["b"] = pandas.array([3, None], dtype="Int64")
    frame.to_parquet(tmp_path / "hole.parquet")
    with pytest.raises(UserError, match=r"row 1 .* column 'b': the value is nan"):
        _read(tmp_path / "hole.parquet")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (["1", "-2", "10"], [1, -2, 10]),
        (["1.0", "2.", "0"], [1, 2, 0]),
        (["007", "12"], ["007", "12"]),
        (["1", "two"], ["1", "two"]),
        (["True", "False"], ["True", "False"]),
    ],
)
def test_numbers_stay_numbers_and_text_stays_text(written, expected):
    labels = labels_to_train_on(np.array(written, dtype=object), "file")
    assert labels.tolist() == expected
    # What is read again is found again.
    found, unseen = match_labels(np.array(written, dtype=object), labels)
    assert found.tolist() == list(range(len(written)))
    assert unseen == []


def test_labels_are_matched_as_they_are_written():
    found, unseen = match_labels(np.array(["3", "1.0", "x", "x"], dtype=object), np.array([1, 3]))
    assert (found.tolist(), unseen) == ([1, 0, -1, -1], ["x"])
    found, unseen = match_labels(np.array([7.0, 8.0]), np.array(["7", "9"], dtype=object))
    assert (found.tolist(), unseen) == ([0, -1], ["8"])
    found, _ = match_labels(np.array(["True"], dtype=object), np.array([False, True]))
    assert found.tolist() == [1]


def test_the_names_of_the_losses_are_those_of_the_registry():
    assert {name: "k" in loss._fields for name, loss in LOSSES.items()} == NAMED
