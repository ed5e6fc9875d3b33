"""Examples in files: what the commands read, whatever the format."""

from topksvm.cli._data._labels import labels_to_train_on, match_labels
from topksvm.cli._data._read import read_examples, read_to_train_on
from topksvm.cli._data._request import Table, add_data_options, request_of

__all__ = [
    "Table",
    "add_data_options",
    "labels_to_train_on",
    "match_labels",
    "read_examples",
    "read_to_train_on",
    "request_of",
]
