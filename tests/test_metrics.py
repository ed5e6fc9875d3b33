"""Top-k accuracy against brute force and scikit-learn, and the scorer inside scikit-learn."""

from __future__ import annotations

import pickle
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
import sklearn
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import top_k_accuracy_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.svm import SVC

from topksvm import metrics
from topksvm.metrics import topk_accuracy, topk_ranks, topk_scorer

DTYPES = [np.float16, np.float32, np.float64, np.int8, np.int64, np.uint8, np.bool_]


def brute_force_ranks(columns, scores):
    """Follow the definition, one comparison at a time."""
    ranks = []
    for row, true in zip(scores.tolist(), columns, strict=True):
        ranks.append(1 + sum(row[j] >= row[true] for j in range(len(row)) if j != true))
    return ranks


def draw(n_samples, n_classes, seed=0, dtype=np.float64):
    """Return random scores without ties, and labels among which every class occurs."""
    rng = np.random.default_rng(seed)
    scores = rng.permuted(np.tile(np.arange(n_classes), (n_samples, 1)), axis=1).astype(dtype)
    y = rng.permutation(np.arange(n_samples) % n_classes)
    return y, scores


# Ranks and accuracies


@pytest.mark.parametrize("dtype", DTYPES)
def test_ranks_are_those_of_the_definition(dtype):
    rng = np.random.default_rng(1)
    scores = rng.integers(0, 4, (200, 6)).astype(dtype)  # Many ties.
    y = rng.permutation(np.arange(200) % 6)
    ranks = topk_ranks(y, scores)
    assert ranks.dtype == np.intp
    assert ranks.tolist() == brute_force_ranks(y, scores)


@given(
    st.integers(1, 5).flatmap(
        lambda m: arrays(
            np.float32,
            st.tuples(st.integers(1, 8), st.just(m)),
            elements=st.floats(width=32, allow_nan=False),
        )
    ),
    st.data(),
)
def test_accuracies_are_those_of_the_definition(scores, data):
    n_samples, n_classes = scores.shape
    y = data.draw(st.lists(st.integers(0, n_classes - 1), min_size=n_samples, max_size=n_samples))
    weights = data.draw(st.lists(st.integers(0, 9), min_size=n_samples, max_size=n_samples))
    ks = range(1, n_classes + 1)
    ranks = brute_force_ranks(y, scores)

    expected = [sum(rank <= k for rank in ranks) / n_samples for k in ks]
    assert topk_accuracy(y, scores, ks, labels=range(n_classes)).tolist() == expected
    if any(weights):
        weighted = topk_accuracy(y, scores, ks, labels=range(n_classes), sample_weight=weights)
        expected = [
            Fraction(sum(w for w, r in zip(weights, ranks, strict=True) if r <= k), sum(weights))
            for k in ks
        ]
        np.testing.assert_allclose(weighted, np.array(expected, dtype=float), rtol=1e-12)
        assert weighted[-1] == 1.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_classes", [3, 7, 20])
def test_without_ties_it_is_scikit_learns(n_classes, dtype):
    y, scores = draw(300, n_classes, dtype=dtype)
    ks = range(1, n_classes)
    expected = [top_k_accuracy_score(y, scores, k=k) for k in ks]
    np.testing.assert_allclose(topk_accuracy(y, scores, ks), expected, rtol=1e-14)
    weights = np.random.default_rng(2).random(300)
    expected = [top_k_accuracy_score(y, scores, k=k, sample_weight=weights) for k in ks]
    actual = topk_accuracy(y, scores, ks, sample_weight=weights)
    np.testing.assert_allclose(actual, expected, rtol=1e-12)


def test_default_ks_and_their_order():
    y, scores = draw(100, 12)
    accuracies = topk_accuracy(y, scores)
    assert accuracies.shape == (6,)
    assert accuracies.dtype == np.float64
    for order in [(10, 5, 4, 3, 2, 1), np.array([10, 5, 4, 3, 2, 1]), iter([10, 5, 4, 3, 2, 1])]:
        assert topk_accuracy(y, scores, order).tolist() == accuracies[::-1].tolist()
    assert topk_accuracy(y, scores, (2, 2)).tolist() == [accuracies[1]] * 2


