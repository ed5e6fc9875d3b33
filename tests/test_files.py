"""No partial file replaces a good one."""

from __future__ import annotations

import pytest

from topksvm._files import replacing


def test_the_new_file_replaces_the_old_one(tmp_path):
    path = tmp_path / "new folder" / "result.csv"
    for text in ("first", "second"):
        with replacing(path) as temporary:
            temporary.write_text(text)
            assert temporary.parent == path.parent  # The same disk: the rename is atomic.
            assert temporary.suffix == ".csv"
        assert path.read_text() == text
    assert list(path.parent.iterdir()) == [path]


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "result.csv"
    path.write_text("good")

    def write_half():
        with replacing(path) as temporary:
            temporary.write_text("par")
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        write_half()
    assert path.read_text() == "good"
    assert list(tmp_path.iterdir()) == [path]
