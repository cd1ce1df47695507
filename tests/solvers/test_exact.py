"""Without a penalty the problem is an eigenproblem, and is solved as one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import eigh

from sparsegsvp import ClassMoments, sparse_gsvp
from sparsegsvp.linalg import DataCovariances, as_matrix
from sparsegsvp.solvers import exact
from sparsegsvp.solvers.exact import _factor, solve_unpenalized
from sparsegsvp.solvers.quotient import OneVsRest


def _smallest(ref):
    """The smallest eigenvalue of the bordered pair, from the definition."""
    m = ref.means.shape[1]

    def bordered(k):
        floor = ref.tau * np.eye(m)
        mu = ref.means[k][:, None]
        return np.block([[ref.covs[k] + floor + mu @ mu.T, mu], [mu.T, np.ones((1, 1))]])

    other = np.mean([bordered(k) for k in ref.others], axis=0)
    return eigh(bordered(ref.i), other, eigvals_only=True)[0]


def _covariances(blocks):
    X, codes = np.concatenate(blocks), np.repeat(np.arange(len(blocks)), [len(b) for b in blocks])
    return DataCovariances(as_matrix(X), codes, None, len(blocks), standardize=False)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    n_classes=st.sampled_from([2, 3]),
    tau=st.sampled_from([0.0, 0.1, 1.0, 10.0]),
    pool=st.sampled_from([0.0, 0.5, 1.0]),
    seed=st.integers(0, 1000),
)
def test_the_unpenalised_minimum_is_the_smallest_eigenvalue(
    reference, classes, n_classes, tau, pool, seed
):
    blocks = classes(25, 6, n_classes, seed=seed)
    cov = _covariances(blocks)
    for i in range(n_classes):
        ref = reference(*blocks, i=i, tau=tau, pool=pool)
        found = solve_unpenalized(cov, OneVsRest.of_class(i, cov.share, pool), tau, np.arange(6))
        assert found is not None
        assert np.linalg.norm(found.w) == pytest.approx(1.0)
        assert found.quotient == pytest.approx(_smallest(ref), rel=1e-8)
        if not found.bias.clipped:
            assert ref.value(found.w) == pytest.approx(_smallest(ref), rel=1e-8)
            assert np.abs(ref.gradient(found.w)).max() <= 1e-7
            assert found.kkt_residual == pytest.approx(
                np.abs(ref.gradient(found.w)).max(), abs=1e-9
            )


@pytest.mark.parametrize("tau", [0.1, 3.0])
def test_more_features_than_rows_in_the_row_space(reference, classes, tau):
    """Against the dense eigenproblem in all dimensions, which tau keeps definite."""
    for n_classes in (2, 3):
        blocks = classes(12, 60, n_classes, seed=1)
        for X in blocks:
            X[:, 17] = 0.3
        cov = _covariances(blocks)
        ref = reference(*blocks, i=1, tau=tau, pool=0.4)
        varying = np.delete(np.arange(60), 17)
        found = solve_unpenalized(cov, OneVsRest.of_class(1, cov.share, 0.4), tau, varying)
        w = np.zeros(60)
        w[found.features] = found.w
        assert w[17] == 0.0
        assert found.quotient == pytest.approx(_smallest(ref), rel=1e-9)
        assert ref.value(w) == pytest.approx(_smallest(ref), rel=1e-9)
        assert np.abs(ref.gradient(w)).max() <= 1e-8
        assert found.kkt_residual <= 1e-8


def test_delta_zero_is_the_same_by_every_way(reference, classes):
    A, B = classes(20, 35, seed=2)
    results = [
        sparse_gsvp(A, B, 0.0, pool=0.5, method="working_set"),
        sparse_gsvp(A, B, 0.0, pool=0.5, method="moments"),
        sparse_gsvp(ClassMoments.from_data(A), ClassMoments.from_data(B), 0.0, pool=0.5),
        sparse_gsvp(A[:, ::-1], B[:, ::-1], 0.0, pool=0.5),
    ]
    ref = reference(A, B, pool=0.5)
    for result in results:
        assert result.converged
        assert result.objective == result.quotient == pytest.approx(_smallest(ref), rel=1e-10)
        assert result.kkt_residual <= 1e-9
    for result in results[1:3]:
        np.testing.assert_allclose(result.w, results[0].w, atol=1e-8)
        assert result.b == pytest.approx(results[0].b, abs=1e-8)
    np.testing.assert_allclose(results[3].w[::-1], results[0].w, atol=1e-8)


def test_a_solution_says_what_it_is(classes):
    """One step, no penalty; a feature that no row has is not among its features."""
    for n, m, empty in ((40, 6, []), (12, 60, [3])):
        blocks = classes(n, m, seed=6)
        for X in blocks:
            X[:, empty] = 0.0
        cov = _covariances(blocks)
        found = solve_unpenalized(cov, OneVsRest.of_class(0, cov.share, 0.5), 0.5, np.arange(m))
        assert np.linalg.norm(found.w) == pytest.approx(1.0, abs=1e-12)
        assert (found.delta, found.n_iter, found.converged) == (0.0, 1, True)
        assert found.history == [found.objective] == [found.bias.ratio]
        assert len(found.gradient) == m and (found.w != 0.0).all()
        assert found.features.tolist() == [f for f in range(m) if f not in empty]


@pytest.mark.parametrize("tau", [0.1, 2.0])
def test_blocks_of_more_features_than_rows_are_never_formed(classes, monkeypatch, tau):
    seen = []

    def quotient(cov, plane, tau, features):
        seen.append(len(features))
        return formed(cov, plane, tau, features)

    formed = exact.GramQuotient
    monkeypatch.setattr(exact, "GramQuotient", quotient)
    cov = _covariances(classes(8, 90, seed=7))
    plane = OneVsRest.of_class(0, cov.share, 0.5)
    assert solve_unpenalized(cov, plane, tau, np.arange(90)) is not None
    assert len(seen) == 1 and seen[0] <= cov.n_samples
    assert solve_unpenalized(cov, plane, tau, np.arange(5)) is not None
    assert seen[1:] == [5]


def test_a_factor_of_singular_forms():
    """Eigenvalues that rounding leaves below zero count as none."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        thin, mean = rng.normal(size=(2, 6)), rng.normal(size=6)
        F = _factor(thin.T @ thin, mean)
        border = np.append(mean, 1.0)
        expected = np.outer(border, border)
        expected[:6, :6] += thin.T @ thin
        np.testing.assert_allclose(F.T @ F, expected, atol=1e-12)