@pytest.mark.parametrize("k", [3, np.int32(3)])
def test_a_single_k_gives_a_float(k):
    y, scores = draw(100, 5)
    accuracy = topk_accuracy(y, scores, k)
    assert type(accuracy) is float
    assert accuracy == topk_accuracy(y, scores, [3])[0]


def test_a_single_class():
    assert topk_accuracy(["a", "a"], [[0.0], [1.0]], 1) == 1.0


# Ties


@pytest.mark.parametrize("value", [0.0, 1e30, np.inf, -np.inf])
def test_a_model_that_scores_all_classes_alike_is_always_wrong(value):
    y, scores = draw(50, 5, dtype=np.float32)
    scores[...] = value
    assert topk_accuracy(y, scores, range(1, 6)).tolist() == [0, 0, 0, 0, 1]


def test_ties_are_broken_against_the_true_class():
    scores = [[2.0, 2.0, 1.0, 0.0]] * 4
    assert topk_ranks([0, 1, 2, 3], scores).tolist() == [2, 2, 3, 4]


def test_infinite_scores_have_ranks():
    scores = [[-np.inf, 0.0, np.inf], [-np.inf, -np.inf, 0.0], [np.inf, np.inf, -np.inf]]
    assert topk_ranks([2, 1, 0], scores, labels=[0, 1, 2]).tolist() == [1, 3, 2]


def test_negative_zero_ties_with_zero():
    assert topk_ranks([0, 1], [[-0.0, 0.0], [-0.0, 0.0]]).tolist() == [2, 2]


# Two classes and one column


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.int64])
def test_a_decision_function_of_two_classes(dtype):
    s = np.array([2, -2, 1, -1, 0, 0, -128], dtype=dtype)
    y = np.array(["yes", "no", "no", "yes", "yes", "no", "no"])
    assert topk_ranks(y, s).tolist() == [1, 1, 2, 2, 2, 2, 1]
    both = np.stack((-s.astype(float), s.astype(float)), axis=1)
    assert topk_ranks(y, s).tolist() == topk_ranks(y, both).tolist()
    assert topk_accuracy(y, s, (1, 2)).tolist() == [3 / 7, 1]


@pytest.mark.parametrize("dtype", [np.uint8, np.uint64, np.bool_])
def test_an_unsigned_decision_function_is_not_wrapped(dtype):
    s = np.array([1, 1, 0], dtype=dtype)
    assert topk_ranks([1, 0, 1], s).tolist() == [1, 2, 2]


def test_a_decision_function_with_one_class_in_sight():
    assert topk_accuracy([1, 1], [0.5, -0.5], 1, labels=[0, 1]) == 0.5
    with pytest.raises(ValueError, match=r"y_true has 1 different labels.*Pass labels="):
        topk_accuracy([1, 1], [0.5, -0.5], 1)


# Labels


@pytest.mark.parametrize(
    "labels",
    [
        ["ant", "bee", "cat"],
        np.array(["ant", "bee", "cat"], dtype=object),
        np.array([b"ant", b"bee", b"cat"]),
        [-5, 0, 10**12],
        np.array([0.5, 1.5, 2.5], dtype=np.float32),
        np.array(["2020-01-01", "2021-01-01", "2022-01-01"], dtype="datetime64[D]"),
        [(0, 1), (0, 2), (1, 0)],
    ],
    ids=["str", "object", "bytes", "int", "float32", "datetime", "tuple"],
)
def test_labels_of_any_type(labels):
    codes, scores = draw(30, 3)
    y = [labels[i] for i in codes]
    if isinstance(labels, np.ndarray):
        y = np.array(y, dtype=labels.dtype)
    expected = topk_ranks(codes, scores).tolist()
    assert topk_ranks(y, scores).tolist() == expected
    assert topk_ranks(y, scores, labels=labels).tolist() == expected
    swapped = [labels[i] for i in (2, 0, 1)]
    assert topk_ranks(y, scores[:, [2, 0, 1]], labels=swapped).tolist() == expected


def test_labels_that_cannot_be_sorted_must_be_given():
    y, scores = [1, "a", None], np.eye(3)
    assert topk_ranks(y, scores, labels=[1, "a", None]).tolist() == [1, 1, 1]
    assert topk_ranks(np.array(y, dtype=object), scores, labels=y).tolist() == [1, 1, 1]
    with pytest.raises(TypeError, match=r"labels of y_true cannot be sorted.*Pass labels="):
        topk_ranks(y, scores)


