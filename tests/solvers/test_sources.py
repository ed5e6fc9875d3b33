"""Rows from files: exactly those that are there, or an error that names the file and the row."""

from __future__ import annotations

import os

import numpy as np
import pytest

from topksvm import TopKLinearSVC
from topksvm.data import _array_sources
from topksvm.data._array_sources import ArraySource, FileSource, MappedSource
from topksvm.data._sources import open_source

pa = pytest.importorskip("pyarrow", reason="needs topksvm[parquet]")
parquet = pytest.importorskip("pyarrow.parquet")
dataset = pytest.importorskip("pyarrow.dataset")

N, D = 60, 4


def rows_of(source, size=100):
    """Return all rows, read by the piece."""
    out = np.full(source.shape, np.nan, source.dtype)
    for start, stop in source.pieces(size):
        source.read(start, stop, out[start:stop])
    return out


def table_of(dtype=np.float32):
    return np.random.default_rng(0).normal(size=(N, D)).astype(dtype)


# Arrow


LISTS = {
    "list": lambda: pa.list_(pa.float32()),
    "large": lambda: pa.large_list(pa.float32()),
    "fixed": lambda: pa.list_(pa.float32(), D),
    "half": lambda: pa.list_(pa.float16()),
    "double": lambda: pa.list_(pa.float64()),
}


def lists_of(X, kind="list"):
    values = [None if row is None else list(row) for row in X]
    return pa.array(values, LISTS[kind]())


def write(path, column, **options):
    parquet.write_table(pa.table({"x": column}), path, **options)
    return dataset.dataset(path)


@pytest.mark.parametrize("kind", LISTS)
def test_lists(kind, tmp_path):
    X = table_of(np.float16)
    found = open_source(dataset.dataset(pa.table({"x": lists_of(X, kind)})))
    assert found.dtype == (np.float64 if kind == "double" else np.float32)
    np.testing.assert_array_equal(rows_of(found), X)
    if kind != "half":  # Which Parquet has not had for long.
        found = open_source(write(tmp_path / "a.parquet", lists_of(X, kind), row_group_size=7))
        assert len(found.pieces(1)) == 9
        np.testing.assert_array_equal(rows_of(found), X)


@pytest.mark.parametrize("kind", LISTS)
def test_slices_and_chunks_with_offsets(kind):
    X = table_of(np.float16)
    whole = lists_of(X, kind)
    chunks = pa.chunked_array([whole[3:10], whole[0:0], whole[20:21], whole[30:]])
    expected = np.concatenate([X[3:10], X[20:21], X[30:]])
    found = open_source(dataset.dataset(pa.table({"x": chunks})))
    np.testing.assert_array_equal(rows_of(found), expected)
    columns = pa.table({f"f{j}": X[:, j].astype(np.float32) for j in range(D)})[5:50]
    np.testing.assert_array_equal(rows_of(open_source(dataset.dataset(columns))), X[5:50])


def test_ragged_lists_whose_lengths_average_out(tmp_path):
    X = [list(row) for row in table_of()]
    X[17], X[18] = [*X[17], 1.0], X[18][:-1]
    path = tmp_path / "a.parquet"
    rows = write(path, lists_of(X), row_group_size=10)
    with pytest.raises(
        ValueError, match=r"Row 17 of X, in .*a\.parquet, is a list of 5 values.* 4"
    ):
        rows_of(open_source(rows))
    with pytest.raises(ValueError, match=r"Row 17 of X, in .*a\.parquet"):
        TopKLinearSVC().fit(rows, np.arange(N) % 3)


def test_the_first_list_is_not_the_judge_of_a_sum(tmp_path):
    """All rows in one group, the first one longer: the values would fit another table."""
    rows = write(tmp_path / "a.parquet", lists_of([[1, 2, 3], [4], [5, 6]]))
    with pytest.raises(ValueError, match=r"Row 1 of X.* list of 1 values, and the first row has 3"):
        rows_of(open_source(rows))


