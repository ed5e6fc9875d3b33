"""Caltech 101 Silhouettes and banking77: the gaps that are promised, judged independently."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import numpy as np
import pytest
from scipy.io import loadmat
from sklearn.feature_extraction.text import TfidfVectorizer

from solvers.cases import ROWS, make_objective, run
from solvers.objective import HINGES, check, check_primal_solver
from topksvm.solvers import Status

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("TOPKSVM_DATA", ROOT.parent / "shared" / "data"))

OPTIMA = {
    ("topk_hinge_alpha", 1): (27.1433, 27.1433),
    ("topk_hinge_beta", 1): (27.1433, 27.1433),
    ("topk_hinge_full", 1): (27.1433, 27.1433),
    ("topk_hinge_alpha", 5): (22.5189, 22.5384),
    ("topk_hinge_alpha", 10): (19.1776, 19.1776),
    ("topk_hinge_beta", 5): (23.2196, 23.2342),
    ("topk_hinge_beta", 10): (20.2444, 20.2547),
}
"""Caltech, C = 0.01: bounds on the optimal values by the authors' C++, to all digits printed."""


def _path(name):
    path = DATA / name
    if not path.exists():
        pytest.skip(f"{path} is absent; set TOPKSVM_DATA to the folder that holds it")
    return path


@pytest.fixture(scope="module")
def caltech():
    content = loadmat(_path("caltech101_silhouettes_28_split1.mat"))
    X = np.ascontiguousarray(content["train_data"], dtype=np.float64)
    y = content["train_labels"].ravel().astype(np.int64) - 1
    assert X.shape == (4100, 784)
    assert y.max() == 100
    return X, y


@pytest.fixture(scope="module")
def banking():
    with _path("banking77_train.csv").open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    _, y = np.unique([line["category"] for line in lines], return_inverse=True)
    X = TfidfVectorizer(sublinear_tf=True).fit_transform([line["text"] for line in lines])
    assert X.shape[0] == 10003
    assert y.max() == 76
    return X, y


def _check(objective, tol):
    result = run(objective, tol=tol, max_iter=3000)
    assert result.status is Status.SOLVED
    judge = check if objective.name in HINGES else check_primal_solver
    return judge(objective, result, tol)


def _check_optimum(objective, tol):
    primal, dual = _check(objective, tol)
    if (objective.name, objective.k) in OPTIMA:
        low, high = OPTIMA[objective.name, objective.k]
        digits = 1e-4  # The bounds are rounded.
        assert dual <= high + digits
        assert primal >= low - digits


@pytest.mark.parametrize("name", HINGES)
@pytest.mark.parametrize("k", [1, 5, 10])
def test_caltech_hinges(caltech, name, k):
    X, y = caltech
    dtype = dict(ROWS[name])["dense"]  # float32 where both are.
    _check_optimum(make_objective(name, k, 0.0, X.astype(dtype), y, C=0.01), 1e-3)


# Slow, so only two: the others took 12 to 47 seconds each when measured once.
@pytest.mark.parametrize("k", [1, 10])
def test_caltech_hinge_in_float64(caltech, k):
    X, y = caltech
    _check_optimum(make_objective("topk_hinge_alpha", k, 0.0, X, y, C=0.01), 1e-6)


@pytest.mark.parametrize(("name", "k"), [("softmax", 1), ("topk_entropy", 5), ("topk_entropy", 10)])
def test_caltech_entropies_in_float32(caltech, name, k):
    X, y = caltech
    _check(make_objective(name, k, 0.0, X.astype(np.float32), y, C=0.03), 1e-3)


@pytest.mark.parametrize(("name", "k"), [("softmax", 1), ("topk_entropy", 5)])
def test_caltech_entropies_in_float64(caltech, name, k):
    X, y = caltech
    _check(make_objective(name, k, 0.0, X, y, C=0.03), 1e-6)


@pytest.mark.parametrize("name", HINGES)
@pytest.mark.parametrize("k", [1, 5])
def test_banking77_hinges(banking, name, k):
    X, y = banking
    X = X.astype(dict(ROWS[name])["csr"])
    _check(make_objective(name, k, 0.0, X, y, C=1.0), 1e-3)


@pytest.mark.parametrize("k", [1, 5])
def test_banking77_in_float64(banking, k):
    X, y = banking
    _check(make_objective("topk_hinge_alpha", k, 0.0, X, y, C=1.0), 1e-6)
