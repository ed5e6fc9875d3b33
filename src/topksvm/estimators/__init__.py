"""scikit-learn estimators."""

from topksvm.estimators._base import (
    LinearClassifier as LinearClassifier,
    check_two_classes as check_two_classes,
    without_duplicates as without_duplicates,
)
from topksvm.estimators._kernel import TopKSVC
from topksvm.estimators._linear import TopKLinearSVC
from topksvm.estimators._linear_cv import TopKLinearSVCCV
from topksvm.estimators._parameters import (
    COUNT as COUNT,
    constraints as constraints,
    documented as documented,
)
from topksvm.estimators._topk_mixin import best_columns as best_columns
from topksvm.estimators._trained import check_dtype as check_dtype, print_progress as print_progress
from topksvm.estimators._warm_up import warm_up as warm_up

__all__ = ["TopKLinearSVC", "TopKLinearSVCCV", "TopKSVC"]
