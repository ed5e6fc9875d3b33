"""The tables of the paper once more: every method, its protocol, the published numbers beside ours.

`_published` holds the numbers, `_methods` says which problem stands behind each name, `_protocol`
chooses parameters and tests, `_store` keeps finished rows, `_run` does many rows, `_results` writes
tables; the page for people is made by :mod:`topksvm.experiments.report`.
"""

from topksvm.experiments.reproduction._methods import make_method
from topksvm.experiments.reproduction._published import DATASETS, GUESSES, methods_of, published
from topksvm.experiments.reproduction._run import Settings, Source, reproduce
from topksvm.experiments.reproduction._store import Row

__all__ = [
    "DATASETS",
    "GUESSES",
    "Row",
    "Settings",
    "Source",
    "make_method",
    "methods_of",
    "published",
    "reproduce",
]
