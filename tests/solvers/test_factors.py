"""Penalty factors: features that are in every solution, in none, or at a price."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsegsvp import ClassMoments, sparse_gsvp, sparse_gsvp_path
from sparsegsvp.linalg import DataCovariances, as_matrix
from sparsegsvp.solvers import L1, Lq
from sparsegsvp.solvers.path import walk_together
from sparsegsvp.solvers.penalties import penalty_factors
from sparsegsvp.solvers.working_set import Problem

few = settings(max_examples=10, deadline=None, derandomize=True)
problems = {
    "seed": st.integers(0, 1000),
    "tau": st.sampled_from([0.3, 1.0, 10.0]),
    "pool": st.sampled_from([0.0, 0.5, 1.0]),
    "method": st.sampled_from(["moments", "working_set"]),
}


def _factors(m, seed, n_must=2, n_banned=3):
    """Costs between 1/2 and 2, and who must be in and who may not."""
    rng = np.random.default_rng(seed)
    factors = rng.uniform(0.5, 2.0, m)
    special = rng.permutation(m)[: n_must + n_banned]
    factors[special[:n_must]], factors[special[n_must:]] = 0.0, np.inf
    return factors


def _certificate(ref, result, factors, penalty):
    """The optimality conditions feature by feature, from the reference's gradient alone."""
    w, g = result.w, ref.gradient(result.w, result.b)
    slope = result.delta * np.where(factors < np.inf, factors, 0.0) * penalty.slope(np.abs(w))
    multiplier = float(np.sum(slope * np.abs(w)))
    worst = 0.0
    for f in range(len(w)):
        if factors[f] == np.inf:
            assert w[f] == 0.0
        elif w[f] != 0.0:
            worst = max(worst, abs(g[f] + slope[f] * np.sign(w[f]) - multiplier * w[f]))
        else:
            worst = max(worst, abs(g[f]) - slope[f])
    return worst


# --- the laws


@few
@given(**problems)
def test_every_solution_has_its_certificate(reference, classes, penalty, seed, tau, pool, method):
    A, B = classes(25, 14, seed=seed)
    factors = _factors(14, seed)
    options = {"penalty": penalty, "tau": tau, "pool": pool, "method": method}
    path = sparse_gsvp_path(
        A, B, n_deltas=6, ratio=0.02, penalty_factor=factors, max_features=14, **options
    )
    ref = reference(A, B, tau=tau, pool=pool)
    for result in path:
        assert result.converged
        if result.clipped:
            continue
        assert set(np.flatnonzero(factors == 0.0)) <= set(result.support)
        assert np.isfinite(factors[result.support]).all()
        worst = _certificate(ref, result, factors, penalty)
        assert worst <= 1e-6 * result.delta_max + 1e-9
        assert result.kkt_residual == pytest.approx(max(worst, 0.0), abs=1e-8)
        finite = np.where(factors < np.inf, factors, 0.0)
        expected = ref.objective(result.w, result.delta, penalty, finite)
        assert result.objective == pytest.approx(expected, rel=1e-9)


@few
@given(**problems)
def test_the_path_starts_at_the_best_plane_on_what_must_be_in(
    reference, classes, penalty, seed, tau, pool, method
):
    A, B = classes(25, 14, seed=seed)
    factors = _factors(14, seed, n_must=3)
    options = {"penalty": penalty, "tau": tau, "pool": pool, "method": method}
    top = sparse_gsvp(A, B, 1e9, penalty_factor=factors, **options)
    if top.clipped:
        return
    must = np.flatnonzero(factors == 0.0)
    exact = sparse_gsvp(A[:, must], B[:, must], 0.0, tau=tau, pool=pool)
    np.testing.assert_array_equal(top.support, must)
    np.testing.assert_allclose(top.w[must], exact.w, atol=1e-7)
    assert top.quotient == pytest.approx(exact.quotient, rel=1e-10)
    assert top.objective == top.quotient  # what must be in costs nothing
    # delta_max, from the reference's gradient
    g = np.abs(reference(A, B, tau=tau, pool=pool).gradient(top.w, top.b))
    others = np.isfinite(factors) & (factors > 0.0)
    slope = factors[others] * penalty.slope(np.zeros(1))[0]
    stationary = np.max(g[others] / slope)
    alone = np.array([reference(A, B, tau=tau, pool=pool).value(e) for e in np.eye(14)[others]])
    worth = np.max((top.quotient - alone) / slope)
    assert top.delta_max == pytest.approx(max(stationary, worth), rel=1e-6)
    just = sparse_gsvp(A, B, top.delta_max, penalty_factor=factors, **options)
    np.testing.assert_array_equal(just.support, must)
    below = sparse_gsvp(A, B, 0.9 * top.delta_max, penalty_factor=factors, **options)
    assert len(below.support) > len(must)


