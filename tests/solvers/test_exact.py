"""Without a penalty the problem is an eigenproblem, and is solved as one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsegsvp import ClassMoments, sparse_gsvp
from sparsegsvp.solvers.quotient import panel_planes


def _moments(blocks):
    means = np.array([X.mean(axis=0) for X in blocks])
    covariances = np.array([np.cov(X.T, ddof=0) for X in blocks])
    return means, covariances, np.array([len(X) for X in blocks], dtype=float)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    n_classes=st.sampled_from([2, 3, 5]),
    tau=st.sampled_from([0.0, 0.1, 1.0, 10.0]),
    pool=st.sampled_from([0.0, 0.5, 1.0]),
    seed=st.integers(0, 1000),
)
def test_each_plane_of_a_panel_has_the_smallest_quotient_there_is(
    reference, classes, n_classes, tau, pool, seed
):
    blocks = classes(25, 6, n_classes, shift=1.5, seed=seed)
    means, covariances, share = _moments(blocks)
    w, b = panel_planes(means, covariances, share, tau, pool)
    for i in range(n_classes):
        ref = reference(*blocks, i=i, tau=tau, pool=pool)
        assert np.linalg.norm(w[i]) == pytest.approx(1.0, abs=1e-12)
        assert ref.ratio(w[i], b[i]) == pytest.approx(ref.smallest(), rel=1e-8)
        assert means[ref.others].mean(axis=0) @ w[i] + b[i] > 0.0
    again = panel_planes(means, covariances, 10 * share, tau, pool)
    np.testing.assert_allclose(again[0], w, atol=1e-10)


def test_pooled_planes_of_two_classes_are_the_closed_form(classes):
    """pool = 1: one direction, and the quotient of the Mahalanobis distance."""
    A, B = classes(30, 8, seed=4)
    means, covariances, share = _moments([A, B])
    w, b = panel_planes(means, covariances, share, 0.7, 1.0)
    np.testing.assert_allclose(w[0], -w[1], atol=1e-10)
    within = np.tensordot(share / share.sum(), covariances, axes=1)
    d = means[1] - means[0]
    D2 = d @ np.linalg.solve(within + 0.7 * np.eye(8), d)
    expected = ((np.sqrt(D2 + 4) - np.sqrt(D2)) / 2) ** 2
    spread = w[0] @ within @ w[0] + 0.7
    p = means @ w[0] + b[0]
    assert (spread + p[0] ** 2) / (spread + p[1] ** 2) == pytest.approx(expected, rel=1e-12)
    for left, right in ((A, B), (B, A)):
        result = sparse_gsvp(left, right, 0.0, tau=0.7, pool=1.0)
        assert result.quotient == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("shift", [0.0, 1e-9])
def test_a_plane_of_a_panel_at_infinity_is_replaced_by_the_pooled_one(shift):
    """The first class is wider in every direction, and the means coincide."""
    rng = np.random.default_rng(5)
    Z = rng.normal(size=(40, 4))
    Z -= Z.mean(axis=0)
    moments = _moments([3 * Z, Z + shift * np.arange(4)])
    with pytest.warns(RuntimeWarning, match=r"1 of 2 classes lies at infinity.*larger pool"):
        w, b = panel_planes(*moments, 1.0, 0.0)
    np.testing.assert_allclose(np.linalg.norm(w, axis=1), 1.0)
    assert np.abs(b).max() < 10.0
    if shift:
        np.testing.assert_allclose(w[0], panel_planes(*moments, 1.0, 1.0)[0][0])


def test_collinear_features_without_a_floor_share_the_weight(classes):
    blocks = [np.c_[X, X[:, :1]] for X in classes(30, 4, seed=2)]
    w, b = panel_planes(*_moments(blocks), 0.0, 0.0)
    assert np.isfinite(b).all()
    np.testing.assert_allclose(w[:, 0], w[:, -1], atol=1e-8)


@pytest.mark.parametrize(("n", "m"), [(40, 6), (20, 35), (60, 220), (12, 260)])
@pytest.mark.parametrize("tau", [0.1, 3.0])
def test_delta_zero_is_the_smallest_eigenvalue_by_every_way(reference, classes, n, m, tau):
    """Few features and many, from rows and from moments; a feature that no row has is not used."""
    A, B = classes(n, m, seed=2)
    A[:, 3] = B[:, 3] = 0.3
    options = {"tau": tau, "pool": 0.4}
    results = [
        sparse_gsvp(A, B, 0.0, **options),
        sparse_gsvp(A[:, ::-1], B[:, ::-1], 0.0, **options),
    ]
    if m <= n:
        moments = [ClassMoments.from_data(X) for X in (A, B)]
        results.append(sparse_gsvp(*moments, 0.0, **options))
    ref = reference(A, B, **options)
    for result in results:
        assert result.converged and result.n_iter == 1 and np.isnan(result.delta_max)
        assert result.objective == result.quotient == pytest.approx(ref.smallest(), rel=1e-9)
        assert result.history.tolist() == [result.objective]
        assert result.kkt_residual <= 1e-8 and len(result.support) == m - 1
    w, b = results[0].w, results[0].b
    assert w[3] == 0.0 and ref.ratio(w, b) == pytest.approx(ref.smallest(), rel=1e-9)
    assert results[0].kkt_residual == pytest.approx(np.abs(ref.gradient(w, b)).max(), abs=1e-9)
    np.testing.assert_allclose(results[1].w[::-1], w, atol=1e-7)


def test_small_penalties_approach_the_unpenalised_solution(classes):
    A, B = classes(40, 10, seed=3)
    exact, near = (sparse_gsvp(A, B, delta, tau=5.0) for delta in (0.0, 1e-6))
    assert near.quotient >= exact.quotient * (1 - 1e-12)
    np.testing.assert_allclose(near.w, exact.w, atol=1e-4)


def test_a_large_floor_leads_to_the_difference_of_the_means(classes):
    A, B = classes(60, 8, seed=5)
    result = sparse_gsvp(A, B, 0.0, tau=1e8)
    difference = B.mean(axis=0) - A.mean(axis=0)
    np.testing.assert_allclose(result.w, difference / np.linalg.norm(difference), atol=1e-3)
    # and the plane moves sqrt(tau) away from its class
    assert abs(A.mean(axis=0) @ result.w + result.b) == pytest.approx(1e4, rel=1e-2)


def test_without_a_floor_a_class_inside_a_plane_has_a_quotient_of_zero(classes):
    """tau = 0 goes through the GSVD: a singular numerator is what is looked for."""
    A, B = classes(40, 5, seed=4)
    normal = np.array([0.6, 0.0, -0.8, 0.0, 0.0])
    A -= np.multiply.outer(A @ normal - 2.0, normal)
    result = sparse_gsvp(A, B, 0.0, tau=0.0)
    assert result.quotient <= 1e-15
    np.testing.assert_allclose(np.abs(result.w @ normal), 1.0, atol=1e-10)
    np.testing.assert_allclose(A @ result.w + result.b, 0.0, atol=1e-9)


@pytest.mark.parametrize(("n", "m"), [(30, 4), (20, 230)])
def test_a_plane_at_infinity_is_refused_with_a_remedy(n, m):
    """The own class is wider in every direction and the means coincide."""
    Z = np.random.default_rng(5).normal(size=(n, m))
    Z -= Z.mean(axis=0)
    with pytest.raises(ValueError, match=r"infinity.*means coincide.*Use delta > 0"):
        sparse_gsvp(3 * Z, Z, 0.0)
