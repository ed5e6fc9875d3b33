"""Every loss, with and without smoothing, for several k, in both precisions, in one harness."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp
from scipy.special import wrightomega

from losses import references as ref
from topksvm import losses as contract
from topksvm._numba import kernel
from topksvm.losses import LOSSES, Softmax, TopKEntropy
from topksvm.losses._softmax import wright_omega
from topksvm.projections import make_workspace

SMOOTHING = 0.5
# One, a few, and more than the kernels sort by counting.
KS = (1, 2, 5, 70)


def _make(name, k, smoothing=0.0):
    parameters = {"k": k, "smoothing": smoothing}
    cls = LOSSES[name]
    return cls(**{name: parameters[name] for name in cls._fields})


def _cases():
    for name, cls in LOSSES.items():
        for k in KS if cls.traits.uses_k else (1,):
            for smoothing in (0.0, SMOOTHING) if cls.traits.uses_smoothing else (0.0,):
                smoothed = f"-smoothed{smoothing:g}" if smoothing else ""
                yield pytest.param(name, k, smoothing, id=f"{name}-k{k}{smoothed}")


def _is_smooth(case):
    return contract.is_smooth(_make(*case.values))


def _has_step(case):
    return LOSSES[case.values[0]].traits.has_dual_step


# Single precision for one loss of each family: what the precision of the scores changes is in the
# kernels that the family shares.
SINGLE = ("softmax", "topk_entropy", "topk_hinge_full")


def _for_each(cases):
    return pytest.mark.parametrize(("name", "k", "smoothing"), cases)


def _for_each_dtype(cases):
    pairs = [
        pytest.param(*case.values, dtype, id=f"{case.id}-{name}")
        for case in cases
        for dtype, name in ((np.float64, "f64"), (np.float32, "f32"))
        if dtype is np.float64 or case.values[0] in SINGLE
    ]
    return pytest.mark.parametrize(("name", "k", "smoothing", "dtype"), pairs)


CASES = list(_cases())
SMOOTH = [case for case in CASES if _is_smooth(case)]
PLAIN_HINGES = [case for case in CASES if not _is_smooth(case)]
STEPS = [case for case in CASES if _has_step(case)]
every_loss = _for_each(CASES)
every_loss_and_dtype = _for_each_dtype(CASES)
every_step_and_dtype = _for_each_dtype(STEPS)
every_dtype = pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["f64", "f32"])


@kernel
def _compiled_loss(loss, row, base, out, work):
    """Return the value, or write the gradient if there is an array for it: compiled only once."""
    if out.size == 0:
        return contract.value(loss, row, base, work)
    contract.gradient(loss, row, base, out, work)
    return np.nan


@kernel
def _value_alone(loss, row, base, work):
    return contract.value(loss, row, base, work)


def _compiled_value(loss, row, base, work):
    if not (loss.traits.smooth or loss.traits.uses_smoothing):  # Then it may have no gradient.
        return _value_alone(loss, row, base, work)
    return _compiled_loss(loss, row, base, np.empty(0), work)


@kernel
def _compiled_dual_value(loss, values, n, C):
    return contract.dual_value(loss, values, n, C)


@kernel
def _compiled_step(loss, row, base, norm, C, work):
    return contract.dual_step(loss, row, base, norm, C, work)


def _scratch(row):
    """Return scratch memory full of NaN: nothing may depend on what is in it."""
    workspace = make_workspace(row.size, row.dtype)
    for array in workspace:
        array.fill(-1 if array.dtype.kind == "i" else np.nan)
    return workspace


def _value(loss, row, base, function=_compiled_value):
    before = row.copy()
    result = function(loss, row, row.dtype.type(base), _scratch(row))
    np.testing.assert_array_equal(row, before)
    return result


def _gradient(loss, row, base, function=_compiled_loss):
    before, out = row.copy(), np.full(row.size, np.nan)
    function(loss, row, row.dtype.type(base), out, _scratch(row))
    np.testing.assert_array_equal(row, before)
    return out


def _step(loss, row, base, norm, C, function=_compiled_step):
    """Return the step's result as a dense vector."""
    before, work = row.copy(), _scratch(row)
    n = function(loss, row, row.dtype.type(base), float(norm), float(C), work)
    np.testing.assert_array_equal(row, before)
    positions, values = work.positions, work.values
    assert len(set(positions[:n])) == n
    assert (values[:n] > 0).all()
    x = np.zeros(row.size)
    x[positions[:n]] = values[:n]
    return x


