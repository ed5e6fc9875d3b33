"""Files of examples in every format, and the command line run on them."""

from __future__ import annotations

import csv
import gzip
import json

import numpy as np
import scipy.sparse as sp
from estimators.data import problem
from sklearn.datasets import dump_svmlight_file

from topksvm.cli import main

NAMES = np.array(["ant", "bee", "cat", "dog", "eel", "fox"], dtype=object)
FEATURES = [f"f{i}" for i in range(12)]


def examples():
    """Return 150 rows of 12 features and whole labels 0 to 5, half of them zeros."""
    X, y = problem()
    return np.where(X > 0, X, 0.0).round(6), y


def write_table(path, X, labels=None, *, header=None, target="kind", delimiter=","):
    """Write CSV as a spreadsheet would."""
    header = FEATURES if header is None else header
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, delimiter=delimiter)
        writer.writerow(header if labels is None else [*header, target])
        for i, row in enumerate(X.tolist()):
            writer.writerow(row if labels is None else [*row, labels[i]])
    return path


def write_svmlight(path, X, y, *, zero_based=False):
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wb") as stream:
        dump_svmlight_file(X, y, stream, zero_based=zero_based)
    return path


def write_sparse(path, X):
    sp.save_npz(path, sp.csr_matrix(X))
    return path


def run(capsys, *arguments):
    """Run a command that must succeed; return what it printed to both streams."""
    capsys.readouterr()
    assert main([str(a) for a in arguments]) == 0
    return capsys.readouterr()


def run_json(capsys, *arguments):
    """Run a command with ``--json``, which must print nothing else."""
    return json.loads(run(capsys, *arguments, "--json").out)


def fail(capsys, *arguments):
    """Run a command that must fail; return its one line."""
    capsys.readouterr()
    assert main([str(a) for a in arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("topksvm: error: ")
    assert printed.err.count("\n") == 1
    assert printed.err.endswith("\n")
    return printed.err
