"""Where the path starts, how it goes down and what the way up repairs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsegsvp import sparse_gsvp, sparse_gsvp_path
from sparsegsvp.datasets import make_planted
from sparsegsvp.linalg import DataCovariances, as_matrix
from sparsegsvp.solvers import L1, Lq
from sparsegsvp.solvers.gradients import run_to_end
from sparsegsvp.solvers.path import PathSolver, delta_grid
from sparsegsvp.solvers.working_set import Limits, Problem, solve_reweighted


def _solver(blocks, penalty=L1(), tau=1.0, pool=0.5, first_above=True, weights=None):  # noqa: B008
    X, codes = np.concatenate(blocks), np.repeat(np.arange(len(blocks)), [len(b) for b in blocks])
    cov = DataCovariances(as_matrix(X), codes, None, len(blocks), standardize=False)
    problem = Problem.of_class(cov, 0, tau=tau, pool=pool, penalty=penalty, weights=weights)
    return PathSolver(problem, tol=1e-6, max_iter=1000, first_above=first_above)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 1000),
    tau=st.sampled_from([0.1, 1.0, 10.0]),
    pool=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_the_start_is_the_best_single_feature_with_its_delta_max(
    reference, classes, penalty, seed, tau, pool
):
    A, B = classes(20, 9, seed=seed)
    weights = np.random.default_rng(seed).uniform(0.5, 2.0, 9)
    expected = reference(A, B, tau=tau, pool=pool)
    solver = _solver([A, B], penalty, tau, pool, weights=weights)
    if solver.first.bias.clipped:
        return
    singles = [expected.value(e) for e in np.eye(9)]
    best = int(np.argmin(singles))
    assert solver.first.features.tolist() == [best]
    slope = weights * penalty.slope(np.zeros(9))
    pull = np.abs(expected.gradient(np.eye(9)[best])) / slope
    assert solver.delta_max == pytest.approx(np.delete(pull, best).max(), rel=1e-9)
    e = np.eye(9)[best]
    b = expected.best_bias(e)
    scale = solver.delta_max
    assert expected.certificate(e, b, solver.delta_max, penalty, weights) <= 1e-9 * scale
    assert expected.certificate(e, b, 0.99 * solver.delta_max, penalty, weights) > 1e-4 * scale


@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 1000),
    tau=st.sampled_from([0.3, 1.0, 10.0]),
    pool=st.sampled_from([0.0, 0.5, 1.0]),
    wide=st.booleans(),
)
def test_one_feature_from_delta_max_on_and_more_just_below(classes, seed, tau, pool, wide):
    A, B = classes(20, 250 if wide else 15, seed=seed)
    options = {"tau": tau, "pool": pool}
    top = sparse_gsvp(A, B, 1e6, **options)
    assert len(top.support) == 1
    if top.clipped:
        return
    for factor in (1.0, 1.0 + 1e-9, 5.0):
        above = sparse_gsvp(A, B, factor * top.delta_max, **options)
        np.testing.assert_array_equal(above.support, top.support)
        assert above.converged
        assert above.kkt_residual <= 1e-12
    below = sparse_gsvp(A, B, 0.98 * top.delta_max, **options)
    assert len(below.support) > 1
    assert below.converged


def test_the_grid_is_geometric():
    grid = delta_grid(2.0, 5, 1e-2)
    assert grid[0] == 2.0
    assert grid[-1] == pytest.approx(0.02)
    np.testing.assert_allclose(grid[1:] / grid[:-1], 10**-0.5)
    np.testing.assert_array_equal(delta_grid(2.0, 1, 1e-2), [2.0])


@pytest.mark.parametrize("n_features", [20, 220])
def test_every_point_of_a_path_is_certified(reference, classes, penalty, n_features):
    A, B = classes(30, n_features, seed=1)
    path = sparse_gsvp_path(A, B, n_deltas=12, penalty=penalty, pool=0.5, max_features=n_features)
    expected = reference(A, B, pool=0.5)
    assert [r.delta for r in path] == sorted((r.delta for r in path), reverse=True)
    assert path[0].delta == path[0].delta_max
    assert path[-1].delta == pytest.approx(0.01 * path[0].delta_max)
    for result in path:
        assert result.converged
        certificate = expected.certificate(result.w, result.b, result.delta, penalty)
        assert certificate <= 1.001e-6 * result.delta_max
        assert certificate == pytest.approx(result.kkt_residual, abs=1e-9)
        assert result.objective == pytest.approx(
            expected.objective(result.w, result.delta, penalty), rel=1e-10
        )
        history = result.history
        assert (np.diff(history) <= 1e-14 * np.abs(history[:-1])).all()
        assert history[-1] == pytest.approx(result.objective, rel=1e-12)


def test_a_path_is_what_single_solves_give(classes):
    """Where there is one minimum, tau being large."""
    A, B = classes(30, 40, seed=2)
    for result in sparse_gsvp_path(A, B, n_deltas=6, tau=10.0, pool=0.5):
        alone = sparse_gsvp(A, B, result.delta, tau=10.0, pool=0.5)
        np.testing.assert_array_equal(alone.support, result.support)
        np.testing.assert_allclose(alone.w, result.w, atol=1e-5)
        assert alone.delta_max == result.delta_max


def test_given_deltas_are_solved_from_the_largest_down(classes):
    A, B = classes(30, 12)
    path = sparse_gsvp_path(A, B, [0.01, 5.0, 0.1])
    assert [r.delta for r in path] == [5.0, 0.1, 0.01]
    assert len(path[0].support) == 1


def test_objectives_fall_with_delta_and_the_way_up_never_raises_them(classes):
    """With a small floor there are several minima; the upward walk may only improve."""
    repaired = 0
    for seed in (2, 5, 8):
        A, B = classes(25, 40, seed=seed, shift=0.3)
        down = sparse_gsvp_path(A, B, n_deltas=10, tau=0.02, upward=False)
        both = sparse_gsvp_path(A, B, n_deltas=10, tau=0.02)
        for one, two in zip(down, both):
            assert two.objective <= one.objective * (1 + 1e-12)
            assert one.gap == 0.0
            if two.gap > 0.0:
                repaired += 1
                assert two.gap == pytest.approx((one.objective - two.objective) / two.objective)
            else:
                assert two.objective == one.objective
        objectives = [r.objective for r in both]
        assert objectives == sorted(objectives, reverse=True)
    assert repaired > 0


def test_a_concave_path_is_never_above_reweighting_from_l1_alone(classes):
    for seed in range(3):
        blocks = classes(25, 40, seed=seed)
        path = sparse_gsvp_path(*blocks, n_deltas=8, q=0.5, pool=0.5, ratio=0.02)
        solver = _solver(blocks, Lq(0.5))
        linear = _solver(blocks)
        for result in path[1:]:
            l1 = linear.at(result.delta)
            limits = Limits(tol=1e-8, max_iter=1000)
            alone = run_to_end(solve_reweighted(solver.problem, result.delta, l1, limits))
            assert result.objective <= alone.objective * (1 + 1e-8)


def test_a_concave_path_may_leave_the_single_feature_where_that_is_not_the_lowest(classes):
    """At and above delta_max, ``first_above=False`` takes the lower of the two."""
    blocks = classes(30, 30, seed=4, shift=1.5)
    keep, leave = _solver(blocks, Lq(0.5)), _solver(blocks, Lq(0.5), first_above=False)
    delta = 2 * keep.delta_max
    single, found = keep.at(delta), leave.at(delta)
    assert len(single.features) == 1
    assert found.objective < single.objective
    assert len(found.features) > 1
    assert len(leave.at(1.01 * leave.linear_max).features) == 1


def test_a_concave_path_from_the_start_of_the_l1_path_recovers_a_planted_support():
    found = {}
    for effect in (1.5, 0.15):
        dataset = make_planted(150, 1000, 5, effect=effect, random_state=3)
        blocks = [dataset.X[dataset.y == k] for k in (0, 1)]
        solver = _solver(blocks, Lq(0.5), first_above=False)
        path = solver.run(solver.linear_max * np.geomspace(0.9, 0.1, 10))
        found[effect] = any(np.array_equal(s.features, dataset.support) for s in path)
    assert found == {1.5: True, 0.15: False}


def test_a_warm_refit_is_immediate(classes):
    for m in (30, 300):
        A, B = classes(30, m, seed=8)
        first = sparse_gsvp(A, B, 0.02)
        again = sparse_gsvp(A, B, 0.02, w0=first.w)
        assert first.n_iter > 0
        assert again.n_iter <= 1
        np.testing.assert_array_equal(again.support, first.support)
        np.testing.assert_allclose(again.w, first.w, atol=1e-6)


def test_a_feature_without_spread_in_its_class_needs_a_floor():
    """tau = 0: the quotient of that feature is 0 at once, whatever rounding makes of it."""
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(400, 5)), rng.normal(size=(400, 5))
    A[:, 3] = 0.1
    for method in ("moments", "working_set"):
        with pytest.raises(ValueError, match=r"delta_max.*tau = 0.*Use tau > 0"):
            sparse_gsvp(A, B, 0.1, tau=0.0, method=method)
        with pytest.raises(ValueError, match=r"delta_max.*tau = 0.*Use tau > 0"):
            sparse_gsvp_path(A, B, tau=0.0, method=method)
        assert sparse_gsvp(A, B, 0.1, tau=0.1, method=method).converged


def test_one_varying_feature_is_the_answer(classes):
    A, B = classes(30, 3)
    for X in (A, B):
        X[:, 0], X[:, 2] = 0.1, 7.0
    for delta in (1e-3, 1.0):
        result = sparse_gsvp(A, B, delta)
        assert result.support.tolist() == [1]
        assert result.converged
    assert sparse_gsvp(A[:, 1:2], B[:, 1:2], 0.1).support.tolist() == [0]


@pytest.mark.parametrize("offset", [0.1, 1e3 / 3])
def test_the_same_where_the_rows_of_the_classes_alternate(offset):
    """The class means then carry rounding errors, and the variance is not exactly zero."""
    rng = np.random.default_rng(1)
    X, codes = rng.normal(size=(600, 4)), np.arange(600) % 2
    X[codes == 0, 2] = offset
    cov = DataCovariances(as_matrix(X), codes, None, 2, standardize=True)
    problem = Problem.of_class(cov, 0, tau=0.0, pool=0.0, penalty=L1())
    with pytest.raises(ValueError, match=r"feature 2 is constant within the class"):
        PathSolver(problem, tol=1e-6, max_iter=100)


@pytest.mark.parametrize("method", ["moments", "working_set"])
@pytest.mark.parametrize("order", [np.ascontiguousarray, np.asfortranarray])
def test_of_identical_columns_the_lowest_index_wins(classes, method, order):
    """Whatever rounding says: columns in three copies, shuffled, all selected ones lowest."""
    moved = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        m = 21 + 12 * seed
        source = rng.permutation(np.tile(np.arange(m), 3))
        A, B = (order(X[:, source]) for X in classes(25, m, seed=seed))
        for result in sparse_gsvp_path(A, B, n_deltas=5, ratio=0.1, pool=0.5, method=method):
            assert result.converged
            for column in np.unique(source[result.support]):
                copies = np.flatnonzero(source == column)
                chosen = np.intersect1d(copies, result.support)
                np.testing.assert_array_equal(chosen, copies[: len(chosen)])
                moved += len(chosen) == 1
    assert moved > 40


def test_identical_columns_with_other_penalty_weights_are_not_the_same(classes):
    A, B = (np.concatenate([X, X], axis=1) for X in classes(25, 8, seed=3))
    weights = np.repeat([1.0, 0.5], 8)
    result = sparse_gsvp(A, B, 0.2, penalty_factor=weights)
    assert (result.support[1:] >= 8).all() and len(result.support) > 1
    assert result.converged


def test_moments_tell_nearly_identical_columns_apart(classes):
    """Equal but for the sixth digit: the better of the two is to be found, not the first."""
    A, B = classes(200, 3, seed=2)
    rng = np.random.default_rng(0)
    A2 = np.concatenate([A + 1e-5 * rng.normal(size=A.shape), A], axis=1)
    B2 = np.concatenate([B + 1e-5 * rng.normal(size=B.shape), B], axis=1)
    for delta in (0.3, 0.05):
        for method in ("moments", "working_set"):
            assert sparse_gsvp(A2, B2, delta, method=method).converged


def test_a_path_ends_with_the_first_solution_that_is_too_large(classes):
    A, B = classes(12, 150, seed=3)
    whole = sparse_gsvp_path(A, B, n_deltas=15, tau=5.0, max_features=150)
    sizes = [len(result.support) for result in whole]
    assert len(whole) == 15 and sizes[-1] > len(A) + len(B)
    for most, options in ((10, {"max_features": 10}), (len(A) + len(B), {})):
        path = sparse_gsvp_path(A, B, n_deltas=15, tau=5.0, **options)
        found = [len(result.support) for result in path]
        assert found[-1] > most and max(found[:-1]) <= most
        for ended, result in zip(path, whole):
            assert ended.delta == result.delta
            assert ended.objective == pytest.approx(result.objective, rel=1e-6)
    with pytest.raises(ValueError, match="max_features"):
        sparse_gsvp_path(A, B, max_features=0)
