"""Newton steps in the span of five vectors, held against the loop that knows no such thing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsegsvp.linalg import DataCovariances, as_matrix
from sparsegsvp.solvers import L1
from sparsegsvp.solvers import newton as module
from sparsegsvp.solvers.newton import _Newton, _turned, _without, minimize_with_newton
from sparsegsvp.solvers.quotient import GramQuotient, OneVsRest, evaluate, hessian
from sparsegsvp.solvers.sphere import kkt_residual, minimize_on_sphere

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


# --- one step at a time --------------------------------------------------------------------


def _newton(quotient, w, delta=0.02, tol=1e-9, penalty=None):
    w = np.asarray(w, dtype=float)
    newton = _Newton(quotient, penalty or L1(), np.full(len(w), delta), tol)
    return newton, newton.start(w / np.linalg.norm(w))


def test_an_iterate_holds_what_the_definitions_say(classes, penalty):
    rng = np.random.default_rng(0)
    quotient = _quotient(classes(30, 6, 3), tau=0.7, pool=0.3)
    base, w = rng.uniform(0.01, 0.05, 6), np.array([0.6, 0.0, 0.0, -0.8, 0.0, 0.0])
    it = _Newton(quotient, penalty, base, 1e-9).start(w)
    point = evaluate(quotient, w)
    slopes = base * penalty.slope(np.abs(w))
    assert it.support.tolist() == [0, 3] and it.signs.tolist() == [1.0, -1.0]
    assert it.bias == pytest.approx(point.bias)
    cost = penalty.value(np.abs(w)) - penalty.value(0.0)
    assert it.objective == pytest.approx(point.ratio + base @ cost)
    np.testing.assert_allclose(it.slopes, slopes)
    total = point.gradient + slopes * np.sign(w)
    assert it.multiplier == pytest.approx(w @ total)
    np.testing.assert_allclose(it.total, (total - (w @ total) * w)[[0, 3]], atol=1e-14)
    excess = np.abs(point.gradient) - slopes
    assert it.worst == pytest.approx(excess[[1, 2, 4, 5]].max())
    assert it.residual == pytest.approx(kkt_residual(w, point.gradient, slopes))
    np.testing.assert_allclose(it.basis @ w, it.coordinates)


@pytest.mark.parametrize("part", [0.0, 1.5])
def test_a_bias_that_runs_off_is_held_where_it_is(part):
    """The own class is the wider one and the means coincide: the system is the Hessian's too.

    Or the means differ so little along w that the best plane is somewhat beyond the limit.
    """
    rng = np.random.default_rng(5)
    Z = rng.normal(size=(30, 4))
    Z -= Z.mean(axis=0)
    w = np.array([1.0, -2.0, 0.5, 1.0]) / 2.5
    own, other = 9 * (Z @ w).var() + 0.5, (Z @ w).var() + 0.5
    apart = (own - other) / (part * 1e4 * np.sqrt(own + other)) if part else 0.0
    quotient = _quotient([3 * Z, Z + apart * w], tau=0.5)
    newton, it = _newton(quotient, w)
    point = evaluate(quotient, it.w)
    assert it.bias.clipped and point.bias.clipped
    assert (it.bias.ratio < 1.0) == (part > 0.0)
    found, scale = newton.system(it, it.support, it.v)
    P = np.eye(4) - np.outer(it.w, it.w)
    H = hessian(quotient, point, np.arange(4)) - it.multiplier * np.eye(4)
    expected = P @ H @ P + scale * np.outer(it.w, it.w)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_classes_that_are_alike_have_no_curvature(classes):
    """Nothing but the penalty's multiplier, and the scale along w."""
    A, _ = classes(20, 5)
    quotient = _quotient([A, A], tau=0.5, pool=1.0)
    newton, it = _newton(quotient, np.ones(5))
    assert it.bias.ratio == 1.0
    H, scale = newton.system(it, it.support, it.v)
    vv = np.outer(it.v, it.v)
    np.testing.assert_allclose(H, -it.multiplier * (np.eye(5) - vv) + scale * vv, atol=1e-14)
    assert scale < 0.1


