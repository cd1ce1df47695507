"""Laws of the generalized SVD, over shapes, ranks and scales."""

import time

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsegsvp.linalg.gsvd import gsvd


def assert_laws(A, B, result, tol=1e-12):
    U, V, alpha, beta, X = result
    (p, m), q, r = A.shape, B.shape[0], len(alpha)
    assert (U.shape, V.shape, beta.shape, X.shape) == ((p, r), (q, r), (r,), (m, r))
    assert np.linalg.norm(U * alpha @ X.T - A) <= tol * np.linalg.norm(A)
    assert np.linalg.norm(V * beta @ X.T - B) <= tol * np.linalg.norm(B)
    np.testing.assert_allclose(alpha**2 + beta**2, 1.0, rtol=0, atol=tol)
    assert np.all(alpha >= 0) and np.all(beta >= 0)
    assert np.all(np.diff(alpha) <= 0) and np.all(np.diff(beta) >= 0)
    # Orthonormal where there is room; the columns without room meet an exact zero.
    columns = np.arange(r)
    room_U, room_V = columns < p, columns >= r - q
    np.testing.assert_allclose(U.T @ U, np.diag(room_U * 1.0), rtol=0, atol=tol)
    np.testing.assert_allclose(V.T @ V, np.diag(room_V * 1.0), rtol=0, atol=tol)
    assert np.all(alpha[~room_U] == 0) and np.all(beta[~room_V] == 0)
    if r:
        largest = np.abs(X).argmax(axis=0)
        assert np.all(X[largest, columns] > 0)


@st.composite
def pairs(draw):
    """A and B built from rows of one orthonormal basis: (A, B, rank of A, of B, of both)."""
    m = draw(st.integers(1, 12))
    in_A = np.array(draw(st.lists(st.booleans(), min_size=m, max_size=m)))
    in_B = np.array(draw(st.lists(st.booleans(), min_size=m, max_size=m)))
    p = max(1, in_A.sum()) + draw(st.integers(0, 6))
    q = max(1, in_B.sum()) + draw(st.integers(0, 30))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    basis = scipy.linalg.qr(rng.standard_normal((m, m)))[0]
    blocks = []
    for rows, use in ((p, in_A), (q, in_B)):
        left = scipy.linalg.qr(rng.standard_normal((rows, rows)))[0][:, : use.sum()]
        scale = 10.0 ** draw(st.integers(-60, 60))
        blocks.append(scale * (left * rng.uniform(0.3, 3.0, use.sum())) @ basis[use])
    return *blocks, in_A.sum(), in_B.sum(), (in_A | in_B).sum()


@settings(max_examples=120, deadline=None)
@given(pairs())
def test_laws_hold_for_every_shape_rank_and_scale(case):
    A, B, rank_A, rank_B, rank = case
    result = gsvd(A, B)
    assert_laws(A, B, result)
    assert result.X.shape[1] == rank
    # What belongs to one matrix alone is exactly absent from the other.
    assert np.count_nonzero(result.alpha) == rank_A
    assert np.count_nonzero(result.beta) == rank_B


@pytest.mark.parametrize("shape", [(30, 20, 6), (6, 40, 6), (5, 9, 7)])
def test_agrees_with_the_symmetric_eigenproblem(shape):
    p, q, m = shape
    rng = np.random.default_rng(3)
    A, B = rng.standard_normal((p, m)), rng.standard_normal((q, m))
    result = gsvd(A, B)
    values, vectors = scipy.linalg.eigh(A.T @ A, B.T @ B)
    np.testing.assert_allclose(
        (result.alpha / result.beta) ** 2, values[::-1], rtol=1e-10, atol=1e-12
    )
    # The minimiser of ||A z|| / ||B z|| is the last column of the inverse of X', up to scale.
    z = np.linalg.pinv(result.X.T)[:, -1]
    ratio = np.linalg.norm(A @ z) / np.linalg.norm(B @ z)
    assert ratio == pytest.approx(np.sqrt(max(values[0], 0.0)), abs=1e-7)
    if p >= m:
        cosine = abs(z @ vectors[:, 0]) / np.linalg.norm(z) / np.linalg.norm(vectors[:, 0])
        assert cosine == pytest.approx(1.0, abs=1e-10)