def _draw(rng, n, dtype, scale=2.0):
    """Return scores of the wrong classes, of the true class; sometimes with ties."""
    row = rng.standard_normal(n) * scale + rng.choice([-scale, 0.0, scale])
    if rng.random() < 0.3:
        row = np.round(row)
    return row.astype(dtype), float(dtype(rng.standard_normal() * scale))


def _rows(k, dtype, seed=0):
    """Yield scores with as many classes as allowed to a few hundred."""
    rng = np.random.default_rng(seed)
    for n in (k, k + 2, k + 60, k + 300):
        for scale in (1e-3, 1.0, 30.0):
            yield *_draw(rng, n, dtype, scale), rng


def _scale(h):
    return float(max(1.0, np.abs(h).max()))


def test_every_loss_has_a_reference():
    assert set(ref.MARGIN) == set(LOSSES)
    assert [case.values[0] for case in CASES if _has_step(case)]
    assert not TopKEntropy.traits.has_dual_step


# The value and its conjugate.


@_for_each_dtype([case for case in CASES if case.values[1] <= 5])
def test_value_is_the_maximum_over_the_dual_set(name, k, smoothing, dtype):
    rng = np.random.default_rng(k)
    loss = _make(name, k, smoothing)
    for n in (k, k + 1, k + 6):
        row, base = _draw(rng, n, dtype)
        expected = ref.solve_value(name, ref.margins(name, row, base), k, smoothing)
        assert _value(loss, row, base) == pytest.approx(expected, abs=1e-6)


@_for_each_dtype(PLAIN_HINGES)
def test_plain_hinge_equals_its_formula(name, k, smoothing, dtype):
    loss = _make(name, k, smoothing)
    for row, base, _ in _rows(k, dtype):
        h = ref.margins(name, row, base)
        expected = float(ref.SUPPORT_FUNCTION[name](h, k))
        assert _value(loss, row, base) == pytest.approx(expected, rel=1e-13, abs=1e-14 * _scale(h))


@_for_each_dtype(SMOOTH)
def test_gradient_is_the_maximiser_and_the_value_its_maximum(name, k, smoothing, dtype):
    loss = _make(name, k, smoothing)
    for row, base, _ in _rows(k, dtype):
        h = ref.margins(name, row, base)
        b = _gradient(loss, row, base)
        assert ref.violation(name, b, k, 1.0) <= 1e-13
        assert ref.suboptimality(name, b, h, k, smoothing) <= 1e-13 * _scale(h)
        attained = float(h @ b - ref.omega(name, b.astype(np.longdouble), smoothing))
        assert _value(loss, row, base) == pytest.approx(attained, rel=1e-12, abs=1e-13 * _scale(h))


@every_loss_and_dtype
def test_fenchel_young_inequality(name, k, smoothing, dtype):
    loss = _make(name, k, smoothing)
    for row, base, rng in _rows(k, dtype):
        h = ref.margins(name, row, base)
        phi = _value(loss, row, base)
        for _ in range(5):
            b = ref.random_dual(name, rng, row.size, k, 1.0)
            assert ref.violation(name, b, k, 1.0) <= 1e-12  # The reference itself.
            linear = float((h - ref.MARGIN[name]) @ b)
            below = linear + _compiled_dual_value(loss, b, b.size, 1.0)
            assert phi >= below - 1e-13 * _scale(h)


