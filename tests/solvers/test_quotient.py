"""Bias, gradient and curvature of the quotient, against its definition."""

from decimal import Decimal, getcontext
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsegsvp.linalg import ClassMoments, DataCovariances, MomentCovariances, as_matrix
from sparsegsvp.solvers.quotient import (
    FactorQuotient,
    GramQuotient,
    OneVsRest,
    best_bias,
    check_definite,
    evaluate,
    hessian,
    single_feature_ratios,
)

few = settings(max_examples=25, deadline=None, derandomize=True)
problems = {
    "n_classes": st.sampled_from([2, 3, 4]),
    "tau": st.sampled_from([0.0, 0.1, 1.0, 10.0]),
    "pool": st.sampled_from([0.0, 0.5, 1.0]),
    "seed": st.integers(0, 1000),
}


def _covariances(blocks, moments=False):
    X, codes = np.concatenate(blocks), np.repeat(np.arange(len(blocks)), [len(b) for b in blocks])
    if moments:
        return MomentCovariances(ClassMoments.from_data(X, codes), standardize=False)
    return DataCovariances(as_matrix(X), codes, None, len(blocks), standardize=False)


def _unit(m, seed):
    w = np.random.default_rng(seed + 1).normal(size=m)
    return w / np.linalg.norm(w)


def _point(blocks, i, tau, pool, w, kind=GramQuotient):
    cov = _covariances(blocks)
    features = np.arange(len(w))
    cov.extend(features)
    quotient = kind(cov, OneVsRest.of_class(i, cov.share, pool), tau, features)
    return quotient, evaluate(quotient, w)


def _differences(function, w, step=1e-5):
    """Central differences, one row per coordinate."""
    return np.array(
        [(function(w + step * e) - function(w - step * e)) / (2 * step) for e in np.eye(len(w))]
    )


@few
@given(
    a=st.floats(1e-6, 1e6),
    c=st.floats(1e-6, 1e6),
    d=st.one_of(st.floats(-1e3, 1e3).filter(lambda d: abs(d) > 1e-3), st.just(0.0)),
)
def test_the_best_bias_is_below_every_other(a, c, d):
    bias = best_bias(a, c, d)
    assert bias.other == pytest.approx(bias.own + d)
    assert bias.ratio == pytest.approx((a + bias.own**2) / (c + bias.other**2))
    if bias.clipped:
        return
    for t in np.concatenate([[bias.own], np.linspace(-5, 5, 201) * np.sqrt(a + c + d * d)]):
        assert bias.ratio <= (a + t * t) / (c + (t + d) ** 2) * (1 + 1e-12)
    # the plane lies on the far side of the own class
    assert bias.own * d >= 0.0


@pytest.mark.parametrize("a", [1e-4, 1.0, 1e8])
@pytest.mark.parametrize("d", [1e-9, 1e-5, 1.0, -1e5])
@pytest.mark.parametrize("c", [0.25, 4.0])
def test_the_best_bias_does_not_cancel(a, c, d):
    """Against arithmetic with sixty digits."""
    getcontext().prec = 60
    A, C, D = Decimal(a), Decimal(a) * Decimal(c), Decimal(d)
    U = C + D * D - A
    t = (-U + (U * U + 4 * A * D * D).sqrt()) / (2 * D)
    bias = best_bias(a, a * c, d)
    if bias.clipped:
        assert abs(t) > 1000 * (A + C).sqrt()
    else:
        assert bias.own == pytest.approx(float(t), rel=1e-14)


def test_a_bias_that_runs_off_is_clipped_and_flagged():
    """The own class is the wider one and the means coincide: the infimum is 1, far away."""
    for d in (0.0, 1e-12, -1e-12):
        bias = best_bias(4.0, 1.0, d)
        assert bias.clipped
        assert np.isfinite(bias.own)
        assert bias.ratio == pytest.approx(1.0, abs=1e-6)
        assert bias.ratio < 4.0
    narrow = best_bias(1.0, 4.0, 0.0)
    assert not narrow.clipped
    assert narrow.own == 0.0
    assert narrow.ratio == 0.25


@pytest.mark.parametrize("a", [1e-6, 1.0, 1e6])
def test_classes_that_are_alike_but_for_rounding_have_no_bias_to_choose(a):
    for c in (a, a * (1 - 1e-14), a * (1 + 1e-14)):
        bias = best_bias(a, c, 0.0)
        assert (bias.own, bias.other, bias.clipped) == (0.0, 0.0, False)
        assert bias.ratio == a / c
    assert best_bias(a, a * (1 - 1e-9), 0.0).clipped


@few
@given(**problems)
def test_value_and_bias_are_those_of_the_definition(reference, classes, n_classes, tau, pool, seed):
    blocks = classes(20, 6, n_classes, seed=seed)
    w = _unit(6, seed)
    for i in range(n_classes):
        expected = reference(*blocks, i=i, tau=tau, pool=pool)
        _, point = _point(blocks, i, tau, pool, w)
        if point.bias.clipped:
            continue
        b = expected.best_bias(w)
        assert point.ratio == pytest.approx(expected.value(w), rel=1e-10)
        # centring moves the bias, not the distance of the class mean from the plane
        assert point.bias.own == pytest.approx(expected.means[i] @ w + b, rel=1e-6, abs=1e-9)


