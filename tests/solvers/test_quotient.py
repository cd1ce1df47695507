"""Bias, gradient and curvature of the quotient, against its definition."""

from decimal import Decimal, getcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsegsvp.linalg.moments import ClassMoments
from sparsegsvp.linalg.rows import as_rows
from sparsegsvp.solvers.newton import Problem
from sparsegsvp.solvers.penalties import Penalty
from sparsegsvp.solvers.quotient import (
    CovariancesOfMoments,
    CovariancesOfRows,
    OneVsRest,
    Part,
    Quotient,
    best_bias,
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
        return CovariancesOfMoments(ClassMoments.from_data(X, codes), standardize=False)
    return CovariancesOfRows([Part(as_rows(X), codes, np.ones(len(X)))], len(blocks), False)


def _unit(m, seed):
    w = np.random.default_rng(seed + 1).normal(size=m)
    return w / np.linalg.norm(w)


def _point(blocks, i, tau, pool, w):
    cov = _covariances(blocks)
    quotient = Quotient(cov, OneVsRest.of_class(i, cov.share, pool), tau, np.arange(len(w)))
    return quotient, quotient.evaluate(w)


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
    t = np.linspace(-5, 5, 201) * np.sqrt(a + c + d * d)
    assert (bias.ratio <= (a + t * t) / (c + (t + d) ** 2) * (1 + 1e-12)).all()
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
        assert bias.clipped and np.isfinite(bias.own)
        assert bias.ratio == pytest.approx(1.0, abs=1e-6)
    narrow = best_bias(1.0, 4.0, 0.0)
    assert (narrow.own, narrow.ratio, narrow.clipped) == (0.0, 0.25, False)
    # alike but for rounding: there is no bias to choose
    for c in (1.0, 1.0 - 1e-14, 1.0 + 1e-14):
        assert best_bias(1.0, c, 0.0)[1:3] == (0.0, 0.0)


@few
@given(**problems)
def test_value_gradient_and_hessian(reference, classes, n_classes, tau, pool, seed):
    blocks = classes(20, 5, n_classes, seed=seed)
    w, i = _unit(5, seed), seed % n_classes
    ref = reference(*blocks, i=i, tau=tau, pool=pool)
    quotient, point = _point(blocks, i, tau, pool, w)
    if point.bias.clipped:
        return
    assert point.bias.ratio == pytest.approx(ref.value(w), rel=1e-10)
    # centring moves the bias, not the distance of the class mean from the plane
    assert point.bias.own == pytest.approx(ref.means[i] @ w + ref.best_bias(w), rel=1e-6, abs=1e-9)
    numeric = _differences(ref.value, w)
    scale = 1 + np.abs(numeric).max()
    np.testing.assert_allclose(point.gradient, numeric, atol=1e-6 * scale)
    np.testing.assert_allclose(point.gradient, ref.gradient(w), atol=1e-9 * scale)
    # Euler: the quotient is homogeneous of degree 0
    assert abs(w @ point.gradient) <= 1e-12 * scale
    numeric = _differences(ref.gradient, w)
    scale = 1 + np.abs(numeric).max()
    for at in (np.arange(5), np.array([3, 0])):
        np.testing.assert_allclose(
            quotient.hessian(point, at), numeric[np.ix_(at, at)], atol=2e-6 * scale
        )


def test_a_bias_that_is_clipped_is_held_where_it_is(reference):
    """The Hessian is then that of the quotient at a given bias: no Schur complement."""
    rng = np.random.default_rng(5)
    Z = rng.normal(size=(30, 4))
    Z -= Z.mean(axis=0)
    w = _unit(4, 5)
    # the means differ by so little that the best plane is somewhat beyond the limit
    own, other = 9 * (Z @ w).var() + 0.5, (Z @ w).var() + 0.5
    blocks = [3 * Z, Z + (own - other) / (1.5e4 * np.sqrt(own + other)) * w]
    quotient, point = _point(blocks, 0, 0.5, 0.0, w)
    assert point.bias.clipped and point.bias.ratio < 1.0
    ref = reference(*blocks, tau=0.5)
    b = point.bias.own - ref.means[0] @ w
    numeric = _differences(lambda v: ref.gradient(v, b), w)
    np.testing.assert_allclose(quotient.hessian(point, np.arange(4)), numeric, atol=1e-8)


@pytest.mark.parametrize("moments", [False, True])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_gradient_of_all_features_from_a_few(reference, classes, n_classes, moments):
    blocks = classes(20, 12, n_classes)
    features, w = np.array([1, 4, 9]), _unit(3, 2)
    dense = np.zeros(12)
    dense[features] = w
    for i in range(n_classes):
        cov = _covariances(blocks, moments)
        plane = OneVsRest.of_class(i, cov.share, 0.4)
        expected = reference(*blocks, i=i, tau=0.7, pool=0.4).gradient(dense)
        bias = Quotient(cov, plane, 0.7, features).evaluate(w).bias
        problem = Problem(cov, plane, 0.7, Penalty(), np.ones(12))
        gradient = problem.gradient(features, w, bias)
        np.testing.assert_allclose(gradient, expected, atol=1e-11)
        # where columns are not in memory, and where blocks are too large to be formed
        problem = Problem(_covariances(blocks, moments), plane, 0.7, Penalty(), np.ones(12))
        np.testing.assert_allclose(problem.gradient(features, w, bias), expected, atol=1e-11)
        cov.max_block = 2
        point = Quotient(cov, plane, 0.7, features).evaluate(w)
        np.testing.assert_allclose(point.gradient, expected[features], atol=1e-11)


@few
@given(**problems)
def test_single_features_in_closed_form(classes, n_classes, tau, pool, seed):
    blocks = classes(15, 5, n_classes, seed=seed)
    for X in blocks:
        X[:, 3] = 0.1  # constant: never the best
    blocks[0][:, 4] -= blocks[0][:, 4].mean() - np.mean([X[:, 4].mean() for X in blocks[1:]])
    i = seed % n_classes
    cov = _covariances(blocks)
    ratios = single_feature_ratios(cov, OneVsRest.of_class(i, cov.share, pool), tau)
    assert np.isinf(ratios[3])
    for f in (0, 1, 2, 4):
        _, point = _point(blocks, i, tau, pool, np.eye(5)[f])
        # a bias that is clipped is not quite the best
        close = 1e-7 if point.bias.clipped else 1e-9
        assert ratios[f] == pytest.approx(point.bias.ratio, rel=close)