def test_the_worst_few_features_enter_against_their_gradient(classes, monkeypatch):
    quotient = _quotient(classes(40, 20, seed=3))
    for n_support, most in ((1, 1), (7, 1), (8, 2), (16, 3)):
        newton, it = _newton(quotient, np.arange(20) < n_support, delta=1e-4)
        violating = np.flatnonzero(it.excess > 1e-9)
        entering = newton._entering(it)
        assert len(violating) > most == len(entering)
        worst = violating[np.argsort(-it.excess[violating])[:most]]
        assert set(entering) == set(worst)
        assert (it.excess[it.support] == -1.0).all()
    newton.tol = float(np.sort(it.excess)[-2])  # no more than violate
    assert newton._entering(it).tolist() == [int(it.excess.argmax())]
    newton, it = _newton(quotient, np.eye(20)[0], delta=1e-4)
    (entering,) = newton._entering(it)
    new = newton.step(it)
    assert sorted(new.support.tolist()) == [0, entering]
    assert np.sign(new.w[entering]) == -np.sign(it.gradient[entering])
    assert new.objective < it.objective
    # what pulls them is the part of the gradient that the penalty leaves
    given = []
    monkeypatch.setattr(_Newton, "_direction", lambda *arguments: given.append(arguments[1:]))
    assert newton.step(it) is None
    [(_, at, v, total)] = given
    assert at.tolist() == [0, entering] and v.tolist() == [1.0, 0.0]
    left = np.sign(it.gradient[entering]) * it.excess[entering]
    np.testing.assert_allclose(total, [it.total[0], left])


def test_a_step_needs_two_features_a_direction_and_a_descent(classes, monkeypatch):
    quotient = _quotient(classes(30, 5))
    newton, it = _newton(quotient, np.eye(5)[0], delta=50.0)
    assert it.worst <= 0.0 and newton.step(it) is None
    newton, it = _newton(quotient, [1, 1, 0, 0, 0], delta=50.0)
    assert newton.step(it) is not None
    monkeypatch.setattr(module, "MAX_NEWTON", 2)
    assert newton.step(it) is not None
    newton, it = _newton(quotient, [1, 1, 1, 0, 0], delta=50.0)
    assert newton.step(it) is None
    monkeypatch.setattr(module, "MAX_NEWTON", 1000)
    monkeypatch.setattr(_Newton, "_direction", lambda *_: None)
    assert newton.step(it) is None
    monkeypatch.setattr(_Newton, "_direction", lambda self, it, at, v, total: total.copy())
    monkeypatch.setattr(_Newton, "_search", None)
    assert newton.step(it) is None  # uphill, so that there is nothing to search


def test_a_vertex_that_the_penalty_holds_is_where_it_ends(classes, monkeypatch):
    """Its residual is exactly zero, which is no more than a tolerance of zero."""
    monkeypatch.setattr(_Newton, "step", None)
    found = minimize_with_newton(
        _quotient(classes(30, 5)), L1(), 50.0, np.ones(5), np.eye(5)[0], tol=0.0, max_iter=10
    )
    assert (found.residual, found.n_iter, len(found.history)) == (0.0, 0, 1)


def test_a_search_is_cut_at_zero_crossings_and_shortened(classes, monkeypatch):
    quotient = _quotient(classes(30, 4))
    newton, it = _newton(quotient, [1.0, -2.0, 2.0, 0.0])
    tried, ratios = [], []
    evaluated = _Newton._evaluated

    def fake(self, w, support, v, signs):
        tried.append((w, support))
        new = evaluated(self, w, support, v, signs)
        new.objective = ratios.pop(0)
        return new

    monkeypatch.setattr(_Newton, "_evaluated", fake)
    at, v, signs = it.support, it.v, it.signs
    direction = np.array([-1.0, 0.1, 0.1])
    ratios += [9.0, 9.0, 0.0]
    found = newton._search(it, at, v, signs, direction, -1e-9)
    assert found is not None and found.objective == 0.0
    for length, (w, support) in zip((1.0, 0.25, 0.0625), tried):
        values = v + length * direction
        values[0] = max(values[0], 0.0)
        np.testing.assert_allclose(w[at], values / np.linalg.norm(values))
        assert support.tolist() == np.flatnonzero(w).tolist()
    tried.clear()
    ratios += [9.0] * 8
    assert newton._search(it, at, v, signs, direction, -1e-9) is None
    assert len(tried) == 8
    # every weight crosses zero at once: the first length is passed over
    tried.clear()
    ratios += [9.0] * 7
    assert newton._search(it, at, v, signs, -2.0 * v, -1e-9) is None
    assert len(tried) == 7
    # an objective that stays, with the same residual, is no progress
    ratios[:] = [it.objective]
    assert newton._search(it, at, v, signs, 0.0 * v, 0.0) is None
    # not enough of a descent for the slope that was promised
    ratios[:] = [it.objective - 1e-5] * 8
    assert newton._search(it, at, v, signs, 0.1 * direction, -1.0) is not None
    assert len(ratios) == 8 - 3


