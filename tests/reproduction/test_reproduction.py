"""The protocol of the tables, the published numbers, and what a run leaves behind."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from topksvm import TopKLinearSVC
from topksvm.baselines import WsabiePP
from topksvm.cli import main
from topksvm.datasets import Dataset, load_silhouettes, make_ambiguous_classes
from topksvm.reproduction import (
    DATASETS,
    GUESSES,
    Settings,
    Source,
    _baselines,
    make_method,
    methods_of,
    published,
    reproduce,
)
from topksvm.reproduction._candidates import POWERS, Candidate, Method, Training
from topksvm.reproduction._output import shown_of
from topksvm.reproduction._protocol import guess, run_row
from topksvm.reproduction._results import COLUMNS, summarise
from topksvm.reproduction._run import thinned

SHARED = Path(__file__).parents[3] / "shared"
SILHOUETTES = SHARED / "data" / "caltech101_silhouettes_28_split1.mat"
TABLES = SHARED / "paper" / "tables.csv"

CHEAP = ("top-1-SVM-alpha", "top-3-SVM-beta", "SVM-OVA")
GRIDS = tuple((name, (0.01, 0.1)) for name in CHEAP)


def small_data(seed=0, val=True):
    X, y = make_ambiguous_classes(500, 10, 15, random_state=seed)
    parts = {"X_val": X[300:400], "y_val": y[300:400]} if val else {}
    names = tuple(f"class {c}" for c in range(15))
    return Dataset("small", X[:300], y[:300], X[400:], y[400:], names, "Made up.", **parts)


def accuracy(W, X, y, k):
    """Ties count against the true class; written apart from the library's."""
    scores = X @ W.T
    own = scores[np.arange(len(y)), y]
    better = (scores >= own[:, None]).sum(axis=1)
    return 100 * np.mean(better <= k)


def run(folder, names=CHEAP, settings=None, source=None):
    settings = settings or Settings(quick=True, values=GRIDS)
    return list(reproduce(source or Source(small_data), names, settings, folder, jobs=1))


@pytest.mark.skipif(not TABLES.exists(), reason="needs the shared tables of the paper")
def test_published_numbers_are_those_of_the_paper():
    with TABLES.open() as stream:
        lines = list(csv.DictReader(stream))
    for line in lines:
        number = published(line["dataset"])[line["method"]][int(line["top_k"])]
        assert number.accuracy == float(line["accuracy_percent"])
        assert number.std == (float(line["std"]) if line["std"] else None)
    assert len(lines) == sum(len(row) for d in DATASETS for row in published(d).values())


def test_every_published_method_is_known():
    names = [name for dataset in DATASETS for name in methods_of(dataset)]
    assert all(make_method(name).name == name for name in names)
    assert len(methods_of("quickdraw")) == len(methods_of("caltech101-silhouettes"))
    with pytest.raises(ValueError, match=r"no method 'top-5'.*top-5-SVM-alpha"):
        make_method("top-5")


def test_row_is_the_best_on_validation_rows_tested_once():
    data = small_data()
    values = (0.003, 0.03, 0.3)
    row, guesses = run_row(make_method("top-3-SVM-alpha"), data, values, quick=True)
    models = {
        C: TopKLinearSVC(3, C=C, fit_intercept=False, random_state=0).fit(
            data.X_train, data.y_train
        )
        for C in values
    }
    for C, model in models.items():
        ours = accuracy(model.coef_, data.X_val, data.y_val, 1)
        assert row.validation[C] == pytest.approx(ours, abs=3.1)  # Three rows: a gap of 1e-3.
    assert row.value == max(values, key=lambda C: (row.validation[C], -C))
    for k in (1, 5, 10):
        ours = accuracy(models[row.value].coef_, data.X_test, data.y_test, k)
        assert row.accuracy[k] == pytest.approx(ours, abs=3.1)
        assert row.accuracy[k] == guesses.accuracy(k)
    assert row.relative_gap <= 1e-3
    assert row.history[-1]["relative_gap"] == row.relative_gap
    assert row.history[0]["relative_gap"] > row.relative_gap


def weights_right_for(data, correct):
    """Return weights, for data whose rows are unit vectors, with that many right guesses."""
    W = np.zeros((data.n_classes, data.X_train.shape[1]))
    for i in range(data.X_train.shape[1]):
        W[i if i < correct else (i + 1) % data.n_classes, i] = 1.0
    return W


def corners(m=8, val=True):
    X, y = np.eye(m), np.arange(m)
    names = tuple(map(str, range(m)))
    if not val:
        return Dataset("corners", np.tile(X, (5, 1)), np.tile(y, 5), X, y, names, "")
    return Dataset("corners", X, y, X, y, names, "", X_val=X, y_val=y)


