"""Data to try the classifiers on: shipped, downloaded, precomputed, made up.

`load_quickdraw` ships with the package; `load_silhouettes` is the data of the paper's first table;
`load_features` reads precomputed features of the paper's other four data sets, or of your own;
`make_ambiguous_classes` makes classes that are confused as much as you wish. The loaders return a
`Dataset`.
"""

from topksvm.datasets._ambiguous import make_ambiguous_classes
from topksvm.datasets._dataset import Dataset
from topksvm.datasets._features import load_features
from topksvm.datasets._quickdraw import load_quickdraw
from topksvm.datasets._silhouettes import load_silhouettes

__all__ = [
    "Dataset",
    "load_features",
    "load_quickdraw",
    "load_silhouettes",
    "make_ambiguous_classes",
]
