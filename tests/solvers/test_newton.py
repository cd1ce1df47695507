"""The loop on the sphere and the working sets around it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsegsvp.linalg.rows import as_rows
from sparsegsvp.solvers import newton
from sparsegsvp.solvers.newton import Problem, kkt_residual, minimize, prox_on_sphere, solve
from sparsegsvp.solvers.path import Path
from sparsegsvp.solvers.penalties import Penalty
from sparsegsvp.solvers.quotient import CovariancesOfRows, OneVsRest, Part

few = settings(max_examples=20, deadline=None, derandomize=True)


def _problem(blocks, i=0, tau=1.0, pool=0.5, q=1.0, factors=None):
    X, codes = np.concatenate(blocks), np.repeat(np.arange(len(blocks)), [len(b) for b in blocks])
    cov = CovariancesOfRows([Part(as_rows(X), codes, np.ones(len(X)))], len(blocks), False)
    factors = np.ones(X.shape[1]) if factors is None else factors
    return Problem(cov, OneVsRest.of_class(i, cov.share, pool), tau, Penalty(q), factors)


def _dense(solution, m):
    w = np.zeros(m)
    w[solution.features] = solution.w
    return w


@few
@given(seed=st.integers(0, 10**6), m=st.integers(2, 12), shrink=st.floats(0.0, 4.0))
def test_the_prox_on_the_sphere_beats_every_other_point(seed, m, shrink):
    rng = np.random.default_rng(seed)
    y, threshold = rng.normal(size=m), shrink * rng.uniform(size=m)
    w = prox_on_sphere(y, threshold)
    assert np.linalg.norm(w) == pytest.approx(1.0)
    others = rng.normal(size=(4000, m)) * (rng.random((4000, m)) < 0.7)
    others = np.concatenate([others[others.any(axis=1)], np.eye(m), -np.eye(m)])
    near = w + 0.01 * rng.normal(size=(2000, m))
    others = np.concatenate([others, near])
    others /= np.linalg.norm(others, axis=1, keepdims=True)

    def value(v):
        return 0.5 * ((v - y) ** 2).sum(axis=-1) + np.abs(v) @ threshold

    assert value(w) <= value(others).min() + 1e-12


def test_where_nothing_is_left_of_the_prox_the_lowest_of_equals_stands():
    np.testing.assert_array_equal(
        prox_on_sphere(np.array([1.0, -2.0, 2.0]), np.full(3, 5.0)), [0, -1, 0]
    )


@few
@given(
    seed=st.integers(0, 1000),
    n_classes=st.sampled_from([2, 3]),
    tau=st.sampled_from([0.1, 1.0, 10.0]),
    q=st.sampled_from([1.0, 0.5]),
    delta=st.sampled_from([0.3, 0.03, 0.003]),
)
def test_it_descends_to_a_stationary_point(reference, classes, seed, n_classes, tau, q, delta):
    """From any start, on several of which Newton's matrix is indefinite."""
    blocks = classes(20, 15, n_classes, seed=seed)
    rng = np.random.default_rng(seed)
    problem = _problem(blocks, 1, tau, 0.5, q)
    ref = reference(*blocks, i=1, tau=tau, pool=0.5)
    w = rng.normal(size=15) * (rng.random(15) < rng.uniform(0.2, 1.0))
    w[seed % 15] += 0.5
    it, history = minimize(problem, delta, np.arange(15), w / np.linalg.norm(w), 1e-9, 2000)
    assert (np.diff(history) <= 1e-14 * np.abs(history[:-1])).all()
    assert it.objective == history[-1]
    if it.point.bias.clipped:
        return
    assert it.objective == pytest.approx(ref.objective(it.w, delta, q=q), rel=1e-10)
    assert it.residual <= 1e-9
    certificate = ref.certificate(it.w, ref.best_bias(it.w), delta, q=q)
    assert certificate == pytest.approx(it.residual, abs=1e-8)


