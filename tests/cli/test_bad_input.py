"""Every mistake gets exit code 2 and one line that says what to do, and no traceback."""

from __future__ import annotations

import gzip
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from cli.files import FEATURES, NAMES, examples, fail, write_svmlight, write_table
from topksvm import TopKLinearSVC


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a good file, a good model, and many that are not."""
    here = tmp_path_factory.mktemp("bad")
    X, y = examples()
    write_table(here / "good.csv", X, NAMES[y])
    model = TopKLinearSVC(2, C=0.1, random_state=0).fit(X, y)
    model.save(here / "plain.safetensors")
    model.classes_, model.feature_names_in_ = NAMES, np.array(FEATURES, dtype=object)
    model.save(here / "named.safetensors")
    _write_bad_tables(here, X, y)
    _write_bad_arrays(here, X, y)
    return here


def _write_bad_tables(here, X, y):
    (here / "empty.csv").write_text("")
    (here / "header.csv").write_text("a,b,y\n")
    (here / "one.csv").write_text("a;b;y\n1;2;3\n")
    (here / "numbers.csv").write_text("1.5,2,x\n".replace("x", "7") + "2,3,8\n")
    (here / "twice.csv").write_text("a,a,y\n1,2,3\n")
    (here / "index.csv").write_text(",a,y\n0,1,2\n")
    (here / "short.csv").write_text("a,b,y\n1,2,x\n1,2\n")
    (here / "long.csv").write_text("a,b,y\n1,2,x\n1,2,y,3\n")
    (here / "comma.csv").write_text("a,b,y\n1,2,x,\n1,2,y,\n")
    (here / "blank.csv").write_text("\n  \n")
    (here / "gaps.csv").write_text('a,"b\nc",y\n\n1,2,x\n \n3,-,y\n')
    (here / "word.csv").write_text("a,b,y\n1,2,x\n1,big,y\n")
    (here / "hole.csv").write_text("a,b,y\n1,2,x\n1,,y\n")
    (here / "nan.csv").write_text("a,b,y\n1,2,x\n1,nan,y\n")
    (here / "nolabel.csv").write_text("a,b,y\n1,2,x\n1,2,\n")
    (here / "price.csv").write_text("a,b,price\n1,2,3.5\n1,2,4\n")
    (here / "single.csv").write_text("a,b,y\n1,2,x\n1,3,x\n")
    (here / "latin.csv").write_bytes("a,b,y\n1,2,\xe9\n".encode("latin-1"))
    (here / "quote.csv").write_text('a,b,y\n1,2,"x\n')
    (here / "data.xyz").write_text("1")
    (here / "cut.csv.gz").write_bytes(gzip.compress(b"a,b,y\n" + b"1,2,x\n" * 50)[:30])
    (here / "text.csv.gz").write_text("a,b,y\n1,2,x\n")
    write_table(here / "less.csv", X[:, 1:], y, header=FEATURES[1:])
    write_table(here / "features.csv", X)
    write_table(here / "strange.csv", X, np.where(y < 3, "gnu", "yak"))


def _write_bad_arrays(here, X, y):
    np.save(here / "X.npy", X)
    np.save(here / "less.npy", X[:, 1:])
    np.save(here / "cube.npy", X.reshape(150, 3, 4))
    np.save(here / "text.npy", np.array([["a", "b"]]))
    np.save(here / "object.npy", np.array([[None, 1]]), allow_pickle=True)
    (here / "broken.npy").write_bytes(b"\x93NUMPY\x01\x00nothing")
    (here / "broken.npz").write_bytes(b"PK\x03\x04nothing")
    (here / "broken.svm").write_text("1 1:2\nno\n")
    (here / "nothing.svm").write_text("1\n2\n")
    (here / "broken.parquet").write_bytes(b"PAR1nothing")
    bad = X.copy()
    bad[7, 3] = np.inf
    np.save(here / "inf.npy", bad)
    sp.save_npz(here / "inf.npz", sp.csr_matrix(bad))
    np.savez(here / "other.npz", images=X, labels=y)
    np.savez(here / "lonely.npz", X=X)
    np.savetxt(here / "y.txt", y, fmt="%d")
    np.savetxt(here / "short.txt", y[:-1], fmt="%d")
    np.save(here / "table.npy", np.c_[y, y])
    np.save(here / "nan_labels.npy", np.where(y == 0, np.nan, y))
    write_svmlight(here / "more.svm", np.c_[X, X], y)
    (here / "model.safetensors").write_bytes(b"nothing")


TRAIN = {
    "no file": (["none.csv"], ["there is no file", "none.csv"]),
    "a folder": (["."], ["is a folder"]),
    "empty": (["empty.csv"], ["is empty"]),
    "only a header": (["header.csv"], ["0 rows"]),
    "another separator": (["one.csv"], ["one column only", "'a;b;y'", "commas"]),
    "no header": (["numbers.csv"], ["the first line holds numbers", "'1.5'"]),
    "a name twice": (["twice.csv"], ["more than one column named 'a'"]),
    "an index": (["index.csv"], ["column 1 has no name", "index=False"]),
    "a short line": (["short.csv"], ["line 3", "2 cells", "3 columns"]),
    "a long line": (["long.csv"], ["cannot read", "line 3"]),
    "a comma at the end of all lines": (["comma.csv"], ["more cells", "columns, 3"]),
    "blank lines only": (["blank.csv"], ["blank lines only"]),
    "a line after blank ones": (["gaps.csv"], ["line 6", "'-' is no number"]),
    "text": (["word.csv"], ["line 3", "column 'b'", "'big' is no number"]),
    "a hole": (["hole.csv"], ["line 3", "column 'b'", "the cell is empty"]),
    "NaN": (["nan.csv"], ["line 3", "column 'b'", "'nan'", "finite"]),
    "no label": (["nolabel.csv"], ["line 3", "column 'y'", "the label is empty"]),
    "fractions": (["price.csv"], ["row 0", "3.5 is no whole number"]),
    "one class": (["single.csv"], ["one class only", "'x'"]),
    "another encoding": (["latin.csv"], ["no UTF-8"]),
    "an open quote": (["quote.csv"], ["cannot read", "quote.csv"]),
    "no such column": (["good.csv", "--target", "sort"], ["no column 'sort'", "'f0'"]),
    "unknown format": (["data.xyz"], ["'.xyz'", ".csv", "--format"]),
    "no such format": (["good.csv", "--format", "xls"], ["--format", "'xls'", "svmlight"]),
    "a cut gzip": (["cut.csv.gz"], ["cannot read", "cut.csv.gz", "damaged"]),
    "no gzip": (["text.csv.gz"], ["cannot read", "text.csv.gz", "damaged"]),
    "no labels": (["X.npy"], ["features only", "--labels"]),
    "a cube": (["cube.npy", "--labels", "y.txt"], ["(150, 3, 4)", "reshape"]),
    "letters": (["text.npy", "--labels", "y.txt"], ["<U1", "real numbers"]),
    "objects": (["object.npy", "--labels", "y.txt"], ["cannot read", "object.npy"]),
    "broken npy": (["broken.npy", "--labels", "y.txt"], ["cannot read", "broken.npy"]),
    "broken npz": (["broken.npz"], ["cannot read", "broken.npz"]),
    "npy called npz": (["X.npy", "--format", "npz"], ["is no .npz file", "--format npy"]),
    "broken svmlight": (["broken.svm"], ["cannot read", "broken.svm"]),
    "no features": (["nothing.svm"], ["no features", "number:value"]),
    "infinite": (["inf.npy", "--labels", "y.txt"], ["row 7", "column 3", "inf"]),
    "infinite, sparse": (["inf.npz", "--labels", "y.txt"], ["row 7", "column 3", "inf"]),
    "other keys": (["other.npz"], ["no array 'X'", "images, labels", "--features-key"]),
    "no key of labels": (["lonely.npz"], ["no array 'y'", "--labels-key", "--labels FILE"]),
    "fewer labels": (["X.npy", "--labels", "short.txt"], ["149 labels", "150 rows"]),
    "two columns of labels": (["X.npy", "--labels", "table.npy"], ["(150, 2)"]),
    "NaN labels": (["X.npy", "--labels", "nan_labels.npy"], ["label nan"]),
    "unknown labels file": (["X.npy", "--labels", "more.svm"], [".npy, .txt"]),
    "no labels file": (["X.npy", "--labels", "none.txt"], ["there is no file", "none.txt"]),
    "key without effect": (["good.csv", "--features-key", "X"], ["--features-key", "no effect"]),
    "target without effect": (
        ["X.npy", "--labels", "y.txt", "--target", "y"],
        ["--target has no effect", "y.txt"],
    ),
    "zero-based without effect": (["good.csv", "--zero-based"], ["--zero-based has no effect"]),
    "k too large": (["good.csv", "-k", "6"], ["-k 6", "6 classes", "between 1 and 5"]),
    "k of 0": (["good.csv", "-k", "0"], ["-k", "'0'", "whole number of at least 1"]),
    "C of 0": (["good.csv", "-C", "0"], ["-C", "'0'", "above 0"]),
    "C of nan": (["good.csv", "-C", "nan"], ["-C", "'nan'", "above 0"]),
    "no such loss": (["good.csv", "--loss", "hinge"], ["--loss", "'hinge'", "topk_hinge_alpha"]),
    "too much held out": (["good.csv", "--holdout", "1"], ["--holdout 1", "between 0 and 1"]),
    "nothing held out": (["good.csv", "--holdout", "0.001"], ["nothing to test on"]),
    "smoothing of softmax": (
        ["good.csv", "--loss", "softmax", "--smoothing", "1"],
        ["softmax", "smoothing"],
    ),
    "k of softmax": (["good.csv", "--loss", "softmax", "-k", "2"], ["-k 2 has no effect"]),
    "test and labels": (
        ["X.npy", "--labels", "y.txt", "--test", "X.npy"],
        ["--test cannot be used with --labels"],
    ),
    "other columns to test on": (["good.csv", "--test", "less.csv"], ["lacks 1 of the 12", "'f0'"]),
}


@pytest.mark.parametrize("case", TRAIN)
def test_train(case, folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    arguments, words = TRAIN[case]
    error = fail(capsys, "train", *arguments, "-o", "never.safetensors")
    assert not (folder / "never.safetensors").exists()
    for word in words:
        assert word in error


OTHERS = {
    "a name of a model": (["train", "good.csv", "-o", "m.joblib"], ["m.joblib", ".safetensors"]),
    "a place for a model": (["train", "good.csv", "-o", "y.txt/m.safetensors"], ["cannot write"]),
    "no model": (["predict", "none.safetensors", "X.npy"], ["no model file", "none.safetensors"]),
    "a broken model": (["info", "model.safetensors"], ["model.safetensors", "damaged"]),
    "data as a model": (["evaluate", "good.csv", "good.csv"], ["good.csv", "damaged"]),
    "fewer features": (["predict", "plain.safetensors", "less.npy"], ["11 features", "on 12"]),
    "more features": (
        ["predict", "plain.safetensors", "more.svm"],
        ["feature with number 24", "12 features, numbers 1 to 12"],
    ),
    "lacking columns": (
        ["predict", "named.safetensors", "less.csv"],
        ["lacks 1 of the 12", "'f0'"],
    ),
    "no column of labels": (
        ["evaluate", "named.safetensors", "features.csv"],
        ["no column of labels", "--labels"],
    ),
    "labels that are all unknown": (
        ["evaluate", "named.safetensors", "strange.csv"],
        ["none of the labels", "'gnu'", "'ant'"],
    ),
    "more guesses than classes": (
        ["predict", "plain.safetensors", "X.npy", "-k", "7"],
        ["-k 7", "between 1 and 6"],
    ),
    "one k too large": (
        ["evaluate", "plain.safetensors", "X.npy", "--labels", "y.txt", "-k", "1", "9"],
        ["-k 9", "between 1 and 6"],
    ),
    "a file after -k": (
        ["evaluate", "-k", "1", "plain.safetensors", "X.npy"],
        ["-k", "'plain.safetensors'", "names of files come before"],
    ),
    "a name of a result": (
        ["predict", "plain.safetensors", "X.npy", "-o", "out.txt"],
        ["out.txt", ".csv or .json or .npy"],
    ),
    "scores in npy": (
        ["predict", "plain.safetensors", "X.npy", "-o", "out.npy", "--scores"],
        ["--scores", ".csv or .json"],
    ),
    "json in csv": (
        ["predict", "plain.safetensors", "X.npy", "-o", "out.csv", "--json"],
        ["--json", "out.csv"],
    ),
    "cv: k too large": (["cv", "good.csv", "-k", "6"], ["-k 6", "between 1 and 5"]),
    "cv: training k too large": (["cv", "good.csv", "--train-k", "9"], ["--train-k 9"]),
    "cv: one class": (["cv", "single.csv"], ["one class only"]),
    "cv: too many folds": (["cv", "good.csv", "--folds", "100"], ["--folds 100", "no class"]),
    "cv: one fold": (["cv", "good.csv", "--folds", "1"], ["--folds", "'1'", "at least 2"]),
    "cv: --for alone": (["cv", "good.csv", "--for", "1"], ["--for", "-o"]),
    "cv: --for another": (
        ["cv", "good.csv", "-k", "1", "2", "--for", "3", "-o", "never.safetensors"],
        ["--for 3", "[1, 2]"],
    ),
    "cv: results": (["cv", "good.csv", "--results", "r.xls"], ["--results r.xls", ".csv"]),
}


@pytest.mark.parametrize("case", OTHERS)
def test_other_commands(case, folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    arguments, words = OTHERS[case]
    error = fail(capsys, *arguments)
    for word in words:
        assert word in error


@pytest.mark.parametrize(
    ("package", "arguments"),
    [
        ("pandas", ["train", "good.csv", "-o", "never.safetensors"]),
        ("pyarrow", ["train", "broken.parquet", "-o", "never.safetensors"]),
        ("safetensors", ["train", "good.csv", "-o", "never.safetensors"]),
        ("safetensors", ["info", "plain.safetensors"]),
    ],
)
def test_missing_packages(package, arguments, folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    for name in [*sys.modules, package, "pyarrow.parquet"]:
        if name.split(".")[0] == package:
            monkeypatch.setitem(sys.modules, name, None)
    error = fail(capsys, *arguments)
    assert f"the package {package}" in error
    assert "pip install 'topksvm[" in error


def test_parquet(folder, capsys, monkeypatch):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(folder)
    frame = pandas.DataFrame({"a": [1.0, None], "b": ["u", "v"], "y": [1, 2]})
    frame[["a", "y"]].to_parquet("hole.parquet")
    frame[["b", "y"]].to_parquet("text.parquet")
    out = ["-o", "never.safetensors"]
    assert "cannot read broken.parquet" in fail(capsys, "train", "broken.parquet", *out)
    error = fail(capsys, "train", "hole.parquet", *out)
    assert "row 1 (counted from 0), column 'a'" in error
    assert "column 'b': 'u' is no number" in fail(capsys, "train", "text.parquet", *out)
