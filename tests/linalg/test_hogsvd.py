"""Laws of the higher-order generalized SVD."""

from itertools import permutations

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsegsvp.linalg.gsvd import gsvd, hogsvd


def orthogonal(rng, n):
    return scipy.linalg.qr(rng.standard_normal((n, n)))[0]


def assert_laws(matrices, result, tol=1e-12):
    U, sigma, V, lambda_ = result
    r = len(lambda_)
    assert sigma.shape == (len(matrices), r) and V.shape == (matrices[0].shape[1], r)
    whole = np.linalg.norm(np.concatenate(matrices))
    for D, left, values in zip(matrices, U, sigma, strict=True):
        assert left.shape == (D.shape[0], r)
        assert np.linalg.norm(left * values @ V.T - D) <= tol * whole
        np.testing.assert_allclose(np.linalg.norm(left, axis=0), values > 0, rtol=0, atol=tol)
    np.testing.assert_allclose((sigma**2).sum(axis=0), 1.0, rtol=0, atol=tol)
    assert np.all(np.diff(lambda_) >= 0)
    assert np.all(lambda_ >= 1 - 1e-10)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.integers(1, 12), min_size=2, max_size=5),
    st.integers(1, 8),
    st.integers(1, 10),
    st.integers(0, 9999),
)
def test_laws_hold_for_every_shape_and_rank(rows, m, k, seed):
    rng = np.random.default_rng(seed)
    shared = rng.standard_normal((k, m))
    matrices = [rng.standard_normal((n, k)) @ shared for n in rows]
    result = hogsvd(matrices)
    assert_laws(matrices, result)
    assert result.V.shape[1] == min(sum(rows), k, m)


@pytest.mark.parametrize(("rows", "pi"), [((8, 6, 9, 12), 0.0), ((2, 3, 4), 0.05)])
def test_is_the_eigenproblem_of_all_quotients(rows, pi):
    rng = np.random.default_rng(0)
    matrices = [rng.standard_normal((n, 5)) for n in rows]
    result = hogsvd(matrices, pi=pi)
    total = sum(D.T @ D for D in matrices)
    grams = [D.T @ D + pi * total for D in matrices]
    S = np.mean([G @ np.linalg.inv(H) for G, H in permutations(grams, 2)], axis=0)
    np.testing.assert_allclose(S @ result.V, result.V * result.lambda_, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("shape", [(9, 12, 5), (6, 6, 6), (3, 9, 5), (9, 2, 5)])
def test_two_matrices_give_the_generalized_svd(shape):
    p, q, m = shape
    rng = np.random.default_rng(2)
    A, B = rng.standard_normal((p, m)), rng.standard_normal((q, m))
    exact, result = gsvd(A, B), hogsvd([A, B])
    order = np.argsort(-result.sigma[0], kind="stable")
    np.testing.assert_allclose(result.sigma[0, order], exact.alpha, rtol=0, atol=1e-12)
    np.testing.assert_allclose(result.sigma[1, order], exact.beta, rtol=0, atol=1e-12)
    # Directions of one matrix alone are determined as a space only.
    both = (exact.alpha > 0) & (exact.beta > 0)
    assert both.any()
    np.testing.assert_allclose(result.V[:, order][:, both], exact.X[:, both], rtol=0, atol=1e-9)
    np.testing.assert_allclose(result.U[0][:, order][:, both], exact.U[:, both], rtol=0, atol=1e-9)


def test_two_matrices_with_mirrored_values_are_still_told_apart():
    # alpha of one direction is beta of the other, so both have the same eigenvalue.
    rng = np.random.default_rng(3)
    X = orthogonal(rng, 4)
    alpha = np.array([1.0, 0.8, 0.6, 0.0])
    A, B = np.diag(alpha) @ X.T, np.diag(alpha[::-1]) @ X.T
    result = hogsvd([A, B])
    order = np.argsort(-result.sigma[0])
    np.testing.assert_allclose(result.sigma[0, order], alpha, rtol=0, atol=1e-12)
    np.testing.assert_allclose(np.abs(X.T @ result.V[:, order]), np.eye(4), rtol=0, atol=1e-7)


def test_planted_common_and_exclusive_subspaces_are_found():
    # Six orthonormal directions: two matter equally to all, one belongs to each matrix alone,
    # and one is in all of them with different weights.
    rng = np.random.default_rng(4)
    m, n = 30, 3
    basis = orthogonal(rng, m)[:, :6]
    weights = np.zeros((n, 6))
    weights[:, :2] = 2.0
    weights[np.arange(n), 2 + np.arange(n)] = 1.5
    weights[:, 5] = 1.0, 2.0, 3.0
    matrices = [orthogonal(rng, 10)[:, :6] * w @ basis.T for w in weights]
    result = hogsvd(matrices)
    assert_laws(matrices, result)

    common = result.lambda_ < 1 + 1e-8
    assert common.sum() == 2
    np.testing.assert_allclose(result.sigma[:, common], n**-0.5, rtol=0, atol=1e-9)
    angles = scipy.linalg.subspace_angles(result.V[:, common], basis[:, :2])
    assert angles.max() < 1e-7
    # The exclusive directions share the largest eigenvalue and come apart, matrix by matrix.
    np.testing.assert_allclose(result.sigma[:, -3:], np.eye(3), rtol=0, atol=1e-9)
    np.testing.assert_allclose(
        np.abs(basis[:, 2:5].T @ result.V[:, -3:]), 1.5 * np.eye(3), rtol=0, atol=1e-7
    )


def test_zero_matrices():
    assert hogsvd([np.zeros((2, 3)), np.zeros((1, 3))]).V.shape == (3, 0)
    mixed = [np.random.default_rng(6).standard_normal((5, 4)), np.zeros((2, 4))]
    alone = hogsvd(mixed)
    assert_laws(mixed, alone)
    assert np.array_equal(alone.sigma[1], np.zeros(4))


@pytest.mark.parametrize(
    ("matrices", "options", "message"),
    [
        ([np.eye(2)], {}, "at least two matrices"),
        ([np.eye(2), np.eye(3)], {}, r"matrices\[0\] has 2 columns and matrices\[1\] has 3"),
        ([np.eye(2), [[np.nan, 1.0]]], {}, r"matrices\[1\] contains NaN"),
        ([np.eye(2), np.eye(2)], {"pi": -1.0}, "pi must be"),
        ([np.eye(2), [[1.0, 0.0]]], {"pi": 0.0}, r"matrices\[1\]'s Gram matrix.*use pi > 0"),
    ],
)
def test_bad_input_is_named_with_its_remedy(matrices, options, message):
    with pytest.raises(ValueError, match=message):
        hogsvd(matrices, **options)