def test_gradient_steps_alone_end_at_the_same_point(classes, monkeypatch):
    """Where there is one minimum, tau being large; also for sets that are too large for blocks."""
    blocks = classes(30, 40, seed=3)
    delta = 0.1 * Path(_problem(blocks, tau=10.0), tol=1e-8, max_iter=1000).delta_max

    def solution(problem):
        start = Path(problem, tol=1e-8, max_iter=1000).first
        return solve(problem, delta, start, 1e-8, 5000)

    expected = solution(_problem(blocks, tau=10.0))
    monkeypatch.setattr(newton, "_newton_step", lambda it, tol: None)
    plain = solution(_problem(blocks, tau=10.0))
    assert plain.n_iter > expected.n_iter
    large = _problem(blocks, tau=10.0)
    large.cov.max_block = 3
    for other in (plain, solution(large)):
        assert other.converged
        np.testing.assert_array_equal(other.features, expected.features)
        np.testing.assert_allclose(other.w, expected.w, atol=1e-5)


def test_identical_columns(reference, classes):
    """Newton's matrix is singular between them. A strong penalty takes one, a weak one all."""
    A, B = (np.concatenate([X, X], axis=1) for X in classes(25, 8, seed=3))
    path = Path(_problem([A, B]), tol=1e-6, max_iter=1000)
    ref = reference(A, B, pool=0.5)
    for rho in (0.9, 0.5, 0.1, 0.01):
        solution = path.at(rho * path.delta_max)
        w = _dense(solution, 16).reshape(2, 8)
        assert solution.converged
        for other in ([w[0] + w[1], np.zeros(8)], [w[0] + w[1]] * 2):
            other = np.ravel(other) / np.linalg.norm(other)
            assert solution.objective <= ref.objective(other, solution.delta) * (1 + 1e-12)
        if rho == 0.9:
            assert not w[1].any()
    np.testing.assert_allclose(w[0], w[1], atol=1e-9)


def test_starting_at_the_solution_takes_no_iteration_and_limits_hold(classes):
    problem = _problem(classes(25, 30, seed=4), q=0.5)
    w = np.zeros(30)
    w[0] = 1.0
    it, _ = minimize(problem, 0.01, np.arange(30), w, 1e-8, 1000)
    again, history = minimize(problem, 0.01, np.arange(30), it.w, 1e-7, 1000)
    assert len(history) == 1
    np.testing.assert_array_equal(again.w, it.w)
    for most in (1, 3):
        _, history = minimize(problem, 1e-4, np.arange(30), w, 1e-14, most)
        assert len(history) == most + 1


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("q", [1.0, 0.5])
def test_working_sets_certify_all_features_by_few_passes(reference, classes, n_classes, q):
    blocks = classes(20, 300, n_classes, seed=5)
    problem = _problem(blocks, 0, q=q)
    passes = []
    products = problem.cov.products
    problem.cov.products = lambda *args: passes.append(0) or products(*args)
    path = Path(problem, tol=1e-6, max_iter=1000)
    ref = reference(*blocks, tau=1.0, pool=0.5)
    last = None
    for rho in np.geomspace(0.9, 0.05, 8):
        last = path.at(rho * path.delta_max, last)
        w = _dense(last, 300)
        certificate = ref.certificate(w, ref.best_bias(w), last.delta, q=q)
        assert last.converged and certificate <= 1.01e-6 * path.delta_max
        assert last.kkt_residual == pytest.approx(certificate, abs=1e-9)
        np.testing.assert_allclose(last.gradient, ref.gradient(w), atol=1e-9)
    if q == 1.0:
        assert len(passes) < 4 * 8
        assert problem.cov._n_cached < 150


def test_the_certificate_vanishes_at_a_known_solution():
    """Two features, w on the circle: g + s sign(w) must be along w."""
    w, slopes = np.array([0.6, -0.8, 0.0]), np.array([0.5, 1.0, 0.2])
    multiplier = 0.5 * 0.6 + 1.0 * 0.8
    gradient = multiplier * w - slopes * np.sign(w)
    gradient[2] = -0.2
    assert kkt_residual(w, gradient, slopes) == pytest.approx(0.0, abs=1e-15)
    gradient[2] = -0.3
    assert kkt_residual(w, gradient, slopes) == pytest.approx(0.1)
    gradient += np.array([0.8, 0.6, 0.0])  # along the sphere
    assert kkt_residual(w, gradient, slopes) == pytest.approx(0.8)
