"""Wsabie++: linear classifiers through a joint embedding of examples and classes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval

from topksvm.baselines._base import Baseline
from topksvm.baselines._warp import Examples, Model, Options, rank_weights, run_steps

Array = NDArray[Any]


class WsabiePP(Baseline):
    r"""Classes and examples embedded in one space, trained on sampled violations of the margin.

    The scores are ``u_y . (V x)``. A step draws an example ``(x, y)``, then classes until one of
    them, v, violates the margin, :math:`u_v \cdot V x > u_y \cdot V x - \text{margin}`. The number
    N of draws estimates the rank of y among the m classes, and the step descends

    .. math::
        L\big(\lfloor (m - 1) / N \rfloor\big) \,
        \big(\text{margin} + (u_v - u_y) \cdot V x\big), \qquad L(r) = \sum_{j=1}^r 1/j,

    so mistakes near the top weigh most. After m - 1 draws without success (with replacement) the
    example is left alone. Steps are those of AdaGrad with one rate per class vector and one for V:
    the gradient is divided by the root of the sum of all its mean squares so far. Vectors of
    classes and of features that have become longer than `max_norm` are shrunk to it.

    With a queue, each class y remembers its last `queue_size` violators, and the search passes over
    these, so that training does not spend itself on pairs of classes that cannot be told apart.

    The steps are computed in float32.

    Parameters
    ----------
    embedding_dim : int
        The dimension of the embedding.
    queue_size : int
        How many violators each class remembers, at most the number of classes less 2. 0 is Wsabie
        with the steps of AdaGrad.
    learning_rate : float
        The size of the first step in each entry, by and large.
    margin : float
        By how much the label shall win.
    max_norm : float or None
        The largest norm of the vector of a class or of a feature; None for no limit.
    max_iter : int
        The number of passes: n steps each, on examples drawn with replacement. Training ends before
        that only if a whole pass finds no violator. There are early stops with
        :meth:`staged_fit`.
    random_state : int, RandomState or None
        The initial vectors and all that is drawn.
    verbose : int
        1: show how many violators each pass found.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes, n_features)
        The weights ``U V``.
    embedding_ : ndarray of shape (embedding_dim, n_features)
        The map V of examples.
    class_embedding_ : ndarray of shape (n_classes, embedding_dim)
        The vectors u of classes.
    intercept_ : ndarray of shape (n_classes,)
        Zeros: the model has no intercept.
    classes_ : ndarray of shape (n_classes,)
        The labels.
    n_iter_ : int
        Passes made.
    n_features_in_, feature_names_in_
        As in every scikit-learn estimator.

    References
    ----------
    M. R. Gupta, S. Bengio, J. Weston, "Training Highly Multiclass Classifiers", JMLR 2014.

    J. Weston, S. Bengio, N. Usunier, "WSABIE: Scaling Up To Large Vocabulary Image Annotation",
    IJCAI 2011.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from topksvm.baselines import WsabiePP
    >>> X, y = load_digits(return_X_y=True)
    >>> model = WsabiePP(embedding_dim=20, max_iter=10, random_state=0).fit(X / 16, y)
    >>> model.class_embedding_.shape, model.embedding_.shape
    ((10, 20), (20, 64))
    >>> bool(model.score_topk(X / 16, y, k=2) > 0.95)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "embedding_dim": [Interval(Integral, 1, None, closed="left")],
        "queue_size": [Interval(Integral, 0, None, closed="left")],
        "learning_rate": [Interval(Real, 0.0, None, closed="neither")],
        "margin": [Interval(Real, 0.0, None, closed="neither")],
        "max_norm": [Interval(Real, 0.0, None, closed="neither"), None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        embedding_dim: int = 100,
        queue_size: int = 0,
        *,
        learning_rate: float = 0.01,
        margin: float = 1.0,
        max_norm: float | None = 1.0,
        max_iter: int = 50,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.embedding_dim = embedding_dim
        self.queue_size = queue_size
        self.learning_rate = learning_rate
        self.margin = margin
        self.max_norm = max_norm
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> WsabiePP:
        """Train the model.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            The examples.
        y : array-like of shape (n_samples,)
            Their labels, of any type.

        Returns
        -------
        self : WsabiePP
            The trained model.
        """
        model = None
        for model, dtype in self._passes(X, y):  # noqa: B007, the last one counts
            pass
        assert model is not None
        self._store_embeddings(model, dtype)
        return self

    def staged_fit(self, X: Any, y: Any) -> Iterator[WsabiePP]:
        """Train the model and yield it after every pass, for instance to stop early.

        It is the same object every time; what :meth:`fit` returns is the last one. To keep a stage,
        copy it.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            The examples.
        y : array-like of shape (n_samples,)
            Their labels, of any type.

        Yields
        ------
        self : WsabiePP
            The model after 1, 2, ... `max_iter` passes.
        """
        for model, dtype in self._passes(X, y):
            self._store_embeddings(model, dtype)
            yield self

    def _passes(self, X: Any, y: Any) -> Iterator[tuple[Model, Any]]:
        X, labels = self._start(X, y)
        m = self.classes_.size
        self._check_queue(m)
        examples = make_examples(X, labels)
        max_norm = np.inf if self.max_norm is None else float(self.max_norm)
        model = start_model(
            check_random_state(self.random_state),
            (m, X.shape[1], self.embedding_dim),
            self.queue_size,
            max_norm,
        )
        options = Options(
            np.float32(self.learning_rate), np.float32(self.margin), np.float32(max_norm)
        )
        weights = rank_weights(m)
        for n_iter in range(1, self.max_iter + 1):
            self.n_iter_ = n_iter
            found = run_steps(examples, model, options, weights, np.int64(labels.size))
            self._check_finite(model)
            if self.verbose:
                print(f"pass {n_iter}: {found} violators", file=sys.stderr)
            yield model, X.dtype
            if found == 0:
                break

    def _check_queue(self, m: int) -> None:
        if self.queue_size > m - 2 and self.queue_size > 0:
            raise ValueError(
                f"queue_size = {self.queue_size} but there are {m} classes; a queue of all "
                f"{m - 1} other classes would leave none to learn from. queue_size must be "
                f"between 0 and {max(0, m - 2)}. Choose a smaller one."
            )

    def _check_finite(self, model: Model) -> None:
        # The scores of the last example too: if they overflow, no violator is ever found.
        with np.errstate(over="ignore", invalid="ignore"):
            scores = model.classes @ model.z
        if not (np.isfinite(model.features).all() and np.isfinite(scores).all()):
            raise ValueError(
                f"The scores are not finite after {self.n_iter_} passes in float32, with "
                f"learning_rate = {self.learning_rate:g}. Scale the features to a range around 1, "
                "choose a smaller learning_rate, or set max_norm."
            )

    def _store_embeddings(self, model: Model, dtype: Any) -> None:
        self.embedding_ = np.ascontiguousarray(model.features.T, dtype=dtype)
        self.class_embedding_ = model.classes.astype(dtype)
        self._store(self.class_embedding_ @ self.embedding_, dtype)


def make_examples(X: Any, labels: NDArray[np.intp]) -> Examples:
    """Return rows in CSR form whatever their form was: zeros cost nothing, and there is one kernel.

    Raise an error if X is out of the range of float32.
    """
    with np.errstate(over="ignore"):
        rows = sp.csr_array(X, dtype=np.float32)
    if not np.isfinite(rows.data).all():
        raise ValueError(
            f"X has values up to {abs(X).max():.3g}, too large for float32, in which WsabiePP "
            "computes. Scale the features to a range around 1."
        )
    return Examples(
        rows.data,
        rows.indices.astype(np.int64),
        rows.indptr.astype(np.int64),
        labels.astype(np.int64),
    )


def start_model(
    random: Any, shape: tuple[int, int, int], queue_size: int, max_norm: float
) -> Model:
    """Return random vectors of `m` classes and `d` features in `dim` dimensions.

    Their entries are normal with deviation ``1 / sqrt(d)``, as in Wsabie, or less where they would
    be longer than `max_norm`.
    """
    m, d, dim = shape

    def vectors(n: int) -> Array:
        rows = random.normal(0.0, 1.0 / np.sqrt(d), (n, dim))
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        return (rows * np.minimum(1.0, max_norm / norms)).astype(np.float32)

    return Model(
        features=vectors(d),
        classes=vectors(m),
        squares=np.zeros(m + 1),
        queue=np.full((m, queue_size), -1, np.int64),
        head=np.zeros(m, np.int64),
        random=random.randint(0, 2**63 - 1, size=1, dtype=np.int64).astype(np.uint64),
        z=np.zeros(dim, np.float32),
        difference=np.zeros(dim, np.float32),
    )
