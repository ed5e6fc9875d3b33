"""Tests of topksvm.distributed; a folder named ``distributed`` would hide Dask's package."""