@every_loss
def test_dual_value_equals_its_formula(name, k, smoothing):
    loss, rng = _make(name, k, smoothing), np.random.default_rng(0)
    for C in (1e-6, 0.3, 1e6):
        for n in (k, k + 30):
            x = ref.random_dual(name, rng, n, k, C)
            expected = float(ref.dual_value(name, x, C, smoothing))
            values = np.append(x[x > 0], np.nan)  # Only the first n - 1 count.
            found = _compiled_dual_value(loss, values, values.size - 1, C)
            assert found == pytest.approx(expected, rel=1e-12, abs=1e-14 * C)
        assert _compiled_dual_value(loss, values, 0, C) == 0.0


@_for_each(SMOOTH)
def test_gradient_equals_finite_differences(name, k, smoothing):
    loss, rng = _make(name, k, smoothing), np.random.default_rng(1)
    for n in (k, k + 4, k + 60):
        row, base = _draw(rng, n, np.float64, 1.0)
        gradient, eps = _gradient(loss, row, base), 1e-5
        for j in rng.permutation(n)[:10]:
            up, down = row.copy(), row.copy()
            up[j] += eps
            down[j] -= eps
            slope = (_value(loss, up, base) - _value(loss, down, base)) / (2 * eps)
            # Curvature of at most 1/smoothing may jump within the interval.
            assert gradient[j] == pytest.approx(slope, abs=3 * eps)
        slope = (_value(loss, row, base + eps) - _value(loss, row, base - eps)) / (2 * eps)
        assert -gradient.sum() == pytest.approx(slope, abs=3 * eps * k)


# The dual step.


@_for_each_dtype([case for case in STEPS if case.values[1] <= 5])
def test_step_equals_the_solver(name, k, smoothing, dtype):
    rng, loss = np.random.default_rng(k), _make(name, k, smoothing)
    for n, norm, C in ((k, 1.0, 0.1), (k + 1, 0.05, 2.0), (k + 6, 3.0, 1.0), (k + 6, 20.0, 5.0)):
        row, base = _draw(rng, n, dtype)
        x = _step(loss, row, base, norm, C)
        found = ref.step_objective(name, x, row, base, norm, C, smoothing)
        expected = ref.solve_step(name, row, base, norm, C, k, smoothing)
        assert float(found) == pytest.approx(expected, abs=1e-6 * C)


@every_step_and_dtype
def test_step_is_feasible_and_optimal(name, k, smoothing, dtype):
    """The gap of the example after the step bounds what is left to gain: nothing."""
    loss = _make(name, k, smoothing)
    for row, base, rng in _rows(k, dtype):
        for norm in (1e-8, 0.1, 1.0, 30.0, 1e8):
            for C in (1e-6, 0.03, 1.0, 1e6):
                x = _step(loss, row, base, norm, C)
                assert ref.violation(name, x, k, C) <= 1e-12 * C
                h = ref.margins(name, row, base)
                long_x = x.astype(np.longdouble)
                after = h - norm * (long_x + long_x.sum())
                gap = ref.suboptimality(name, x / np.longdouble(C), after, k, smoothing)
                assert gap <= 1e-12 * _scale(h), (row.size, norm, C)
        norm, C = 10.0 ** rng.uniform(-2, 2), 10.0 ** rng.uniform(-2, 2)
        x = _step(loss, row, base, norm, C)
        reached = ref.step_objective(name, x, row, base, norm, C, smoothing)
        for share in (1.0, 0.1, 1e-3):  # From far away and from nearby.
            start = ref.random_dual(name, rng, row.size, k, C)
            start = x + share * (start - x)
            before = ref.step_objective(name, start, row, base, norm, C, smoothing)
            assert reached >= before - 1e-13 * C * _scale(h)