@few
@given(**problems)
def test_gradient_by_finite_differences(reference, classes, n_classes, tau, pool, seed):
    blocks = classes(20, 5, n_classes, seed=seed)
    w = _unit(5, seed)
    i = seed % n_classes
    expected = reference(*blocks, i=i, tau=tau, pool=pool)
    _, point = _point(blocks, i, tau, pool, w)
    if point.bias.clipped:
        return
    numeric = _differences(expected.value, w)
    scale = 1 + np.abs(numeric).max()
    np.testing.assert_allclose(point.gradient, numeric, atol=1e-6 * scale)
    np.testing.assert_allclose(point.gradient, expected.gradient(w), atol=1e-9 * scale)
    # Euler: the quotient is homogeneous of degree 0
    assert abs(w @ point.gradient) <= 1e-12 * scale


@few
@given(**problems)
def test_hessian_by_finite_differences(reference, classes, n_classes, tau, pool, seed):
    blocks = classes(20, 5, n_classes, seed=seed)
    w = _unit(5, seed)
    i = seed % n_classes
    quotient, point = _point(blocks, i, tau, pool, w)
    if point.bias.clipped:
        return
    numeric = _differences(reference(*blocks, i=i, tau=tau, pool=pool).gradient, w)
    scale = 1 + np.abs(numeric).max()
    np.testing.assert_allclose(hessian(quotient, point, np.arange(5)), numeric, atol=2e-6 * scale)
    at = np.array([0, 3])
    np.testing.assert_allclose(
        hessian(quotient, point, at), numeric[np.ix_(at, at)], atol=2e-6 * scale
    )


def _held(seed=5):
    """A class three times as wide as the other, and a unit vector whose bias is clipped.

    The means differ by so little along it that the best plane is somewhat beyond the limit:
    its quotient is below one all the same.
    """
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(30, 4))
    Z -= Z.mean(axis=0)
    w = _unit(4, seed)
    own, other = 9 * (Z @ w).var() + 0.5, (Z @ w).var() + 0.5
    return [3 * Z, Z + (own - other) / (1.5e4 * np.sqrt(own + other)) * w], w


def test_a_bias_that_is_clipped_is_held_where_it_is(reference):
    """The Hessian is that of the quotient at a given bias: no Schur complement."""
    blocks, w = _held()
    quotient, point = _point(blocks, 0, 0.5, 0.0, w)
    assert point.bias.clipped and point.ratio < 1.0
    expected = reference(*blocks, tau=0.5)
    b = point.bias.own - expected.means[0] @ w
    numeric = _differences(lambda v: expected.gradient(v, b), w)
    np.testing.assert_allclose(hessian(quotient, point, np.arange(4)), numeric, atol=1e-8)


def test_classes_that_are_alike_have_no_curvature(classes):
    A, _ = classes(20, 5)
    quotient, point = _point([A, A], 0, 0.5, 1.0, _unit(5, 0))
    assert point.ratio == 1.0
    np.testing.assert_allclose(hessian(quotient, point, np.arange(5)), 0.0, atol=1e-14)


def test_the_quotient_is_scale_free(reference, classes):
    """Scaling the data by c and tau by c^2 changes nothing; the gradient in w neither."""
    blocks = classes(20, 6, 3)
    w = _unit(6, 0)
    for i in range(3):
        _, point = _point(blocks, i, 0.7, 0.5, w)
        _, scaled = _point([10 * X for X in blocks], i, 70.0, 0.5, w)
        assert scaled.ratio == pytest.approx(point.ratio, rel=1e-12)
        np.testing.assert_allclose(scaled.gradient, point.gradient, atol=1e-12)
        expected = reference(*blocks, i=i, tau=0.7, pool=0.5)
        assert expected.value(3 * w) == pytest.approx(expected.value(w), rel=1e-12)


def test_two_copies_of_the_samples_change_nothing(classes):
    blocks = classes(20, 6, 3)
    w = _unit(6, 0)
    _, point = _point(blocks, 1, 1.0, 0.5, w)
    _, double = _point([np.concatenate([X, X]) for X in blocks], 1, 1.0, 0.5, w)
    assert double.ratio == pytest.approx(point.ratio, rel=1e-12)
    np.testing.assert_allclose(double.gradient, point.gradient, atol=1e-13)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_rows_and_covariance_blocks_give_the_same_quotient(classes, n_classes):
    blocks = classes(20, 9, n_classes)
    w = _unit(9, 2)
    gram, by_gram = _point(blocks, 1, 0.5, 0.3, w, GramQuotient)
    factor, by_rows = _point(blocks, 1, 0.5, 0.3, w, FactorQuotient)
    assert by_rows.ratio == pytest.approx(by_gram.ratio, rel=1e-12)
    np.testing.assert_allclose(by_rows.gradient, by_gram.gradient, atol=1e-12)
    at = np.array([1, 4, 8])
    np.testing.assert_allclose(hessian(factor, by_rows, at), hessian(gram, by_gram, at), atol=1e-11)


