"""Standardisation folded into the products equals standardising by hand."""

import numpy as np
import pytest
import scipy.sparse as sp

from sparsegsvp.linalg import ClassMoments, DataCovariances, MomentCovariances, as_matrix


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
    return MomentCovariances(ClassMoments.from_data(X, codes, sample_weight=weight), standardize)


def _from_rows(kind):
    def make(X, codes, weight, standardize):
        return DataCovariances(as_matrix(kind(X)), codes, weight, int(codes.max()) + 1, standardize)

    return make


SOURCES = {
    "moments": _from_moments,
    "float64": _from_rows(np.asarray),
    "fortran": _from_rows(np.asfortranarray),
    "csr": _from_rows(sp.csr_array),
    "csc": _from_rows(sp.csc_array),
}


@pytest.fixture(params=list(SOURCES))
def source(request):
    return SOURCES[request.param]


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_folded_standardisation_is_the_explicit_one(source, standardize, weighted, n_classes):
    X, codes = _data(n_classes=n_classes)
    weight = np.random.default_rng(1).integers(1, 5, len(X)) / 2 if weighted else np.ones(len(X))
    _, means, covs = _explicit(X, codes, weight, standardize)
    cov = source(X, codes, weight if weighted else None, standardize)
    np.testing.assert_allclose(cov.share, np.bincount(codes, weight) / weight.sum())
    np.testing.assert_allclose(cov.means, means, atol=1e-12)
    np.testing.assert_allclose(cov.variances, np.einsum("kff->kf", covs), rtol=1e-11)

    features = np.array([1, 4, 5, 8])
    cov.extend(features[:2])
    cov.extend(features)  # the second block joins the first
    coef = np.random.default_rng(2).normal(size=(2, n_classes))
    expected = np.tensordot(coef, covs, axes=1)
    np.testing.assert_allclose(
        cov.blocks(features, coef), expected[:, features[:, None], features], atol=1e-11
    )
    w = np.array([0.5, -0.1, 0.7, 0.2])
    np.testing.assert_allclose(
        cov.products([(coef[0], features, w)])[0], expected[0][:, features] @ w, atol=1e-11
    )
    # a vector on features that were never asked for takes another way
    np.testing.assert_allclose(
        cov.products([(coef[1], np.arange(9), np.ones(9))])[0], expected[1].sum(axis=1), atol=1e-11
    )


def test_cached_blocks_may_grow_many_times():
    X, codes = _data(n=40, m=200)
    _, _, covs = _explicit(X, codes, np.ones(40), True)
    cov = DataCovariances(as_matrix(X), codes, None, 3, True)
    order = np.random.default_rng(3).permutation(200)
    for end in (1, 3, 70, 71, 140, 200):
        cov.extend(order[:end])
    np.testing.assert_allclose(
        cov.blocks(order, np.eye(3)), covs[:, order[:, None], order], atol=1e-11
    )


def test_rows_come_centred_by_class_and_standardised():
    X, codes = _data()
    Z, means, _ = _explicit(X, codes, np.ones(len(X)), True)
    cov = DataCovariances(as_matrix(X), codes, None, 3, True)
    rows, row_codes, weight = cov.factor(np.array([2, 7]))
    np.testing.assert_allclose(rows, (Z - means[codes])[:, [2, 7]], atol=1e-12)
    np.testing.assert_array_equal(row_codes, codes)
    np.testing.assert_allclose(np.bincount(codes, weight), 1.0)
    assert _from_moments(X, codes, None, True).factor(np.array([2, 7])) is None


@pytest.mark.parametrize("kind", [np.asarray, np.asfortranarray, sp.csr_array, sp.csc_array])
def test_float32_with_a_mean_far_above_the_spread(kind):
    """The mean is 4000 spreads away: products in float32 would leave three digits."""
    X, codes = _data(n=400, offset=2.0**12)
    assert np.array_equal(X.astype(np.float32), X)
    _, means, covs = _explicit(X, codes, np.ones(len(X)), True)
    cov = DataCovariances(as_matrix(kind(X.astype(np.float32))), codes, None, 3, True)
    np.testing.assert_allclose(cov.means, means, atol=1e-9)
    coef, w = np.array([1.0, -0.4, 0.2]), np.linspace(-1, 1, 9)
    expected = np.tensordot(coef, covs, axes=1) @ w
    np.testing.assert_allclose(cov.products([(coef, np.arange(9), w)])[0], expected, atol=1e-8)
    cov.extend(np.arange(9))
    np.testing.assert_allclose(cov.products([(coef, np.arange(9), w)])[0], expected, atol=1e-8)


def test_constant_columns_vanish(source):
    X, codes = _data(n=3000)
    X[:, 2], X[:, 6] = 0.1, -1e5 / 3
    cov = source(X, codes, None, True)
    np.testing.assert_array_equal(np.flatnonzero(~cov.standardization.varying), [2, 6])
    np.testing.assert_array_equal(cov.standardization.inverse[[2, 6]], 0.0)
    np.testing.assert_array_equal(cov.means[:, [2, 6]], 0.0)
    np.testing.assert_array_equal(cov.variances[:, [2, 6]], 0.0)
    product = cov.products([(np.ones(3), np.arange(9), np.ones(9))])[0]
    np.testing.assert_array_equal(product[[2, 6]], 0.0)


def test_a_small_spread_around_a_large_mean_is_not_constant(source):
    X, codes = _data(n=300)
    X[:, 3] = 1e6 + np.round(np.random.default_rng(4).normal(size=300) * 64) * 2.0**-20
    cov = source(X, codes, None, True)
    assert cov.standardization.varying.all()
    total = cov.share @ (cov.variances + cov.means**2)
    np.testing.assert_allclose(total, 1.0, rtol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_row_space_keeps_all_inner_products(weighted):
    X, codes = _data(n=30, m=80)
    X[:, 11] = 2.5
    weight = np.random.default_rng(5).integers(1, 4, 30).astype(float) if weighted else np.ones(30)
    Z, means, covs = _explicit(np.delete(X, 11, axis=1), codes, weight, True)
    cov = DataCovariances(as_matrix(X), codes, weight if weighted else None, 3, True)
    reduced, lift = cov.row_space(np.arange(80))
    rank = reduced.means.shape[1]
    assert rank <= 30
    basis = np.array([lift(e) for e in np.eye(rank)])
    np.testing.assert_allclose(basis @ basis.T, np.eye(rank), atol=1e-9)
    np.testing.assert_array_equal(basis[:, 11], 0.0)
    basis = np.delete(basis, 11, axis=1)
    np.testing.assert_allclose(Z @ basis.T @ basis, Z, atol=1e-9)
    np.testing.assert_allclose(reduced.means, means @ basis.T, atol=1e-9)
    reduced.extend(np.arange(rank))
    np.testing.assert_allclose(
        reduced.blocks(np.arange(rank), np.eye(3)), basis @ covs @ basis.T, atol=1e-9
    )