@every_step_and_dtype
def test_step_of_a_row_of_zeros(name, k, smoothing, dtype):
    """Without features all scores are zero and so is the quadratic part of the dual."""
    loss = _make(name, k, smoothing)
    for n in (k, k + 3, k + 100):
        for C in (1e-6, 1.0, 1e6):
            row = np.zeros(n, dtype)
            x = _step(loss, row, 0.0, 0.0, C)
            assert ref.violation(name, x, k, C) <= 1e-12 * C
            h = ref.margins(name, row, 0.0)
            gap = ref.suboptimality(name, x / np.longdouble(C), h, k, smoothing)
            assert gap <= 1e-13
            assert _compiled_dual_value(loss, x, n, C) == pytest.approx(C * _value(loss, row, 0.0))


@every_dtype
def test_softmax_step_without_features_is_the_gradient(dtype):
    for row, base, _ in _rows(1, dtype):
        x = _step(Softmax(), row, base, 0.0, 3.0)
        np.testing.assert_allclose(x, 3.0 * _gradient(Softmax(), row, base), rtol=1e-14)
        near = _step(Softmax(), row, base, 1e-300, 3.0)
        np.testing.assert_allclose(near, x, rtol=1e-12, atol=1e-300)


@every_dtype
def test_softmax_step_satisfies_its_optimality_conditions(dtype):
    """To rounding in every entry: the objective hardly notices errors of small ones."""
    for row, base, _ in _rows(1, dtype):
        h = ref.margins("softmax", row, base)
        for K in (1e-8, 1e-2, 1.0, 1e2, 1e6, 1e14):
            b = _step(Softmax(), row, base, K, 1.0).astype(np.longdouble)
            positive, total = b > 1e-290, b.sum()
            if total > 0.99:  # The share of the true class is known to few digits.
                continue
            tau = K * total - np.log1p(-total)
            residual = (K * b + np.log(np.where(positive, b, 1)) - h + tau)[positive]
            assert np.abs(residual).max(initial=0.0) <= 1e-12 * _scale(h), (row.size, K)


# Relations between losses.

SCORES = st.one_of(
    st.integers(-40, 40).map(lambda i: i / 8), st.floats(-1e6, 1e6, allow_subnormal=False)
)


@given(row=hnp.arrays(np.float64, st.integers(1, 80), elements=SCORES), base=SCORES, data=st.data())
def test_order_of_the_hinges(row, base, data):
    k = data.draw(st.integers(1, row.size))
    psi = max(0.0, np.sort(row)[-k] - base + 1.0)
    names = ("topk_hinge_alpha", "topk_hinge_full", "topk_hinge_beta")
    values = [psi, *(_value(_make(name, k), row, base) for name in names)]
    values.append(max(0.0, row.max() - base + 1.0))
    slack = 1e-14 * max(1.0, np.abs(row).max(), abs(base))
    assert all(a <= b + slack for a, b in pairwise(values)), values


@given(row=hnp.arrays(np.float64, st.integers(1, 80), elements=SCORES), base=SCORES)
def test_k_1_is_crammer_singer(row, base):
    expected = max(0.0, row.max() - base + 1.0)
    for name in ("topk_hinge_alpha", "topk_hinge_full", "topk_hinge_beta"):
        found = _value(_make(name, 1), row, base)
        assert found == pytest.approx(expected, rel=1e-14, abs=1e-14 * (1 + abs(base)))


@every_dtype
def test_topk_entropy_with_k_1_is_softmax(dtype):
    for row, base, rng in _rows(1, dtype):
        found, expected = _value(TopKEntropy(1), row, base), _value(Softmax(), row, base)
        assert found == pytest.approx(expected, rel=1e-13)
        gradient = _gradient(TopKEntropy(1), row, base)
        np.testing.assert_allclose(gradient, _gradient(Softmax(), row, base), rtol=1e-12)
        b = ref.random_dual("softmax", rng, row.size, 1, 1.0)
        found, expected = (
            _compiled_dual_value(s, b, b.size, 1.0) for s in (TopKEntropy(1), Softmax())
        )
        assert found == expected


