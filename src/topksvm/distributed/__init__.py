"""Training beyond one machine: CoCoA+ on shards, and an estimator that runs it on Dask."""
