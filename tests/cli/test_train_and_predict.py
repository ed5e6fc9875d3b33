"""From a file to a model to guesses, against the estimator and against plain NumPy."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys

import numpy as np
import pytest
from estimators.data import objective
from sklearn.metrics import top_k_accuracy_score

from cli.files import FEATURES, NAMES, examples, run, run_json, write_table
from topksvm import TopKLinearSVC
from topksvm.cli import main
from topksvm.cli._train import choose_k, hold_out

SETTINGS = ["-k", 2, "-C", 0.5, "-q"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Return a folder with data, and the model that the command line has made of them."""
    folder = tmp_path_factory.mktemp("trained")
    X, y = examples()
    write_table(folder / "train.csv", X[:100], NAMES[y[:100]])
    write_table(folder / "test.csv", X[100:], NAMES[y[100:]])
    model = folder / "model.safetensors"
    data = [folder / "train.csv", "-o", model]
    assert main([str(a) for a in ["train", *data, *SETTINGS]]) == 0
    return folder


def _scores(model, X):
    return X @ model.coef_.T + model.intercept_


def test_the_model_is_that_of_the_estimator(trained):
    X, y = examples()
    saved = TopKLinearSVC.load(trained / "model.safetensors")
    own = TopKLinearSVC(2, C=0.5, random_state=0).fit(X[:100], NAMES[y[:100]])
    np.testing.assert_array_equal(saved.coef_, own.coef_)
    np.testing.assert_array_equal(saved.intercept_, own.intercept_)
    assert saved.classes_.tolist() == own.classes_.tolist()
    assert saved.feature_names_in_.tolist() == FEATURES
    assert saved.verbose == 0


def test_train_reports_what_it_did(trained, tmp_path, capsys):
    X, y = examples()
    out = tmp_path / "new" / "model.safetensors"
    arguments = ["train", trained / "train.csv", "--test", trained / "test.csv", "-o", out]
    report = run_json(capsys, *arguments, *SETTINGS)
    model = TopKLinearSVC.load(out)
    assert (report["n_rows"], report["n_features"], report["n_classes"]) == (100, 12, 6)
    assert report["status"] == "solved"
    assert report["notes"] == ["labels from column 'kind', the last"]
    certificate = report["certificate"]
    assert certificate["relative_gap"] <= 1e-3
    # The objective of the weights in the file, computed anew.
    expected = objective(model, X[:100], NAMES[y[:100]])
    assert certificate["primal"] == pytest.approx(expected, rel=1e-9)
    assert certificate["dual"] <= certificate["primal"]
    for part, rows in (("training", slice(0, 100)), ("test", slice(100, None))):
        scores, truth = _scores(model, X[rows]), NAMES[y[rows]]
        for k in (1, 2):
            expected = top_k_accuracy_score(truth, scores, k=k, labels=model.classes_)
            assert report["accuracy"][part]["topk"][str(k)] == pytest.approx(expected)

    words = run(capsys, *arguments, *SETTINGS).out
    assert "labels from column 'kind', the last" in words
    assert "proven: no model of this kind is more than" in words
    share = report["accuracy"]["test"]["topk"]["2"]
    assert f"top-2 {100 * share:.2f} % of 50 rows" in words


def test_holdout_takes_a_share_of_each_class_and_never_all_of_it(trained, tmp_path, capsys):
    y = np.array([0] * 10 + [1] * 20 + [2])
    held_out = hold_out(y, 0.5, seed=3)
    assert np.bincount(y[held_out], minlength=3).tolist() == [5, 10, 0]
    assert (hold_out(y, 0.5, seed=3) == held_out).all()
    assert (hold_out(y, 0.5, seed=4) != held_out).any()

    out = tmp_path / "model.safetensors"
    arguments = ["train", trained / "train.csv", "-o", out, "--holdout", 0.2, *SETTINGS]
    report = run_json(capsys, *arguments)
    X, y = examples()
    held_out = hold_out(NAMES[y[:100]], 0.2, seed=0)
    assert report["n_rows"] == np.count_nonzero(~held_out)
    own = TopKLinearSVC(2, C=0.5, random_state=0)
    own.fit(X[:100][~held_out], NAMES[y[:100]][~held_out])
    np.testing.assert_array_equal(TopKLinearSVC.load(out).coef_, own.coef_)
    expected = own.score_topk(X[:100][held_out], NAMES[y[:100]][held_out])
    assert report["accuracy"]["test"]["topk"]["2"] == pytest.approx(expected)


def test_the_k_that_is_chosen_fits_the_classes_and_the_loss():
    assert choose_k(None, "topk_hinge_alpha", 100) == (5, 5)
    assert choose_k(None, "topk_hinge_alpha", 3) == (2, 2)
    assert choose_k(7, "topk_hinge_beta", 100) == (7, 7)
    assert choose_k(None, "softmax", 100) == (5, 1)