@_for_each(PLAIN_HINGES)
def test_smoothing_tends_to_the_plain_hinge(name, k, smoothing):
    for row, base, _ in _rows(k, np.float64):
        plain = _value(_make(name, k, smoothing), row, base)
        slack = 1e-13 * _scale(ref.margins(name, row, base))
        for gamma in (1.0, 1e-2, 1e-4, 1e-8):
            difference = plain - _value(_make(name, k, gamma), row, base)
            # <b, b> <= 1/k on all three sets.
            assert -slack <= difference <= gamma / 2 / k + slack


@every_loss_and_dtype
def test_order_of_the_classes_does_not_matter(name, k, smoothing, dtype):
    loss = _make(name, k, smoothing)
    for row, base, rng in _rows(k, dtype):
        order = rng.permutation(row.size)
        # Sums in another order may differ in the last digits, in units of the largest score.
        slack = 1e-13 * _scale(ref.margins(name, row, base))
        expected = _value(loss, row, base)
        assert _value(loss, row[order], base) == pytest.approx(expected, rel=1e-13, abs=slack)
        if contract.is_smooth(loss):
            b = _gradient(loss, row, base)
            np.testing.assert_allclose(_gradient(loss, row[order], base), b[order], atol=slack)
        if loss.traits.has_dual_step:
            x = _step(loss, row, base, 0.7, 2.0)
            permuted = _step(loss, row[order], base, 0.7, 2.0)
            np.testing.assert_allclose(permuted, x[order], atol=10 * slack)


@every_loss_and_dtype
def test_a_constant_added_to_all_scores_does_not_matter(name, k, smoothing, dtype):
    loss = _make(name, k, smoothing)
    for row, base, _ in _rows(k, dtype):
        row, base = np.round(row * 16) / 16, float(np.round(base * 16) / 16)
        moved = row + dtype(1024.0)  # Without rounding, by the line above.
        expected = _value(loss, row, base)
        assert _value(loss, moved, base + 1024.0) == pytest.approx(expected, rel=1e-12, abs=1e-12)
        if loss.traits.has_dual_step:
            x = _step(loss, row, base, 0.7, 2.0)
            np.testing.assert_allclose(_step(loss, moved, base + 1024.0, 0.7, 2.0), x, atol=1e-12)


# Extremes.


def _huge_rows(k, dtype):
    """Yield scores of a billion: all equal, of both signs, close together, one alone."""
    rng = np.random.default_rng(k)
    n = k + 20
    signs = rng.choice([-1e9, 1e9], n)
    one = np.full(n, -1e9)
    one[3] = 1e9
    for row in (np.full(n, 1e9), -np.full(n, 1e9), signs, 1e9 + rng.integers(0, 9, n) * 64.0, one):
        for base in (-1e9, 0.0, 1e9):
            yield row.astype(dtype), base


@every_loss_and_dtype
def test_huge_scores(name, k, smoothing, dtype):
    loss = _make(name, k, smoothing)
    for row, base in _huge_rows(k, dtype):
        h = ref.margins(name, row, base)
        found = _value(loss, row, base)
        # Smoothing and entropy change the support function by at most that much; rounding, a score.
        slack = max(smoothing, 0.0 if ref.MARGIN[name] else np.log(row.size + 1))
        slack += 1e-15 * float(max(np.abs(row).max(), abs(base)))
        expected = float(ref.SUPPORT_FUNCTION[name](h, k))
        assert found == pytest.approx(expected, rel=1e-13, abs=slack)
        if contract.is_smooth(loss):
            b = _gradient(loss, row, base)
            assert ref.violation(name, b, k, 1.0) <= 1e-12
            assert ref.suboptimality(name, b, h, k, smoothing) <= 1e-13 * _scale(h)
        for norm in (0.0, 1e-8, 1.0, 1e8) if loss.traits.has_dual_step else ():
            if norm == 0.0 and smoothing == 0.0 and ref.MARGIN[name]:
                continue  # Only rows of zeros have no norm, and their scores are zero.
            for C in (1e-6, 1.0, 1e6):
                x = _step(loss, row, base, norm, C)
                assert ref.violation(name, x, k, C) <= 1e-12 * C
                long_x = x.astype(np.longdouble)
                after = h - norm * (long_x + long_x.sum())
                gap = ref.suboptimality(name, x / np.longdouble(C), after, k, smoothing)
                assert gap <= 1e-13 * _scale(h), (row, base, norm, C)


