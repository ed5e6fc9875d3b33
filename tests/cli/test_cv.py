"""``topksvm cv`` against a loop over folds."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from sklearn.metrics import top_k_accuracy_score
from sklearn.model_selection import StratifiedKFold

from cli.files import NAMES, examples, run, run_json, write_table
from topksvm import TopKLinearSVC
from topksvm.cli import main

CS = (0.05, 0.5)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    X, y = examples()
    return write_table(tmp_path_factory.mktemp("cv") / "data.csv", X, NAMES[y])


@pytest.fixture(scope="module")
def expected():
    """Return the accuracy on the folds for each training k, C, and k wanted."""
    X, y = examples()
    y = NAMES[y]
    shares = {}
    for train, test in StratifiedKFold(3, shuffle=True, random_state=7).split(X, y):
        for k in (1, 2):
            for C in CS:
                model = TopKLinearSVC(k, C=C, tol=1e-6, random_state=0).fit(X[train], y[train])
                for wanted in (1, 2):
                    scores = model.decision_function(X[test])
                    share = top_k_accuracy_score(y[test], scores, k=wanted, labels=NAMES)
                    shares.setdefault((k, C, wanted), []).append(share)
    return shares


def test_cv_is_a_loop_over_folds(table, expected, tmp_path, capsys):
    options = ["-k", 1, 2, "-C", *CS, "--extensions", 0, "--folds", 3, "--seed", 7]
    files = ["--results", tmp_path / "r.csv", "-o", tmp_path / "m.safetensors", "--for", 2]
    report = run_json(capsys, "cv", table, *options, *files, "--tol", 1e-6, "-q")
    with (tmp_path / "r.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 4
    for row in rows:
        for wanted in (1, 2):
            shares = expected[int(row["param_k"]), float(row["param_C"]), wanted]
            assert float(row[f"mean_test_top{wanted}"]) == pytest.approx(np.mean(shares))
            assert float(row[f"split2_test_top{wanted}"]) == pytest.approx(shares[2])
    means = {key: np.mean(shares) for key, shares in expected.items()}
    for wanted in (1, 2):
        best = report["best"][str(wanted)]
        assert best["accuracy"] == pytest.approx(
            max(mean for key, mean in means.items() if key[2] == wanted)
        )
        assert means[best["k"], best["C"], wanted] == pytest.approx(best["accuracy"])

    model = TopKLinearSVC.load(tmp_path / "m.safetensors")
    assert (model.k, model.C) == (report["best"]["2"]["k"], report["best"]["2"]["C"])
    X, y = examples()
    own = TopKLinearSVC(model.k, C=model.C, tol=1e-6).fit(X, NAMES[y])
    np.testing.assert_allclose(model.coef_, own.coef_, atol=2e-3)
    assert report["model"]["for_k"] == 2


def test_cv_prints_what_to_use(table, capsys):
    printed = run(capsys, "cv", table, "-k", 2, "-C", *CS, "--extensions", 0, "--folds", 3)
    assert "What to train with:" in printed.out
    assert "for top-2: --loss topk_hinge_alpha -k 2 -C 0." in printed.out
    assert "%*" in printed.out
    assert "fits: 6/6" in printed.err


def test_cv_says_which_points_were_not_solved(table, capsys):
    options = ["-k", 2, "-C", 1, "--folds", 2, "--max-iter", 1, "--tol", 1e-9, "-q"]
    error = run(capsys, "cv", table, *options).err
    assert error.startswith("topksvm: warning: 1 of 1 points")
    assert "Raise --max-iter" in error
    assert error.count("\n") == 1


def test_small_classes_are_named(tmp_path, capsys):
    X, y = examples()
    rare = np.where(np.arange(150) == 0, "rare", NAMES[y])
    table = write_table(tmp_path / "t.csv", X, rare)
    printed = run(capsys, "cv", table, "-k", 1, "-C", 0.1, "--folds", 2, "-q")
    assert printed.err == (
        "topksvm: warning: classes with fewer rows than there are folds, 2: 'rare'\n"
    )


def test_ctrl_c_in_the_last_training_saves_the_model(table, tmp_path, capsys, monkeypatch):
    real = TopKLinearSVC.fit

    def interrupted(self, *args):
        real(self, *args)
        self.status_ = "interrupted"
        self.set_params(tol=1e-12)  # An interrupted fit whose gap is within tol is a solved one.
        return self

    monkeypatch.setattr(TopKLinearSVC, "fit", interrupted)
    out = tmp_path / "m.safetensors"
    arguments = ["cv", table, "-k", 2, "-C", 0.1, "--folds", 2, "-q", "-o", out]
    assert main([str(a) for a in arguments]) == 130
    assert capsys.readouterr().err == "topksvm: interrupted\n"
    assert TopKLinearSVC.load(out).k == 2


def test_ctrl_c_in_the_search_leaves_nothing(table, tmp_path, capsys, monkeypatch):
    def interrupted(*_args):
        raise KeyboardInterrupt

    monkeypatch.setattr("topksvm.estimators._linear_cv.Search.extend", interrupted)
    arguments = ["cv", table, "-k", 2, "-o", tmp_path / "m.safetensors"]
    assert main([str(a) for a in arguments]) == 130
    assert capsys.readouterr().err == "topksvm: interrupted\n"
    assert list(tmp_path.iterdir()) == []
