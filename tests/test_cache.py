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
        environment["PYTHONPATH"] = str(path)
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


def test_an_index_that_names_a_class_that_has_moved_is_compiled_again(tmp_path):
    """Installing another version leaves the old cache behind."""
    code = """
import pickle, pathlib, types, sys
import numpy as np
from topksvm import _numba, projections
old = types.ModuleType("old"); old.Moved = type("Moved", (), {"__module__": "old"})
sys.modules["old"] = old
data = pickle.dumps(old.Moved())
del sys.modules["old"]
for kernel in _numba.KERNELS:
    path = pathlib.Path(kernel._cache._cache_file._index_path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pickle.dumps(__import__("numba").__version__) + data)
print(projections.project_simplex(np.array([2.0, 0.0])))
"""
    assert _run(code, tmp_path) == "[1. 0.]\n"
