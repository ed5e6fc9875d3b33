"""Examples in files: what the commands read, whatever the format."""

from topksvm.cli._data._labels import labels_to_train_on, match_labels
from topksvm.cli._data._options import add_data_options, request_of
from topksvm.cli._data._read import read_examples
from topksvm.cli._data._table import Request, Table

__all__ = [
    "Request",
    "Table",
    "add_data_options",
    "labels_to_train_on",
    "match_labels",
    "read_examples",
    "request_of",
]