def test_a_sparse_vector_takes_the_rows_of_its_support(classes):
    quotient, _ = _point(classes(20, 9, 3), 0, 0.5, 0.3, _unit(9, 2))
    w = np.zeros(9)
    w[[2, 5]] = 0.6, -0.8
    for left, right in zip(quotient.products(w), quotient._pair @ w):
        np.testing.assert_allclose(left, right, atol=1e-14)


def test_moments_hold_no_rows(classes):
    cov = _covariances(classes(20, 4), moments=True)
    with pytest.raises(ValueError, match="moments hold no rows"):
        FactorQuotient(cov, OneVsRest.of_class(0, cov.share, 0.0), 1.0, np.arange(4))


@few
@given(**problems)
def test_single_features_in_closed_form(reference, classes, n_classes, tau, pool, seed):
    blocks = classes(15, 5, n_classes, seed=seed)
    for X in blocks:
        X[:, 3] = 0.1  # constant: never the best
    i = seed % n_classes
    expected = reference(*blocks, i=i, tau=tau, pool=pool)
    cov = _covariances(blocks)
    ratios = single_feature_ratios(cov, OneVsRest.of_class(i, cov.share, pool), tau)
    assert np.isinf(ratios[3])
    for f in (0, 1, 2, 4):
        w = np.eye(5)[f]
        _, point = _point(blocks, i, tau, pool, w)
        assert ratios[f] == pytest.approx(point.ratio, rel=1e-12)
        if not point.bias.clipped:
            assert ratios[f] == pytest.approx(expected.value(w), rel=1e-9)


def test_single_features_whose_bias_runs_off_or_that_separate_without_spread():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(20, 2))
    Z -= Z.mean(axis=0)
    A, B = 3 * Z, Z.copy()  # the own class is the wider one, the means coincide
    A[:, 1], B[:, 1] = 1.0, 2.0  # each class constant
    cov = _covariances([A, B])
    ratios = single_feature_ratios(cov, OneVsRest.of_class(0, cov.share, 0.0), 0.0)
    assert ratios[0] == pytest.approx(1.0, abs=1e-6)
    assert ratios[1] == 0.0


def test_single_features_have_the_quotients_of_the_best_bias():
    """Of any size, alike or not, and with a bias that runs off."""
    a, c, d = (
        grid.ravel() for grid in np.meshgrid([4e-6, 1.0, 9e6], [1e-6, 1.0, 4e6], [-2.0, 0, 1e-7, 3])
    )
    cov = SimpleNamespace(
        variances=np.array([a, c]),
        means=np.array([np.zeros_like(d), d]),
        standardization=SimpleNamespace(varying=d < 3.0),
    )
    plane = OneVsRest.of_class(0, np.array([0.5, 0.5]), 0.0)
    ratios = single_feature_ratios(cov, plane, 0.0)
    expected = [best_bias(*map(float, abc)).ratio for abc in zip(a, c, d)]
    np.testing.assert_allclose(ratios, np.where(d < 3.0, expected, np.inf), rtol=1e-13)
    assert sum(best_bias(*map(float, abc)).clipped for abc in zip(a, c, d)) > 5


def test_blocks_that_are_gathered_are_the_blocks(classes):
    quotient, _ = _point(classes(20, 7, 3), 0, 0.5, 0.3, _unit(7, 2))
    at = np.array([5, 0, 3])
    for row, block in zip(quotient.gathered(at), (quotient.own, quotient.other), strict=True):
        np.testing.assert_array_equal(row.reshape(3, 3), block[np.ix_(at, at)])


def test_without_a_floor_every_direction_needs_some_spread(classes):
    """More features than rows, or collinear ones, in either class or between their means."""
    cov = _covariances(classes(5, 20))  # 5 and 12 rows
    plane = OneVsRest.of_class(0, cov.share, 0.0)
    check_definite(cov, plane, np.arange(16))
    for n_features in (17, 20):
        with pytest.raises(ValueError, match=r"0/0 .*use tau > 0"):
            check_definite(cov, plane, np.arange(n_features))
    A, B = classes(20, 5)
    for X in (A, B):
        X[:, 4] = X[:, 0] - 2 * X[:, 1]
    cov = _covariances([A, B])
    check_definite(cov, plane, np.arange(4))
    with pytest.raises(ValueError, match="collinear"):
        check_definite(cov, plane, np.arange(5))
    # constant in each class, but not the same: the means differ, which is a distance
    A, B = classes(20, 4)
    A[:, 3], B[:, 3] = 1.0, 2.0
    check_definite(_covariances([A, B]), plane, np.arange(4))
    check_definite(_covariances([A, B[:20]]), plane, np.arange(4))
    # whatever the units, and relative to the widest direction
    check_definite(_covariances([1e-6 * A, 1e-6 * B]), plane, np.arange(4))
    A, B = classes(20, 4)
    narrow = np.array([1e-7, 2e-7, 3e-7, 1.0]) / 3.0
    with pytest.raises(ValueError, match="0/0"):
        check_definite(_covariances([A * narrow, B * narrow]), plane, np.arange(4))
