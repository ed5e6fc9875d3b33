"""The tables of the paper once more: every method, its protocol, the published numbers beside ours.

`_published` holds the numbers, `_methods` says which problem stands behind each name, `_protocol`
chooses parameters and tests, `_store` keeps finished rows, `_run` does many rows, `_results` writes
tables; the page for people is made by :mod:`topksvm.report`.
"""

from topksvm.reproduction._figures import (
    draw_scaling as draw_scaling,
    draw_simplices as draw_simplices,
)
from topksvm.reproduction._methods import make_method
from topksvm.reproduction._output import lead as lead, write_folder as write_folder
from topksvm.reproduction._published import DATASETS, GUESSES, methods_of, published
from topksvm.reproduction._results import as_text as as_text, notes_of as notes_of
from topksvm.reproduction._run import (
    SILHOUETTE_ROWS as SILHOUETTE_ROWS,
    Settings,
    Source,
    open_store as open_store,
    reproduce,
)
from topksvm.reproduction._scaling import measure_scaling as measure_scaling
from topksvm.reproduction._store import Row

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