@pytest.mark.parametrize("kind", ["list", "large", "fixed"])
@pytest.mark.parametrize("row", [0, 23, N - 1])
def test_missing_lists_and_values(kind, row, tmp_path):
    X = [list(r) for r in table_of()]
    without = [*X[:row], None, *X[row + 1 :]]
    within = [*X[:row], [1.0, 2.0, None, 4.0], *X[row + 1 :]]
    for rows in (without, within):
        found = write(tmp_path / "a.parquet", lists_of(rows, kind), row_group_size=9)
        with pytest.raises(ValueError, match=rf"Row {row} of X, in .*a\.parquet, has a value that"):
            rows_of(open_source(found))
        sliced = dataset.dataset(pa.table({"x": lists_of(rows, kind)[max(0, row - 2) :]}))
        with pytest.raises(ValueError, match=rf"Row {min(row, 2)} of X, in the Arrow data set"):
            rows_of(open_source(sliced))


def test_missing_values_in_a_column(tmp_path):
    values = [*range(30), None, *range(31, N)]
    table = pa.table({"a": np.zeros(N), "b": pa.array(values, pa.float64())})
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=8)
    with pytest.raises(ValueError, match=r"Row 30 of X, in .*a\.parquet, has a value that"):
        rows_of(open_source(dataset.dataset(tmp_path / "a.parquet")))


def test_files_of_other_widths(tmp_path):
    X = table_of()
    write(tmp_path / "a.parquet", lists_of(X))
    write(tmp_path / "b.parquet", lists_of(X[:, :3]))
    with pytest.raises(ValueError, match=r"Row 60 of X, in .*b\.parquet, is a list of 3 values"):
        rows_of(open_source(dataset.dataset(tmp_path)))
    for name, d in (("a", 3), ("b", 4)):
        table = pa.table({f"f{j}": X[:, j] for j in range(d)})
        parquet.write_table(table, tmp_path / f"{name}.parquet")
    with pytest.raises(ValueError, match=r"b\.parquet has 4 columns, .*a\.parquet has 3"):
        open_source(dataset.dataset(tmp_path))


def test_files_with_columns_in_another_order_and_of_other_types(tmp_path):
    X = table_of()
    for name, order in (("a", [0, 1, 2, 3]), ("b", [2, 0, 3, 1])):
        dtype = np.float32 if name == "a" else np.float64
        table = pa.table({f"f{j}": X[:, j].astype(dtype) for j in order})
        parquet.write_table(table, tmp_path / f"{name}.parquet")
    found = open_source(dataset.dataset(tmp_path))
    assert found.dtype == np.float64
    np.testing.assert_array_equal(rows_of(found), np.concatenate([X, X]))


def test_whole_numbers_are_not_rounded():
    table = pa.table({"a": [2**24 + 1, 2**30 + 1], "b": pa.array([True, False])})
    found = open_source(dataset.dataset(table))
    np.testing.assert_array_equal(rows_of(found), [[2**24 + 1, 1], [2**30 + 1, 0]])


TABLES = {
    "text": (lambda: {"a": ["x", "y"]}, r"column 'a' is of type string; it must have numbers"),
    "text list": (lambda: {"a": [["x"], ["y"]]}, r"column 'a' is of type list<.*string>"),
    "dictionary": (
        lambda: {"a": pa.array(["x", "y"]).dictionary_encode()},
        r"column 'a' is of type dictionary",
    ),
    "two lists": (lambda: {"a": [[1.0]], "b": [[1.0]]}, r"'a' has lists and is not the only one"),
    "no columns": (dict, r"has no columns"),
    "no values": (lambda: {"a": pa.array([[]], pa.list_(pa.float32()))}, r"Row 0.* empty list"),
    "no rows": (lambda: {"a": pa.array([], pa.float32())}, r"no rows"),
}


@pytest.mark.parametrize(("table", "message"), TABLES.values(), ids=TABLES)
def test_other_tables(table, message, tmp_path):
    parquet.write_table(pa.table(table()), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=message) as info:
        open_source(dataset.dataset(tmp_path / "a.parquet"))
    assert "a.parquet" in str(info.value)


def test_a_file_without_rows_and_one_without_content(tmp_path):
    write(tmp_path / "a.parquet", lists_of(table_of()))
    write(tmp_path / "b.parquet", lists_of([]))
    with pytest.raises(ValueError, match=r"b\.parquet has no rows"):
        open_source(dataset.dataset(tmp_path))
    both = dataset.dataset(tmp_path)
    (tmp_path / "b.parquet").write_bytes(b"PAR1 nothing PAR1")
    with pytest.raises(ValueError, match=r"cannot read .*b\.parquet"):
        open_source(both)