@few
@given(**problems)
def test_nothing_but_what_must_be_in_is_the_unpenalised_solution(
    classes, penalty, seed, tau, pool, method
):
    A, B = classes(25, 10, seed=seed)
    factors = np.full(10, np.inf)
    factors[[1, 4, 7]] = 0.0
    options = {"tau": tau, "pool": pool, "method": method}
    exact = sparse_gsvp(A[:, [1, 4, 7]], B[:, [1, 4, 7]], 0.0, **options)
    if exact.clipped:
        return
    for delta in (0.0, 0.01, 10.0):
        found = sparse_gsvp(A, B, delta, penalty_factor=factors, penalty=penalty, **options)
        np.testing.assert_allclose(found.w[[1, 4, 7]], exact.w, atol=1e-7)
        assert found.b == pytest.approx(exact.b, abs=1e-6)
    path = sparse_gsvp_path(A, B, n_deltas=3, penalty_factor=factors, penalty=penalty, **options)
    assert all(result.delta_max == 0.0 and len(result.support) == 3 for result in path)


@few
@given(**problems)
def test_a_banned_feature_is_as_good_as_absent(classes, penalty, seed, tau, pool, method):
    A, B = classes(25, 14, seed=seed)
    factors = _factors(14, seed)
    there = np.isfinite(factors)
    options = {"penalty": penalty, "tau": tau, "pool": pool, "method": method, "max_features": 14}
    banned = sparse_gsvp_path(A, B, n_deltas=5, penalty_factor=factors, **options)
    absent = sparse_gsvp_path(
        A[:, there], B[:, there], n_deltas=5, penalty_factor=factors[there], **options
    )
    for one, two in zip(banned, absent, strict=True):
        assert one.objective == pytest.approx(two.objective, rel=1e-8)
        np.testing.assert_allclose(one.w[there], two.w, atol=1e-5)
        assert one.b == pytest.approx(two.b, abs=1e-4)
    every = sparse_gsvp(A, B, 0.0, penalty_factor=factors, tau=tau, pool=pool)
    np.testing.assert_array_equal(every.support, np.flatnonzero(there))


@few
@given(**problems)
def test_permuted_columns_and_factors_permute_the_solution(
    classes, penalty, seed, tau, pool, method
):
    A, B = classes(25, 14, seed=seed)
    factors, order = _factors(14, seed), np.random.default_rng(seed).permutation(14)
    options = {"penalty": penalty, "tau": tau, "pool": pool, "method": method, "max_features": 14}
    plain = sparse_gsvp_path(A, B, n_deltas=4, penalty_factor=factors, **options)
    moved = sparse_gsvp_path(
        A[:, order], B[:, order], n_deltas=4, penalty_factor=factors[order], **options
    )
    for one, two in zip(plain, moved, strict=True):
        assert two.objective == pytest.approx(one.objective, rel=1e-8)
        np.testing.assert_allclose(two.w, one.w[order], atol=1e-5)


def test_ones_are_nothing_and_equal_factors_are_another_delta(classes, penalty):
    for m in (20, 300):
        A, B = classes(25, m, seed=m)
        options = {"penalty": penalty, "pool": 0.5, "n_deltas": 6}
        plain = sparse_gsvp_path(A, B, **options)
        ones = sparse_gsvp_path(A, B, penalty_factor=np.ones(m), **options)
        fours = sparse_gsvp_path(A, B, penalty_factor=np.full(m, 4.0), **options)
        for one, two, four in zip(plain, ones, fours, strict=True):
            np.testing.assert_array_equal(one.w, two.w)
            assert (one.objective, one.b) == (two.objective, two.b)
            assert four.delta == pytest.approx(one.delta / 4.0, rel=1e-12)
            np.testing.assert_allclose(four.w, one.w, atol=1e-6)


