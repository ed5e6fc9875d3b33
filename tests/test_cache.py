"""Compiled kernels are found by the next process, and never outlive the sources they came from."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import topksvm

USE_EVERYTHING = """
import json
import numpy as np
import scipy.sparse as sp
import topksvm
from topksvm import projections, _numba
_numba.warm_up()
for dtype in (np.float32, np.float64):
    a = np.linspace(0, 1, 700, dtype=dtype)
    for rows in (a, a.reshape(7, 100)):
        projections.project_knapsack(rows, equality=True)
        projections.project_simplex(rows)
        projections.project_capped_simplex(rows, 3)
        projections.project_topk_cone(rows, 3)
        projections.project_topk_simplex(rows, 90)
rng = np.random.default_rng(0)
X, y = rng.standard_normal((60, 4)).astype(np.float32), np.arange(60) % 20
for rows in (X, sp.csr_array(X)):
    topksvm.TopKLinearSVC(C=0.01).fit(rows, y)
    topksvm.TopKSVC(C=0.01).fit(rows, y)
topksvm.TopKSVC(C=0.01, kernel="precomputed").fit(np.eye(60, dtype=np.float32), y)
print(json.dumps({"misses": _numba.cache_misses(), "kernels": len(_numba.KERNELS)}))
"""


def _run(code, cache, path=None):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    if path is not None:
        inherited = environment.get("PYTHONPATH")
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(path), inherited]))
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


def test_the_second_process_compiles_nothing(cache):
    first = json.loads(_run(USE_EVERYTHING, cache))
    assert first["misses"]  # The test would show nothing if the first process did not compile.
    second = json.loads(_run(USE_EVERYTHING, cache))
    assert second["misses"] == {}


def test_an_edit_in_another_file_is_seen(tmp_path):
    shutil.copytree(Path(topksvm.__file__).parent, tmp_path / "src" / "topksvm")
    code = (
        "import topksvm\n"
        "from topksvm.projections import project_topk_simplex\n"
        "print(topksvm.__file__, project_topk_simplex([3.0, 2.0, 1.0], 2).sum())"
    )
    path, total = _run(code, tmp_path / "cache", tmp_path / "src").split()
    assert path.startswith(str(tmp_path))
    assert float(total) == pytest.approx(1.0)
    # The kernel that is called lies in _rows.py; what it calls, in _topk.py.
    callee = tmp_path / "src" / "topksvm" / "projections" / "_topk.py"
    edited = callee.read_text().replace("cap = r / k", "cap = 0.5 * r / k")
    assert edited != callee.read_text()
    callee.write_text(edited)
    _, total = _run(code, tmp_path / "cache", tmp_path / "src").split()
    assert float(total) == pytest.approx(0.5)


TINY = """
from topksvm._numba import kernel

@kernel
def twice(x):
    return x + x
"""

DAMAGE_ALL = """
import importlib, pathlib, pickle, random, sys, types
sys.path.insert(0, sys.argv[1])
import tiny
from topksvm._kernel_cache import CheckedFiles
random.seed(0)
folder = pathlib.Path(tiny.twice.entry._cache.cache_path)

def use():
    module = importlib.reload(tiny)
    assert isinstance(module.twice.entry._cache._cache_file, CheckedFiles)
    assert (module.twice(2), module.twice(2.5)) == (4, 5.0)
    return sum(module.twice.entry.stats.cache_misses.values())

def flipped(content):
    at = random.randrange(len(content))
    return content[:at] + bytes([content[at] ^ 1 << random.randrange(8)]) + content[at + 1:]

def foreign(content):
    old = types.ModuleType("old")
    old.Moved = type("Moved", (), {"__module__": "old"})
    sys.modules["old"] = old
    payload = pickle.dumps(old.Moved())
    del sys.modules["old"]
    return tiny.twice.entry._cache._cache_file._digest(payload) + payload