def test_a_parquet_file_that_is_cut_short_or_replaced(tmp_path):
    path = tmp_path / "a.parquet"
    found = open_source(write(path, lists_of(table_of()), row_group_size=10))
    content = path.read_bytes()
    path.write_bytes(content[:500])
    with pytest.raises(ValueError, match=r"cannot read .*a\.parquet"):
        rows_of(found)


# Shards


@pytest.fixture(params=["path", "map", "view", "plain view", "writable"])
def shard(request, tmp_path):
    """Return the name of a file, the source of its rows, and the rows."""
    path, X = tmp_path / "x.npy", table_of()
    np.save(path, X)
    mode = "r+" if request.param == "writable" else "r"
    mapped = np.load(path, mmap_mode=mode)
    rows = {
        "path": [path],
        "view": [mapped[10:50]],
        "plain view": np.asarray(mapped[10:50]),
    }.get(request.param, mapped)
    source = open_source(rows)
    return path, source, X[10:50] if "view" in request.param else X


def test_rows_of_a_map_are_read_from_its_file(shard):
    _, source, X = shard
    part = getattr(source, "parts", [source])[0]
    assert type(part) is FileSource
    np.testing.assert_array_equal(rows_of(source), X)
    wide = np.empty(source.shape)
    source.read(0, len(X), wide)
    np.testing.assert_array_equal(wide, X)


def cut(path):
    os.truncate(path, 300)


def grow(path):
    with path.open("ab") as stream:
        stream.write(b"more")


def replace(path):
    np.save(path.with_suffix(".new.npy"), np.zeros((N, D), np.float32))
    path.with_suffix(".new.npy").replace(path)


def remove(path):
    path.unlink()


CHANGES = {
    cut: "it shrank from 1088 to 300 bytes",
    grow: "it grew from 1088 to 1092 bytes",
    replace: "it was replaced by another file",
    remove: "it was removed",
}


@pytest.mark.parametrize(
    ("change", "what"), CHANGES.items(), ids=lambda x: getattr(x, "__name__", "")
)
def test_a_file_that_changes_between_two_reads(shard, change, what):
    path, source, _ = shard
    out = np.empty((5, D), np.float32)
    source.read(0, 5, out)
    change(path)
    with pytest.raises(ValueError, match=rf"x\.npy has changed since it was opened: {what}"):
        source.read(len(range(source.shape[0])) - 5, source.shape[0], out)


def test_a_file_that_is_written_to_between_two_reads(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, table_of())
    source = open_source([path])
    with path.open("r+b") as stream:
        stream.seek(500)
        stream.write(b"1234")
    os.utime(path, ns=(0, 1))  # The clock of a file system may be slower than this test.
    with pytest.raises(ValueError, match="it was written to"):
        rows_of(source)


def test_a_file_that_changes_in_a_fit_and_in_a_prediction(tmp_path, monkeypatch):
    path = tmp_path / "x.npy"
    X, y = np.tile(table_of(np.float16), (100, 1)), np.arange(100 * N) % 5
    np.save(path, X)
    model = TopKLinearSVC(2, C=0.1, random_state=0).fit(np.array(X[:N], np.float32), y[:N])
    read, left = FileSource.read, [0]

    def cut_after_some(self, *arguments):
        left[0] -= 1
        if left[0] == 0:
            os.truncate(path, 10_000)
        read(self, *arguments)

    monkeypatch.setattr(FileSource, "read", cut_after_some)
    mapped = np.load(path, mmap_mode="r")
    actions = [
        (lambda: TopKLinearSVC(2).fit([path], y), 3),
        (lambda: TopKLinearSVC(2).fit(mapped, y), 3),
        (lambda: model.predict([path]), 1),
        (lambda: model.predict(mapped), 1),
        (lambda: model.score_topk(mapped, y), 1),
    ]
    for action, reads in actions:
        np.save(path, X)
        mapped = np.load(path, mmap_mode="r")
        left[0] = reads
        with pytest.raises(ValueError, match=r"x\.npy has changed since it was opened: it shrank"):
            action()


