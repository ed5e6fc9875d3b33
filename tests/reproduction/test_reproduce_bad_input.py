"""What a user can get wrong with ``reproduce``: one line, exit code 2, no option ignored."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from topksvm.cli import main
from topksvm.datasets import make_ambiguous_classes
from topksvm.reproduction import make_method, methods_of


def write_features(folder, *, per_class=20, n_classes=12):
    """Write features of a few classes, so that rows for many guesses are impossible."""
    for seed, name in enumerate(("train", "test")):
        X, y = make_ambiguous_classes(per_class * n_classes, 8, n_classes, random_state=seed)
        np.save(folder / f"{name}.npy", X)
        np.save(folder / f"{name}_labels.npy", y)


def words(folder, *methods):
    place = ["--features", str(folder), "--out", str(folder / "out")]
    return ["reproduce", "indoor67", *place, "--no-check", "--quick", "--jobs", "1"] + (
        ["--methods", *methods] if methods else []
    )


def error_of(arguments, capsys):
    """Run what must fail, and return its one line of error."""
    assert main(arguments) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert "Traceback" not in "".join(lines)
    errors = [line for line in lines if line.startswith("topksvm: error: ")]
    assert lines[-1:] == errors
    return errors[0]


@pytest.mark.parametrize("split", ["train", "test"])
def test_nan_is_one_line_that_names_the_row_of_the_table(split, tmp_path, capsys):
    write_features(tmp_path)
    X = np.load(tmp_path / f"{split}.npy")
    X[3, 4] = np.nan
    np.save(tmp_path / f"{split}.npy", X)
    error = error_of(words(tmp_path, "top-2-SVM-alpha"), capsys)
    assert "top-2-SVM-alpha: " in error
    assert "nan" in error.lower()
    assert "finished rows are kept" in error


def test_too_few_rows_to_hold_some_out(tmp_path, capsys):
    write_features(tmp_path, per_class=1)
    error = error_of(words(tmp_path, "top-1-SVM-alpha"), capsys)
    assert "12 training rows of 12 classes are too few" in error


@pytest.mark.parametrize(
    ("name", "least"),
    [("top-12-SVM-beta", 13), ("Swersky-Top-12", 13), ("Recall@13", 13), ("top-20-entropy", 21)],
)
def test_k_too_large_is_found_before_the_work(name, least, tmp_path, capsys):
    write_features(tmp_path)
    error = error_of(words(tmp_path, "top-1-SVM-alpha", name), capsys)
    assert f"{name} needs {least} classes, but indoor67 has 12 here" in error
    assert not (tmp_path / "out").exists()


def test_groups_leave_out_what_the_classes_do_not_allow(tmp_path, capsys):
    write_features(tmp_path)
    assert main(words(tmp_path, "topk")) == 0
    warning = capsys.readouterr().err.splitlines()[0]
    assert "only 12 classes: top-20-SVM-alpha, top-20-SVM-beta" in warning
    with (tmp_path / "out" / "results.csv").open() as stream:
        done = {line["method"] for line in csv.DictReader(stream)}
    table = {name for name in methods_of("indoor67") if name.startswith("top-")}
    assert done == table - {"top-20-SVM-alpha", "top-20-SVM-beta"}


def test_fewer_rows_than_classes(tmp_path, capsys):
    write_features(tmp_path)
    error = error_of([*words(tmp_path, "top-1-SVM-alpha"), "--rows", "11"], capsys)
    assert "--rows 11 is not possible: there are 12 classes" in error


def test_rows_are_the_most_to_train_on(tmp_path, capsys):
    write_features(tmp_path)
    for rows, used in ((["--rows", "96"], 96), (["--rows", "999"], 240), ([], 240)):
        assert main([*words(tmp_path, "top-1-SVM-alpha"), *rows]) == 0
        assert f"indoor67: {used} training rows" in capsys.readouterr().err


@pytest.mark.parametrize(
    "name", ["top-0-SVM-alpha", "Swersky-Top-0", "Recall@0", "Wsabie++ dim=0 queue=0"]
)
def test_zero_guesses_are_no_method(name):
    with pytest.raises(ValueError, match="there is no method"):
        make_method(name)


@pytest.mark.parametrize(
    "option",
    [
        ["--methods", "softmax"],
        ["--quick"],
        ["--rows", "99"],
        ["--jobs", "1"],
        ["--data", "x.mat"],
        ["--features", "x"],
        ["--no-check"],
        ["--seed", "0"],
        ["--json"],
    ],
    ids=lambda option: option[0],
)
def test_figures_refuse_what_they_have_no_use_for(option, tmp_path, capsys):
    error = error_of(["reproduce", "figures", "--out", str(tmp_path / "out"), *option], capsys)
    assert f"{option[0]} does not go with figures" in error
    assert not (tmp_path / "out").exists()


def test_quickdraw_has_nothing_to_check(capsys):
    error = error_of(["reproduce", "quickdraw", "--no-check"], capsys)
    assert "--no-check does not go with quickdraw" in error


def test_errors_of_loaders_say_what_their_arguments_are_called_here(tmp_path, capsys):
    write_features(tmp_path)
    arguments = [word for word in words(tmp_path) if word != "--no-check"]
    error = error_of(arguments, capsys)
    assert "240 training examples instead of" in error
    assert error.endswith("folder= is --features DIR and check=False is --no-check.")
    file = tmp_path / "other.mat"
    file.write_text("no MATLAB file")
    arguments = ["reproduce", "caltech101-silhouettes", "--data", str(file)]
    error = error_of(arguments, capsys)
    assert "other.mat is not the" in error
    assert error.endswith("path= is --data FILE and check=False is --no-check.")
    assert "as a MATLAB file" in error_of([*arguments, "--no-check"], capsys)  # Read, unchecked.
    file.unlink()
    assert f"given by path='{file}'" in error_of(arguments, capsys)
