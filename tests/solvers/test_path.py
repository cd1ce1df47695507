"""Where the path starts, how it goes down and what the way up repairs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsegsvp import sparse_gsvp, sparse_gsvp_path
from sparsegsvp.linalg.rows import as_rows
from sparsegsvp.solvers.newton import Problem
from sparsegsvp.solvers.path import Path
from sparsegsvp.solvers.penalties import Penalty
from sparsegsvp.solvers.quotient import OneVsRest, Part, covariances_of

few = settings(max_examples=15, deadline=None, derandomize=True)
problems = {
    "seed": st.integers(0, 1000),
    "tau": st.sampled_from([0.3, 1.0, 10.0]),
    "pool": st.sampled_from([0.0, 0.5, 1.0]),
    "q": st.sampled_from([1.0, 0.5]),
    "m": st.sampled_from([12, 210]),  # moments and rows
}


@few
@given(**problems)
def test_the_start_is_the_best_single_feature_with_its_delta_max(
    reference, classes, seed, tau, pool, q, m
):
    A, B = classes(20, m, seed=seed)
    factors = np.random.default_rng(seed).uniform(0.5, 2.0, m)
    ref = reference(A, B, tau=tau, pool=pool)
    options = {"tau": tau, "pool": pool, "q": q, "penalty_factor": factors}
    top = sparse_gsvp(A, B, 1e6, **options)
    if top.clipped:
        return
    best = int(np.argmin([ref.value(e) for e in np.eye(m)]))
    assert top.support.tolist() == [best] and top.n_iter == 0
    steep = 1.0 if q == 1.0 else q * 1e-3 ** (q - 1)
    pull = np.abs(ref.gradient(top.w)) / (factors * steep)
    assert top.delta_max == pytest.approx(np.delete(pull, best).max(), rel=1e-9)
    for rho in (1.0, 1.0 + 1e-9, 5.0):
        above = sparse_gsvp(A, B, rho * top.delta_max, **options)
        assert above.support.tolist() == [best]
        assert above.converged and above.kkt_residual <= 1e-12
    below = sparse_gsvp(A, B, 0.98 * top.delta_max, **options)
    assert len(below.support) > 1 and below.converged


@few
@given(**problems)
def test_every_point_is_certified(reference, classes, seed, tau, pool, q, m):
    A, B = classes(25, m, seed=seed)
    options = {"tau": tau, "pool": pool, "q": q, "n_deltas": 6, "ratio": 0.03}
    path = sparse_gsvp_path(A, B, **options)
    ref = reference(A, B, tau=tau, pool=pool)
    np.testing.assert_allclose(
        [r.delta for r in path], path[0].delta_max * np.geomspace(1.0, 0.03, 6)
    )
    objectives = [r.objective for r in path]
    assert objectives == sorted(objectives, reverse=True)
    for result in path:
        assert result.converged
        assert (np.diff(result.history) <= 1e-14 * np.abs(result.history[:-1])).all()
        assert result.history[-1] == pytest.approx(result.objective, rel=1e-12)
        if result.clipped:
            continue
        assert np.linalg.norm(result.w) == pytest.approx(1.0, abs=1e-12)
        np.testing.assert_array_equal(np.flatnonzero(result.w), result.support)
        assert result.quotient == pytest.approx(ref.ratio(result.w, result.b), rel=1e-9)
        assert result.quotient == pytest.approx(ref.value(result.w), rel=1e-9)
        assert result.objective == pytest.approx(
            ref.objective(result.w, result.delta, q=q), rel=1e-9
        )
        certificate = ref.certificate(result.w, result.b, result.delta, q=q)
        assert certificate <= 1.001e-6 * result.delta_max
        assert result.kkt_residual == pytest.approx(certificate, abs=1e-9)
        # the mean of B is on the positive side
        assert B.mean(axis=0) @ result.w + result.b >= 0.0


@pytest.mark.parametrize("m", [40, 240])
def test_a_path_is_what_single_solves_and_random_starts_give(classes, m):
    """Where there is one minimum, tau being large."""
    A, B = classes(30, m, seed=2)
    rng = np.random.default_rng(0)
    for result in sparse_gsvp_path(A, B, n_deltas=6, tau=10.0, pool=0.5):
        for start in (None, rng.normal(size=m)):
            alone = sparse_gsvp(A, B, result.delta, tau=10.0, pool=0.5, w0=start)
            if start is not None and len(result.support) == 1:
                continue  # at delta_max any single feature is stationary
            np.testing.assert_array_equal(alone.support, result.support)
            np.testing.assert_allclose(alone.w, result.w, atol=1e-5)
            assert alone.delta_max == result.delta_max


def test_given_deltas_are_solved_from_the_largest_down(classes):
    A, B = classes(30, 12)
    path = sparse_gsvp_path(A, B, [0.01, 5.0, 0.1])
    assert [r.delta for r in path] == [5.0, 0.1, 0.01]
    assert len(path[0].support) == 1
    assert sparse_gsvp_path(A, B, n_deltas=1)[0].delta == path[0].delta_max


def test_the_way_up_repairs_and_never_raises(classes, monkeypatch):
    """With a small floor there are several minima; the upward walk may only improve."""
    repaired = 0
    for seed in (2, 5, 8):
        A, B = classes(25, 40, seed=seed, shift=0.3)
        both = sparse_gsvp_path(A, B, n_deltas=10, tau=0.02)
        with monkeypatch.context() as context:
            context.setattr(Path, "_lower_from", lambda self, start, down: None)
            down = sparse_gsvp_path(A, B, n_deltas=10, tau=0.02)
        for one, two in zip(down, both, strict=True):
            gap = (one.objective - two.objective) / two.objective
            assert two.gap == pytest.approx(gap, abs=1e-12) and gap >= 0.0
            repaired += gap > 0.0
    assert repaired > 0


def _solver(blocks, q, first_above):
    parts = [Part(as_rows(X), np.full(len(X), k), np.ones(len(X))) for k, X in enumerate(blocks)]
    cov = covariances_of(parts, 2, standardize=False)
    plane = OneVsRest.of_class(0, cov.share, 0.5)
    problem = Problem(cov, plane, 1.0, Penalty(q), np.ones(len(cov.center)))
    return Path(problem, tol=1e-6, max_iter=1000, first_above=first_above)


def test_above_delta_max_a_concave_penalty_may_have_lower_minima(classes):
    """``first_above=False`` takes the lower of the single feature and the reweighted l1."""
    for m in (30, 220):
        blocks = classes(30, m, seed=4, shift=1.5)
        keep, leave = (_solver(blocks, 0.5, first_above) for first_above in (True, False))
        delta = 2 * keep.delta_max
        single, lower = keep.at(delta), leave.at(delta)
        assert len(single.features) == 1 < len(lower.features)
        assert lower.objective < single.objective


@few
@given(seed=st.integers(0, 1000), tau=st.sampled_from([0.3, 3.0]))
def test_q_near_1_approaches_l1(classes, seed, tau):
    A, B = classes(40, 10, seed=seed)
    delta = 0.2 * sparse_gsvp(A, B, 1e9, tau=tau).delta_max
    l1 = sparse_gsvp(A, B, delta, tau=tau)
    near = sparse_gsvp(A, B, delta, q=0.9999, tau=tau)
    assert near.objective == pytest.approx(l1.objective, abs=1e-3 * delta + 1e-9)
    np.testing.assert_allclose(near.w, l1.w, atol=5e-3)


@pytest.mark.parametrize("m", [30, 300])
def test_a_warm_refit_is_immediate(classes, m):
    A, B = classes(30, m, seed=8)
    first = sparse_gsvp(A, B, 0.02)
    again = sparse_gsvp(A, B, 0.02, w0=first.w)
    assert first.n_iter > 0 and again.n_iter <= 1
    np.testing.assert_array_equal(again.support, first.support)
    np.testing.assert_allclose(again.w, first.w, atol=1e-6)


@pytest.mark.parametrize("m", [5, 220])
def test_a_feature_without_spread_in_its_class_needs_a_floor(m):
    """tau = 0: the quotient of that feature is 0 at once, whatever rounding makes of it."""
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(400, m)), rng.normal(size=(400, m))
    A[:, 3] = 1e3 / 3
    with pytest.raises(ValueError, match=r"feature 3 is constant.*delta_max.*Use tau > 0"):
        sparse_gsvp_path(A, B, tau=0.0)
    assert sparse_gsvp(A, B, 0.1, tau=0.1).converged


def test_one_varying_feature_is_the_answer(classes):
    A, B = classes(30, 3)
    for X in (A, B):
        X[:, 0], X[:, 2] = 0.1, 7.0
    for delta in (1e-3, 1.0):
        result = sparse_gsvp(A, B, delta)
        assert result.support.tolist() == [1] and result.converged
