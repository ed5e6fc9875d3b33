"""scikit-learn estimators."""

from topksvm.estimators._linear import TopKLinearSVC

__all__ = ["TopKLinearSVC"]
