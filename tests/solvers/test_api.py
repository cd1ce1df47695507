"""`sparse_gsvp` and `sparse_gsvp_path` as a user calls them."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from sparsegsvp import ClassMoments, sparse_gsvp, sparse_gsvp_path

few = settings(max_examples=10, deadline=None, derandomize=True)
problems = {
    "seed": st.integers(0, 1000),
    "tau": st.sampled_from([0.3, 1.0, 10.0]),
    "pool": st.sampled_from([0.0, 0.5, 1.0]),
    "q": st.sampled_from([1.0, 0.5]),
    "m": st.sampled_from([14, 210]),  # moments and rows
}


def _solve(A, B, rho=0.1, **options):
    """At a share of delta_max, which the first call tells."""
    top = sparse_gsvp(A, B, 1e9, **options)
    return sparse_gsvp(A, B, rho * top.delta_max, **options)


def _assert_same(left, right, atol=1e-6):
    np.testing.assert_array_equal(left.support, right.support)
    np.testing.assert_allclose(left.w, right.w, atol=atol)
    assert left.b == pytest.approx(right.b, abs=10 * atol)


# --- what must not matter


@few
@given(**problems)
def test_order_sign_shift_and_copies(classes, seed, tau, pool, q, m):
    """Of features permuted, flipped or shifted the solution follows; rows may come twice."""
    A, B = classes(25, m, seed=seed)
    rng = np.random.default_rng(seed)
    order, sign = rng.permutation(m), rng.choice([-1.0, 1.0], m)
    shift, factors = 10 * rng.normal(size=m), rng.uniform(0.5, 2.0, m)
    options = {"q": q, "tau": tau, "pool": pool}
    plain = _solve(A, B, penalty_factor=factors, **options)
    moved = _solve(A[:, order], B[:, order], penalty_factor=factors[order], **options)
    assert moved.objective == pytest.approx(plain.objective, rel=1e-8)
    np.testing.assert_allclose(moved.w, plain.w[order], atol=1e-5)
    flipped = _solve(A * sign, B * sign, penalty_factor=factors, **options)
    np.testing.assert_allclose(flipped.w, sign * plain.w, atol=1e-6)
    shifted = _solve(A + shift, B + shift, penalty_factor=factors, **options)
    np.testing.assert_allclose(shifted.w, plain.w, atol=1e-6)
    assert shifted.b == pytest.approx(plain.b - shift @ plain.w, rel=1e-4, abs=1e-3)
    twice = _solve(np.r_[A, A], np.r_[B, B], penalty_factor=factors, **options)
    _assert_same(plain, twice)


def test_scaling_data_and_floor_together_changes_nothing(classes):
    A, B = classes(25, 14)
    plain = sparse_gsvp(A, B, 0.02, tau=1.0)
    for c in (1e-3, 10.0, 1e6):
        scaled = sparse_gsvp(c * A, c * B, 0.02, tau=c * c)
        np.testing.assert_array_equal(plain.support, scaled.support)
        np.testing.assert_allclose(plain.w, scaled.w, atol=1e-6)
        assert scaled.quotient == pytest.approx(plain.quotient, rel=1e-8)


@few
@given(seed=st.integers(0, 1000), tau=st.sampled_from([0.3, 1.0]), m=problems["m"])
def test_a_pooled_spread_gives_both_planes_one_direction(classes, seed, tau, m):
    """pool = 1 is Fisher's discriminant: from either class the same w up to sign."""
    A, B = classes(40, m, seed=seed)
    one, other = (_solve(X, Y, tau=tau, pool=1.0) for X, Y in ((A, B), (B, A)))
    # B is on the positive side of A's plane, and A on that of B's
    np.testing.assert_allclose(one.w, -other.w, atol=1e-5)
    own = sparse_gsvp(A, B, one.delta, tau=tau, pool=0.0)
    assert np.abs(own.w - one.w).max() > 1e-4


@pytest.mark.parametrize("m", [20, 300])
def test_two_calls_agree_to_the_last_bit_and_leave_their_input_alone(classes, m):
    A, B = classes(25, m)
    kept = A.copy(), B.copy()
    first, second = (sparse_gsvp(A, B, 0.03, q=0.5) for _ in range(2))
    np.testing.assert_array_equal(first.w, second.w)
    assert first.b == second.b and first.objective == second.objective
    np.testing.assert_array_equal(A, kept[0])
    np.testing.assert_array_equal(B, kept[1])
    for X in (A, B):
        X.setflags(write=False)
    sparse_gsvp(A, B, 0.03)


