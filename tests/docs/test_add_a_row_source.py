"""The row source of the contributor guide, as the page prints it, and what is said of bad ones."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest
from estimators.data import problem

import topksvm
from topksvm import TopKLinearSVC
from topksvm.data import RowSource

CODE = Path(__file__).parents[2] / "docs" / "code"

_spec = spec_from_file_location("npz_rows", CODE / "npz_rows.py")
_module = module_from_spec(_spec)
_spec.loader.exec_module(_module)
NpzRows = _module.NpzRows


@pytest.fixture
def data(tmp_path):
    X, y = problem(np.float32)
    parts = np.split(X, [10, 70, 71])
    np.savez(tmp_path / "rows.npz", *parts)
    return NpzRows(tmp_path / "rows.npz"), X, y


def test_the_script_of_the_page():
    done = subprocess.run(
        [sys.executable, CODE / "train_on_it.py"], capture_output=True, text=True, check=True
    )
    page = (CODE.parent / "contributing.rst").read_text()
    printed = re.search(r"docs/code/train_on_it.py\n((?:   .*\n)+)", page)[1]
    assert done.stdout.split() == printed.split()


def test_it_is_a_source(data):
    rows, X, _ = data
    assert isinstance(rows, RowSource)
    assert rows.shape == X.shape
    assert rows.pieces(100) == [(0, 10), (10, 70), (70, 71), (71, 150)]
    out = np.empty((60, X.shape[1]))
    rows.read(10, 70, out)
    np.testing.assert_array_equal(out, X[10:70])


def test_it_is_trained_on_and_predicted_for(data):
    rows, X, y = data
    model = TopKLinearSVC(2, C=0.1, tol=1e-5, random_state=0).fit(rows, y)
    inside = TopKLinearSVC(2, C=0.1, tol=1e-5, random_state=0).fit(X, y)
    assert model.status_ == "solved"
    assert model.certificate_.primal == pytest.approx(inside.certificate_.primal, rel=2e-5)
    np.testing.assert_allclose(model.decision_function(rows), model.decision_function(X), rtol=1e-6)
    np.testing.assert_array_equal(model.predict_topk(rows), model.predict_topk(X))
    assert model.score_topk(rows, y, 2) == model.score_topk(X, y, 2)
    result = topksvm.solve(rows, y, C=0.1, k=2, bias=1.0, tol=1e-5)
    assert result.certificate.primal == pytest.approx(inside.certificate_.primal, rel=2e-5)


def test_its_windows_and_checkpoints_are_those_of_any_source(data, tmp_path):
    rows, _, y = data
    settings = {"C": 0.1, "random_state": 0, "tol": 1e-4}
    small = TopKLinearSVC(memory_limit=120_000, checkpoint=tmp_path / "state", **settings)
    small.fit(rows, y)
    assert small.certificate_.relative_gap <= 1e-4
    with pytest.raises(ValueError, match="memory_limit = 1000 bytes is too little"):
        small.set_params(memory_limit=1000, checkpoint=None).fit(rows, y)


def test_another_precision_leaves_the_source_as_it_is(data):
    rows, _, y = data
    model = TopKLinearSVC(C=0.1, dtype="float64", random_state=0).fit(rows, y)
    assert model.coef_.dtype == np.float64
    assert rows.dtype == np.float32


class Bad:
    """A source of one piece with something wrong about it."""

    def __init__(self, shape=(6, 3), dtype=np.float64, pieces=((0, 6),)):
        self.shape, self.dtype, self.ranges = shape, dtype, list(pieces)

    def pieces(self, _):
        return self.ranges

    def read(self, start, stop, out):
        out[...] = np.eye(6)[start:stop, :3]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"shape": (6,)}, r"X, a Bad, has shape \(6,\)"),
        ({"shape": (6, 0)}, r"must have rows and features"),
        ({"dtype": np.float16}, "dtype float16.*float32 or float64"),
        ({"dtype": np.int64}, "dtype int64"),
        ({"pieces": [(0, 5)]}, "from row 0 to row 5 only; they must cover all 6 rows"),
        ({"pieces": [(0, 3), (4, 6)]}, "to row 3 only"),
        ({"pieces": [(3, 6), (0, 3)]}, "to row 0 only"),
        ({"pieces": [(0, 3), (3, 3), (3, 6)]}, "to row 3 only"),
        ({"pieces": []}, "to row 0 only"),
    ],
)
@pytest.mark.parametrize("fit", [TopKLinearSVC().fit, topksvm.solve], ids=["estimator", "solve"])
def test_what_is_wrong_with_a_source_is_said(wrong, words, fit):
    with pytest.raises(ValueError, match=words):
        fit(Bad(**wrong), np.arange(6) % 3)


def test_values_that_are_not_finite_are_said():
    source = Bad()
    source.read = lambda _, __, out: out.fill(np.nan)
    with pytest.raises(ValueError, match="Row 0 of X holds NaN"):
        TopKLinearSVC().fit(source, np.arange(6) % 3)


def test_an_object_without_all_of_it_is_no_source():
    class Half:
        shape, dtype = (6, 3), np.dtype(np.float64)

        def pieces(self, _):
            return [(0, 6)]

    assert not isinstance(Half(), RowSource)
    with pytest.raises((TypeError, ValueError)):
        TopKLinearSVC().fit(Half(), np.arange(6) % 3)