def test_equal_labels_of_different_types_match():
    assert topk_ranks(np.array([0, 1], dtype=np.int8), np.eye(2), labels=[0.0, 1.0]).max() == 1
    assert topk_ranks([np.str_("b")], [[0, 1]], labels=np.array(["a", "b"], dtype=object))[0] == 1


def test_pandas_and_frames():
    pd = pytest.importorskip("pandas")
    codes, scores = draw(30, 3)
    expected = topk_ranks(codes, scores).tolist()
    names = np.array(["ant", "bee", "cat"])[codes]
    for y in (pd.Series(names, index=range(30, 60)), pd.Series(names, dtype="category")):
        assert topk_ranks(y, pd.DataFrame(scores)).tolist() == expected
    with pytest.raises(ValueError, match=r"y_true has shape \(30, 1\)"):
        topk_ranks(pd.DataFrame(names), scores)


def test_missing_classes_need_labels():
    """A fold need not hold all classes (scikit-learn issues 10144 and 19721)."""
    y, scores = draw(100, 6)
    fold = np.isin(y, [1, 4])
    ranks = topk_ranks(y, scores)
    assert topk_ranks(y[fold], scores[fold], labels=range(6)).tolist() == ranks[fold].tolist()
    with pytest.raises(
        ValueError, match=r"y_true has 2 different labels but scores has 6 columns. Pass labels="
    ):
        topk_accuracy(y[fold], scores[fold], 1)


# Blocks and memory


@pytest.mark.parametrize("entries", [1, 7, 35, 10**9])
@pytest.mark.parametrize("order", ["C", "F"])
def test_blocks_change_nothing(monkeypatch, entries, order):
    y, scores = draw(101, 5)
    scores[::3, 1] = scores[::3, 2]
    expected = brute_force_ranks(y, scores)
    s = scores[:, 0] - 2
    two = topk_ranks(y > 2, s).tolist()
    monkeypatch.setattr(metrics, "BLOCK_ENTRIES", entries)
    assert topk_ranks(y, np.asarray(scores, order=order)).tolist() == expected
    assert topk_ranks(y > 2, s).tolist() == two


def test_nan_is_found_in_every_block(monkeypatch):
    monkeypatch.setattr(metrics, "BLOCK_ENTRIES", 20)
    y, scores = draw(50, 5)
    scores[37, 2] = np.nan
    with pytest.raises(ValueError, match=r"scores contains nan \(row 37, column 2\)"):
        topk_ranks(y, scores)
    with pytest.raises(ValueError, match=r"scores contains nan \(row 37\)"):
        topk_ranks(y > 2, scores[:, 2])


def test_temporaries_are_small_and_the_input_is_left_alone():
    n_samples, n_classes = 20_000, 200
    scores = np.random.default_rng(0).random((n_samples, n_classes), dtype=np.float32)
    scores.flags.writeable = False
    y = np.arange(n_samples) % n_classes
    tracemalloc.start()
    topk_accuracy(y, scores)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < scores.size  # Less than a byte per entry; a float32 copy would take four.


# Weights


def test_integer_weights_are_repetitions():
    y, scores = draw(60, 6)
    weights = np.random.default_rng(3).integers(0, 4, 60)
    repeated = topk_accuracy(y.repeat(weights), scores.repeat(weights, axis=0), range(1, 7))
    weighted = topk_accuracy(y, scores, range(1, 7), sample_weight=weights)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-14)


@pytest.mark.parametrize("scale", [1e-320, 1e308])
def test_weights_of_extreme_size(scale):
    weighted = topk_accuracy([0, 1, 2], np.eye(3)[[0, 1, 1]], (1, 3), sample_weight=[scale] * 3)
    np.testing.assert_allclose(weighted, [2 / 3, 1], rtol=1e-12)


