"""The methods that the paper compares with, as estimators with the same methods as ours."""

from topksvm.baselines._cutting_planes import Stopping as Stopping, svm_perf_path as svm_perf_path
from topksvm.baselines._n_choose_k import NChooseK
from topksvm.baselines._one_vs_rest import OneVsRestSVC
from topksvm.baselines._svm_perf import SVMPerf, multiclass_reduction as multiclass_reduction
from topksvm.baselines._top_push import TopPush
from topksvm.baselines._wsabie import WsabiePP

__all__ = ["NChooseK", "OneVsRestSVC", "SVMPerf", "TopPush", "WsabiePP"]