def fake(data, right, **options):
    """Return a method whose model for a value guesses ``right(value)`` of the corners."""
    seen = []

    def candidates(training, values):
        for value in values:
            seen.append((value, len(training.labels)))
            yield Candidate(value, weights_right_for(data, right(value)))

    return Method("fake", candidates, **options), seen


def test_grid_grows_where_the_best_is_at_its_edge():
    data = corners()
    method, seen = fake(data, lambda C: {0.001: 6, 0.01: 7}.get(round(C, 6), 3))
    row, _ = run_row(method, data, (0.1, 1.0, 10.0))
    # All are equal at first, so the smallest is best, and so on to the left.
    assert [value for value, _ in seen] == pytest.approx([0.1, 1.0, 10.0, 0.01, 0.001])
    assert (row.value, row.accuracy[1]) == (pytest.approx(0.01), 87.5)
    method, seen = fake(data, lambda C: 7 if C > 50 else 3)
    row, _ = run_row(method, data, (1.0, 10.0, 100.0))
    assert row.value == pytest.approx(100.0)
    assert [value for value, _ in seen] == pytest.approx([1.0, 10.0, 100.0, 1000.0, 1e4, 1e5][:4])


def test_grid_grows_where_hopeless_values_are_left_out():
    data, seen = corners(), []

    def candidates(training, values):  # noqa: ARG001
        seen.extend(values)
        yield Candidate(min(values), weights_right_for(data, 3))  # All larger ones are hopeless.

    row, _ = run_row(Method("fake", candidates), data, (1.0, 10.0, 100.0))
    assert seen == pytest.approx([1.0, 10.0, 100.0, 0.1, 0.01, 0.001])
    assert row.value == pytest.approx(0.001)
    assert len(row.validation) == 4


def test_svm_perf_leaves_out_larger_values_once_one_is_out_of_reach(monkeypatch):
    monkeypatch.setattr(_baselines, "PLANES", 1)
    rng = np.random.default_rng(0)
    y = np.arange(400) % 5
    training = Training(rng.normal(size=(400, 6)) + 0.5 * np.eye(5, 6)[y], y, 5, seed=0)
    found = list(make_method("Recall@1").candidates(training, [1e4, 1e3, 1e-4]))
    assert [candidate.value for candidate in found] == [1e-4, 1e3]
    assert found[1].relative_gap > 1e-3


def test_more_rows_leave_less_to_chance():
    method = make_method("Wsabie++ dim=m queue=0")
    data = corners()
    row, _ = run_row(method, data, (1.0,))
    assert row.note.startswith("mean of 10 seeds")
    many = replace(
        data, X_train=np.tile(data.X_train, (3000, 1)), y_train=np.tile(np.arange(8), 3000)
    )
    row, _ = run_row(method, many, (1.0,))
    assert row.note.startswith("mean of 2 seeds")


def test_quick_runs_and_fixed_grids_do_not_grow():
    data = corners()
    for options, quick in (({}, True), ({"extends": False}, False)):
        method, seen = fake(data, lambda C: int(C), **options)
        row, _ = run_row(method, data, (1.0, 5.0), quick=quick)
        assert row.value == 5.0
        assert len(seen) == 2
        assert ("a full run looks further" in row.note) == quick
    method, _ = fake(data, lambda C: 7 if C == 5 else 3)
    row, _ = run_row(method, data, (1.0, 5.0, 10.0), quick=True)
    assert (row.value, row.note) == (5.0, "")


def test_without_validation_rows_some_are_held_out_and_all_trained_on_in_the_end():
    data = corners(val=False)
    method, seen = fake(data, lambda C: int(C))
    row, _ = run_row(method, data, (1.0, 5.0, 3.0), quick=True)
    assert row.value == 5.0
    assert seen == [(1.0, 32), (5.0, 32), (3.0, 32), (5.0, 40)]


@pytest.mark.parametrize("ova", [None, "-OVA"])
def test_lambda_of_top_push_is_that_of_its_paper(monkeypatch, ova):
    """One-vs-rest, the losses are divided by the number of examples of the class."""
    made = []

    class Seen(_baselines.TopPush):
        def __init__(self, C, **options):
            super().__init__(C, **options)
            made.append((C, options["reduction"]))

    monkeypatch.setattr(_baselines, "TopPush", Seen)
    y = np.repeat([0, 1, 2], [2, 3, 5])
    training = Training(np.random.default_rng(0).normal(size=(10, 2)), y, 3, 0)
    list(_baselines.top_push("TopPush", ova).candidates(training, [0.5]))
    ((C, reduction),) = made
    assert reduction == ("multiclass" if ova is None else "ovr")
    np.testing.assert_allclose(C, 0.2 if ova is None else [1.0, 2 / 3, 0.4])