def test_small_penalties_approach_the_unpenalised_solution(classes):
    A, B = classes(40, 10, seed=3)
    exact = sparse_gsvp(A, B, 0.0, tau=5.0)
    near = sparse_gsvp(A, B, 1e-6, tau=5.0)
    assert near.quotient >= exact.quotient * (1 - 1e-12)
    np.testing.assert_allclose(near.w, exact.w, atol=1e-4)


def test_without_a_floor_a_class_inside_a_plane_has_a_quotient_of_zero(classes):
    """tau = 0 goes through the GSVD: a singular numerator is what is looked for."""
    A, B = classes(40, 5, seed=4)
    normal = np.array([0.6, 0.0, -0.8, 0.0, 0.0])
    A -= np.multiply.outer(A @ normal - 2.0, normal)
    result = sparse_gsvp(A, B, 0.0, tau=0.0)
    assert result.quotient <= 1e-15
    np.testing.assert_allclose(np.abs(result.w @ normal), 1.0, atol=1e-10)
    np.testing.assert_allclose(A @ result.w + result.b, 0.0, atol=1e-9)


@pytest.mark.parametrize(
    ("n", "m", "method"),
    [(30, 4, "auto"), (30, 4, "working_set"), (5, 20, "working_set")],
    ids=["moments", "blocks", "row space"],
)
def test_a_plane_at_infinity_is_refused_with_a_remedy(n, m, method):
    """The own class is wider in every direction and the means coincide."""
    rng = np.random.default_rng(5)
    Z = rng.normal(size=(n, m))
    Z -= Z.mean(axis=0)
    cov = _covariances([3 * Z, Z])
    assert solve_unpenalized(cov, OneVsRest.of_class(0, cov.share, 0.0), 1.0, np.arange(m)) is None
    with pytest.raises(ValueError, match=r"infinity.*means coincide.*Use delta > 0"):
        sparse_gsvp(3 * Z, Z, 0.0, method=method)