damages = {
    "empty": lambda content: b"",
    "five bytes": lambda content: content[:5],
    "hash only": lambda content: content[:32],
    "half": lambda content: content[: len(content) // 2],
    "one byte less": lambda content: content[:-1],
    "one byte more": lambda content: content + b"x",
    "random": lambda content: random.randbytes(len(content)),
    "short random": lambda content: random.randbytes(9),
    "without hash": lambda content: content[32:],
    "moved class": foreign,
    **{f"flipped {i}": flipped for i in range(20)},
}
assert use() == 2
assert use() == 0
for pattern in ("*.nbc", "*.nbi", "*.nb?"):
    files = sorted(folder.glob(pattern))
    assert len(files) in (1, 2, 3), files
    for name, damage in damages.items():
        for path in files:
            path.write_bytes(damage(path.read_bytes()))
        assert use() == 2, (pattern, name)
        assert use() == 0, (pattern, name)
        print(pattern, name)

# Two processes that compile at the same time may write the same file.
first, second = sorted(folder.glob("*.nbc"))
a, b = first.read_bytes(), second.read_bytes()
first.write_bytes(b), second.write_bytes(a)
assert use() == 2
assert use() == 0
first.unlink()
assert use() == 1
for path in sorted(folder.glob("*.nb?")):
    path.unlink(); path.mkdir(); (path / "file").touch()
assert use() == 2
assert use() == 2  # Nothing can be written: compiled each time, but used.
print("folders")
"""


def test_damaged_files_are_compiled_again_silently(tmp_path):
    (tmp_path / "tiny.py").write_text(TINY)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", DAMAGE_ALL, str(tmp_path)],
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 3 * 30 + 1


PROJECT = """
import numpy as np
from topksvm import _numba, projections
print(projections.project_simplex(np.array([2.0, 0.0])), bool(_numba.cache_misses()))
"""


def test_a_cache_of_which_all_files_are_damaged(tmp_path):
    """Kernels that call one another, in a process of their own, which might crash."""
    assert _run(PROJECT, tmp_path) == "[1. 0.] True\n"
    assert _run(PROJECT, tmp_path) == "[1. 0.] False\n"
    for suffix, size in ((".nbc", None), (".nbi", 0)):
        paths = list(tmp_path.rglob(f"*{suffix}"))
        assert paths
        for path in paths:
            content = path.read_bytes()
            path.write_bytes(content[: len(content) // 2] if size is None else os.urandom(99))
        assert _run(PROJECT, tmp_path) == "[1. 0.] True\n"
    assert _run(PROJECT, tmp_path) == "[1. 0.] False\n"


TWICE_VALUE = """
from topksvm._numba import dispatched, kernel

@dispatched
def value(subject, x):
    return subject.value(subject, x)

@kernel
def twice_value(subject, x):
    return 2 * value(subject, x)
"""

MINE = """
from typing import NamedTuple

class Mine(NamedTuple):
    k: int

    @staticmethod
    def value(subject, x):
        return x + subject.k
"""

USE_MINE = """
from twice_value import twice_value
from mine import Mine
print(twice_value(Mine(1), 3), sum(twice_value.entry.stats.cache_misses.values()))
"""

USE_OTHER = USE_MINE.replace("from mine import", "from other import")


def test_code_for_classes_from_outside_spoils_nothing_and_follows_their_sources(tmp_path):
    """Programs that know the class, others that do not, and the class with another method."""
    (tmp_path / "twice_value.py").write_text(TWICE_VALUE)
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "other.py").write_text(MINE.replace("x + subject.k", "x - subject.k"))

    def run(code):
        return _run(code, tmp_path / "cache", tmp_path).split()

    assert run(USE_MINE) == ["8", "1"]
    assert run(USE_OTHER) == ["4", "1"]
    (tmp_path / "mine.py").rename(tmp_path / "gone.py")
    assert run(USE_OTHER) == ["4", "0"]
    (tmp_path / "gone.py").rename(tmp_path / "mine.py")
    assert run(USE_MINE) == ["8", "0"]
    (tmp_path / "mine.py").write_text(MINE.replace("x + subject.k", "x * subject.k"))
    assert run(USE_MINE) == ["6", "1"]
    # In a script the class is another one each time: right, if never kept.
    script = USE_MINE.replace("from mine import Mine", MINE)
    assert run(script) == run(script) == ["8", "1"]
