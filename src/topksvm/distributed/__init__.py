"""Training beyond one machine: CoCoA+ on shards, and an estimator that runs it on Dask."""

from topksvm.distributed._estimator import DaskTopKLinearSVC

__all__ = ["DaskTopKLinearSVC"]