# Errors


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"ks": 0}, ValueError, r"k = 0 but there are 3 classes; k must be between 1 and 3"),
        ({"ks": (1, -2)}, ValueError, r"k = -2 but there are 3 classes"),
        ({"ks": (1, 4)}, ValueError, r"k = 4 but there are 3 classes; k must be between 1 and 3"),
        ({"ks": 10**30}, ValueError, r"k = 1000000000000000000000000000000 but there are 3"),
        ({"ks": ()}, ValueError, r"ks is empty"),
        ({"ks": 1.0}, TypeError, r"k is 1.0 of type float; it must be a whole number"),
        ({"ks": (1, 1.5)}, TypeError, r"k is 1.5 of type float"),
        ({"ks": True}, TypeError, r"k is True of type bool"),
        ({"ks": "12"}, TypeError, r"k is '1' of type str"),
        ({"ks": None}, TypeError, r"k is None of type NoneType"),
        ({"y_true": [0, 1]}, ValueError, r"y_true has 2 labels but scores has 3 rows"),
        ({"y_true": [], "scores": np.empty((0, 3))}, ValueError, r"y_true is empty"),
        ({"y_true": np.eye(3)}, ValueError, r"y_true has shape \(3, 3\); it must have one dim"),
        ({"y_true": [[0], [1], [2]]}, TypeError, r"y_true contains an entry that cannot be a lab"),
        ({"y_true": None}, ValueError, r"y_true has shape \(\)"),
        ({"y_true": [0, 1, np.nan]}, ValueError, r"y_true contains NaN"),
        ({"y_true": np.float32([0, 1, np.nan])}, ValueError, r"y_true contains NaN"),
        ({"y_true": [0, 1, 1]}, ValueError, r"y_true has 2 different labels but scores has 3 col"),
        ({"labels": [0, 1]}, ValueError, r"labels has 2 entries but scores has 3 columns; labels"),
        ({"labels": [0, 1, 1]}, ValueError, r"labels contains 1 more than once"),
        ({"labels": [0, 1, 3]}, ValueError, r"y_true contains 2, which labels does not"),
        ({"labels": ["0", "1", "2"]}, ValueError, r"contains 0, 1, 2, which.* has '0', '1', '2';"),
        ({"labels": "abc"}, ValueError, r"labels has shape \(\)"),
        ({"scores": [1.0, 2.0, 3.0]}, ValueError, r"3 different.*\(3,\), the decision function of"),
        ({"scores": np.zeros((3, 3, 1))}, ValueError, r"scores has 3 dimensions, shape \(3, 3, 1"),
        ({"scores": 1.0}, ValueError, r"scores has 0 dimensions"),
        ({"scores": np.eye(3) + 0j}, TypeError, r"scores is of type ndarray with dtype complex128"),
        ({"scores": np.eye(3, dtype=object)}, TypeError, r"dtype object; it must be a dense array"),
        ({"scores": np.full((3, 3), np.nan)}, ValueError, r"scores contains nan \(row 0, column 0"),
        ({"sample_weight": [1, 1]}, ValueError, r"sample_weight has shape \(2,\) but there are 3"),
        ({"sample_weight": [1, -1, 1]}, ValueError, r"sample_weight contains -1.0 \(entry 1\)"),
        ({"sample_weight": [1, 1, np.nan]}, ValueError, r"sample_weight contains nan \(entry 2\)"),
        ({"sample_weight": [1, 1, np.inf]}, ValueError, r"sample_weight contains inf \(entry 2\)"),
        ({"sample_weight": [0, 0, 0]}, ValueError, r"sample_weight is 0 for all examples"),
        ({"sample_weight": ["a"] * 3}, TypeError, r"sample_weight has dtype <U1"),
    ],
)
def test_bad_input_is_one_clear_error(arguments, error, message):
    good = {"y_true": [0, 1, 2], "scores": np.eye(3), "ks": (1, 2)}
    assert topk_accuracy(**good).tolist() == [1, 1]
    with pytest.raises(error, match=message):
        topk_accuracy(**{**good, **arguments})


def test_the_default_ks_need_ten_classes():
    with pytest.raises(ValueError, match="k = 4 but there are 3 classes"):
        topk_accuracy([0, 1, 2], np.eye(3))


def test_sparse_scores_are_refused():
    with pytest.raises(TypeError, match=r"scores is of type csr_array.*toarray"):
        topk_ranks([0, 1, 2], csr_array(np.eye(3)))


def test_only_some_of_many_unknown_labels_are_named():
    with pytest.raises(ValueError, match=r"contains 10, 11, 12, 13, 14 and 15 more, which labels"):
        topk_ranks(np.arange(10, 30), np.zeros((20, 3)), labels=[0, 1, 2])