def test_small_alphas_and_small_betas_are_both_accurate():
    # sqrt(1 - alpha^2) has no digit left of a beta of 1e-9, and A'A none of an alpha of 1e-9.
    rng = np.random.default_rng(0)
    small = np.array([1e-12, 1e-9, 1e-6, 1e-3])
    beta = np.concatenate([small, [0.5, 0.8], np.sqrt((1 - small[::-1]) * (1 + small[::-1]))])
    alpha = np.concatenate([np.sqrt((1 - small) * (1 + small)), [0.75**0.5, 0.6], small[::-1]])
    r = len(alpha)
    U, V, X = (scipy.linalg.qr(rng.standard_normal((r, r)))[0] for _ in range(3))
    result = gsvd(U * alpha @ X.T, V * beta @ X.T)
    np.testing.assert_allclose(result.alpha, alpha, rtol=0, atol=3e-15)
    np.testing.assert_allclose(result.beta, beta, rtol=0, atol=3e-15)


def test_invariances():
    rng = np.random.default_rng(1)
    A, B = rng.standard_normal((7, 5)), rng.standard_normal((4, 5))
    _, V, alpha, beta, X = gsvd(A, B)
    finite = beta > 0
    ratio = alpha[finite] / beta[finite]
    swapped = gsvd(B, A)
    np.testing.assert_allclose(swapped.alpha[::-1], beta, rtol=0, atol=1e-14)
    np.testing.assert_allclose(swapped.X[:, ::-1], X, rtol=0, atol=1e-12)
    scaled = gsvd(3.0 * A, B)
    np.testing.assert_allclose(scaled.alpha[finite] / scaled.beta[finite], 3.0 * ratio)
    change = rng.standard_normal((5, 5)) + 3.0 * np.eye(5)
    np.testing.assert_allclose(gsvd(A @ change, B @ change).alpha, alpha, rtol=0, atol=1e-13)
    order = np.array([3, 0, 4, 1, 2])
    permuted = gsvd(A[:, order], B[:, order])
    np.testing.assert_allclose(permuted.X, X[order], rtol=0, atol=1e-12)
    np.testing.assert_allclose(permuted.V, V, rtol=0, atol=1e-12)


def test_known_answers_at_the_edges():
    rng = np.random.default_rng(2)
    A = rng.standard_normal((3, 4))
    alone = gsvd(A, np.zeros((2, 4)))
    assert_laws(A, np.zeros((2, 4)), alone)
    assert np.array_equal(alone.alpha, np.ones(3)) and np.array_equal(alone.beta, np.zeros(3))
    # A pair of equal matrices shares everything evenly.
    np.testing.assert_allclose(gsvd(A, A).alpha, 0.5**0.5, rtol=0, atol=1e-15)
    nothing = gsvd(np.zeros((3, 4)), np.zeros((2, 4)))
    assert_laws(np.zeros((3, 4)), np.zeros((2, 4)), nothing)
    assert nothing.X.shape == (4, 0)
    one = gsvd([[3.0]], [[-4]])
    assert (one.alpha[0], one.beta[0]) == pytest.approx((0.6, 0.8))
    # Squares that underflow or differ by a hundred orders of magnitude do no harm.
    for a, b in ((1e-200, 1e-200), (1e70, 1e-140)):
        result = gsvd(a * A, b * A[:2])
        assert np.count_nonzero(result.alpha) == 3 and np.count_nonzero(result.beta) == 2


def test_a_wide_pair_takes_seconds_and_is_not_changed():
    rng = np.random.default_rng(6)
    A = rng.standard_normal((91, 15155)).astype(np.float32)
    B = rng.standard_normal((85, 15155))[::-1] + 1.0
    before = A.copy(), B.copy()
    start = time.process_time()
    result = gsvd(A, B)
    assert time.process_time() - start < 20.0
    assert_laws(A.astype(np.float64), B, result)
    assert np.array_equal(A, before[0]) and np.array_equal(B, before[1])


@pytest.mark.parametrize(
    ("A", "B", "message"),
    [
        ([[1.0, np.nan]], [[1.0, 2.0]], "A contains NaN"),
        ([[1.0, 2.0]], [[1.0, -np.inf]], "B contains infinity"),
        ([[1.0, 2.0]], [[1.0, 2.0, 3.0]], "A has 2 columns and B has 3"),
        (np.empty((0, 2)), [[1.0, 2.0]], "a minimum of 1"),
        ([1.0, 2.0], [[1.0, 2.0]], "[Rr]eshape"),
        ([[1.0, 2.0]], [[1e200, 0.0]], "B contains values .* overflow: rescale"),
        ([["x", "y"]], [[1.0, 2.0]], "could not convert"),
    ],
)
def test_bad_input_is_named_with_its_remedy(A, B, message):
    with pytest.raises(ValueError, match=message):
        gsvd(A, B)
    with pytest.raises(TypeError, match=r"for A.*toarray"):
        gsvd(scipy.sparse.eye_array(2), [[1.0, 2.0]])
