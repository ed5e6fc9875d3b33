"""Precomputed features: every layout and format, and what is wrong with bad ones."""

from __future__ import annotations

import numpy as np
import pytest

from topksvm.datasets import _features, load_features


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def folder(tmp_path, rng):
    """Six training and four test rows of two classes, as .npy."""
    for split, n in (("train", 6), ("test", 4)):
        np.save(tmp_path / f"{split}.npy", rng.standard_normal((n, 3)).astype(np.float32))
        np.save(tmp_path / f"{split}_labels.npy", np.arange(n) % 2 + 1)
    return tmp_path


def test_npy_is_memory_mapped_and_labels_are_ranks(folder):
    data = load_features(folder)
    assert isinstance(data.X_train, np.memmap)
    assert not data.X_train.flags.writeable
    np.testing.assert_array_equal(data.X_test, np.load(folder / "test.npy"))
    np.testing.assert_array_equal(data.y_train, [0, 1, 0, 1, 0, 1])
    assert data.class_names == ("1", "2")
    assert data.splits == ("train", "test")
    with pytest.raises(ValueError, match="has no pictures"):
        data.images("test")


def test_validation_split_and_class_names(folder):
    np.savez(folder / "val.npz", np.ones((2, 3)))
    (folder / "val_labels.txt").write_text("2\n1\n\n")
    (folder / "classes.txt").write_text("cat\ndog\n")
    data = load_features(folder)
    assert data.splits == ("train", "val", "test")
    assert data.class_names == ("cat", "dog")
    np.testing.assert_array_equal(data.y_val, [1, 0])


@pytest.mark.parametrize(
    ("dtype", "kept"), [(np.int8, np.float32), (np.float16, np.float16), (np.float64, np.float64)]
)
def test_integers_become_float32_and_floats_stay_mapped(folder, dtype, kept):
    np.save(folder / "train.npy", np.arange(18).reshape(6, 3).astype(dtype))
    X = load_features(folder).X_train
    assert X.dtype == kept
    assert (getattr(X, "filename", None) is not None) == (dtype != np.int8)
    np.testing.assert_array_equal(X, np.arange(18).reshape(6, 3))


@pytest.mark.parametrize("layout", ["columns", "lists", "fixed lists"])
def test_parquet(folder, rng, layout):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    X = rng.standard_normal((6, 3)).astype(np.float32)
    if layout == "columns":
        table = pa.table({f"f{j}": X[:, j] for j in range(3)})
    elif layout == "lists":
        table = pa.table({"features": pa.array(list(X))})
    else:
        table = pa.table({"features": pa.FixedSizeListArray.from_arrays(X.ravel(), 3)})
    (folder / "train.npy").unlink()
    parquet.write_table(table, folder / "train.parquet", row_group_size=2)
    found = load_features(folder).X_train
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, X)


@pytest.mark.parametrize(
    ("dtypes", "kept"),
    [
        ((np.float32, np.float32), np.float32),
        ((np.float16, np.int8), np.float32),
        ((np.float32, np.float64), np.float64),
        ((np.int64, np.bool_), np.float64),
    ],
)
def test_parquet_columns_share_a_type_that_holds_them(folder, dtypes, kept):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    values = np.array([[0, 1], [3, 0], [2, 1], [5, 1], [4, 0], [1, 1]])
    columns = {f"f{j}": values[:, j].astype(dtype) for j, dtype in enumerate(dtypes)}
    (folder / "train.npy").unlink()
    (folder / "test.npy").unlink()
    for split, n in (("train", 6), ("test", 4)):
        parquet.write_table(pa.table(columns)[:n], folder / f"{split}.parquet")
    found = load_features(folder).X_train
    assert found.dtype == kept
    np.testing.assert_array_equal(found, values)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"x": [[1.0], [1.0, 2.0]]}, "lists of different lengths"),
        ({"x": [1.0, None]}, "values are missing"),
        ({"x": [[1.0], [None]]}, "values are missing"),
        ({"x": ["a", "b"]}, "expected real numbers"),
    ],
)
def test_bad_parquet(folder, columns, words):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    (folder / "train.npy").unlink()
    parquet.write_table(pa.table(columns), folder / "train.parquet")
    with pytest.raises(ValueError, match=words):
        load_features(folder)


@pytest.fixture
def numbered(tmp_path, rng):
    """Ten rows with two splits, as for SUN 397."""
    np.save(tmp_path / "features.npy", rng.standard_normal((10, 3)))
    (tmp_path / "labels.txt").write_text("\n".join("ab" * 5))
    (tmp_path / "splits").mkdir()
    for number, order in ((1, np.arange(10)), (2, np.arange(10)[::-1])):
        np.savetxt(tmp_path / "splits" / f"{number:02d}_train.txt", order[:6], fmt="%d")
        np.savetxt(tmp_path / "splits" / f"{number:02d}_test.txt", order[6:], fmt="%d")
    return tmp_path