# The scorer


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    keep = np.random.default_rng(0).permutation(len(y))[:400]
    return X[keep] / 16, np.array([f"digit {label}" for label in y[keep]])


def logistic(**options):
    return LogisticRegression(tol=1e-2, max_iter=1000, **options)


def test_the_scorer_is_the_accuracy(digits):
    X, y = digits
    model = logistic().fit(X[:300], y[:300])
    scores = model.decision_function(X[300:])
    for k in (1, 2, 10):
        value = topk_scorer(k)(model, X[300:], y[300:])
        assert type(value) is float
        assert value == topk_accuracy(y[300:], scores, k, labels=model.classes_)
    assert topk_scorer(1)(model, X[300:], y[300:]) == model.score(X[300:], y[300:])
    weights = np.arange(100)
    weighted = topk_scorer(2)(model, X[300:], y[300:], sample_weight=weights)
    expected = topk_accuracy(y[300:], scores, 2, model.classes_, sample_weight=weights)
    assert weighted == expected != topk_scorer(2)(model, X[300:], y[300:])


def test_cross_val_score(digits):
    X, y = digits
    cv = KFold(3)
    actual = cross_val_score(logistic(), X, y, scoring=topk_scorer(2), cv=cv)
    expected = []
    for train, test in cv.split(X):
        model = logistic().fit(X[train], y[train])
        scores = model.decision_function(X[test])
        expected.append(top_k_accuracy_score(y[test], scores, k=2, labels=model.classes_))
    np.testing.assert_allclose(actual, expected, rtol=1e-14)


def test_cross_validation_with_folds_that_lack_classes(digits):
    X, y = digits
    order = np.argsort(y)
    X, y = X[order], y[order]
    scores = cross_val_score(
        logistic(), X, y, scoring=topk_scorer(3), cv=KFold(5), error_score="raise"
    )
    assert scores.shape == (5,)
    assert scores.max() < 0.5  # Most labels of each fold were never seen in training.


def test_grid_search(digits):
    X, y = digits
    search = GridSearchCV(
        make_pipeline(MaxAbsScaler(), logistic()),
        {"logisticregression__C": [1e-3, 1.0]},
        scoring={"top1": topk_scorer(1), "top3": topk_scorer(3)},
        refit="top3",
        cv=2,
        error_score="raise",
    )
    clone(search).fit(X, y)
    search.fit(X, y, logisticregression__sample_weight=np.ones(len(y)))
    assert search.best_params_ == {"logisticregression__C": 1.0}
    assert np.all(search.cv_results_["mean_test_top1"] < search.cv_results_["mean_test_top3"])
    single = clone(search).set_params(scoring=topk_scorer(3), refit=True).fit(X, y)
    assert single.best_score_ == search.best_score_
    assert single.score(X, y) == topk_scorer(3)(single, X, y)


@pytest.mark.parametrize("scoring", ["one", "two"])
def test_grid_search_passes_sample_weight_on(digits, scoring):
    """In recent versions of scikit-learn the weights of `fit` are also those of the scorer."""
    X, y = digits
    one = topk_scorer(1)
    several = {"top1": one, "top2": topk_scorer(2)}
    search = GridSearchCV(
        logistic(),
        {"C": [1.0]},
        scoring=one if scoring == "one" else several,
        refit=scoring == "one" or "top1",
        cv=KFold(2),
        error_score="raise",
    )
    weights = np.random.default_rng(0).random(len(y)) ** 4
    search.fit(X, y, sample_weight=weights)
    folds = list(KFold(2).split(X))
    models = [logistic().fit(X[i], y[i], sample_weight=weights[i]) for i, _ in folds]
    plain, weighted = (
        np.mean(
            [
                one(model, X[i], y[i], sample_weight=w if w is None else w[i])
                for model, (_, i) in zip(models, folds, strict=True)
            ]
        )
        for w in (None, weights)
    )
    assert plain != weighted
    forwarded = hasattr(search, "_check_scorers_accept_sample_weight")
    assert search.best_score_ == pytest.approx(weighted if forwarded else plain, rel=1e-12)


