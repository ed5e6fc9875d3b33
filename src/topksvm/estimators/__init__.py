"""scikit-learn estimators."""

from topksvm.estimators._kernel import TopKSVC
from topksvm.estimators._linear import TopKLinearSVC
from topksvm.estimators._linear_cv import TopKLinearSVCCV

__all__ = ["TopKLinearSVC", "TopKLinearSVCCV", "TopKSVC"]
