"""The planes of a panel without a penalty: laws of the exact solution."""

import numpy as np
import pytest
from scipy.linalg import eigh

from sparsegsvp.solvers.exact import panel_planes


def _moments(blocks):
    means = np.array([X.mean(axis=0) for X in blocks])
    covariances = np.array([np.cov(X.T, ddof=0) for X in blocks])
    return means, covariances, np.array([len(X) for X in blocks]) / sum(map(len, blocks))


def _smallest(ref):
    """The smallest eigenvalue of the bordered pair, from the definition."""
    m = ref.means.shape[1]

    def bordered(k):
        mu = ref.means[k][:, None]
        floor = ref.tau * np.eye(m)
        return np.block([[ref.covs[k] + floor + mu @ mu.T, mu], [mu.T, np.ones((1, 1))]])

    other = np.mean([bordered(k) for k in ref.others], axis=0)
    return eigh(bordered(ref.i), other, eigvals_only=True)[0]


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("tau", [0.0, 0.3, 10.0])
@pytest.mark.parametrize("pool", [0.0, 0.5, 1.0])
def test_each_plane_has_the_smallest_quotient_there_is(reference, classes, n_classes, tau, pool):
    blocks = classes(25, 6, n_classes, seed=n_classes)
    means, covariances, share = _moments(blocks)
    w, b, scale = panel_planes(means, covariances, share, tau, pool)
    for i in range(n_classes):
        ref = reference(*blocks, i=i, tau=tau, pool=pool)
        assert np.linalg.norm(w[i]) == pytest.approx(1.0, abs=1e-12)
        assert ref.ratio(w[i], b[i]) == pytest.approx(_smallest(ref), rel=1e-8)
        assert means[ref.others].mean(axis=0) @ w[i] + b[i] > 0.0
        distances = [np.mean((X @ w[i] + b[i]) ** 2) for X in blocks]
        assert scale[i] == pytest.approx(np.sqrt(np.mean(distances)), rel=1e-12)
    again = panel_planes(means, covariances, 10 * share, tau, pool)
    np.testing.assert_allclose(again[0], w, atol=1e-12)


def test_pooled_planes_of_two_classes_are_the_closed_form(classes):
    """pool = 1: one direction, and the quotient of the Mahalanobis distance."""
    blocks = classes(30, 8, seed=4)
    means, covariances, share = _moments(blocks)
    tau = 0.7
    w, b, _ = panel_planes(means, covariances, share, tau, 1.0)
    np.testing.assert_allclose(w[0], -w[1], atol=1e-10)
    within = np.tensordot(share, covariances, axes=1)
    d = means[1] - means[0]
    D2 = d @ np.linalg.solve(within + tau * np.eye(8), d)
    spread = w[0] @ within @ w[0] + tau
    ratio = (spread + (means[0] @ w[0] + b[0]) ** 2) / (spread + (means[1] @ w[0] + b[0]) ** 2)
    assert ratio == pytest.approx(((np.sqrt(D2 + 4) - np.sqrt(D2)) / 2) ** 2, rel=1e-12)


@pytest.mark.parametrize("shift", [0.0, 1e-9])
def test_a_plane_at_infinity_is_replaced_by_the_pooled_one(shift):
    """The first class is wider in every direction, and the means coincide."""
    rng = np.random.default_rng(5)
    Z = rng.normal(size=(40, 4))
    Z -= Z.mean(axis=0)
    means, covariances, share = _moments([3 * Z, Z + shift * np.arange(4)])
    with pytest.warns(RuntimeWarning, match=r"1 of 2 classes lies at infinity.*larger pool"):
        w, b, scale = panel_planes(means, covariances, share, 1.0, 0.0)
    np.testing.assert_allclose(np.linalg.norm(w, axis=1), 1.0)
    assert np.abs(b).max() < 10.0 and (scale < 10.0).all()
    if shift:
        pooled = panel_planes(means, covariances, share, 1.0, 1.0)
        np.testing.assert_allclose(w[0], pooled[0][0])


def test_collinear_features_without_a_floor_share_the_weight(classes):
    blocks = [np.c_[X, X[:, :1]] for X in classes(30, 4, seed=2)]
    means, covariances, share = _moments(blocks)
    w, b, _ = panel_planes(means, covariances, share, 0.0, 0.0)
    assert np.isfinite(w).all() and np.isfinite(b).all()
    np.testing.assert_allclose(w[:, 0], w[:, -1], atol=1e-8)