def test_metadata_routing(digits):
    X, y = digits
    weights = np.random.default_rng(0).random(len(y)) ** 4

    def top1(model, params, **request):
        """Return the top-1 accuracies of the folds, alone and as one of two metrics."""
        scorers = [topk_scorer(k).set_score_request(**request) for k in (1, 2)]
        one, two = pickle.loads(pickle.dumps(scorers))
        options = {"cv": KFold(2), "error_score": "raise", "params": params}
        alone = cross_val_score(model, X, y, scoring=one, **options)
        both = cross_validate(model, X, y, scoring={"top1": one, "top2": two}, **options)
        assert both["test_top1"].tolist() == alone.tolist()
        return alone.tolist()

    with sklearn.config_context(enable_metadata_routing=True):
        ignoring = logistic().set_fit_request(sample_weight=False)
        using = logistic().set_fit_request(sample_weight=True)
        renamed = logistic().set_fit_request(sample_weight="fit_weight")

        plain = top1(ignoring, {}, sample_weight=None)
        weighted = top1(ignoring, {"sample_weight": weights}, sample_weight=True)
        assert weighted != plain
        aliased = top1(ignoring, {"test_weight": weights}, sample_weight="test_weight")
        assert aliased == weighted

        fitted = top1(renamed, {"fit_weight": weights}, sample_weight=None)
        assert top1(using, {"sample_weight": weights}, sample_weight=False) == fitted
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            top1(using, {"sample_weight": weights}, sample_weight=None)
        with pytest.raises(ValueError, match="not a name"):
            topk_scorer(1).set_score_request(sample_weight="not a name")
    with pytest.raises(RuntimeError, match="enable_metadata_routing=True"):
        topk_scorer(1).set_score_request(sample_weight=True)


def test_labels_unseen_in_training_are_errors():
    X = np.arange(6.0).reshape(-1, 1)
    model = logistic().fit(X[:4], ["a", "a", "b", "b"])
    y = ["a", "a", "b", "b", "c", "d"]
    assert topk_scorer(1)(model, X, y) == pytest.approx(4 / 6)
    assert topk_scorer(2)(model, X, y) == pytest.approx(4 / 6)
    assert topk_scorer(2)(model, X, y, sample_weight=[1, 1, 1, 1, 0, 0]) == 1.0
    assert topk_scorer(2)(model, X[4:], y[4:]) == 0.0
    with pytest.raises(ValueError, match="k = 3 but there are 2 classes"):
        topk_scorer(3)(model, X, y)


def test_probabilities_serve_where_there_is_no_decision_function(digits):
    X, y = digits
    model = KNeighborsClassifier(5).fit(X[:300], y[:300])
    expected = topk_accuracy(y[300:], model.predict_proba(X[300:]), 2, labels=model.classes_)
    assert topk_scorer(2)(model, X[300:], y[300:]) == expected
    constant = DummyClassifier().fit(X[:3], ["a"] * 3)
    assert topk_scorer(1)(constant, X[:2], ["a", "b"]) == 0.5


def test_estimators_without_a_score_per_class_are_refused(digits):
    X, y = digits
    with pytest.raises(TypeError, match="LinearRegression has neither decision_function nor pred"):
        topk_scorer(1)(LinearRegression().fit(X, X[:, 0]), X, y)
    pairwise = SVC(decision_function_shape="ovo").fit(X, y)
    with pytest.raises(
        ValueError, match=r"SVC.decision_function returned scores of shape \(400, 4"
    ):
        topk_scorer(1)(pairwise, X, y)


@pytest.mark.parametrize(
    ("k", "error", "message"),
    [
        (0, ValueError, "k = 0 is not allowed; k must be at least 1"),
        (2.0, TypeError, "k is 2.0 of type float; it must be a whole number"),
        (True, TypeError, "k is True of type bool"),
    ],
)
def test_a_bad_k_is_refused_at_once(k, error, message):
    with pytest.raises(error, match=message):
        topk_scorer(k)


def test_the_scorer_can_be_printed_copied_and_pickled():
    scorer = topk_scorer(np.int64(5))
    assert repr(scorer) == "topk_scorer(5)"
    for copy in (pickle.loads(pickle.dumps(scorer)), clone(scorer, safe=False)):
        assert copy is not scorer
        assert repr(copy) == repr(scorer)
        assert type(copy.k) is int