@pytest.mark.parametrize(
    ("name", "power"), [("softmax", -2), ("TopPush", 2), ("Wsabie++ dim=m queue=0", 0)]
)
def test_quick_grids_follow_the_size_of_the_rows(name, power):
    method, settings = make_method(name), Settings(quick=True)
    data = corners()
    here = settings.grid_of(method, data)
    times_ten = replace(data, X_train=10.0 * data.X_train)
    there = settings.grid_of(method, times_ten)
    np.testing.assert_allclose(there, np.multiply(here, 10.0**power), rtol=2e-2)
    assert settings.grid_of(method, replace(data, X_train=np.eye(8) * 432**0.5)) == pytest.approx(
        method.quick_grid, rel=2e-2
    )


def test_grids_of_a_mean_follow_the_number_of_entries():
    method, settings = make_method("Recall@2"), Settings()
    data = corners()
    twice = replace(
        data,
        X_train=np.tile(data.X_train, (100, 1)),
        y_train=np.tile(data.y_train, 100),
    )
    # The loss is a mean over rows and classes: a hundred times the rows, a hundredth of the weight.
    np.testing.assert_allclose(
        settings.grid_of(method, twice), np.multiply(settings.grid_of(method, data), 100.0)
    )
    assert settings.grid_of(make_method("SVM-OVA"), twice) == POWERS


def test_a_matter_of_chance_is_a_mean_over_seeds():
    data = small_data()
    method = make_method("Wsabie++ dim=4 queue=0")
    row, guesses = run_row(method, data, (2.0, 3.0))
    by_hand = []
    for seed in range(10):
        model = WsabiePP(4, 0, max_iter=int(row.value), random_state=seed)
        model.fit(data.X_train, data.y_train)
        by_hand.append(guess(model.coef_, data.X_test, data.y_test))
    assert row.accuracy[2] == pytest.approx(np.mean([one.accuracy(2) for one in by_hand]))
    assert "10 seeds" in row.note
    np.testing.assert_array_equal(guesses.ranks, by_hand[0].ranks)
    quick, _ = run_row(method, data, (row.value,), quick=True)
    assert quick.accuracy[2] == pytest.approx(by_hand[0].accuracy(2))
    assert "one seed" in quick.note


def test_a_quick_run_takes_some_rows_of_every_class():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(3), [700, 299, 1])
    X = rng.standard_normal((1000, 2))
    data = Dataset("uneven", X, y, X, y, ("a", "b", "c"), "Made up.")
    thin = thinned(data, 100)
    np.testing.assert_array_equal(np.bincount(thin.y_train), [69, 30, 1])
    rows = {tuple(row) for row in X[y == 1]}
    assert all(tuple(row) in rows for row in thin.X_train[thin.y_train == 1])
    assert thin.description.startswith("100 of 1000 training rows")
    assert thinned(data, 1000) is data
    np.testing.assert_array_equal(thin.X_test, X)


def test_guesses_in_blocks_are_those_at_once(monkeypatch):
    data = small_data()
    W = np.random.default_rng(0).standard_normal((15, 10))
    whole = guess(W, data.X_test, data.y_test)
    monkeypatch.setattr("topksvm.reproduction._protocol.BLOCK", 100)
    parts = guess(W, data.X_test, data.y_test)
    np.testing.assert_array_equal(whole.ranks, parts.ranks)
    np.testing.assert_array_equal(whole.classes, parts.classes)
    assert guess(np.zeros_like(W), data.X_test, data.y_test).accuracy(10) == 0.0


def test_finished_rows_are_kept(tmp_path):
    first = run(tmp_path)
    assert [was_there for _, was_there in first] == [False] * 3
    again = run(tmp_path)
    assert [was_there for _, was_there in again] == [True] * 3
    assert {row.method: row for row, _ in again} == {row.method: row for row, _ in first}
    damaged = next(tmp_path.glob("rows/top-3*.json"))
    damaged.write_text(damaged.read_text()[:-40])
    state = {row.method: was_there for row, was_there in run(tmp_path)}
    assert state == {"top-1-SVM-alpha": True, "top-3-SVM-beta": False, "SVM-OVA": True}
    # Other data or other settings: the rows are not those asked for.
    other = Settings(quick=True, seed=1, values=GRIDS)
    assert [was_there for _, was_there in run(tmp_path, CHEAP[:1], other)] == [False]
    for arguments in (("seed", 1), ("val", False)):
        run(tmp_path, CHEAP[:1])
        source = Source(small_data, (arguments,))
        assert [was_there for _, was_there in run(tmp_path, CHEAP[:1], source=source)] == [False]