@pytest.mark.parametrize(("n", "m"), [(40, 400), (2000, 30)])
def test_one_and_two_threads_agree(classes, n, m):
    A, B = classes(n, m, seed=1)
    paths = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            paths.append(sparse_gsvp_path(A, B, n_deltas=4, ratio=0.1, pool=0.5))
    for one, two in zip(*paths, strict=True):
        _assert_same(one, two)


# --- one problem, many representations


@pytest.mark.parametrize("m", [30, 220])
@pytest.mark.parametrize(
    "kind",
    [np.asfortranarray, sp.csr_matrix, sp.csc_matrix, sp.csr_array, sp.coo_array, list],
)
def test_every_storage_has_the_same_solution(classes, kind, m):
    A, B = (X * (np.abs(X) > 0.7) for X in classes(40, m, seed=1))
    plain = sparse_gsvp(A, B, 0.02)
    _assert_same(plain, sparse_gsvp(kind(A), kind(B), 0.02), atol=1e-8)
    _assert_same(plain, sparse_gsvp(kind(A), B, 0.02), atol=1e-8)


@pytest.mark.parametrize("m", [30, 220])
def test_dask_and_moments_have_the_same_path(classes, m):
    A, B = classes(240, m, seed=2)
    options = {"n_deltas": 5, "ratio": 0.05, "pool": 0.5}
    plain = sparse_gsvp_path(A, B, **options)
    moments = [sum(ClassMoments.from_data(part) for part in np.array_split(X, 3)) for X in (A, B)]
    pairs = [moments]
    da = pytest.importorskip("dask.array")
    pairs.append([da.from_array(X, chunks=(100, m // 2)) for X in (A, B)])
    for pair in pairs:
        for one, two in zip(plain, sparse_gsvp_path(*pair, **options), strict=True):
            _assert_same(one, two)


@pytest.mark.parametrize("offset", [0.0, 300.0])
@pytest.mark.parametrize("m", [30, 250])
def test_float32_is_close_to_float64(classes, offset, m):
    """Means of 300 spreads, of which float32 keeps four digits of the spread."""
    A, B = (np.float32(X + offset) for X in classes(40, m, seed=3))
    single = _solve(A, B, tau=3.0)
    assert single.converged
    _assert_same(single, _solve(np.float64(A), np.float64(B), tau=3.0), atol=1e-5)


@pytest.mark.parametrize("m", [12, 212])
def test_constant_features_are_never_selected(classes, m):
    A, B = classes(30, m)
    constant = [0, 5, 11]
    for X in (A, B):
        X[:, constant] = [0.1, 0.0, 1e6 / 3]
    for options in ({"delta": 0.0}, {"delta": 1e-3}, {"delta": 0.05, "w0": np.ones(m)}):
        result = sparse_gsvp(A, B, **options)
        assert not np.isin(constant, result.support).any()
        assert np.isfinite(result.w).all()


# --- warnings


def test_too_few_iterations_warn_with_advice(classes):
    A, B = classes(20, 40, seed=6)
    match = r"certificate is not met for delta = 0.001: raise max_iter or tol"
    with pytest.warns(ConvergenceWarning, match=match) as caught:
        result = sparse_gsvp(A, B, 1e-3, max_iter=1, tau=0.1)
    assert caught[0].filename == __file__
    assert not result.converged
    assert result.kkt_residual > 1e-6 * result.delta_max
    with pytest.warns(ConvergenceWarning, match=r"not met for delta = .*raise max_iter"):
        sparse_gsvp_path(A, B, n_deltas=4, max_iter=1, tau=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sparse_gsvp(A, B, 1e-3, tau=0.1).converged


def test_a_bias_that_ran_off_is_flagged_and_warned_of():
    Z = np.random.default_rng(0).normal(size=(40, 6))
    Z -= Z.mean(axis=0)
    with pytest.warns(RuntimeWarning, match="best bias for delta = 0.1 ran off to infinity"):
        result = sparse_gsvp(3 * Z, Z, 0.1)
    assert result.clipped and np.isfinite(result.b)
    # seen from the narrow class there is nothing wrong
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not sparse_gsvp(Z, 3 * Z, 0.1).clipped


# --- bad input

A0, B0 = np.random.default_rng(1).normal(size=(2, 12, 5))
NAN, HUGE = A0 + [[0, np.nan, 0, 0, 0]], B0 + [[0, 0, 1e200, 0, 0]]
MA, MB = ClassMoments.from_data(A0), ClassMoments.from_data(B0)
ONES = np.ones(12)
BOTH = [
    ({"A": A0[0]}, "A|1D"),
    ({"A": A0[:, :4]}, "A has 4 features and B has 5"),
    ({"A": A0[:0]}, r"A has shape \(0, 5\): a class needs at least two rows"),
    ({"B": B0[:1]}, r"B has shape \(1, 5\): a class needs at least two rows"),
    ({"A": A0[:, :0], "B": B0[:, :0]}, r"A has shape \(12, 0\)"),
    ({"A": NAN}, "A contains NaN.*impute"),
    ({"A": sp.csr_array(NAN)}, "A contains NaN"),
    ({"B": B0 - [[np.inf, 0, 0, 0, 0]]}, "B contains infinity.*impute"),
    ({"B": HUGE}, "B contains values up to 1e.200.*rescale"),
    ({"A": 0 * A0 + 1, "B": 0 * B0 + 1}, "all features that may be selected are constant"),
    ({"A": np.array([["a"] * 5] * 12)}, "string|convert"),
    ({"q": 0.0}, "q must be a number above 0 and at most 1, got 0.0"),
    ({"q": np.nan}, "q must be a number above 0 and at most 1"),
    ({"tau": -1.0}, "tau must be a number of at least 0"),
    ({"A": A0[:2], "B": B0[:3], "tau": 0.0}, "tau = 0 leaves the quotient 0/0.*use tau > 0"),
    ({"pool": -0.1}, "pool must be a number of at least 0 and at most 1, got -0.1"),
    ({"eps": 0.0}, "eps must be a number above 0"),
    ({"tol": -1.0}, "tol must be a number of at least 0"),
    ({"max_iter": 0}, "max_iter must be an integer of at least 1"),
    ({"penalty_factor": np.ones(4)}, r"for each of the 5 features, got shape \(4,\)"),
    ({"penalty_factor": np.full(5, np.inf)}, "infinite for every feature"),
    ({"penalty_factor": [1, np.nan, 1, 1, 1]}, "got nan for feature 1"),
    ({"penalty_factor": {"a": 0.0}}, "the data has no names: fit on a data"),
    ({"A": MA}, "both be ClassMoments or both"),
    (
        {"A": sum([MA, ClassMoments.from_data(A0, ONES)]), "B": MB},
        "moments of 2 classes.*rows alone",
    ),
    (
        {"A": MA, "B": ClassMoments.from_data(B0[:1])},
        r"B has shape \(1, 5\): a class needs at least two",
    ),
    ({"A": ClassMoments.from_data(A0[:, :4]), "B": MB}, "moments of 4 and 5 features"),
]
SINGLE = [
    ({"delta": -0.1}, "delta must be a number of at least 0, got -0.1"),
    ({"delta": [0.1, 0.2]}, "delta must be a number of at least 0"),
    ({"delta": 0.0, "w0": np.ones(4)}, "w0 must be 5 finite numbers"),
    ({"w0": np.zeros(5)}, "w0 must not be zero"),
]
PATH = [
    ({"deltas": []}, "deltas must be positive numbers"),
    ({"deltas": [0.1, 0.0]}, "deltas must be positive numbers.*sparse_gsvp for delta = 0"),
    ({"deltas": [np.nan]}, "deltas must be positive numbers"),
    ({"n_deltas": 2.5}, "n_deltas must be an integer of at least 1"),
    ({"ratio": 1.0}, "ratio must be a number above 0 and below 1"),
]


@pytest.mark.parametrize(("change", "message"), BOTH + SINGLE)
def test_bad_input_names_the_argument(change, message):
    with pytest.raises(ValueError, match=message):
        sparse_gsvp(**{"A": A0, "B": B0, "delta": 0.1, **change})


@pytest.mark.parametrize(("change", "message"), BOTH + PATH)
def test_bad_input_of_the_path(change, message):
    with pytest.raises(ValueError, match=message):
        sparse_gsvp_path(**{"A": A0, "B": B0, **change})