def test_a_file_that_has_changed_before_it_is_opened(tmp_path):
    path, X = tmp_path / "x.npy", table_of()
    np.save(path, X)
    mapped = np.load(path, mmap_mode="r")
    replace(path)
    with pytest.raises(ValueError, match=r"x\.npy has changed.* replaced by another file"):
        open_source(mapped)
    mapped = np.load(path, mmap_mode="r")
    cut(path)
    with pytest.raises(ValueError, match=r"x\.npy has changed.* shrank to 300 bytes"):
        open_source(mapped)


def odd_maps(path, X):
    np.save(path, X)
    copy = np.load(path, mmap_mode="c")
    copy[0, 0] = 7.0  # Not in the file.
    changed = X.copy()
    changed[0, 0] = 7.0
    mapped = np.load(path, mmap_mode="r")
    return {
        "copy on write": (copy, changed),
        "steps": (mapped[::3], X[::3]),
        "backwards": (mapped[::-1], X[::-1]),
        "some columns": (mapped[:, 1:3], X[:, 1:3]),
        "transposed": (np.load(path, mmap_mode="r")[:D].T, X[:D].T),
    }


def test_maps_that_cannot_be_read_from_their_file(tmp_path):
    path = tmp_path / "x.npy"
    maps = odd_maps(path, table_of())
    sources = {name: open_source(rows) for name, (rows, _) in maps.items()}
    for name, source in sources.items():
        assert type(source) is MappedSource, name
        np.testing.assert_array_equal(rows_of(source), maps[name][1])
    cut(path)
    for source in sources.values():
        with pytest.raises(ValueError, match=r"x\.npy has changed.* shrank to 300 bytes"):
            rows_of(source)


def test_a_map_of_a_file_that_is_gone_and_one_that_is_in_memory(tmp_path):
    path, X = tmp_path / "x.npy", table_of()
    np.save(path, X)
    mapped = np.load(path, mmap_mode="r")
    copy = mapped[np.arange(N)]
    path.unlink()
    np.testing.assert_array_equal(rows_of(open_source(mapped)), X)
    assert type(open_source(copy)) is ArraySource
    np.testing.assert_array_equal(rows_of(open_source(copy)), X)


@pytest.mark.parametrize("offset", [0, 12, 5000])
def test_offsets_within_a_file(tmp_path, offset):
    X = table_of()
    path = tmp_path / "x.bin"
    path.write_bytes(bytes(offset) + X.tobytes())
    mapped = np.memmap(path, np.float32, "r", offset, (N, D))
    for rows, expected in ((mapped, X), (mapped[7:30][2:], X[9:30])):
        source = open_source(rows)
        assert type(source) is FileSource
        np.testing.assert_array_equal(rows_of(source), expected)


def test_bfloat16_maps(tmp_path):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    X = table_of().astype(ml_dtypes.bfloat16)
    (tmp_path / "x.bin").write_bytes(X.tobytes())
    source = open_source(np.memmap(tmp_path / "x.bin", ml_dtypes.bfloat16, "r", 0, (N, D)))
    assert type(source) is FileSource
    np.testing.assert_array_equal(rows_of(source), X.astype(np.float32))


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.empty((0, D), np.float32), r"shape \(0, 4\); it must have at least one row and one"),
        (np.empty((N, 0), np.float32), r"shape \(60, 0\); it must have at least one row and one"),
        (np.zeros((N, D), np.int64), r"type int64; it must be a table of floats"),
        (np.zeros(N), r"shape \(60,\)"),
        (np.array(["a"]), r"type <U1"),
        (np.array([{}]), r"cannot read the shard"),
    ],
    ids=["no rows", "no features", "int", "1-D", "text", "object"],
)
def test_bad_shards_are_named(array, message, tmp_path):
    np.save(tmp_path / "good.npy", table_of())
    np.save(tmp_path / "bad.npy", array)
    with pytest.raises(ValueError, match=message) as info:
        open_source([tmp_path / "good.npy", tmp_path / "bad.npy"])
    assert "bad.npy" in str(info.value)


def test_a_read_that_comes_back_short_is_an_error(tmp_path, monkeypatch):
    """Even if the size of the file seems to be right."""
    path = tmp_path / "x.npy"
    np.save(path, table_of())
    source = open_source([path])
    cut(path)
    seen = source.parts[0].seen
    monkeypatch.setattr(_array_sources, "_identify", lambda *_: seen)
    with pytest.raises(ValueError, match=r"x\.npy has changed.* ends \d+ bytes too early"):
        rows_of(source)