def test_few_methods_are_all_drawn_and_of_many_the_telling_ones():
    row, _ = run_row(make_method("top-1-SVM-alpha"), small_data(), (0.1,), quick=True)
    names = [f"Recall@{k}" for k in (1, 5, 10)] + ["TopPush", "softmax", "top-1-SVM-alpha"]
    summaries = summarise([replace(row, method=name) for name in names], names)
    assert shown_of(summaries[:5]) == names[:5]
    assert shown_of(summaries) == ["top-1-SVM-alpha", "softmax"]


def test_splits_are_summarised():
    data = small_data()
    row, _ = run_row(make_method("SVM-OVA"), data, (0.1,), quick=True)
    rows = [
        replace(row, dataset="sun397", split=s, accuracy=dict.fromkeys(GUESSES, 50.0 + s))
        for s in range(3)
    ]
    (summary,) = summarise(rows, ["SVM-OVA"])
    assert summary.accuracy[1] == 51.0
    assert summary.std[1] == 1.0
    assert summary.difference(1) == pytest.approx(51.0 - 55.23)
    assert summary.paper[1].std == 0.6


def write_features(folder, splits):
    X, y = make_ambiguous_classes(240, 8, 12, random_state=0)
    np.save(folder / "features.npy", X)
    np.save(folder / "labels.npy", y)
    (folder / "splits").mkdir()
    for number in range(1, splits + 1):
        order = np.random.default_rng(number).permutation(240)
        for name, rows in (("train", order[:160]), ("test", order[160:])):
            file = folder / "splits" / f"{number:02d}_{name}.txt"
            file.write_text("\n".join(map(str, rows)))


def test_features_of_ten_splits_on_the_command_line(tmp_path, capsys):
    write_features(tmp_path, 10)
    out = tmp_path / "out"
    words = ["reproduce", "sun397", "--features", str(tmp_path), "--out", str(out), "--quick"]
    assert main([*words, "--methods", "top-2-SVM-alpha", "--jobs", "1"]) == 2
    assert "19850" in capsys.readouterr().err  # The paper has other numbers.
    words += ["--no-check", "--methods", "top-2-SVM-alpha", "--jobs", "1"]
    assert main(words) == 0
    assert "±" in capsys.readouterr().out
    with (out / "results.csv").open() as stream:
        lines = list(csv.DictReader(stream))
    assert list(lines[0]) == list(COLUMNS)
    assert [line["top_k"] for line in lines] == [str(k) for k in GUESSES]
    assert lines[0]["paper_accuracy_percent"] == str(
        published("sun397")["top-2-SVM-alpha"][1].accuracy
    )
    assert all(0 < float(line["accuracy_percent"]) <= 100 for line in lines)
    content = json.loads((out / "results.json").read_text())
    assert len(content["rows"]) == 10
    mean = np.mean([row["accuracy"]["1"] for row in content["rows"]])
    assert float(lines[0]["accuracy_percent"]) == pytest.approx(mean, abs=1e-3)
    assert (out / "report.html").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["sun397"], "needs --features"),
        (["quickdraw", "--methods", "no-such"], "no method 'no-such'"),
        (["quickdraw", "--features", "no-such"], "no-such"),
        (["quickdraw", "--jobs", "0"], "at least 1"),
        (["quickdraw", "--data", "file.mat"], "caltech101-silhouettes"),
        (["caltech101-silhouettes", "--data", "no-such.mat"], "no-such.mat"),
    ],
)
def test_bad_words_are_one_line(words, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", *words]) == 2
    error = capsys.readouterr().err.strip().splitlines()
    assert len(error) == 1
    assert message in error[0]


@pytest.mark.skipif(not SILHOUETTES.exists(), reason="needs Caltech 101 Silhouettes")
@pytest.mark.parametrize(
    ("name", "value", "most"), [("top-10-SVM-alpha", 0.01, 0.2), ("SVM-OVA", 0.01, 0.5)]
)
def test_a_row_of_the_paper(name, value, most):
    data = load_silhouettes(SILHOUETTES)
    row, _ = run_row(make_method(name), data, (value,))
    (summary,) = summarise([row], [name])
    assert max(abs(summary.difference(k)) for k in GUESSES) <= most