def test_scaling_a_feature_and_the_floor_changes_nothing_but_units(classes):
    A, B = classes(25, 14)
    factors = _factors(14, 0)
    plain = sparse_gsvp(A, B, 0.02, penalty_factor=factors)
    for c in (1e-3, 1e4):
        scaled = sparse_gsvp(c * A, c * B, 0.02, tau=c * c, penalty_factor=factors)
        np.testing.assert_array_equal(plain.support, scaled.support)
        np.testing.assert_allclose(plain.w, scaled.w, atol=1e-6)


# --- every kind of data, and of way


def test_every_storage_and_both_inner_loops_agree(classes):
    A, B = (X * (np.abs(X) > 0.6) for X in classes(40, 120, seed=1))
    factors = _factors(120, 1, n_must=4, n_banned=40)
    options = {"penalty_factor": factors, "tau": 3.0, "pool": 0.5}
    plain = sparse_gsvp(A, B, 0.01, method="working_set", **options)
    assert 6 < len(plain.support) < 60
    moments = [ClassMoments.from_data(X) for X in (A, B)]
    for other in (
        sparse_gsvp(A, B, 0.01, method="moments", **options),
        sparse_gsvp(sp.csr_array(A), sp.csc_array(B), 0.01, **options),
        sparse_gsvp(*moments, 0.01, **options),
        sparse_gsvp(A, B, 0.01, inner="bb", **options),
        sparse_gsvp(A, B, 0.01, w0=np.ones(120), **options),
    ):
        assert other.converged
        np.testing.assert_array_equal(other.support, plain.support)
        np.testing.assert_allclose(other.w, plain.w, atol=1e-5)


def test_dask_agrees_and_reads_no_more_than_without_factors(classes):
    da = pytest.importorskip("dask.array")
    A, B = classes(40, 600, seed=1)
    factors = _factors(600, 1, n_must=4, n_banned=200)
    options = {"tau": 3.0, "pool": 0.5, "penalty_factor": factors}
    plain = sparse_gsvp_path(A, B, n_deltas=5, ratio=0.2, **options)
    lazy = [da.from_array(X, chunks=(20, 200)) for X in (A, B)]
    for one, two in zip(plain, sparse_gsvp_path(*lazy, n_deltas=5, ratio=0.2, **options)):
        np.testing.assert_array_equal(one.support, two.support)
        np.testing.assert_allclose(one.w, two.w, atol=1e-6)


@pytest.mark.parametrize("penalty", [L1(), Lq(0.5)], ids=repr)
def test_planes_of_three_classes_walked_together_are_those_walked_alone(classes, penalty):
    blocks = classes(30, 200, n_classes=3, seed=4)
    factors = _factors(200, 4, n_must=3, n_banned=50)
    X, codes = np.concatenate(blocks), np.repeat(np.arange(3), [len(b) for b in blocks])
    rhos = np.geomspace(1.0, 0.1, 5)

    def problem(i):
        cov = DataCovariances(as_matrix(X), codes, None, 3, standardize=True)
        return Problem.of_class(cov, i, tau=1.0, pool=0.5, penalty=penalty, weights=factors)

    shared = DataCovariances(as_matrix(X), codes, None, 3, standardize=True)
    every = [
        Problem.of_class(shared, i, tau=1.0, pool=0.5, penalty=penalty, weights=factors)
        for i in range(3)
    ]
    options = {"tol": 1e-8, "max_iter": 1000, "final": True}
    for i, path in enumerate(walk_together(every, rhos, **options)):
        [alone] = walk_together([problem(i)], rhos, **options)
        for one, two in zip(path, alone, strict=True):
            assert one.converged
            assert set(np.flatnonzero(factors == 0.0)) <= set(one.features)
            np.testing.assert_array_equal(one.features, two.features)
            np.testing.assert_allclose(one.w, two.w, atol=1e-6)