def test_numbered_splits(numbered):
    X = np.load(numbered / "features.npy")
    data = load_features(numbered, split=2)
    np.testing.assert_array_equal(data.X_train, X[[9, 8, 7, 6, 5, 4]])
    np.testing.assert_array_equal(data.y_test, [1, 0, 1, 0])
    np.savetxt(numbered / "splits" / "02_val.txt", [0, 3], fmt="%d")
    np.testing.assert_array_equal(load_features(numbered, split=2).X_val, X[[0, 3]])


def test_the_number_of_the_split(numbered):
    with pytest.raises(ValueError, match=r"split=None is not one of those in .*\[1, 2\]"):
        load_features(numbered)
    with pytest.raises(ValueError, match="split=3 is not one"):
        load_features(numbered, split=3)
    (numbered / "splits" / "02_train.txt").unlink()
    assert len(load_features(numbered).X_train) == 6


def test_split_of_files_that_are_separate(folder):
    with pytest.raises(ValueError, match=r"split=1 but .* has no features file"):
        load_features(folder, split=1)


@pytest.mark.parametrize(
    ("text", "words"),
    [("0\n10\n", "from 0 to 9"), ("0\nabbey\n", "one row number"), ("3\n3\n", "stands twice")],
)
def test_bad_row_numbers(numbered, text, words):
    (numbered / "splits" / "01_test.txt").write_text(text)
    with pytest.raises(ValueError, match=words):
        load_features(numbered, split=1)


def test_sizes_of_the_paper(folder, monkeypatch):
    with pytest.raises(ValueError, match="6 training examples instead of 5354, 2 classes instead"):
        load_features(folder, "indoor67")
    assert load_features(folder, "indoor67", check=False).name == "indoor67"
    monkeypatch.setitem(_features.PAPER, "sun397", _features.Size(n=6, m=2, d=4096))
    with pytest.raises(ValueError, match=r"paper: 3 features instead of 4096\. Look"):
        load_features(folder, "sun397")
    monkeypatch.setitem(_features.PAPER, "sun397", _features.Size(n=6, m=2, d=3))
    assert "sun397" in load_features(folder, "sun397").description


def _write_pickle(folder):
    np.save(folder / "train.npy", np.array([{}], dtype=object), allow_pickle=True)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda f: (f / "test.npy").unlink(), r"has no test\{\.npy,\.npz,\.parquet\}"),
        (lambda f: np.savez(f / "test.npz", np.ones((4, 3))), "test.npy and test.npz. Keep one"),
        (lambda f: np.save(f / "test.npy", np.ones((4, 2))), "3 features for training but 2"),
        (lambda f: np.save(f / "train.npy", np.ones(6)), r"features of shape \(6,\)"),
        (lambda f: np.save(f / "train.npy", np.ones((6, 3)) * 1j), "expected real numbers"),
        (lambda f: np.save(f / "train.npy", np.ones((5, 3))), "5 rows of features but 6 labels"),
        (lambda f: (f / "train.npy").write_bytes(b"\x93NUMPY"), "cannot read .*train.npy"),
        (_write_pickle, "cannot read .*without objects"),
        (lambda f: np.save(f / "test_labels.npy", [1, 2, 3, 1]), "the label 3 of test is not"),
        (lambda f: np.save(f / "test_labels.npy", ["1"] * 4), "of another kind"),
        (lambda f: np.save(f / "test_labels.npy", np.ones(4)), "vector of integers or strings"),
        (lambda f: (f / "classes.txt").write_text("a\n"), "names 1 classes but there are 2"),
        (lambda f: (f / "classes.txt").write_text("a\n\nb\n"), "line 2 is empty"),
    ],
)
def test_bad_files(folder, spoil, words):
    spoil(folder)
    with pytest.raises((ValueError, FileNotFoundError), match=words):
        load_features(folder)


def test_bad_arguments(folder):
    with pytest.raises(ValueError, match=r"dataset='mnist' is not known\. Choose one of indoor67"):
        load_features(folder, "mnist")
    with pytest.raises(ValueError, match="nothing to check"):
        load_features(folder, check=False)
    with pytest.raises(FileNotFoundError, match="is not a folder"):
        load_features(folder / "train.npy")


def test_an_unknown_split_of_a_dataset(folder):
    with pytest.raises(ValueError, match=r"split='val' is not in .* Choose one of train, test"):
        load_features(folder).split("val")
