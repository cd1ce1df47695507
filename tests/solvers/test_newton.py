"""Newton steps in the span of five vectors, held against the loop that knows no such thing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsegsvp.linalg import DataCovariances, as_matrix
from sparsegsvp.solvers import L1
from sparsegsvp.solvers.newton import _Newton, _turned, minimize_with_newton
from sparsegsvp.solvers.quotient import GramQuotient, OneVsRest, evaluate, hessian
from sparsegsvp.solvers.sphere import minimize_on_sphere

few = settings(max_examples=30, deadline=None, derandomize=True)
problems = {
    "seed": st.integers(0, 1000),
    "n_classes": st.sampled_from([2, 3, 4]),
    "tau": st.sampled_from([0.1, 1.0, 10.0]),
    "pool": st.sampled_from([0.0, 0.5, 1.0]),
    "delta": st.sampled_from([0.0, 0.01, 0.1]),
}


def _quotient(blocks, i=0, tau=1.0, pool=0.0, weight=None):
    X, codes = np.concatenate(blocks), np.repeat(np.arange(len(blocks)), [len(b) for b in blocks])
    cov = DataCovariances(as_matrix(X), codes, weight, len(blocks), standardize=False)
    features = np.arange(X.shape[1])
    cov.extend(features)
    return GramQuotient(cov, OneVsRest.of_class(i, cov.share, pool), tau, features)


def _start(m, rng, share=1.0):
    w = rng.normal(size=m) * (rng.random(m) < share)
    w[0] = 1.0
    return w / np.linalg.norm(w)


@few
@given(**problems)
def test_the_system_is_the_projected_hessian(classes, penalty, seed, n_classes, tau, pool, delta):
    """On the support and features that enter at zero, with what the penalty bends."""
    rng = np.random.default_rng(seed)
    quotient = _quotient(classes(25, 9, n_classes, seed=seed), seed % n_classes, tau, pool)
    base, w = delta * rng.uniform(0.5, 2.0, 9), _start(9, rng, 0.6)
    newton = _Newton(quotient, penalty, base, tol=1e-9)
    it = newton.start(w)
    point = evaluate(quotient, w)
    np.testing.assert_allclose(it.gradient, point.gradient, atol=1e-12)
    at = rng.permutation(9)
    v = w[at]
    found, scale = newton.system(it, at, v)

    slopes = base * penalty.slope(np.abs(w))
    multiplier = w @ (point.gradient + slopes * np.sign(w))
    bend = np.where(v != 0.0, base[at] * penalty.curvature(np.abs(v)), 0.0)
    H = hessian(quotient, point, at) - multiplier * np.eye(9) + np.diag(bend)
    P = np.eye(9) - np.outer(v, v)
    expected = P @ H @ P + scale * np.outer(v, v)
    assert scale > 0.0
    np.testing.assert_allclose(found, expected, atol=1e-10 * max(np.abs(expected).max(), 1.0))


@few
@given(**problems)
def test_it_descends_to_a_stationary_point(
    reference, classes, penalty, seed, n_classes, tau, pool, delta
):
    blocks = classes(25, 8, n_classes, seed=seed)
    i = seed % n_classes
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.5, 2.0, 8)
    found = minimize_with_newton(
        _quotient(blocks, i, tau, pool),
        penalty,
        delta,
        weights,
        _start(8, rng, 0.5),
        tol=1e-7,
        max_iter=5000,
    )
    w, history = found.point.w, np.asarray(found.history)
    assert np.linalg.norm(w) == pytest.approx(1.0, abs=1e-12)
    assert (np.diff(history) <= 1e-14 * np.abs(history[:-1])).all()
    assert history[-1] == found.objective
    if found.point.bias.clipped:
        return
    expected = reference(*blocks, i=i, tau=tau, pool=pool)
    b = found.point.bias.own - expected.means[i] @ w
    assert found.residual <= 1e-7
    assert expected.certificate(w, b, delta, penalty, weights) <= 1e-7 + 1e-10
    assert found.objective == pytest.approx(
        expected.objective(w, delta, penalty, weights), rel=1e-9
    )


@few
@given(seed=st.integers(0, 1000), rho=st.sampled_from([0.3, 0.1, 0.03]))
def test_where_there_is_one_minimum_the_plain_loop_ends_there_too(classes, seed, rho):
    """Sample weights, penalty weights and a floor that leaves one minimum."""
    rng = np.random.default_rng(seed)
    blocks = classes(40, 15, seed=seed)
    weight = rng.uniform(0.5, 2.0, sum(len(block) for block in blocks))
    quotient = _quotient(blocks, tau=5.0, pool=0.5, weight=weight)
    weights = rng.uniform(0.5, 2.0, 15)
    delta = rho * float(np.abs(evaluate(quotient, np.eye(15)[0]).gradient).max())
    start = _start(15, rng)
    found = [
        minimize(quotient, L1(), delta, weights, start, tol=1e-10, max_iter=5000)
        for minimize in (minimize_with_newton, minimize_on_sphere)
    ]
    assert found[0].objective == pytest.approx(found[1].objective, rel=1e-10)
    one, other = (solution.point.w for solution in found)
    np.testing.assert_allclose(one, other * np.sign(one @ other), atol=1e-6)
    np.testing.assert_array_equal(one != 0, other != 0)


@few
@given(seed=st.integers(0, 1000))
def test_permuting_and_flipping_features_does_so_to_the_solution(classes, penalty, seed):
    rng = np.random.default_rng(seed)
    blocks = classes(30, 12, seed=seed)
    order, flip = rng.permutation(12), rng.choice([-1.0, 1.0], 12)
    weights, start = rng.uniform(0.5, 2.0, 12), _start(12, rng, 0.4)
    options = {"tol": 1e-9, "max_iter": 5000}
    plain = minimize_with_newton(_quotient(blocks), penalty, 0.02, weights, start, **options)
    moved = minimize_with_newton(
        _quotient([(block * flip)[:, order] for block in blocks]),
        penalty,
        0.02,
        weights[order],
        (start * flip)[order],
        **options,
    )
    assert moved.objective == pytest.approx(plain.objective, rel=1e-9)
    np.testing.assert_allclose(moved.point.w, (plain.point.w * flip)[order], atol=1e-5)


def test_starting_at_the_solution_takes_no_iteration(classes):
    quotient = _quotient(classes(40, 10))
    start = np.ones(10) / np.sqrt(10)
    options = {"tol": 1e-7, "max_iter": 1000}
    first = minimize_with_newton(quotient, L1(), 0.02, np.ones(10), start, **options)
    again = minimize_with_newton(quotient, L1(), 0.02, np.ones(10), first.point.w, **options)
    assert first.n_iter > 0
    assert again.n_iter == 0
    np.testing.assert_array_equal(again.point.w, first.point.w)


def test_where_no_newton_step_descends_the_plain_loop_goes_on(classes, monkeypatch):
    monkeypatch.setattr(_Newton, "step", lambda self, it: None)
    quotient, start = _quotient(classes(30, 12, seed=1)), np.ones(12) / np.sqrt(12)
    options = {"tol": 1e-8, "max_iter": 3000}
    found = minimize_with_newton(quotient, L1(), 0.02, np.ones(12), start, **options)
    plain = minimize_on_sphere(quotient, L1(), 0.02, np.ones(12), start, **options)
    assert found.residual <= 1e-8
    assert (found.history, found.n_iter) == (plain.history, plain.n_iter)


@few
@given(seed=st.integers(0, 1000), n=st.integers(2, 30))
def test_an_indefinite_matrix_is_turned_into_a_positive_definite_one(seed, n):
    """The same solution where it is definite already, and always a direction of descent."""
    rng = np.random.default_rng(seed)
    vectors = np.linalg.qr(rng.normal(size=(n, n)))[0]
    values = rng.uniform(0.1, 2.0, n)
    total = rng.normal(size=n)
    H = (vectors * values) @ vectors.T
    np.testing.assert_allclose(_turned(H, total, 1e-9), -np.linalg.solve(H, total), rtol=1e-8)
    values *= rng.choice([-1.0, 1.0], n)
    values[0] = -values[0]
    H = (vectors * values) @ vectors.T
    kept = H.copy()
    inverse = -np.stack([_turned(H, e, 1e-9) for e in np.eye(n)])
    np.testing.assert_array_equal(H, kept)
    np.testing.assert_allclose(inverse, inverse.T, atol=1e-8 * np.abs(inverse).max())
    assert (np.linalg.eigvalsh(inverse) > 0.0).all()
