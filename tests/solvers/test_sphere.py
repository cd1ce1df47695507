"""The exact proximal step and the loop that takes it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsegsvp.linalg import DataCovariances, as_matrix
from sparsegsvp.solvers import L1
from sparsegsvp.solvers.quotient import GramQuotient, OneVsRest
from sparsegsvp.solvers.sphere import kkt_residual, minimize_on_sphere, prox_on_sphere

numbers = st.floats(-3, 3, allow_subnormal=False)


def _cost(w, y, threshold):
    return 0.5 * np.sum((w - y) ** 2, axis=-1) + np.abs(w) @ threshold


def _circle(step=1e-3):
    angle = np.arange(0, 2 * np.pi, step)
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    y=st.lists(numbers, min_size=2, max_size=2),
    threshold=st.lists(st.floats(0, 3), min_size=2, max_size=2),
)
def test_prox_beats_a_fine_grid_of_the_circle(y, threshold):
    y, threshold = np.array(y), np.array(threshold)
    w = prox_on_sphere(y, threshold)
    assert np.linalg.norm(w) == pytest.approx(1.0, abs=1e-14)
    grid = np.concatenate([_circle(), np.eye(2), -np.eye(2)])
    assert _cost(w, y, threshold) <= _cost(grid, y, threshold).min() + 1e-12


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    m=st.integers(1, 7),
    shrink=st.sampled_from([0.0, 0.3, 1.0, 2.0, 5.0]),
    seed=st.integers(0, 1000),
)
def test_prox_beats_random_search_in_more_dimensions(m, shrink, seed):
    """Sparse and dense competitors, then smaller and smaller moves from the winner."""
    rng = np.random.default_rng(seed)
    y, threshold = rng.normal(size=m), shrink * rng.random(m)
    w = prox_on_sphere(y, threshold)
    rivals = rng.normal(size=(4000, m)) * (rng.random((4000, m)) < 0.7)
    for scale in (1e-1, 1e-2, 1e-3):
        rivals = np.concatenate([rivals, w + scale * rng.normal(size=(1000, m))])
    rivals = np.concatenate([rivals, np.eye(m), -np.eye(m)])
    rivals = rivals[np.linalg.norm(rivals, axis=1) > 0]
    rivals /= np.linalg.norm(rivals, axis=1, keepdims=True)
    assert _cost(w, y, threshold) <= _cost(rivals, y, threshold).min() + 1e-12


def test_prox_zeros_are_exact_and_ties_go_to_the_lowest_index():
    w = prox_on_sphere(np.array([3.0, -0.5, 4.0]), np.array([0.0, 0.5, 0.0]))
    np.testing.assert_array_equal(w, [0.6, 0.0, 0.8])
    np.testing.assert_array_equal(
        prox_on_sphere(np.array([0.1, -0.5, 0.5]), np.ones(3)), [0.0, -1.0, 0.0]
    )
    np.testing.assert_array_equal(prox_on_sphere(np.zeros(2), np.ones(2)), [1.0, 0.0])


def test_the_certificate_vanishes_at_a_known_solution():
    """g = lam w - s sign(w) on the support, at most s off it."""
    w, s = np.array([0.6, -0.8, 0.0]), np.array([0.1, 0.2, 0.3])
    lam = s @ np.abs(w)
    g = lam * w - s * np.sign(w)
    g[2] = 0.3
    assert kkt_residual(w, g, s) == pytest.approx(0.0, abs=1e-15)
    g[2] = -0.35
    assert kkt_residual(w, g, s) == pytest.approx(0.05)
    g[2] = 0.0
    g += 1e-3 * np.array([0.8, 0.6, 0.0])  # tangent to the sphere
    assert kkt_residual(w, g, s) == pytest.approx(8e-4)


def _quotient(blocks, i=0, tau=1.0, pool=0.0):
    X, codes = np.concatenate(blocks), np.repeat(np.arange(len(blocks)), [len(b) for b in blocks])
    cov = DataCovariances(as_matrix(X), codes, None, len(blocks), standardize=False)
    features = np.arange(X.shape[1])
    cov.extend(features)
    return GramQuotient(cov, OneVsRest.of_class(i, cov.share, pool), tau, features)


def _never_increases(history):
    history = np.asarray(history)
    return (np.diff(history) <= 1e-14 * np.abs(history[:-1])).all()


@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 1000),
    n_classes=st.sampled_from([2, 3]),
    tau=st.sampled_from([0.1, 1.0, 10.0]),
    pool=st.sampled_from([0.0, 0.5, 1.0]),
    newton=st.booleans(),
    delta=st.sampled_from([0.0, 0.01, 0.1]),
)
def test_the_loop_descends_to_a_stationary_point(
    reference, classes, penalty, seed, n_classes, tau, pool, newton, delta
):
    blocks = classes(25, 8, n_classes, seed=seed)
    i = seed % n_classes
    rng = np.random.default_rng(seed)
    start = rng.normal(size=8)
    start /= np.linalg.norm(start)
    weights = rng.uniform(0.5, 2.0, 8)
    found = minimize_on_sphere(
        _quotient(blocks, i, tau, pool),
        penalty,
        delta,
        weights,
        start,
        tol=1e-7,
        max_iter=5000,
        newton=newton,
    )
    w = found.point.w
    assert np.linalg.norm(w) == pytest.approx(1.0, abs=1e-12)
    assert _never_increases(found.history)
    assert found.history[-1] == found.objective
    assert len(found.history) <= found.n_iter + 1
    if found.point.bias.clipped:
        return
    expected = reference(*blocks, i=i, tau=tau, pool=pool)
    b = found.point.bias.own - expected.means[i] @ w
    assert found.residual <= 1e-7
    assert expected.certificate(w, b, delta, penalty, weights) <= 1e-7 + 1e-10
    assert found.objective == pytest.approx(
        expected.objective(w, delta, penalty, weights), rel=1e-9
    )


def test_newton_and_gradient_steps_agree(classes):
    """From the same start, where there is one minimum."""
    for seed in range(5):
        quotient = _quotient(classes(40, 10, seed=seed), tau=3.0, pool=0.5)
        start = np.ones(10) / np.sqrt(10)
        found = [
            minimize_on_sphere(
                quotient, L1(), 0.01, np.ones(10), start, tol=1e-8, max_iter=5000, newton=newton
            )
            for newton in (True, False)
        ]
        assert all(f.residual <= 1e-8 for f in found)
        np.testing.assert_allclose(found[0].point.w, found[1].point.w, atol=1e-5)
        np.testing.assert_array_equal(found[0].point.w != 0, found[1].point.w != 0)


def test_starting_at_the_solution_takes_no_iteration(classes):
    quotient = _quotient(classes(40, 10))
    options = {"tol": 1e-7, "max_iter": 1000}
    start = np.ones(10) / np.sqrt(10)
    first = minimize_on_sphere(quotient, L1(), 0.02, np.ones(10), start, **options)
    again = minimize_on_sphere(quotient, L1(), 0.02, np.ones(10), first.point.w, **options)
    assert first.n_iter > 0
    assert again.n_iter == 0
    np.testing.assert_array_equal(again.point.w, first.point.w)
