"""No partial file replaces a good one."""

from __future__ import annotations

import os
import subprocess
import sys

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


WRITE = """
import os, pathlib, sys, tempfile
os.umask(int(sys.argv[2], 8))
def never(*_): raise AssertionError("the umask belongs to all threads")
os.umask = never
from topksvm._files import replacing
path = pathlib.Path(sys.argv[1])
with replacing(path) as temporary:
    print(oct(temporary.stat().st_mode & 0o777))
    temporary.write_text("new")
print(oct(path.stat().st_mode & 0o777))
"""


def permissions(path, umask):
    """Return those of the temporary file and of the final one, written under the umask."""
    done = subprocess.run(
        [sys.executable, "-c", WRITE, str(path), umask], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert path.read_text() == "new"
    return done.stdout.split()


posix = pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")


@posix
@pytest.mark.parametrize(
    ("umask", "expected"), [("077", "0o600"), ("022", "0o644"), ("002", "0o664")]
)
def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path, umask, expected):
    assert permissions(tmp_path / "result.csv", umask) == [expected, expected]


@posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666, 0o444])
@pytest.mark.parametrize("umask", ["077", "022"])
def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path, mode, umask):
    path = tmp_path / "result.csv"
    path.write_text("old")
    path.chmod(mode)
    temporary, final = permissions(path, umask)
    assert final == oct(mode)
    assert int(temporary, 8) & ~(mode | 0o600) == 0  # Nobody else can read a secret meanwhile.
