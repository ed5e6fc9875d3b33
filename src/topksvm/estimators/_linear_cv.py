"""Cross-validated choice of C, loss and training k for every k that is wanted."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from topksvm._threads import map_tasks, resolve_threads
from topksvm.data import make_problem
from topksvm.estimators._linear import TopKLinearSVC
from topksvm.estimators._parameters import constraints, documented
from topksvm.estimators._progress import Progress
from topksvm.estimators._search import (
    Choice,
    FoldPath,
    Search,
    beyond_the_edge,
    choose,
    tabulate,
)
from topksvm.estimators._trained import TopKClassifier, seed_of, unchanged_on_error
from topksvm.losses import LOSSES, traits_of
from topksvm.metrics import topk_accuracy
from topksvm.solvers import Result, check_grid, choose_solver, make_loss, run_fit

Array = NDArray[Any]


@documented()
class TopKLinearSVCCV(TopKClassifier):
    r"""Choose C, loss and training k by cross-validation, for every number of guesses wanted.

    All `C` of one fold are solved along a path, from small to large, each from the solution
    before; paths on the same fold share what work they can. The k that is trained for need not be
    the k that is wanted: a larger one often wins.

    Parameters
    ----------
    ks : tuple of int, default=(1, 5)
        The numbers of guesses wanted. The first is the one that `predict`, `decision_function` and
        `coef_` serve.
    Cs : int or array of float, default=10
        The weights of the loss to try, or how many from 1e-5 to 1e3, the grid of the paper.
    losses : tuple of str, default=("topk_hinge_alpha",)
        The losses to try.
    train_ks : tuple of int, default=None
        The k to train for; by default `ks`. Losses without a k are trained once.
    cv : int, splitter or iterable of pairs of indices, default=5
        As in scikit-learn: the number of stratified folds, or any splitter.
    scoring : str, callable or dict, default=None
        None chooses by top-k accuracy on the fold held out. A scorer of scikit-learn is used for
        every k wanted; a dict has one for each.
    refit : bool, default=True
        Train on all rows with the parameters chosen.
    max_extensions : int, default=3
        How often the grid may grow where the best `C` lies at its edge, as in the paper.
    {smoothing}
    {solver}
    {fit_intercept}
    {intercept_scaling}
    {class_weight}
    {tol}
    max_iter : int, default=1000
        The most passes for each point.
    max_time : float, default=None
        The most seconds for each point.
    {dtype}
    n_jobs : int, default=None
        Threads, all processors by default. Each runs one group of paths at a time: those of a fold
        that share blocks of rows (dense X, solved by SDCA), or a part of them where folds are few;
        any other path is a group by itself. The result does not depend on it.
    {random_state}
    verbose : int, default=0
        Whether to print the progress, with the time left.
    callback : callable, default=None
        Called after each solution of the search with an object that has the attributes `done` and
        `total`, which grows where the grid does. An exception in it ends the search.

    Attributes
    ----------
    cv_results_ : dict of ndarray
        A row for each loss, training k and C: ``param_*``, ``split*_test_top{k}``,
        ``mean_test_top{k}``, ``std_test_top{k}``, ``rank_test_top{k}``, ``mean_fit_time``,
        ``max_relative_gap``.
    best_params_, best_C_, best_score_ : dict
        For each k wanted: the parameters, their `C`, and their mean score.
    estimators_ : dict
        For each k wanted, the model trained on all rows, if `refit`.
    Cs_ : ndarray
        The grid, with what was added at its edges.
    classes_, coef_, intercept_, certificate_, status_, n_iter_
        Those of the model for the first of `ks`.

    References
    ----------
    M. Lapin, M. Hein, B. Schiele, "Top-k Multiclass SVM", NIPS 2015, section 5.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from topksvm import TopKLinearSVCCV
    >>> X, y = load_digits(return_X_y=True)
    >>> search = TopKLinearSVCCV(ks=(1, 2), Cs=[1e-3, 1e-2, 1e-1], cv=3, random_state=0)
    >>> search = search.fit(X / 16, y)
    >>> sorted(search.best_C_)
    [1, 2]
    >>> search.predict_topk(X[:1] / 16, k=2).shape
    (1, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "ks": ["array-like"],
        "Cs": [Interval(Integral, 1, None, closed="left"), "array-like"],
        "losses": ["array-like"],
        "train_ks": ["array-like", None],
        "cv": ["cv_object"],
        "scoring": [str, callable, dict, None],
        "refit": ["boolean"],
        "max_extensions": [Interval(Integral, 0, None, closed="left")],
        **constraints(
            "smoothing", "solver", "fit_intercept", "intercept_scaling", "class_weight", "tol",
            "max_iter", "max_time", "dtype", "n_jobs", "random_state", "verbose", "callback",
        ),
    }  # fmt: skip

    def __init__(
        self,
        ks: Any = (1, 5),
        Cs: Any = 10,
        *,
        losses: Any = ("topk_hinge_alpha",),
        train_ks: Any = None,
        cv: Any = 5,
        scoring: Any = None,
        refit: bool = True,
        max_extensions: int = 3,
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
        callback: Any = None,
    ) -> None:
        self.ks = ks
        self.Cs = Cs
        self.losses = losses
        self.train_ks = train_ks
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.max_extensions = max_extensions
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
        self.callback = callback

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> TopKLinearSVCCV:
        """Search, and train with the parameters chosen.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            The examples. float32 stays float32; only the rows held out are copied, to be
            scored.
        y : array-like of shape (n_samples,)
            Their labels, of any type.
        sample_weight : array-like of shape (n_samples,), optional
            Factors of `C` by example. They do not count in the scores.

        Returns
        -------
        self : TopKLinearSVCCV
            The search, with its models.
        """
        self._validate_params()
        grid = check_grid(self.Cs)
        seed = seed_of(self.random_state)
        with unchanged_on_error(self):
            paths, choices = self._fit(X, y, sample_weight, grid, seed)
        self._warn_of_gaps(paths, choices)
        return self

    def _fit(
        self, X: Any, y: Any, sample_weight: Any, grid: Array, seed: int
    ) -> tuple[list[FoldPath], dict[int, Choice]]:
        """Search and train; return the paths, and the choice for each k."""
        # The validation of X, y and weights is that of the model.
        model = self._model(1, str(self.losses[0]), 1.0, seed)
        X, y = model._validate_examples(X, y)
        self.n_features_in_ = model.n_features_in_
        if hasattr(model, "feature_names_in_"):
            self.feature_names_in_ = model.feature_names_in_
        classes, labels = np.unique(y, return_inverse=True)
        model._check_classes(classes)
        self.classes_ = classes
        ks, pairs = self._wanted(classes.size), self._pairs(classes.size)
        weights = model._weights_of_examples(X, y, classes, labels, sample_weight)
        paths = self._paths(X, y, labels, weights, pairs)
        Cs = self._search(paths, sorted(set(grid.tolist())), ks, X, y)
        self.Cs_ = np.array(Cs)
        self.cv_results_ = tabulate(paths, Cs, ks)
        choices = {k: choose(paths, Cs, k) for k in ks}
        self.best_params_ = {k: {"loss": c.loss, "k": c.k, "C": c.C} for k, c in choices.items()}
        self.best_C_ = {k: c.C for k, c in choices.items()}
        self.best_score_ = {k: c.score for k, c in choices.items()}
        if self.refit:
            self._refit(X, y, sample_weight, choices, seed)
        return paths, choices

    def _wanted(self, m: int) -> list[int]:
        return _check_ks("ks", self.ks, m)

    def _pairs(self, m: int) -> list[tuple[str, int]]:
        """Return the losses and training ks to try."""
        train_ks = _check_ks("train_ks", self.ks if self.train_ks is None else self.train_ks, m)
        losses = list(dict.fromkeys(self.losses))
        unknown = [name for name in losses if name not in LOSSES]
        if unknown or not losses:
            raise ValueError(
                f"losses = {self.losses!r}; it must hold names out of {', '.join(LOSSES)}."
            )
        pairs = []
        for name in losses:
            for k in train_ks if traits_of(LOSSES[name]).uses_k else [1]:
                choose_solver(self.solver, self._make_loss(name, k))
                pairs.append((name, k))
        return pairs

    def _smoothing(self, loss: str) -> float:
        # Some losses are smooth by themselves.
        return float(self.smoothing) if traits_of(LOSSES[loss]).uses_smoothing else 0.0

    def _make_loss(self, name: str, k: int) -> Any:
        return make_loss(name, k, self._smoothing(name))

    def _model(self, k: int, loss: str, C: float, seed: int) -> TopKLinearSVC:
        return TopKLinearSVC(
            k,
            loss=loss,
            C=C,
            smoothing=self._smoothing(loss) if loss in LOSSES else 0.0,
            solver=self.solver,
            fit_intercept=self.fit_intercept,
            intercept_scaling=self.intercept_scaling,
            class_weight=self.class_weight,
            tol=self.tol,
            max_iter=self.max_iter,
            max_time=self.max_time,
            dtype=self.dtype,
            n_jobs=1,  # Sums do not depend on the number of threads then, nor does the model.
            random_state=seed,
        )

    def _paths(
        self, X: Any, y: Array, labels: Array, weights: Array, pairs: list[tuple[str, int]]
    ) -> list[FoldPath]:
        splits = list(check_cv(self.cv, y, classifier=True).split(X, y))
        bias = float(self.intercept_scaling) if self.fit_intercept else 0.0
        whole = make_problem(X, labels, weights, self.classes_.size, bias)
        problems = []
        for train, _ in splits:
            part = np.zeros(len(y))
            part[train] = weights[train]
            if not part.any():
                raise ValueError(
                    "A split of cv leaves no example with a weight above 0 to train on. Use fewer "
                    "folds, or other weights."
                )
            problems.append(
                type(whole)(whole.rows, whole.examples._replace(C=part), whole.m, whole.d)
            )
        return [
            FoldPath(loss, k, self._make_loss(loss, k), problems[fold], np.asarray(held_out))
            for loss, k in pairs
            for fold, (_, held_out) in enumerate(splits)
        ]

    def _search(
        self, paths: list[FoldPath], Cs: list[float], ks: list[int], X: Any, y: Array
    ) -> list[float]:
        """Solve on the grid, and on what is added to it; return the whole grid."""
        total = len(paths) * len(Cs)
        progress = Progress("fits", total, is_on=bool(self.verbose), callback=self.callback)
        judge = self._judge(X, y, ks)
        # The callback is told of the solutions, not of the passes that lead to them.
        setup = replace(self._setup(), callback=None)
        search = Search(setup, resolve_threads(self.n_jobs), judge, progress)
        more = list(Cs)
        for _ in range(self.max_extensions + 1):
            search.extend(paths, more)
            Cs = sorted({*Cs, *more})
            more = beyond_the_edge(Cs, {choose(paths, Cs, k).C for k in ks})
            if not more:
                break
            progress.add(len(paths) * len(more))
        return Cs

    def _judge(self, X: Any, y: Array, ks: list[int]) -> Any:
        scorers = self._scorers(ks)

        def judge(result: Result, loss: str, k: int, held_out: Array) -> dict[int, float]:
            model = self._fitted(result, loss, k)
            rows, truth = X[held_out], y[held_out]
            if scorers is not None:
                return {wanted: float(scorers[wanted](model, rows, truth)) for wanted in ks}
            values = topk_accuracy(truth, model._scores(rows), ks, labels=self.classes_)
            return dict(zip(ks, map(float, values), strict=True))

        return judge

    def _scorers(self, ks: list[int]) -> dict[int, Any] | None:
        if self.scoring is None:
            return None
        given = (
            self.scoring if isinstance(self.scoring, Mapping) else dict.fromkeys(ks, self.scoring)
        )
        missing = [k for k in ks if k not in given]
        if missing:
            raise ValueError(
                f"scoring has no scorer for k = {missing[0]}; give one for each of ks."
            )
        return {k: check_scoring(TopKLinearSVC(), scoring=given[k]) for k in ks}

    def _fitted(self, result: Result, loss: str, k: int) -> TopKLinearSVC:
        model = self._model(k, loss, 1.0, 0)
        model.classes_, model.n_features_in_ = self.classes_, self.n_features_in_
        model._store(result)
        return model

    def _warn_of_gaps(self, paths: list[FoldPath], choices: dict[int, Choice]) -> None:
        """Say for how many points the budget was too small, and whether they were chosen."""
        unsolved = {
            (path.loss, path.k, C)
            for path in paths
            for C, point in path.points.items()
            if not point.is_solved
        }
        if not unsolved:
            return
        total = len({(t.loss, t.k, C) for t in paths for C in t.points})
        chosen = [k for k, c in choices.items() if (c.loss, c.k, c.C) in unsolved]
        smallest = min(C for _, _, C in unsolved)
        warnings.warn(
            f"{len(unsolved)} of {total} points of the search, the smallest at C = {smallest:g}, "
            f"were not solved to tol = {self.tol:g} on all folds; cv_results_['max_relative_gap'] "
            f"has their gaps. Chosen among them: {f'for k in {chosen}' if chosen else 'none'}. "
            "Raise max_iter, or leave out large Cs.",
            ConvergenceWarning,
            stacklevel=3,
        )

    def _refit(
        self, X: Any, y: Array, sample_weight: Any, choices: dict[int, Choice], seed: int
    ) -> None:
        keys = list(dict.fromkeys((c.loss, c.k, c.C) for c in choices.values()))
        n_jobs = resolve_threads(self.n_jobs)

        def fit(key: tuple[str, int, float]) -> TopKLinearSVC:
            loss, k, C = key
            return self._model(k, loss, C, seed).fit(X, y, sample_weight)

        fitted = run_fit(lambda: map_tasks(fit, keys, n_jobs), n_jobs)
        if hasattr(self, "feature_names_in_"):  # They were trained on an array without names.
            for model in fitted:
                model.feature_names_in_ = self.feature_names_in_
        models = dict(zip(keys, fitted, strict=True))
        self.estimators_ = {k: models[c.loss, c.k, c.C] for k, c in choices.items()}
        first = next(iter(self.estimators_.values()))
        self.coef_, self.intercept_ = first.coef_, first.intercept_
        self.certificate_, self.n_iter_ = first.certificate_, first.n_iter_
        self.status_ = first.status_

    def model_for(self, k: int | None = None) -> TopKLinearSVC:
        """Return the model chosen for `k` guesses.

        Parameters
        ----------
        k : int, optional
            The number of guesses; by default the first of `ks`. For one that was not asked for,
            the model for the next larger one, else for the largest.

        Returns
        -------
        model : TopKLinearSVC
            The model, trained on all rows.
        """
        check_is_fitted(self, "best_params_")
        if not hasattr(self, "estimators_"):
            raise NotFittedError(
                "The search was made with refit=False, so there is no model; fit with refit=True, "
                "or train a TopKLinearSVC with best_params_."
            )
        if k is None:
            return next(iter(self.estimators_.values()))
        larger = [wanted for wanted in self.estimators_ if wanted >= k]
        return self.estimators_[min(larger) if larger else max(self.estimators_)]

    def _scores(self, X: Any) -> Array:
        return self.model_for()._scores(X)

    def predict_topk(
        self, X: Any, k: int | None = None, return_scores: bool = False
    ) -> Array | tuple[Array, Array]:
        """Return the `k` best labels of each row, by the model chosen for that k.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            The rows.
        k : int, optional
            How many; by default the first of `ks`.
        return_scores : bool
            Return their scores as well.

        Returns
        -------
        labels : ndarray of shape (n_samples, k)
            The labels.
        scores : ndarray of shape (n_samples, k)
            Their scores, if asked for.
        """
        number = self._number_of_guesses(k)
        return self.model_for(number).predict_topk(X, number, return_scores)

    def score_topk(self, X: Any, y: Any, k: int | None = None, sample_weight: Any = None) -> float:
        """Return the share of rows whose true label is among the `k` best of the model for k.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,)
            Their labels.
        k : int, optional
            How many guesses; by default the first of `ks`.
        sample_weight : array-like of shape (n_samples,), optional
            The weights of the rows.

        Returns
        -------
        accuracy : float
            Between 0 and 1.
        """
        number = self._number_of_guesses(k)
        return self.model_for(number).score_topk(X, y, number, sample_weight)

    def _number_of_guesses(self, k: int | None) -> int:
        check_is_fitted(self, "best_params_")
        return super()._number_of_guesses(next(iter(self.best_params_)) if k is None else k)


def _check_ks(name: str, ks: Any, m: int) -> list[int]:
    """Return the distinct numbers of guesses; complain unless they are whole and below `m`."""
    values: list[Any] = list(ks)
    if not values:
        raise ValueError(f"{name} is empty; it must hold at least one number of guesses.")
    for k in values:
        if isinstance(k, bool) or not isinstance(k, Integral):
            raise TypeError(f"{name} holds {k!r}; it must hold whole numbers.")
        if not 1 <= int(k) < m:
            raise ValueError(
                f"{name} holds k = {k} but there are {m} classes; k must be between 1 and {m - 1}."
            )
    return [int(k) for k in dict.fromkeys(values)]
