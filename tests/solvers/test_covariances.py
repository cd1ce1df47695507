"""Standardisation folded into the products equals standardising by hand."""

import numpy as np
import pytest
import scipy.sparse as sp

from sparsegsvp.linalg import ClassMoments
from sparsegsvp.linalg.rows import as_rows
from sparsegsvp.solvers.quotient import CovariancesOfMoments, CovariancesOfRows, Part


def _data(n=60, m=9, n_classes=3, offset=0.0):
    rng = np.random.default_rng(0)
    codes = rng.permutation(np.arange(n) % n_classes)
    X = rng.normal(size=(n, m)) * np.linspace(0.5, 3, m) + 0.3 * codes[:, None] * np.arange(m)
    return np.round(X * 64) / 64 + offset, codes


def _explicit(X, codes, weight, standardize):
    """Standardised rows, class means and class covariances, all written out."""
    total = weight / weight.sum()
    Z = X - total @ X
    if standardize:
        Z = Z / np.sqrt(total @ Z**2)
    means, covs = [], []
    for k in range(codes.max() + 1):
        rows, w = Z[codes == k], weight[codes == k] / weight[codes == k].sum()
        means.append(w @ rows)
        centred = rows - w @ rows
        covs.append((centred * w[:, None]).T @ centred)
    return Z, np.array(means), np.array(covs)


def _from_moments(X, codes, weight, standardize):
    moments = ClassMoments.from_data(X, codes, sample_weight=weight)
    return CovariancesOfMoments(moments, standardize)


def _from_rows(kind, split=False):
    def make(X, codes, weight, standardize):
        where = [codes == k for k in np.unique(codes)] if split else [slice(None)]
        parts = [Part(as_rows(kind(X[rows])), codes[rows], weight[rows]) for rows in where]
        return CovariancesOfRows(parts, int(codes.max()) + 1, standardize)

    return make


SOURCES = {
    "moments": _from_moments,
    "float64": _from_rows(np.asarray),
    "fortran": _from_rows(np.asfortranarray),
    "csr": _from_rows(sp.csr_array),
    "csc": _from_rows(sp.csc_array),
    "parts": _from_rows(np.asarray, split=True),
}


@pytest.fixture(params=list(SOURCES))
def source(request):
    return SOURCES[request.param]


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_folded_standardisation_is_the_explicit_one(source, standardize, weighted, n_classes):
    X, codes = _data(n_classes=n_classes)
    weight = np.random.default_rng(1).integers(0, 5, len(X)) / 2 if weighted else np.ones(len(X))
    _, means, covs = _explicit(X, codes, weight, standardize)
    cov = source(X, codes, weight, standardize)
    assert cov.n_samples == np.count_nonzero(weight)
    np.testing.assert_allclose(cov.share, np.bincount(codes, weight) / weight.sum())
    np.testing.assert_allclose(cov.means, means, atol=1e-12)
    np.testing.assert_allclose(cov.variances, np.einsum("kff->kf", covs), rtol=1e-11)
    features, w = np.array([1, 4, 5, 8]), np.array([0.5, -0.1, 0.7, 0.2])
    coef = np.random.default_rng(2).normal(size=(2, n_classes))
    expected = np.tensordot(coef, covs, axes=1)
    for _ in range(2):  # first from the rows, then from columns in memory
        products = cov.products(features, w, coef)
        np.testing.assert_allclose(products, expected[:, :, features] @ w, atol=1e-11)
        for some in (features[:2], features):  # the second block joins the first
            block = expected[:, some[:, None], some]
            np.testing.assert_allclose(cov.blocks(some, coef), block, atol=1e-11)


def test_cached_blocks_may_grow_many_times():
    X, codes = _data(n=40, m=200)
    _, _, covs = _explicit(X, codes, np.ones(40), True)
    cov = SOURCES["float64"](X, codes, np.ones(40), True)
    order = np.random.default_rng(3).permutation(200)
    for end in (1, 3, 70, 71, 140, 200):
        some = order[:end]
        block = covs[:, some[:, None], some]
        np.testing.assert_allclose(cov.blocks(some, np.eye(3)), block, atol=1e-11)


@pytest.mark.parametrize("kind", [np.asarray, np.asfortranarray, sp.csr_array, sp.csc_array])
def test_float32_with_a_mean_far_above_the_spread(kind):
    X, codes = _data(offset=4096.0)  # exact in float32
    _, _, covs = _explicit(X, codes, np.ones(60), True)
    cov = _from_rows(lambda X: kind(np.float32(X)))(X, codes, np.ones(60), True)
    features, w = np.array([1, 4]), np.array([0.6, -0.8])
    products = cov.products(features, w, np.eye(3))
    np.testing.assert_allclose(products, covs[:, :, features] @ w, atol=1e-8)


def test_constant_columns_vanish_and_small_spreads_do_not(source):
    X, codes = _data()
    X[:, 2], X[:, 6] = 0.1, 1e6 / 3
    X[:, 4] = 1e6 + np.arange(60) / 1e3
    cov = source(X, codes, np.ones(60), True)
    assert np.flatnonzero(~cov.varying).tolist() == [2, 6]
    assert not cov.means[:, [2, 6]].any() and not cov.variances[:, [2, 6]].any()
    block = cov.blocks(np.array([2, 4, 6]), cov.share[None])[0]
    assert block[1, 1] > 0.5 and np.count_nonzero(block) == 1
    assert not cov.products(np.array([4]), np.ones(1), np.eye(3))[:, [2, 6]].any()


@pytest.mark.parametrize("weighted", [False, True])
def test_the_row_space_keeps_means_covariances_and_norms(weighted):
    X, codes = _data(n=20, m=50)
    weight = np.random.default_rng(1).integers(0, 4, 20) / 2 if weighted else np.ones(20)
    cov = SOURCES["csr"](X, codes, weight, True)
    _, means, covs = _explicit(X, codes, weight, True)
    assert cov.row_space(np.arange(cov.n_samples)) is None
    features = np.delete(np.arange(50), [0, 7])
    small, lift = cov.row_space(features)
    size = small.means.shape[1]
    assert size <= cov.n_samples
    u = np.random.default_rng(2).normal(size=size)
    w = lift(u)
    assert np.linalg.norm(w) == pytest.approx(np.linalg.norm(u))
    # the basis has a centre of its own, which shifts all means alike
    contrast = np.array([1.0, -2.0, 1.0])
    assert contrast @ small.means @ u == pytest.approx(contrast @ means[:, features] @ w)
    blocks = small.blocks(np.arange(size), np.eye(3))
    expected = covs[:, features[:, None], features]
    np.testing.assert_allclose(u @ blocks @ u, w @ expected @ w)


def test_moments_have_no_row_space():
    X, codes = _data(n=20, m=50)
    assert _from_moments(X, codes, np.ones(20), True).row_space(np.arange(50)) is None
