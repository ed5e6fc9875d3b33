"""The linear top-k multiclass SVM on a Dask cluster."""

from __future__ import annotations

import uuid
from contextlib import closing
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from topksvm._interrupts import stoppable
from topksvm.distributed._blocks import labels_of
from topksvm.distributed._checks import check_supported, current_client, supported_dtype
from topksvm.distributed._cocoa import CoCoA, LocalWork
from topksvm.distributed._data import ALONE, DaskData, choose_passes
from topksvm.distributed._lazy import LazyPredictions
from topksvm.distributed._memory import bytes_of_worker, check_memory, duals_per_example
from topksvm.distributed._model import bytes_of_round
from topksvm.distributed._parts import is_dask_frame
from topksvm.distributed._shard import Order
from topksvm.distributed._tasks import Setting
from topksvm.distributed._team import DaskTeam
from topksvm.distributed._workers import needing
from topksvm.estimators import TopKLinearSVC, documented
from topksvm.solvers import Result, Run, make_loss, warn_unless_solved

Array = NDArray[Any]


@documented()
class DaskTopKLinearSVC(LazyPredictions, TopKLinearSVC):
    r"""Linear classifier trained for the k best guesses on a Dask cluster, to a proven gap.

    .. math::
        \min_W \; \tfrac12 \|W\|_F^2 + C \sum_i w_i \, \phi(W x_i, y_i)

    The problem and its solution are those of :class:`topksvm.TopKLinearSVC`. The rows and their
    dual variables stay on the workers, a *shard* of them for each thread of a worker; arrays of the
    size of the weights travel, once per round. It runs on the current client, that is on the last
    ``dask.distributed.Client`` that was made. It goes on if workers are lost, and uses those that
    join.

    A worker needs memory for its rows (twice while they arrive, if they come in several parts), for
    each example 200 bytes and 64 for every dual variable that is not zero (about ``k + 16`` of
    them), and twelve float64 arrays of the size of the weights per thread; `worker_bytes_` is the
    sum. The client keeps a copy of the duals, up to 256 MB: a shard that is lost starts from it,
    or from zero where there is none.

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
    warm_start : bool, default=False
        Must be False: the dual variables are gone when a fit ends.
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
        and of communication, n_shards, n_lost of them.
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
        **TopKLinearSVC._parameter_constraints,
        "local_passes": [Interval(Integral, 1, None, closed="left"), None],
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
        warm_start: bool = False,
        dtype: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        memory_limit: int | None = None,
        callback: Any = None,
        local_passes: int | None = None,
    ) -> None:
        super().__init__(
            k,
            loss=loss,
            C=C,
            smoothing=smoothing,
            solver=solver,
            fit_intercept=fit_intercept,
            intercept_scaling=intercept_scaling,
            class_weight=class_weight,
            tol=tol,
            max_iter=max_iter,
            max_time=max_time,
            warm_start=warm_start,
            dtype=dtype,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
            memory_limit=memory_limit,
            callback=callback,
        )
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
        loss = make_loss(self.loss, self.k, self.smoothing)
        check_supported(self.loss, loss, self.solver, self.warm_start)
        client = current_client()
        before = dict(vars(self))
        try:
            with needing(client):
                result = self._fit(client, loss, X, y, sample_weight)
        except BaseException:
            # A model that was trained before stays as it was, and no half of a new one is left.
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        warn_unless_solved(result, self.tol)
        return self

    def _fit(self, client: Any, loss: Any, X: Any, y: Any, sample_weight: Any) -> Result:
        token = uuid.uuid4().hex
        dtype = None if self.dtype is None else supported_dtype(self.dtype)
        data = DaskData(client, token, X, y, sample_weight, dtype)
        self._note_features(X, data.surveys[0].d)
        self.classes_, sums = labels_of(data.surveys)
        # Several times: a y in which every value occurs once is taken for a regression.
        check_classification_targets(np.tile(self.classes_, 4))
        self._check_classes(self.classes_)
        homes = data.place(self.n_jobs)
        setting = Setting(
            token,
            loss,
            self.classes_,
            self._weights_by_class(sums),
            float(self.intercept_scaling) if self.fit_intercept else 0.0,
            np.result_type(*(part.dtype for part in data.surveys)).name,
            len(homes),
            self._setup().options.seed,
        )
        team = DaskTeam(client, setting, data, homes)
        n_duals = duals_per_example(loss, self.classes_.size)
        self.worker_bytes_ = bytes_of_worker(data.shard_sizes(), homes, team.size, n_duals)
        check_memory(self.worker_bytes_, self.memory_limit)
        result = self._solve(team, data)
        self.n_shards_ = team.n_shards
        self._store(result)
        return result

    def _solve(self, team: DaskTeam, data: DaskData) -> Result:
        order, n_workers = Order(reach=1.0), len(set(team.homes))
        n_bytes = bytes_of_round(team.size, team.setting.dtype, n_workers, order)
        d, m = data.surveys[0].d, self.classes_.size
        passes = self.local_passes or choose_passes(max(data.sizes()), d, m, self.k, n_bytes)
        setup = self._setup()
        with closing(team):
            team.start()
            solver = CoCoA(team, LocalWork(passes, self.local_passes or ALONE))
            return stoppable(Run(solver, setup.stopping, setup.callback).complete)

    def _weights_by_class(self, sums: Array) -> Array:
        """Return ``C * class_weight``, given the sums of the sample weights by class."""
        numbers = np.arange(self.classes_.size)
        factors = self._weights_of_classes(self.classes_, self.classes_, numbers, sums)
        weights = self.C * factors
        if not np.isfinite(weights).all():
            raise ValueError(
                f"C * class_weight is not finite, at C = {self.C:g}. Choose smaller values."
            )
        if not (weights * sums).any():
            raise ValueError(
                "The weights of all examples are zero; sample_weight and class_weight must leave "
                "at least one that is positive."
            )
        return weights

    def _note_features(self, X: Any, d: int) -> None:
        like = X._meta if is_dask_frame(X) else np.empty((0, d))
        validate_data(self, like, skip_check_array=True)