def test_features_without_a_penalty_may_change_their_sign(classes):
    """There is no kink at zero, so 0 and 1 go through it; 2 is cut there, 3 and 5 end there."""
    quotient = _quotient(classes(30, 6))
    w = np.array([0.5, -0.5, 0.5, 0.25, 0.5, 0.0])
    w /= np.linalg.norm(w)
    newton = _Newton(quotient, L1(), np.array([0.0, 0.0, 0.02, 0.0, 0.02, 0.02]), 1e-9)
    penalised = _Newton(quotient, L1(), np.full(6, 0.02), 1e-9)
    assert penalised._free is None
    assert newton._free.tolist() == [True, True, False, True, False, False]
    it = newton.start(w)
    it.objective = 9.0  # whatever the step finds is lower
    at, signs = np.arange(6), np.append(it.signs, 1.0)
    direction = np.array([-2.0, 2.0, -2.0, -1.0, 0.1, 0.0]) * np.abs(w)
    found = newton._search(it, at, w, signs, direction, -1e-15)
    expected = np.array([-w[0], -w[1], 0.0, 0.0, 1.1 * w[4], 0.0])
    np.testing.assert_allclose(found.w, expected / np.linalg.norm(expected))
    assert found.support.tolist() == [0, 1, 4] and found.signs.tolist() == [-1.0, 1.0, 1.0]
    np.testing.assert_allclose(found.v, found.w[[0, 1, 4]])
    cut = penalised._search(it, at, w, signs, direction, -1e-15)
    assert cut.support.tolist() == [4]


def test_the_scale_of_the_system_is_the_mean_curvature_of_the_blocks(classes):
    """So the eigenvalue along w is like the others; where the mean vanishes, a part of it."""
    quotient = _quotient(classes(30, 6), tau=0.7)
    newton, it = _newton(quotient, np.arange(1.0, 7.0))
    _, scale = newton.system(it, it.support, it.v)
    s, r = 2.0 / it.bias.denominator, it.bias.ratio
    shift = s * 0.7 * (1.0 - r) - it.multiplier
    mean = np.trace(s * (quotient.own - r * quotient.other) + shift * np.eye(6)) / 6
    assert scale == pytest.approx(abs(mean), rel=1e-12)
    own = newton._size[0]
    newton._size = (own, (own + shift / s) / r)
    _, scale = newton.system(it, it.support, it.v)
    assert scale == pytest.approx(0.01 * s * (own + 0.7), rel=1e-10)


def test_a_definite_system_is_solved_as_it_is_and_another_one_turned(classes, monkeypatch):
    newton, it = _newton(_quotient(classes(30, 3)), np.ones(3))
    definite = np.array([[3.0, 1.0, 0.0], [1.0, 2.0, 0.5], [0.0, 0.5, 1.0]])
    turned = []
    monkeypatch.setattr(module, "_turned", lambda *given: turned.append(given))
    monkeypatch.setattr(_Newton, "system", lambda *_: (definite, 5.0))
    direction = newton._direction(it, it.support, it.v, it.total)
    np.testing.assert_allclose(direction, -np.linalg.solve(definite, it.total), rtol=1e-12)
    assert not turned
    monkeypatch.setattr(_Newton, "system", lambda *_: (-definite, 5.0))
    assert newton._direction(it, it.support, it.v, it.total) is None
    [(H, total, least)] = turned
    np.testing.assert_array_equal(H, -definite)
    np.testing.assert_array_equal(total, it.total)
    assert least == 0.5


def test_blocks_are_gathered_once_for_a_support(classes, monkeypatch):
    quotient = _quotient(classes(30, 6))
    newton, it = _newton(quotient, np.ones(6))
    gathered = []
    original = quotient.gathered
    monkeypatch.setattr(quotient, "gathered", lambda at: gathered.append(len(at)) or original(at))
    first, _ = newton.system(it, it.support, it.v)
    again, _ = newton.system(it, it.support, it.v)
    np.testing.assert_array_equal(first, again)
    assert gathered == [6]
    own, other = newton._size
    assert own == pytest.approx(np.trace(quotient.own) / 6)
    assert other == pytest.approx(np.trace(quotient.other) / 6)
    at = np.array([4, 1])
    newton.system(it, at, it.w[at])
    assert gathered == [6, 2]
    keep = np.array([True, False])
    kept = _without(keep, at, it.w[at], np.ones(2))
    assert [part.tolist() for part in kept] == [[1], [it.w[1]], [1.0]]
    same = (at, it.w[at], np.ones(2))
    assert all(a is b for a, b in zip(_without(~np.ones(2, bool), *same), same))


def test_factorisations_that_fail_give_no_direction(monkeypatch):
    H, total = np.diag([1.0, -2.0, 3.0]), np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(_turned(H, total, 1e-9), [-1.0, -1.0, -1.0])
    np.testing.assert_allclose(_turned(H, total, 2.5), -total / [2.5, 2.5, 3.0])
    pair = np.array([[0.0, 1.0], [1.0, 0.0]])  # a block of two: its absolute value is 1
    np.testing.assert_allclose(_turned(pair, np.array([3.0, 5.0]), 1e-9), [-3.0, -5.0])
    np.testing.assert_allclose(_turned(pair, np.array([3.0, 5.0]), 2.5), [-1.2, -2.0])
    with monkeypatch.context() as patch:
        patch.setattr(module, "dsytrs", lambda *_, **__: (total, 1))
        assert _turned(H, total, 1e-9) is None
    monkeypatch.setattr(module, "dsytrf", lambda *_, **__: (H, np.ones(3), -1))
    assert _turned(H, total, 1e-9) is None