def test_falling_short_of_tol_is_one_line_and_no_failure(trained, tmp_path, capsys):
    out = tmp_path / "model.safetensors"
    arguments = ["train", trained / "train.csv", "-o", out, "-q", "--max-iter", 1, "--tol", 1e-9]
    printed = run(capsys, *arguments)
    assert printed.err.startswith("topksvm: warning: not solved to --tol 1e-09: 1 passes were made")
    assert "Raise --max-iter" in printed.err
    assert printed.err.count("\n") == 1
    assert run_json(capsys, *arguments)["status"] == "max_iter"


def test_features_that_are_too_large_for_c_are_pointed_out(tmp_path, capsys):
    X, y = examples()
    table = write_table(tmp_path / "t.csv", 1000 * X, y)
    arguments = ["train", table, "-o", tmp_path / "m.safetensors", "-q", "--max-iter", 1]
    first, *_ = run(capsys, *arguments).err.splitlines()
    norm = np.median(np.linalg.norm(1000 * X, axis=1))
    assert f"the features are large: rows have a norm of about {norm:.2g}." in first
    assert "features are large" not in run(capsys, *arguments, "-C", 1e-6).err


def test_a_full_disk_is_one_clear_line(trained, tmp_path, capsys, monkeypatch):
    def fill(*_args, **_options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("topksvm.cli._predict._write_csv", fill)
    saved = [trained / "model.safetensors", trained / "test.csv", "-o", tmp_path / "out.csv"]
    assert main(["predict", *map(str, saved)]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("topksvm: error: ")
    assert "No space left on device" in error
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_saves_the_model_with_its_certificate(trained, tmp_path):
    out = tmp_path / "model.safetensors"
    arguments = [trained / "train.csv", "-o", out, "-C", 1e6, "--tol", 1e-15, "--max-iter", 10**9]
    with subprocess.Popen(
        [sys.executable, "-m", "topksvm", "train", *map(str, arguments), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Jobs in the background of a shell ignore it, and so would their children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        while not process.stderr.readline().startswith("pass "):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        printed, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert error.splitlines()[-1] == "topksvm: interrupted"
    assert "Traceback" not in error
    report = json.loads(printed)
    assert report["status"] == "interrupted"
    model = TopKLinearSVC.load(out)
    assert model.certificate_.primal == report["certificate"]["primal"]


def test_predict_prints_the_best_labels_and_their_scores(trained, capsys):
    X, _ = examples()
    model = TopKLinearSVC.load(trained / "model.safetensors")
    scores = _scores(model, X[100:])
    order = np.argsort(-scores, axis=1)[:, :3]
    arguments = ["predict", trained / "model.safetensors", trained / "test.csv", "-k", 3]
    printed = run(capsys, *arguments, "--scores")
    assert printed.err == "topksvm: columns not used: 'kind'\n"
    header, *rows = csv.reader(printed.out.splitlines())
    assert header == ["label_1", "label_2", "label_3", "score_1", "score_2", "score_3"]
    assert [row[:3] for row in rows] == model.classes_[order].tolist()
    values = np.array([row[3:] for row in rows], dtype=float)
    np.testing.assert_allclose(values, np.take_along_axis(scores, order, 1), rtol=1e-8)

    found = run_json(capsys, *arguments, "--scores")
    assert [row["labels"] for row in found["predictions"]] == model.classes_[order].tolist()
    assert found["predictions"][0]["scores"] == pytest.approx(scores[0, order[0]])
    assert set(run_json(capsys, *arguments)["predictions"][0]) == {"labels"}


def test_predict_writes_files_block_by_block(trained, tmp_path, capsys, monkeypatch):
    from topksvm.cli import _scoring

    monkeypatch.setattr(_scoring, "_ENTRIES", 100)  # Blocks of a few rows.
    X, _ = examples()
    np.save(tmp_path / "X.npy", X[100:])
    model = TopKLinearSVC.load(trained / "model.safetensors")
    expected = model.classes_[np.argsort(-_scores(model, X[100:]), axis=1)[:, :2]].tolist()
    for name in ("out.csv", "out.npy", "out.json"):
        out = tmp_path / name
        saved = [trained / "model.safetensors", tmp_path / "X.npy"]
        printed = run(capsys, "predict", *saved, "-o", out)
        assert printed.out == ""
        if name == "out.csv":
            found = list(csv.reader(out.read_text().splitlines()))[1:]
        elif name == "out.npy":
            found = np.load(out, allow_pickle=False).tolist()
        else:
            found = [row["labels"] for row in json.loads(out.read_text())["predictions"]]
        assert found == expected


def test_columns_are_found_by_name_whatever_their_order(trained, tmp_path, capsys):
    X, y = examples()
    table = write_table(
        tmp_path / "t.csv",
        np.c_[X[100:, ::-1], y[100:]],
        NAMES[y[100:]],
        header=[*FEATURES[::-1], "id"],
    )
    model = trained / "model.safetensors"
    plain = run(capsys, "predict", model, trained / "test.csv").out
    mixed = run(capsys, "predict", model, table)
    assert mixed.out == plain
    assert mixed.err == "topksvm: columns not used: 'id', 'kind'\n"
    report = run_json(capsys, "evaluate", model, table)
    assert report["notes"] == ["labels from column 'kind', the last"]


def test_a_model_of_python_and_labels_that_it_does_not_know(tmp_path, capsys):
    X, y = examples()
    known = y < 5
    model = TopKLinearSVC(2, C=0.5, random_state=0).fit(X[known], y[known])
    model.save(tmp_path / "own.safetensors")
    table = write_table(tmp_path / "t.csv", X, y)
    report = run_json(capsys, "evaluate", tmp_path / "own.safetensors", table)
    assert (report["n"], report["unseen_labels"]) == (150, ["5"])
    assert report["n_unseen"] == np.count_nonzero(~known)
    assert list(report["accuracy"]) == ["1", "2", "3"]
    ranks = np.argsort(np.argsort(-_scores(model, X), axis=1), axis=1)
    hits = known & (ranks[np.arange(150), np.minimum(y, 4)] < 2)
    assert report["accuracy"]["2"] == pytest.approx(hits.mean())
    printed = run(capsys, "evaluate", tmp_path / "own.safetensors", table, "-k", 5, 1).out
    assert f"{100 * known.mean():.2f} %" in printed
    assert "rows have labels that were not trained on and count as errors: '5'" in printed
    assert (
        "column 'kind' is not used"
        in run(capsys, "predict", tmp_path / "own.safetensors", table).err
    )


def test_info_shows_a_model(trained, capsys):
    report = run_json(capsys, "info", trained / "model.safetensors")
    assert report["classes"] == NAMES.tolist()
    assert (report["n_features"], report["feature_names"]) == (12, FEATURES)
    assert report["parameters"]["C"] == 0.5
    assert report["certificate"]["relative_gap"] <= 1e-3
    printed = run(capsys, "info", trained / "model.safetensors").out
    for words in ("topk_hinge_alpha, k = 2, C = 0.5", "6: 'ant'", "6 x 12 in float64", "proven"):
        assert words in printed


def test_progress_is_plain_lines_in_a_pipe(trained, tmp_path, capsys):
    arguments = ["train", trained / "train.csv", "-o", tmp_path / "m.safetensors", "-k", 2]
    error = run(capsys, *arguments).err
    assert error.startswith("pass 1: relative gap about")
    assert "\x1b" not in error


def write_folder(folder, dtype=np.float16):
    from topksvm.datasets import make_ambiguous_classes

    X, y = make_ambiguous_classes(600, 8, 10, random_state=0)
    for name, rows in (("train", slice(0, 400)), ("test", slice(400, 600))):
        np.save(folder / f"{name}.npy", X[rows].astype(dtype))
        lines = "".join(f"class-{label}\n" for label in y[rows])
        (folder / f"{name}_labels.txt").write_text(lines)
    return X, y


def test_train_on_a_folder_of_half_precision_with_checkpoints(tmp_path, capsys):
    X, y = write_folder(tmp_path)
    path = tmp_path / "m.safetensors"
    words = [
        "train",
        "--features",
        str(tmp_path),
        "-k",
        "2",
        "-C",
        "0.1",
        "-o",
        str(path),
        "--json",
    ]
    words += ["--json", "--checkpoint", str(tmp_path / "state"), "--memory-limit", "1M"]
    assert main(words) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["certificate"]["relative_gap"] <= 1e-3
    model = TopKLinearSVC.load(path)
    assert set(model.classes_) == {f"class-{label}" for label in set(y.tolist())}
    truth = np.array([f"class-{label}" for label in y[400:]])
    score = model.score_topk(X[400:].astype(np.float16).astype(np.float32), truth, 2)
    assert result["accuracy"]["test"]["topk"]["2"] == score
    assert score > 0.5


def test_train_on_a_file_and_a_folder_is_one_line(tmp_path, capsys):
    write_folder(tmp_path)
    for words in (["x.csv", "--features", str(tmp_path)], []):
        assert main(["train", *words, "-o", str(tmp_path / "m.safetensors")]) == 2
        error = capsys.readouterr().err
        assert "either DATA" in error
        assert error.count("\n") == 1
    words = ["train", "--features", str(tmp_path), "-o", str(tmp_path / "m.safetensors")]
    assert main([*words, "--memory-limit", "lots"]) == 2
    assert "500M" in capsys.readouterr().err
    assert main([*words, "--memory-limit", "1K"]) == 2
    assert "too little" in capsys.readouterr().err
