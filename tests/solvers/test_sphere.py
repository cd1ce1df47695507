"""The exact proximal step and the loop that takes it."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsegsvp.linalg import DataCovariances, as_matrix
from sparsegsvp.solvers import L1, Lq, sphere
from sparsegsvp.solvers.quotient import GramQuotient, OneVsRest, evaluate
from sparsegsvp.solvers.sphere import (
    ARMIJO,
    _admitting,
    _gradient_step,
    _Memory,
    _newton_step,
    _State,
    kkt_residual,
    minimize_on_sphere,
    prox_on_sphere,
    rounding,
)

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


# --- one step at a time --------------------------------------------------------------------


def _state(quotient, w, delta=0.02):
    w = np.asarray(w, dtype=float)
    return _State(evaluate(quotient, w / np.linalg.norm(w)), delta * np.ones(len(w)), L1())


def test_a_state_has_the_objective_and_slopes_of_its_penalty(classes):
    quotient = _quotient(classes(30, 4))
    w = np.array([0.6, 0.0, -0.8, 0.0])
    base = np.array([0.1, 0.2, 0.3, 0.4])
    for penalty, slopes in ((L1(), base), (Lq(0.5, 0.1), base * Lq(0.5, 0.1).slope(np.abs(w)))):
        state = _State(evaluate(quotient, w), base, penalty)
        assert state.objective == pytest.approx(
            state.point.ratio + 0.1 * penalty.value(0.6) + 0.3 * penalty.value(0.8)
            + 0.6 * penalty.value(0.0)
        )  # fmt: skip
        np.testing.assert_allclose(state.slopes, slopes)
        excess = np.abs(state.point.gradient[[1, 3]]) - slopes[[1, 3]]
        for tol in (0.0, excess.max(), excess.max() + 1e-9, excess.max() - 1e-9):
            assert state.admits(tol) == bool((excess > tol).any())


def test_rounding_grows_with_the_objective_but_not_below_a_thousandth():
    for objective, size in ((100.0, 100.0), (-2.0, 2.0), (0.01, 0.01), (1e-9, 1e-3)):
        assert rounding(objective) == 4 * 2.0**-52 * size


def test_the_first_length_is_that_of_the_curvature_along_the_gradient(classes):
    quotient = _quotient(classes(30, 4))
    point = evaluate(quotient, np.ones(4) / 2)
    memory, g = _Memory(), point.gradient
    bend = 2 * (g @ quotient.own @ g - point.ratio * g @ quotient.other @ g)
    expected = g @ g / (abs(bend) / point.bias.denominator)
    assert memory.length(quotient, point) == pytest.approx(expected)
    assert memory.length(quotient, replace(point, gradient=np.zeros(4))) == 1.0
    flat = SimpleNamespace(products=lambda g: (np.zeros_like(g), np.zeros_like(g)))
    assert memory.length(flat, point) == 1.0


def test_later_lengths_are_barzilai_and_borweins_where_the_curvature_is_positive(classes):
    quotient = _quotient(classes(30, 4))
    old = evaluate(quotient, np.ones(4) / 2)
    memory = _Memory()
    memory.keep(old, 0.37)
    s = np.array([0.1, -0.2, 0.0, 0.1])
    for y, expected in (
        (np.array([0.3, -0.1, 1.0, 0.0]), 0.06 / 0.05),
        (np.array([-0.3, 0.1, 1.0, 0.0]), 0.37),  # negative curvature: the last length
        (np.array([0.0, 0.0, 1.0, 0.0]), 0.37),
    ):
        new = replace(old, w=old.w + s, gradient=old.gradient + y)
        assert memory.length(quotient, new) == pytest.approx(expected)
    memory.forget()
    assert memory.length(quotient, new) == 0.37


def test_of_the_features_at_zero_the_worst_few_have_a_gradient(classes):
    quotient = _quotient(classes(30, 8))
    w = np.zeros(8)
    w[[0, 3]] = 0.6, 0.8
    state = _state(quotient, w)
    g = state.point.gradient
    excess = np.where(w == 0.0, np.abs(g), -1.0)
    for most in (1, 3, 7):
        worst = np.argsort(-excess)[: min(most, 6)]
        kept = np.flatnonzero(_admitting(state, most))
        assert set(kept) == {0, 3, *worst.tolist()}
        np.testing.assert_array_equal(_admitting(state, most)[kept], g[kept])
    np.testing.assert_array_equal(_admitting(state, 8), g)


def test_a_gradient_step_descends_enough_or_is_none(classes, monkeypatch):
    quotient = _quotient(classes(30, 6))
    state, memory = _state(quotient, np.arange(1.0, 7.0)), _Memory()
    new = _gradient_step(quotient, state, memory)
    step = new.point.w - state.point.w
    length = memory._length
    expected = prox_on_sphere(state.point.w - length * state.point.gradient, length * state.slopes)
    np.testing.assert_array_equal(new.point.w, expected)
    assert new.objective <= state.objective - ARMIJO * (step @ step) / (2 * length)
    assert memory._w is state.point.w and memory._g is state.point.gradient
    # near the minimum a length that is far too long is halved until the step descends
    near = _minimize(quotient, np.ones(6), tol=1e-4, polish=False).point.w
    near = _state(quotient, near + 1e-2 * np.ones(6))
    memory = _Memory()
    memory._length = 1e6 * length
    assert _gradient_step(quotient, near, memory).objective < near.objective
    halvings = np.log2(1e6 * length / memory._length)
    assert halvings == round(halvings) > 0
    # at a vertex that the penalty holds nothing moves
    memory._length = 1e-3
    memory.forget()
    assert _gradient_step(quotient, _state(quotient, np.eye(6)[0], 50.0), memory) is None
    # where every point is worse the search ends when no step is left, or after sixty halvings
    worse = replace(state.point, bias=state.point.bias._replace(ratio=9.0))
    tried = []
    monkeypatch.setattr(
        sphere, "evaluate", lambda quotient, w: tried.append(w) or replace(worse, w=w)
    )
    memory = _Memory()
    assert _gradient_step(quotient, state, memory) is None
    assert memory._length is None and 40 < len(tried) < 60
    tried.clear()
    memory._length = 1e30
    assert _gradient_step(quotient, state, memory) is None
    assert memory._length == 1e30 and len(tried) == 60


def test_a_gradient_step_descends_by_a_part_of_what_its_length_promises(classes, monkeypatch):
    """Just less than ARMIJO |step|^2 / (2 length) is not enough, just more is."""
    quotient = _quotient(classes(30, 6))
    state, memory = _state(quotient, np.arange(1.0, 7.0)), _Memory()
    memory._length = 0.1
    lengths, parts = iter((0.1, 0.05)), iter((0.95, 1.05))

    def evaluate(quotient, w):
        step = w - state.point.w
        drop = next(parts) * ARMIJO * (step @ step) / (2.0 * next(lengths))
        ratio = state.objective - drop - state.base @ np.abs(w)
        return replace(state.point, w=w, bias=state.point.bias._replace(ratio=ratio))

    monkeypatch.setattr(sphere, "evaluate", evaluate)
    assert _gradient_step(quotient, state, memory).objective < state.objective
    assert memory._length == 0.05


def _directed(monkeypatch, direction, slope):
    monkeypatch.setattr(sphere, "_newton_direction", lambda *_: (direction, slope))


def test_a_newton_step_is_cut_at_zero_crossings_and_shortened(classes, monkeypatch):
    quotient = _quotient(classes(30, 4))
    state = _state(quotient, [1.0, -2.0, 2.0, 0.0])
    full = _newton_step(quotient, state)
    assert full.objective < state.objective and full.point.w[3] == 0.0
    assert full.objective == pytest.approx(
        minimize_on_sphere(
            quotient, L1(), 0.02, np.ones(4), full.point.w, tol=0.0, max_iter=0
        ).objective
    )
    w, tried = state.point.w, []

    def at(ratios):
        """Points whose quotients are as given, one after the other."""
        left = iter(ratios)

        def evaluate(quotient, w):
            tried.append(w[[0, 1, 2]])
            return replace(state.point, w=w, bias=state.point.bias._replace(ratio=next(left)))

        return evaluate

    _directed(monkeypatch, np.array([-1.0, 0.1, 0.1]), -1e-9)
    monkeypatch.setattr(sphere, "evaluate", at([9.0, 9.0, 0.0]))
    assert _newton_step(quotient, state).objective < state.objective
    for length, found in zip((1.0, 0.25, 0.0625), tried):
        values = w[:3] + length * np.array([-1.0, 0.1, 0.1])
        values[0] = max(values[0], 0.0)
        np.testing.assert_allclose(found, values / np.linalg.norm(values))
    tried.clear()
    monkeypatch.setattr(sphere, "evaluate", at([9.0] * 8))
    assert _newton_step(quotient, state) is None
    assert len(tried) == 8
    # every weight crosses zero at once: the first length is passed over
    tried.clear()
    _directed(monkeypatch, -2.0 * w[:3], -1e-9)
    monkeypatch.setattr(sphere, "evaluate", at([9.0] * 8))
    assert _newton_step(quotient, state) is None
    assert len(tried) == 7
    # an objective that stays is progress only with a smaller residual
    _directed(monkeypatch, np.zeros(3), 0.0)
    monkeypatch.setattr(sphere, "evaluate", lambda quotient, w: state.point)
    assert _newton_step(quotient, state) is None
    stationary = 0.02 * (np.abs(w).sum() * w - np.sign(w))
    better = replace(state.point, gradient=stationary)
    assert state.at(better).residual() < 1e-15 < state.residual()
    monkeypatch.setattr(sphere, "evaluate", lambda quotient, w: better)
    assert _newton_step(quotient, state) is not None
    # a full step that descends by half of what its slope asks for is cut to a quarter
    tried.clear()
    _directed(monkeypatch, 0.1 * w[[1, 0, 2]], -4.0)

    def descending(quotient, w):
        tried.append(w)
        ratio = state.objective - 2.0 * ARMIJO - state.base @ np.abs(w)
        return replace(state.point, w=w, bias=state.point.bias._replace(ratio=ratio))

    monkeypatch.setattr(sphere, "evaluate", descending)
    assert _newton_step(quotient, state) is not None
    assert len(tried) == 2


def test_a_newton_step_takes_features_without_a_penalty_through_zero(classes, monkeypatch):
    """There is no kink at zero, so they keep what the step gives them; others are cut there."""
    quotient = _quotient(classes(30, 4))
    w = np.array([0.5, -0.5, 0.5, 0.5])
    state = _State(evaluate(quotient, w), np.array([0.0, 0.0, 0.02, 0.0]), L1())
    monkeypatch.setattr(sphere, "evaluate", lambda quotient, w: replace(state.point, w=w))
    _directed(monkeypatch, np.array([-0.9, 0.9, -0.9, 0.1]), 0.0)
    state.objective = 9.0
    new = _newton_step(quotient, state).point.w
    expected = np.array([-0.4, 0.4, 0.0, 0.6])
    np.testing.assert_allclose(new, expected / np.linalg.norm(expected))


def test_newton_steps_are_for_supports_of_a_size(classes, monkeypatch):
    quotient = _quotient(classes(30, 5))
    assert _newton_step(quotient, _state(quotient, [1, 0, 0, 0, 0])) is None
    assert _newton_step(quotient, _state(quotient, [1, 1, 0, 0, 0])) is not None
    monkeypatch.setattr(sphere, "MAX_NEWTON", 3)
    assert _newton_step(quotient, _state(quotient, [1, 1, 1, 0, 0])) is not None
    assert _newton_step(quotient, _state(quotient, [1, 1, 1, 1, 0])) is None
    monkeypatch.setattr(sphere, "_newton_direction", lambda *_: None)
    assert _newton_step(quotient, _state(quotient, [1, 1, 0, 0, 0])) is None


@pytest.mark.parametrize("curvature", [5.0, -5.0, 1e-9])
def test_the_newton_direction_solves_with_the_absolute_curvature(
    classes, penalty, monkeypatch, curvature
):
    """With H = c I the direction is -total / |c|, or less far where c is next to nothing."""
    quotient = _quotient(classes(30, 5))
    w = np.array([0.5, 0.5, -0.5, 0.5, 0.0])
    state = _State(evaluate(quotient, w), np.full(5, 0.02), penalty)
    at = np.arange(4)
    total = state.point.gradient[at] + state.slopes[at] * np.sign(w[at])
    multiplier = w[at] @ total
    total = total - multiplier * w[at]
    bend = 0.0 if penalty.linear else 0.02 * penalty.curvature(0.5)
    own = curvature + multiplier - bend  # what the Hessian must be for c to be left
    monkeypatch.setattr(sphere, "hessian", lambda *_: own * np.eye(4))
    direction, slope = sphere._newton_direction(quotient, state, at)
    np.testing.assert_allclose(direction, -total / abs(curvature), rtol=1e-6)
    assert slope == pytest.approx(-(total @ total) / abs(curvature), rel=1e-6)
    assert abs(direction @ w[at]) <= 1e-12 * np.abs(direction).max()
    if curvature < 0:
        monkeypatch.setattr(sphere, "MAX_SADDLE", 4)
        assert sphere._newton_direction(quotient, state, at) is not None
        monkeypatch.setattr(sphere, "dsyevd", lambda *_, **__: (None, None, 1))
        assert sphere._newton_direction(quotient, state, at) is None
        monkeypatch.setattr(sphere, "MAX_SADDLE", 3)
        assert sphere._newton_direction(quotient, state, at) is None
    state.slopes, state.point = np.zeros(5), replace(state.point, gradient=np.zeros(5))
    monkeypatch.setattr(sphere, "hessian", lambda *_: 5.0 * np.eye(4))
    assert sphere._newton_direction(quotient, state, at) is None


def test_a_curvature_that_differs_by_direction_is_turned_in_each(classes, monkeypatch):
    """Eigenvalues 3 and -2 and next to nothing, in the tangent space."""
    quotient = _quotient(classes(30, 4))
    w = np.ones(4) / 2
    state = _State(evaluate(quotient, w), np.full(4, 0.02), L1())
    basis = np.linalg.qr(np.column_stack([w, np.eye(4)[:, :3]]))[0][:, 1:]
    total = state.point.gradient + 0.02
    multiplier = w @ total
    total = total - multiplier * w
    H = (basis * [3.0, -2.0, 1e-14]) @ basis.T + multiplier * np.eye(4)
    monkeypatch.setattr(sphere, "hessian", lambda *_: H.copy())
    direction, _ = sphere._newton_direction(quotient, state, np.arange(4))
    least = 0.1 * np.abs(np.diagonal(H) - multiplier).mean()
    expected = -basis @ ((basis.T @ total) / [3.0, 2.0, least])
    np.testing.assert_allclose(direction, expected, rtol=1e-8)


@pytest.mark.parametrize("along", [100.0, -100.0])
def test_what_the_curvature_is_along_the_point_itself_does_not_matter(classes, monkeypatch, along):
    """It is positive on the tangent space: a Cholesky factor, and no eigenvectors."""
    quotient = _quotient(classes(30, 4))
    w = np.ones(4) / 2
    state = _State(evaluate(quotient, w), np.full(4, 0.02), L1())
    basis = np.linalg.qr(np.column_stack([w, np.eye(4)[:, :3]]))[0][:, 1:]
    total = state.point.gradient + 0.02
    multiplier = w @ total
    H = 3.0 * basis @ basis.T + along * np.outer(w, w) + multiplier * np.eye(4)
    monkeypatch.setattr(sphere, "hessian", lambda *_: H.copy())
    monkeypatch.setattr(sphere, "dsyevd", None)
    direction, _ = sphere._newton_direction(quotient, state, np.arange(4))
    np.testing.assert_allclose(direction, -(total - multiplier * w) / 3.0, atol=1e-12)


# --- the loop around the steps -------------------------------------------------------------


def _minimize(quotient, start, **options):
    start = np.asarray(start, dtype=float)
    options = {"tol": 1e-9, "max_iter": 100, **options}
    weights = np.ones(len(start))
    return minimize_on_sphere(
        quotient, L1(), 0.02, weights, start / np.linalg.norm(start), **options
    )


def test_where_no_step_descends_the_loop_ends(classes, monkeypatch):
    quotient = _quotient(classes(30, 5))
    monkeypatch.setattr(sphere, "_gradient_step", lambda *_: None)
    monkeypatch.setattr(sphere, "_newton_step", lambda *_: None)
    found = _minimize(quotient, [1, 2, 0, 0, 1])
    assert (found.n_iter, len(found.history)) == (1, 1)
    assert found.residual > 1e-9


def test_a_vertex_that_the_penalty_holds_is_where_it_ends(classes):
    """Its residual is exactly zero, which is no more than a tolerance of zero."""
    quotient = _quotient(classes(30, 5))
    found = minimize_on_sphere(quotient, L1(), 50.0, np.ones(5), np.eye(5)[0], tol=0.0, max_iter=10)
    assert (found.residual, found.n_iter, len(found.history)) == (0.0, 0, 1)


def test_few_features_enter_at_a_time_and_newton_steps_void_the_last_length(classes, monkeypatch):
    quotient = _quotient(classes(60, 40, seed=3))
    step, asked = _gradient_step, []

    def recorded(quotient, state, memory, most=None):
        asked.append((int(np.count_nonzero(state.point.w)), most, memory._w))
        return step(quotient, state, memory, most)

    monkeypatch.setattr(sphere, "_gradient_step", recorded)
    for n in (1, 7, 8, 16):
        _minimize(quotient, np.arange(40) < n, max_iter=3)
    assert {1: 1, 7: 1, 8: 2, 16: 3}.items() <= {n: most for n, most, _ in asked}.items()
    assert all(most == 1 + n // 8 for n, most, _ in asked)
    # a Newton step lies between any two gradient steps here
    assert len(asked) > 8 and all(last is None for *_, last in asked)
    asked.clear()
    _minimize(quotient, np.arange(40) < 8, max_iter=3, newton=False)
    assert [most for _, most, _ in asked] == [None] * 3
    assert [last is None for *_, last in asked] == [True, False, False]


def test_where_newton_finds_nothing_gradient_steps_go_on(classes, monkeypatch):
    quotient = _quotient(classes(40, 5), tau=3.0, pool=0.5)
    free = _minimize(quotient, np.ones(5))
    monkeypatch.setattr(sphere, "_newton_step", lambda *_: None)
    slow = _minimize(quotient, np.ones(5), max_iter=5000)
    assert slow.residual <= 1e-9 and slow.n_iter > free.n_iter
    np.testing.assert_allclose(slow.point.w, free.point.w, atol=1e-6)


def test_the_limits_of_the_loop_hold(classes):
    quotient = _quotient(classes(40, 8))
    for newton in (True, False):
        for limit in (0, 1, 2):
            found = _minimize(quotient, np.ones(8), max_iter=limit, newton=newton, tol=1e-14)
            assert found.n_iter == limit and len(found.history) == limit + 1
            assert found.residual == pytest.approx(
                kkt_residual(found.point.w, found.point.gradient, np.full(8, 0.02))
            )


def test_one_step_more_settles_the_coefficients(classes):
    """With a loose tolerance: closer to the solution, never above it, one iteration more."""
    polished = 0
    for seed in range(8):
        quotient = _quotient(classes(40, 8, seed=seed), tau=3.0)
        exact = _minimize(quotient, np.ones(8), tol=1e-13).point.w
        plain = _minimize(quotient, np.ones(8), tol=1e-3, polish=False)
        more = _minimize(quotient, np.ones(8), tol=1e-3)
        assert more.residual <= plain.residual <= 1e-3
        assert more.history[: len(plain.history)] == plain.history
        settled = plain.residual <= 1e-5
        assert more.n_iter == plain.n_iter + (not settled) == len(more.history) - 1
        if not settled:
            polished += 1
            assert np.abs(more.point.w - exact).max() < 0.2 * np.abs(plain.point.w - exact).max()
        rough = _minimize(quotient, np.ones(8), tol=1e-3, newton=False)
        assert rough.n_iter == len(rough.history) - 1
        # not where nothing was to do, nor beyond the limit
        assert _minimize(quotient, more.point.w, tol=1e-3).n_iter == 0
        assert _minimize(quotient, plain.point.w, tol=1e-3).n_iter == 0
        # a residual that is the tolerance will do, and so will a single step before
        near = exact * np.linspace(0.9, 1.1, 8)
        first = _minimize(quotient, near, tol=0.0, max_iter=1, polish=False)
        assert _minimize(quotient, near, tol=first.residual).n_iter == 2
        limited = _minimize(quotient, np.ones(8), tol=1e-3, max_iter=plain.n_iter)
        assert limited.n_iter == plain.n_iter
    assert polished >= 3