@pytest.mark.parametrize("name", ["softmax", "topk_entropy"])
def test_entropies_keep_the_digits_of_small_values(name):
    row = np.array([-60.0, -61.0, -700.0, -1e9])
    loss = _make(name, 1)
    b = np.exp(row)
    assert _value(loss, row, 0.0) == pytest.approx(b.sum(), rel=1e-14)
    np.testing.assert_allclose(_gradient(loss, row, 0.0), b, rtol=1e-13)
    if name == "softmax":
        # The quadratic part plays no role for so small variables.
        np.testing.assert_allclose(_step(loss, row, 0.0, 1.0, 2.0), 2 * b, rtol=1e-13)


@every_loss
def test_nan_ends(name, k, smoothing):
    """NaN must not keep a loop running, nor pass for a number."""
    loss = _make(name, k, smoothing)
    for row in (np.full(k + 3, np.nan), np.append(np.nan, np.zeros(k + 60))):
        value = _value(loss, row, 0.0)
        if ref.MARGIN[name] == 0.0:
            assert np.isnan(value)
        if loss.traits.has_dual_step:
            n = _compiled_step(loss, row, 0.0, 1.0, 1.0, _scratch(row))
            assert 0 <= n <= row.size


def test_wright_omega():
    z = np.concatenate([np.linspace(-50, 50, 4001), np.logspace(0, 16, 200)])
    np.testing.assert_allclose([wright_omega(t) for t in z], wrightomega(z), rtol=1e-14)


# Without compilation.


@every_loss_and_dtype
def test_methods_in_python_equal_the_compiled_ones(name, k, smoothing, dtype):
    loss = _make(name, k, smoothing)
    # NumPy's scalars of single precision do not become double ones as Numba's do.
    rtol = 1e-13 if dtype is np.float64 else 3e-6
    for row, base, rng in _rows(k, dtype):
        slack = rtol * _scale(ref.margins(name, row, base))
        found = _value(loss, row, base, loss.value)
        assert found == pytest.approx(_value(loss, row, base), rel=rtol, abs=slack)
        if contract.is_smooth(loss):
            found = _gradient(loss, row, base, loss.gradient)
            np.testing.assert_allclose(found, _gradient(loss, row, base), atol=slack / SMOOTHING)
        if loss.traits.has_dual_step:
            found = _step(loss, row, base, 0.7, 2.0, loss.dual_step)
            np.testing.assert_allclose(found, _step(loss, row, base, 0.7, 2.0), atol=4 * slack)
        x = ref.random_dual(name, rng, row.size, k, 2.0)
        expected = _compiled_dual_value(loss, x, x.size, 2.0)
        assert loss.dual_value(loss, x, x.size, 2.0) == pytest.approx(expected, rel=1e-13)


def _results():
    """Return what the losses say of a few rows, to be compared between processes."""
    results = {}
    for case in CASES:
        name, k, smoothing = case.values
        loss = _make(name, k, smoothing)
        for i, (row, base, _) in enumerate(list(_rows(k, np.float64))[:9]):
            found = [_value(loss, row, base)]
            if loss.traits.has_dual_step:
                found += _step(loss, row, base, 0.7, 2.0).tolist()
            if _is_smooth(case):
                found += _gradient(loss, row, base).tolist()
            results[f"{case.id}-{i}"] = found
    return results


def test_everything_without_numba():
    code = (
        f"import json, sys; sys.path[:0] = {sys.path!r}\n"
        "from losses import test_losses\n"
        "print(json.dumps(test_losses._results()))"
    )
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    expected = _results()
    assert found.keys() == expected.keys()
    for key, values in expected.items():
        np.testing.assert_allclose(found[key], values, rtol=1e-12, atol=1e-12, err_msg=key)