@few
@given(seed=st.integers(0, 1000))
def test_a_block_of_two_is_replaced_by_its_absolute_value(seed):
    a, c = np.random.default_rng(seed).uniform(-0.3, 0.3, 2)
    block = np.array([[5.0, 0.0, 0.0], [0.0, a, 1.7], [0.0, 1.7, c]])  # taken whole, after the 5
    values, vectors = np.linalg.eigh(block)
    expected = (vectors * np.abs(values)) @ vectors.T
    found = -np.stack([_turned(block, e, 1e-9) for e in np.eye(3)])
    np.testing.assert_allclose(found, np.linalg.inv(expected), atol=1e-10)


def test_the_limits_hold_and_one_step_more_settles_the_coefficients(classes):
    polished = 0
    for seed in range(8):
        quotient = _quotient(classes(40, 8, seed=seed), tau=3.0)
        start = np.ones(8) / np.sqrt(8)

        def solve(tol, start=start, quotient=quotient, max_iter=100, polish=True):
            return minimize_with_newton(
                quotient, L1(), 0.02, np.ones(8), start, tol=tol, max_iter=max_iter, polish=polish
            )

        exact = solve(1e-13).point.w
        plain, more = solve(1e-3, polish=False), solve(1e-3)
        assert more.residual <= plain.residual <= 1e-3
        assert more.history[: len(plain.history)] == plain.history
        settled = plain.residual <= 1e-5
        assert more.n_iter == plain.n_iter + (not settled) == len(more.history) - 1
        if not settled:
            polished += 1
            assert np.abs(more.point.w - exact).max() < 0.2 * np.abs(plain.point.w - exact).max()
        assert solve(1e-3, start=more.point.w).n_iter == 0
        assert solve(1e-3, start=plain.point.w).n_iter == 0
        # a residual that is the tolerance will do, and so will a single step before
        near = exact * np.linspace(0.9, 1.1, 8)
        near /= np.linalg.norm(near)
        first = solve(0.0, start=near, max_iter=1, polish=False)
        assert solve(first.residual, start=near).n_iter == 2
        assert solve(1e-3, max_iter=plain.n_iter).n_iter == plain.n_iter
        assert solve(1e-3, max_iter=plain.n_iter + 1).n_iter == more.n_iter
        for limit in (0, 1, 2):
            assert solve(1e-14, max_iter=limit).n_iter == limit
        spread = evaluate(quotient, more.point.w).spread
        np.testing.assert_allclose(more.point.spread, spread, atol=1e-12)
    assert polished >= 3


@pytest.mark.parametrize("kind", ["none", "worse"])
def test_a_last_step_that_settles_nothing_is_not_taken(classes, monkeypatch, kind):
    quotient, start = _quotient(classes(40, 8), tau=3.0), np.ones(8) / np.sqrt(8)
    options = {"tol": 1e-3, "max_iter": 100}
    plain = minimize_with_newton(quotient, L1(), 0.02, np.ones(8), start, polish=False, **options)
    step, last = _Newton.step, []

    def spoilt(self, it):
        if it.residual > 1e-3:
            return step(self, it)
        last.append(it)
        return None if kind == "none" else self.start(start)

    monkeypatch.setattr(_Newton, "step", spoilt)
    found = minimize_with_newton(quotient, L1(), 0.02, np.ones(8), start, **options)
    assert len(last) == 1
    assert (found.history, found.residual) == (plain.history, plain.residual)


def test_where_newton_is_stuck_the_plain_loop_has_the_iterations_that_are_left(
    classes, monkeypatch
):
    quotient, start = _quotient(classes(30, 12, seed=1)), np.ones(12) / np.sqrt(12)
    step, steps = _Newton.step, []

    def twice(self, it):
        steps.append(it.objective)
        return step(self, it) if len(steps) <= 2 else None

    asked = {}

    def rest(*arguments, **options):
        asked.update(options, start=arguments[4])
        return minimize_on_sphere(*arguments, **options)

    monkeypatch.setattr(_Newton, "step", twice)
    monkeypatch.setattr(module, "minimize_on_sphere", rest)
    found = minimize_with_newton(
        quotient, L1(), 0.02, np.ones(12), start, tol=1e-10, max_iter=50, polish=False
    )
    assert asked["max_iter"] == 48 and asked["tol"] == 1e-10 and asked["polish"] is False
    assert found.history[:3] == steps and found.residual <= 1e-10
    assert found.n_iter == len(found.history) - 1 > 2
    assert found.history[-1] == found.objective
