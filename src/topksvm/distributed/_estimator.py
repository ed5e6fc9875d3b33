"""The linear top-k multiclass SVM on a Dask cluster."""

from __future__ import annotations

import uuid
from contextlib import closing
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from topksvm._interrupts import stoppable
from topksvm.distributed._blocks import labels_of
from topksvm.distributed._cocoa import CoCoA
from topksvm.distributed._dask_shards import DaskShards
from topksvm.distributed._data import DaskData
from topksvm.distributed._estimates import SINGLE_PASSES, check_memory, choose_passes
from topksvm.distributed._parts import import_dask, is_dask_frame
from topksvm.distributed._predictions import is_lazy, map_rows, score_topk
from topksvm.distributed._shard import Order
from topksvm.distributed._tasks import ShardSetup
from topksvm.distributed._workers import current_client, explain_closed
from topksvm.estimators import COUNT, TopKLinearSVC, check_dtype, constraints, documented
from topksvm.solvers import Result, Run, check_dual_step, make_loss, warn_unless_solved


@documented()
class DaskTopKLinearSVC(ClassifierMixin, BaseEstimator):
    r"""Linear classifier trained for the k best guesses on a Dask cluster, to a proven gap.

    .. math::
        \min_W \; \tfrac12 \|W\|_F^2 + C \sum_i w_i \, \phi(W x_i, y_i)

    The problem and its solution are those of :class:`topksvm.TopKLinearSVC`. The rows and their
    dual variables stay on the workers, a *shard* of them for each thread of a worker; arrays of the
    size of the weights travel, once per round. It runs on the current client, that is on the last
    ``dask.distributed.Client`` that was made. It continues if workers are lost, and uses those that
    join.

    A worker needs memory for its rows, for their dual variables, and twelve float64 arrays of the
    size of the weights per thread: `worker_bytes_`. The client keeps a copy of the duals, up to
    256 MB: a shard that is lost starts from it, or from zero where there is none.

    Parameters
    ----------
    {k}
    {loss}
    {C}
    {smoothing}
    solver : {"auto", "sdca"}, default="auto"
        Dual coordinate ascent is the only one that runs on shards.
    {fit_intercept}
    {intercept_scaling}
    {class_weight}
    {tol}
    {max_iter}
    {max_time}
    {dtype}
    n_jobs : int, default=None
        The number of shards, each of which takes a thread of a worker; by default, and with -1, as
        many as the cluster has threads, and never more. More shards take more rounds.
    {random_state}
    {verbose}
    memory_limit : int, default=None
        Bytes that the fit may use on a worker, rows included. If it would need more, by an estimate
        from the sizes (`worker_bytes_`), it is refused before it starts.
    {callback}
    local_passes : int, default=None
        Passes of each shard over its examples in a round, at most; the first looks at all classes,
        the others at those in play. By default as many as take about the time of the communication
        of a round, from 2 to 4, and up to 11 if there is but one shard.

    Attributes
    ----------
    {coef_}
    {intercept_}
    {classes_}
    {certificate_}
    {status_}
    history_ : list of dict
        A line per round: epoch, seconds, primal, dual, gap, and round, local_passes, n_bytes that
        travelled between workers, snapshot_bytes of duals to the client, seconds of computation
        and of communication, n_shards, n_lost of them, sigma, and is_rejected.
    {n_iter_}
    n_shards_ : int
        Shards that took part, at the end.
    worker_bytes_ : int
        An estimate of what the fit took of the memory of the worker with most to hold.
    {n_features_in_}

    References
    ----------
    M. Lapin, M. Hein, B. Schiele, "Top-k Multiclass SVM", NIPS 2015.
    C. Ma, V. Smith, M. Jaggi, M. Jordan, P. Richtárik, M. Takáč, "Adding vs. Averaging in
    Distributed Primal-Dual Optimization", ICML 2015.

    Examples
    --------
    >>> import dask.array as da
    >>> from dask.distributed import Client
    >>> from sklearn.datasets import load_digits
    >>> from topksvm.distributed import DaskTopKLinearSVC
    >>> X, y = load_digits(return_X_y=True)
    >>> X, y = da.from_array(X / 16, chunks=(900, -1)), da.from_array(y, chunks=900)
    >>> with Client(processes=False, n_workers=1, dashboard_address=":0"):
    ...     model = DaskTopKLinearSVC(k=2, C=0.01, random_state=0).fit(X, y)
    >>> model.certificate_.relative_gap <= 1e-3
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **constraints("k", "loss", "C", "smoothing", "fit_intercept", "intercept_scaling"),
        **constraints("class_weight", "tol", "max_iter", "max_time", "dtype", "n_jobs"),
        **constraints("random_state", "verbose", "memory_limit", "callback"),
        "solver": [StrOptions({"auto", "sdca"})],
        "local_passes": [COUNT, None],
    }

    def __init__(
        self,
        k: int = 1,
        *,
        loss: str = "topk_hinge_alpha",
        C: float = 1.0,
        smoothing: float = 0.0,
        solver: str = "auto",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        class_weight: Any = None,
        tol: float = 1e-3,
        max_iter: int = 1000,
        max_time: float | None = None,
        dtype: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        memory_limit: int | None = None,
        callback: Any = None,
        local_passes: int | None = None,
    ) -> None:
        self.k = k
        self.loss = loss
        self.C = C
        self.smoothing = smoothing
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.dtype = dtype
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.memory_limit = memory_limit
        self.callback = callback
        self.local_passes = local_passes

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> DaskTopKLinearSVC:
        """Train the model on the current Dask client.

        Parameters
        ----------
        X : dask array, dask dataframe, or list of parts
            The examples, in chunks that are dense or CSR. The parts of a list are delayed, futures,
            or paths of ``.npy`` files. A shard that is one such file is mapped into memory, and
            need not fit; parts that share a shard are joined in memory.
        y : as X, or array-like of shape (n_samples,)
            Their labels, of any type.
        sample_weight : as y, optional
            Factors of `C` by example, at least 0.

        Returns
        -------
        self : DaskTopKLinearSVC
            The trained model.
        """
        self._validate_params()
        check_dtype(self.dtype)
        loss = make_loss(self.loss, self.k, self.smoothing)
        advice = "use a top-k hinge or 'softmax', or TopKLinearSVC on one machine"
        check_dual_step("Training on shards", loss, advice)
        client = current_client()
        with explain_closed(client):
            result = self._fit(client, loss, X, y, sample_weight)
        warn_unless_solved(result, self.tol)
        return self

    def _fit(self, client: Any, loss: Any, X: Any, y: Any, sample_weight: Any) -> Result:
        parameters = self.get_params(deep=False)
        del parameters["local_passes"]
        local, token = TopKLinearSVC(**parameters), uuid.uuid4().hex
        data = DaskData(client, token, X, y, sample_weight, self.dtype)
        like = X._meta if is_dask_frame(X) else np.empty((0, data.surveys[0].d))
        validate_data(local, like, skip_check_array=True)
        local.classes_, sums = labels_of(data.surveys)
        C = self._weights_by_class(local, sums)
        homes, training = data.place(self.n_jobs), local._setup()
        setup = ShardSetup(
            token,
            loss,
            local.classes_,
            C,
            float(self.intercept_scaling) if self.fit_intercept else 0.0,
            np.result_type(*(part.dtype for part in data.surveys)).name,
            len(homes),
            training.options.seed,
        )
        shards = DaskShards(client, setup, data, homes)
        worker_bytes = shards.worker_bytes
        check_memory(worker_bytes, self.memory_limit)
        n, m, d = max(data.sizes()), C.size, local.n_features_in_
        n_bytes = shards.bytes_of_round(Order(reach=1.0))
        passes = self.local_passes or choose_passes(n, d, m, self.k, n_bytes)
        with closing(shards):
            shards.start()
            solver = CoCoA(shards, passes, self.local_passes or SINGLE_PASSES)
            run = Run(solver, training.stopping, training.callback)
            result = stoppable(run.complete)
        local._store(result)
        self.local_, self.n_shards_, self.worker_bytes_ = local, shards.n_shards, worker_bytes
        return result

    def _weights_by_class(self, local: TopKLinearSVC, sums: Any) -> Any:
        """Return ``C * class_weight``, given the sums of the sample weights by class."""
        classes, numbers = local.classes_, np.arange(sums.size)
        # Several times: a y in which every value occurs once is taken for a regression.
        check_classification_targets(np.tile(classes, 4))
        local._check_classes(classes)
        # As if there were one example of each class, to have it checked.
        local._weights_of_examples(np.empty((sums.size, 1)), classes, classes, numbers, sums)
        return self.C * local._weights_of_classes(classes, classes, numbers, sums)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the fitted model, such as ``coef_``."""
        if name.endswith("_") and not name.startswith("_") and "local_" in vars(self):
            return getattr(self.local_, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __sklearn_tags__(self) -> Any:
        return TopKLinearSVC().__sklearn_tags__()

    def to_local(self) -> TopKLinearSVC:
        """Return the model that this one holds, which needs no Dask.

        Returns
        -------
        model : TopKLinearSVC
            Fitted, with the same parameters.
        """
        check_is_fitted(self)
        return self.local_

    def decision_function(self, X: Any) -> Any:
        """As :meth:`topksvm.TopKLinearSVC.decision_function`; lazy for a dask collection."""
        local = self.to_local()
        return map_rows(local, X, "decision_function") if is_lazy(X) else local.decision_function(X)

    def predict(self, X: Any) -> Any:
        """As :meth:`topksvm.TopKLinearSVC.predict`; lazy for a dask collection."""
        local = self.to_local()
        return map_rows(local, X, "predict") if is_lazy(X) else local.predict(X)

    def predict_topk(self, X: Any, k: int | None = None, return_scores: bool = False) -> Any:
        """As :meth:`topksvm.TopKLinearSVC.predict_topk`; lazy for a dask collection."""
        local = self.to_local()
        if not is_lazy(X):
            return local.predict_topk(X, k, return_scores)
        labels = map_rows(local, X, "predict_topk", k=k)
        if not return_scores:
            return labels
        return labels, map_rows(local, X, "predict_topk", 1, k=k, return_scores=True)

    def score_topk(self, X: Any, y: Any, k: int | None = None, sample_weight: Any = None) -> float:
        """As :meth:`topksvm.TopKLinearSVC.score_topk`; where the rows of a collection are."""
        local = self.to_local()
        if is_lazy(X):
            return score_topk(local, X, y, k, sample_weight)
        y, sample_weight = import_dask().compute(y, sample_weight)
        return local.score_topk(X, y, k, sample_weight)

    def save(self, path: Any) -> None:
        """Write the local model to a file; see :meth:`topksvm.TopKLinearSVC.save`."""
        self.to_local().save(path)

    @classmethod
    def load(cls, path: Any) -> DaskTopKLinearSVC:
        """Return a model with the one in a file; see :meth:`topksvm.TopKLinearSVC.load`."""
        local = TopKLinearSVC.load(path)
        model = cls()
        known = model.get_params().keys() & local.get_params().keys()
        model.set_params(**{name: getattr(local, name) for name in known})
        model.local_ = local
        return model