@pytest.mark.parametrize("method", ["moments", "working_set"])
def test_more_features_that_must_be_in_than_rows(classes, reference, method):
    A, B = classes(12, 150, seed=2)
    factors = np.ones(150)
    factors[:90] = 0.0
    for delta in (1e9, 0.02):
        result = sparse_gsvp(A, B, delta, penalty_factor=factors, pool=0.5, method=method)
        assert result.converged and set(range(90)) <= set(result.support)
        ref = reference(A, B, pool=0.5)
        assert _certificate(ref, result, factors, L1()) <= 1e-6


def test_without_a_floor_what_must_be_in_may_not_settle_everything(classes):
    """A covariate that is constant within the class has a quotient of 0 by itself."""
    A, B = classes(30, 6)
    A[:, 2], B[:, 2] = 1.0, 2.0
    factors = np.where(np.arange(6) == 2, 0.0, 1.0)
    with pytest.raises(ValueError, match=r"features of penalty 0 leave no distance .*Use tau > 0"):
        sparse_gsvp(A, B, 0.1, tau=0.0, penalty_factor=factors)


def test_what_must_be_in_may_have_its_plane_at_infinity():
    """The own class is the wider one and the means coincide: the bias runs off."""
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(40, 6)), rng.normal(size=(40, 6))
    A[:, 0] *= 5.0
    A[:, 0] -= A[:, 0].mean()
    B[:, 0] -= B[:, 0].mean()
    B[:, 1] += 3.0
    factors = np.array([0.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    with pytest.warns(RuntimeWarning, match="ran off to infinity"):
        top = sparse_gsvp(A, B, 1e9, penalty_factor=factors)
    assert top.support.tolist() == [0] and top.clipped
    result = sparse_gsvp(A, B, 0.05, penalty_factor=factors)
    assert result.converged and not result.clipped and 1 in result.support
    assert result.objective < top.objective - 0.1


@pytest.mark.parametrize("pool", [0.5, 1.0])
@pytest.mark.parametrize("spread", [0.7, 1.0, 1.4])
def test_a_covariate_that_tells_nothing_does_not_hide_the_others(classes, penalty, pool, spread):
    """The classes were matched by it: means, and with them the gradient there, coincide."""
    A, B = classes(40, 20, shift=1.5, seed=1)
    A, B = A[:40], B[:40]
    covariate = np.random.default_rng(0).normal(size=40)
    A[:, 0] = covariate - covariate.mean()
    B[:, 0] = spread * A[:, 0]
    factors = np.where(np.arange(20) == 0, 0.0, 1.0)
    options = {"pool": pool, "penalty": penalty, "n_deltas": 8, "ratio": 0.05}
    plain = sparse_gsvp_path(A, B, **options)
    path = sparse_gsvp_path(A, B, penalty_factor=factors, **options)
    assert path[0].delta_max > 0.3 * plain[0].delta_max
    assert path[0].support.tolist() == [0]
    for result in path[1:]:
        assert result.converged
        assert result.objective < path[0].objective
    assert len(path[1].support) < 10
    # it is as good as free, so it can only help
    for result in path[2:]:
        alone = sparse_gsvp(A, B, result.delta, pool=pool, penalty=penalty)
        assert result.objective <= alone.objective * (1.0 + 1e-6)


def test_a_sign_may_change_where_there_is_no_penalty(classes):
    """Without a kink at zero the weight goes through it: no zero is left behind."""
    seen = 0
    for seed in range(12):
        A, B = classes(25, 12, seed=seed)
        factors = np.ones(12)
        factors[:4] = 0.0
        top, low = (
            sparse_gsvp(A, B, delta, penalty_factor=factors, pool=0.5) for delta in (1e9, 1e-3)
        )
        start = -top.w
        again = sparse_gsvp(A, B, 1e-3, penalty_factor=factors, pool=0.5, w0=start)
        assert low.converged and again.converged
        assert again.objective == pytest.approx(low.objective, rel=1e-6)
        seen += bool((top.w[:4] * low.w[:4] < 0.0).any())
    assert seen > 2


def test_identical_columns_keep_to_their_factors(classes):
    A, B = (np.concatenate([X, X], axis=1) for X in classes(25, 8, seed=3))
    best = int(sparse_gsvp(A, B, 1e9).support[0])
    banned = np.where(np.arange(16) == best, np.inf, 1.0)
    must = np.where(np.arange(16) == best + 8, 0.0, 1.0)
    for factors in (banned, must):
        for delta in (1e9, 0.02):
            result = sparse_gsvp(A, B, delta, penalty_factor=factors)
            assert result.converged and best + 8 in result.support
            assert np.isfinite(factors[result.support]).all()
            if delta == 1e9:
                assert result.support.tolist() == [best + 8]


# --- what is given


def test_factors_by_name():
    names = ["a", "b", "c"]
    np.testing.assert_array_equal(penalty_factors({"b": 0}, 3, names), [1.0, 0.0, 1.0])
    np.testing.assert_array_equal(
        penalty_factors(pd.Series([2.0, np.inf], index=["c", "a"]), 3, names), [np.inf, 1.0, 2.0]
    )
    np.testing.assert_array_equal(penalty_factors(pd.Series([1, 2, 3]), 3, names), [1, 2, 3])
    assert penalty_factors(None, 3) is None
    given = np.ones(3)
    assert penalty_factors(given, 3) is not given
    for wrong, message in (
        ({"bb": 0, "A": 1}, r"not there: 'bb', 'A'; did you mean 'b'\?"),
        ({"zzz": 0}, "not there: 'zzz'; check the spelling"),
        ({"a": -1}, "got -1 for feature 'a'"),
        ({"a": "much"}, "must be one number per feature, or a mapping"),
    ):
        with pytest.raises(ValueError, match=message):
            penalty_factors(wrong, 3, names)


def test_names_of_frames_and_of_moments(classes):
    A, B = (pd.DataFrame(X, columns=list("abcdefgh")) for X in classes(25, 8))
    by_name = {"c": 0.0, "h": np.inf}
    expected = sparse_gsvp(A, B, 0.05, penalty_factor=[1, 1, 0, 1, 1, 1, 1, np.inf])
    np.testing.assert_array_equal(sparse_gsvp(A, B, 0.05, penalty_factor=by_name).w, expected.w)
    moments = [ClassMoments.from_data(X) for X in (A, B)]
    assert moments[0].feature_names.tolist() == list("abcdefgh")
    found = sparse_gsvp(*moments, 0.05, penalty_factor=by_name)
    np.testing.assert_allclose(found.w, expected.w, atol=1e-8)


def test_the_old_name_still_works_and_says_so(classes):
    A, B = classes(25, 8)
    factors = np.linspace(0.5, 2.0, 8)
    new = sparse_gsvp(A, B, 0.05, penalty_factor=factors)
    with pytest.warns(FutureWarning, match="now called penalty_factor") as caught:
        old = sparse_gsvp(A, B, 0.05, weights=factors)
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(old.w, new.w)
    with pytest.warns(FutureWarning, match="now called penalty_factor"):
        sparse_gsvp_path(A, B, n_deltas=2, weights=factors)


def test_constant_features_that_must_be_in_are_left_out_with_a_warning(classes):
    A, B = classes(25, 8)
    A[:, 2] = B[:, 2] = 1.0
    factors = np.ones(8)
    factors[[2, 5]] = 0.0
    with pytest.warns(UserWarning, match=r"1 feature\(s\) of penalty_factor 0 are constant"):
        result = sparse_gsvp(A, B, 0.05, penalty_factor=factors)
    assert 5 in result.support and 2 not in result.support
    factors[:] = np.inf
    factors[2] = 1.0
    with pytest.raises(ValueError, match="all features of finite penalty_factor are constant"):
        sparse_gsvp(A, B, 0.05, penalty_factor=factors)


def test_without_a_floor_only_what_may_be_used_has_to_be_definite():
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(30, 5)), rng.normal(size=(30, 5)) + 0.5
    A[:, 4], B[:, 4] = A[:, 3], B[:, 3]
    with pytest.raises(ValueError, match="tau = 0 leaves the quotient 0/0"):
        sparse_gsvp(A, B, 0.1, tau=0.0)
    assert sparse_gsvp(A, B, 0.01, tau=0.0, penalty_factor=[0, 1, 1, 1, np.inf]).converged
