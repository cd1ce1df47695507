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
from sparsegsvp.datasets import make_planted
from sparsegsvp.linalg.covariances import choose_method

few = settings(max_examples=12, deadline=None, derandomize=True)
problems = {
    "seed": st.integers(0, 1000),
    "tau": st.sampled_from([0.3, 1.0, 10.0]),
    "pool": st.sampled_from([0.0, 0.5, 1.0]),
    "rho": st.sampled_from([0.5, 0.1, 0.02]),
}


def _solve(A, B, rho, **options):
    """At a share of delta_max, which the first call tells."""
    top = sparse_gsvp(A, B, 1e9, **options)
    return sparse_gsvp(A, B, rho * top.delta_max, **options)


def _assert_same(left, right, atol=1e-6):
    np.testing.assert_array_equal(left.support, right.support)
    np.testing.assert_allclose(left.w, right.w, atol=atol)
    assert left.b == pytest.approx(right.b, abs=10 * atol)


# --- the result


@few
@given(**problems)
def test_the_result_says_what_it_is(reference, classes, penalty, seed, tau, pool, rho):
    A, B = classes(25, 12, seed=seed)
    weights = np.random.default_rng(seed).uniform(0.5, 2.0, 12)
    options = {"penalty": penalty, "tau": tau, "pool": pool}
    result = _solve(A, B, rho, penalty_factor=weights, **options)
    if result.clipped:
        return
    ref = reference(A, B, tau=tau, pool=pool)
    assert np.linalg.norm(result.w) == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_array_equal(np.flatnonzero(result.w), result.support)
    assert result.quotient == pytest.approx(ref.ratio(result.w, result.b), rel=1e-9)
    assert result.quotient == pytest.approx(ref.value(result.w), rel=1e-9)
    assert result.objective == pytest.approx(
        ref.objective(result.w, result.delta, penalty, weights), rel=1e-9
    )
    assert result.converged
    certificate = ref.certificate(result.w, result.b, result.delta, penalty, weights)
    assert certificate <= 1e-6 * result.delta_max + 1e-10
    assert result.kkt_residual == pytest.approx(certificate, abs=1e-9)
    # the mean of B is on the positive side
    assert B.mean(axis=0) @ result.w + result.b >= 0.0


def test_two_calls_agree_to_the_last_bit_and_leave_their_input_alone(classes):
    for m in (20, 300):
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


# --- what must not matter


@few
@given(**problems)
def test_permuting_features_permutes_the_solution(classes, penalty, seed, tau, pool, rho):
    A, B = classes(25, 14, seed=seed)
    order = np.random.default_rng(seed).permutation(14)
    weights = np.random.default_rng(seed).uniform(0.5, 2.0, 14)
    options = {"penalty": penalty, "tau": tau, "pool": pool}
    plain = _solve(A, B, rho, penalty_factor=weights, **options)
    moved = _solve(A[:, order], B[:, order], rho, penalty_factor=weights[order], **options)
    assert moved.objective == pytest.approx(plain.objective, rel=1e-8)
    np.testing.assert_allclose(moved.w, plain.w[order], atol=1e-5)


@few
@given(**problems)
def test_flipping_features_flips_the_solution(classes, penalty, seed, tau, pool, rho):
    A, B = classes(25, 14, seed=seed)
    sign = np.random.default_rng(seed).choice([-1.0, 1.0], 14)
    options = {"penalty": penalty, "tau": tau, "pool": pool}
    plain = _solve(A, B, rho, **options)
    flipped = _solve(A * sign, B * sign, rho, **options)
    assert flipped.objective == pytest.approx(plain.objective, rel=1e-10)
    np.testing.assert_allclose(flipped.w, sign * plain.w, atol=1e-6)


@few
@given(**problems)
def test_shifting_the_data_moves_only_the_bias(classes, penalty, seed, tau, pool, rho):
    A, B = classes(25, 14, seed=seed)
    shift = np.random.default_rng(seed).normal(size=14) * 10
    options = {"penalty": penalty, "tau": tau, "pool": pool}
    plain = _solve(A, B, rho, **options)
    moved = _solve(A + shift, B + shift, rho, **options)
    np.testing.assert_allclose(moved.w, plain.w, atol=1e-6)
    assert moved.b == pytest.approx(plain.b - shift @ plain.w, rel=1e-4, abs=1e-3)


@few
@given(**problems)
def test_two_copies_of_the_data_change_nothing(classes, penalty, seed, tau, pool, rho):
    A, B = classes(25, 14, seed=seed)
    options = {"penalty": penalty, "tau": tau, "pool": pool}
    _assert_same(
        _solve(A, B, rho, **options),
        _solve(np.concatenate([A, A]), np.concatenate([B, B]), rho, **options),
    )


def test_scaling_data_and_floor_together_changes_nothing(classes):
    A, B = classes(25, 14)
    plain = sparse_gsvp(A, B, 0.02, tau=1.0)
    for c in (1e-3, 10.0, 1e6):
        scaled = sparse_gsvp(c * A, c * B, 0.02, tau=c * c)
        np.testing.assert_array_equal(plain.support, scaled.support)
        np.testing.assert_allclose(plain.w, scaled.w, atol=1e-6)
        assert scaled.quotient == pytest.approx(plain.quotient, rel=1e-8)


@pytest.mark.parametrize("method", ["moments", "working_set"])
@pytest.mark.parametrize("pool", [0.0, 0.5])
def test_sample_weights_are_repetitions(classes, method, pool):
    A, B = classes(25, 14)
    rng = np.random.default_rng(0)
    weights = [rng.integers(0, 4, len(X)) for X in (A, B)]
    options = {"pool": pool, "method": method}
    repeated = [np.repeat(X, weight, axis=0) for X, weight in zip((A, B), weights)]
    _assert_same(
        sparse_gsvp(A, B, 0.02, sample_weight=weights, **options),
        sparse_gsvp(*repeated, 0.02, **options),
    )


@few
@given(**problems)
def test_penalty_weights_scale_with_delta(classes, penalty, seed, tau, pool, rho):
    A, B = classes(25, 14, seed=seed)
    weights = np.random.default_rng(seed).uniform(0.5, 2.0, 14)
    options = {"penalty": penalty, "tau": tau, "pool": pool}
    delta = rho * sparse_gsvp(A, B, 1e9, penalty_factor=weights, **options).delta_max
    _assert_same(
        sparse_gsvp(A, B, delta, penalty_factor=weights, **options),
        sparse_gsvp(A, B, delta / 8, penalty_factor=8 * weights, **options),
        atol=1e-5,
    )


def test_a_heavy_penalty_weight_keeps_a_feature_out(classes):
    A, B = classes(40, 8, shift=1.5)
    free = sparse_gsvp(A, B, 0.02)
    banned = int(free.support[np.argmax(np.abs(free.w[free.support]))])
    weights = np.ones(8)
    weights[banned] = 1e4
    start = np.zeros(8)
    start[free.support[free.support != banned][0]] = 1.0
    result = sparse_gsvp(A, B, 0.02, penalty_factor=weights, w0=start)
    assert result.converged
    assert banned not in result.support


def test_one_and_two_threads_agree(penalty):
    dataset = make_planted(80, 400, 8, random_state=1)
    A, B = dataset.X[dataset.y == 0], dataset.X[dataset.y == 1]
    tall = np.random.default_rng(0).normal(size=(3000, 30))
    for left, right in ((A, B), (tall[:1000], tall[1000:] + 0.2)):
        paths = []
        for threads in (1, 2):
            with threadpool_limits(threads):
                paths.append(
                    sparse_gsvp_path(left, right, n_deltas=4, ratio=0.1, penalty=penalty, pool=0.5)
                )
        for one, two in zip(*paths):
            _assert_same(one, two)


# --- one problem, many representations


def test_working_sets_moments_and_their_batches_agree(classes, penalty):
    A, B = classes(60, 40, seed=2)
    halves = [sum(ClassMoments.from_data(part) for part in np.array_split(X, 3)) for X in (A, B)]
    for rho in (0.5, 0.1, 0.02):
        rows = _solve(A, B, rho, penalty=penalty, pool=0.5, method="working_set")
        _assert_same(rows, _solve(A, B, rho, penalty=penalty, pool=0.5, method="moments"))
        _assert_same(rows, _solve(*halves, rho, penalty=penalty, pool=0.5))


@pytest.mark.parametrize("method", ["moments", "working_set"])
@pytest.mark.parametrize(
    "kind",
    [
        np.asfortranarray,
        sp.csr_matrix,
        sp.csc_matrix,
        sp.csr_array,
        sp.coo_array,
        np.ndarray.tolist,
    ],
)
def test_every_storage_has_the_same_solution(classes, kind, method):
    A, B = (X * (np.abs(X) > 0.7) for X in classes(40, 30, seed=1))
    plain = sparse_gsvp(A, B, 0.02, method=method)
    _assert_same(plain, sparse_gsvp(kind(A), kind(B), 0.02, method=method), atol=1e-8)
    _assert_same(plain, sparse_gsvp(kind(A), B, 0.02, method=method), atol=1e-8)


@pytest.mark.parametrize("offset", [0.0, 300.0])
def test_float32_is_close_to_float64(classes, offset):
    """Means of 300 spreads, of which float32 keeps four digits of the spread."""
    A, B = (np.float32(X + offset) for X in classes(40, 250, seed=3))
    single, double = (
        _solve(A, B, 0.1, tau=3.0),
        _solve(A.astype(np.float64), B.astype(np.float64), 0.1, tau=3.0),
    )
    assert single.converged
    _assert_same(single, double, atol=1e-5)


@pytest.mark.parametrize("inner", ["newton", "bb"])
def test_both_inner_solvers_descend_to_the_same_point(classes, inner):
    A, B = classes(40, 30, seed=4)
    for rho in (0.5, 0.1):
        result = _solve(A, B, rho, tau=3.0, inner=inner)
        _assert_same(result, _solve(A, B, rho, tau=3.0), atol=1e-5)
        assert (np.diff(result.history) <= 1e-14 * np.abs(result.history[:-1])).all()


def test_the_method_follows_the_shape():
    assert choose_method(1_000_000, 30) == "moments"
    assert choose_method(100, 100) == "moments"
    assert choose_method(250, 15_000) == "working_set"
    assert choose_method(100, 800) == "working_set"
    assert choose_method(20_000, 800) == "moments"


# --- limits


@few
@given(seed=st.integers(0, 1000), tau=st.sampled_from([0.3, 3.0]))
def test_q_near_1_approaches_l1(classes, seed, tau):
    A, B = classes(40, 10, seed=seed)
    l1 = _solve(A, B, 0.2, tau=tau)
    differences = []
    for q in (0.99, 0.9999):
        near = sparse_gsvp(A, B, l1.delta, q=q, tau=tau)
        differences.append(abs(near.objective - l1.objective))
    assert differences[1] <= 1e-3 * l1.delta + 1e-9
    assert differences[1] <= differences[0] + 1e-9
    np.testing.assert_allclose(near.w, l1.w, atol=5e-3)


@few
@given(seed=st.integers(0, 1000), tau=st.sampled_from([0.3, 1.0]), rho=problems["rho"])
def test_a_pooled_spread_gives_both_planes_one_direction(classes, seed, tau, rho):
    """pool = 1 is Fisher's discriminant: from either class the same w up to sign."""
    A, B = classes(40, 12, seed=seed)
    one, other = (_solve(X, Y, rho, tau=tau, pool=1.0) for X, Y in ((A, B), (B, A)))
    np.testing.assert_array_equal(one.support, other.support)
    # B is on the positive side of A's plane, and A on that of B's
    np.testing.assert_allclose(one.w, -other.w, atol=1e-6)
    own = sparse_gsvp(A, B, one.delta, tau=tau, pool=0.0)
    assert np.abs(own.w - one.w).max() > 1e-4


def test_a_large_floor_leads_to_the_difference_of_the_means(classes):
    A, B = classes(60, 8, seed=5)
    result = sparse_gsvp(A, B, 0.0, tau=1e8)
    difference = B.mean(axis=0) - A.mean(axis=0)
    np.testing.assert_allclose(result.w, difference / np.linalg.norm(difference), atol=1e-3)
    # and the plane moves sqrt(tau) away from its class
    assert abs(A.mean(axis=0) @ result.w + result.b) == pytest.approx(1e4, rel=1e-2)


# --- answers


@pytest.mark.parametrize(
    ("n_samples", "n_features", "q"), [(150, 1000, 1.0), (400, 60, 1.0), (400, 60, 0.5)]
)
def test_a_planted_support_is_recovered(n_samples, n_features, q):
    """An effect of 1.5 standard deviations among many features; weaker ones are missed."""
    found = {}
    for effect in (1.5, 0.15):
        dataset = make_planted(n_samples, n_features, 5, effect=effect, random_state=3)
        planted = dataset.support
        A, B = dataset.X[dataset.y == 0], dataset.X[dataset.y == 1]
        path = sparse_gsvp_path(A, B, n_deltas=15, q=q, pool=0.5)
        found[effect] = any(np.array_equal(r.support, planted) for r in path)
    assert found == {1.5: True, 0.15: False}


def test_constant_features_are_never_selected(classes):
    A, B = classes(30, 12)
    constant = [0, 5, 11]
    for X in (A, B):
        X[:, constant] = [0.1, 0.0, 1e6 / 3]
    for method in ("moments", "working_set"):
        for delta in (0.0, 1e-4, 0.05):
            result = sparse_gsvp(A, B, delta, method=method)
            assert not np.isin(constant, result.support).any()
            assert np.isfinite(result.w).all()
    assert not np.isin(constant, sparse_gsvp(A, B, 0.01, w0=np.ones(12)).support).any()


# --- warnings


def test_too_few_iterations_warn_with_advice(classes):
    A, B = classes(20, 40, seed=6)
    with pytest.warns(ConvergenceWarning, match=r"certificate is .*raise max_iter or tol"):
        result = sparse_gsvp(A, B, 1e-3, max_iter=1, tau=0.1)
    assert not result.converged
    assert result.kkt_residual > 1e-6 * result.delta_max
    with pytest.warns(ConvergenceWarning, match=r"not met at \d+ of the deltas: raise max_iter"):
        sparse_gsvp_path(A, B, n_deltas=4, max_iter=1, tau=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sparse_gsvp(A, B, 1e-3, tau=0.1).converged


def test_a_bias_that_ran_off_is_flagged_and_warned_of():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(40, 6))
    Z -= Z.mean(axis=0)
    with pytest.warns(RuntimeWarning, match="bias ran off to infinity"):
        result = sparse_gsvp(3 * Z, Z, 0.1)
    assert result.clipped
    assert np.isfinite(result.b)
    # seen from the narrow class there is nothing wrong
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not sparse_gsvp(Z, 3 * Z, 0.1).clipped


# --- bad input

A0, B0 = np.random.default_rng(1).normal(size=(2, 12, 5))


def _with(X, value):
    out = X.copy()
    out[3, 2] = value
    return out


BAD = {
    "A one-dimensional": ({"A": A0[0]}, "A|1D"),
    "A of another width": ({"A": A0[:, :4]}, "A has 4 features and B has 5"),
    "A empty": ({"A": A0[:0]}, r"A has shape \(0, 5\): a class needs at least two rows"),
    "A of one row": ({"A": A0[:1]}, r"A has shape \(1, 5\): a class needs at least two rows"),
    "B of one row": ({"B": B0[:1]}, r"B has shape \(1, 5\): a class needs at least two rows"),
    "no features": ({"A": A0[:, :0], "B": B0[:, :0]}, r"A has shape \(12, 0\)"),
    "A with NaN": ({"A": _with(A0, np.nan)}, "A contains NaN.*impute"),
    "B with NaN": ({"B": _with(B0, np.nan)}, "B contains NaN.*impute"),
    "B with infinity": ({"B": _with(B0, -np.inf)}, "B contains infinity.*impute"),
    "A overflows": ({"A": _with(A0, 1e200)}, "A contains values up to 1e.200.*rescale"),
    "B overflows in float32": (
        {"B": np.float32(_with(B0, 1e25))},
        "B contains values up to 1e.25.*rescale",
    ),
    "sparse A with NaN": ({"A": sp.csr_array(_with(A0, np.nan))}, "A contains NaN"),
    "A zero": ({"A": 0 * A0}, "A contains only zeros"),
    "B zero": ({"B": 0 * B0}, "B contains only zeros"),
    "B zero and sparse": ({"B": sp.csr_array(0 * B0)}, "B contains only zeros"),
    "both constant": ({"A": 0 * A0 + 1, "B": 0 * B0 + 1}, "all features are constant.*A and B"),
    "text": ({"A": np.array([["a"] * 5] * 12)}, "string|convert"),
    "delta negative": ({"delta": -0.1}, "delta must be a number of at least 0, got -0.1"),
    "delta NaN": ({"delta": np.nan}, "delta must be a number of at least 0"),
    "delta infinite": ({"delta": np.inf}, "delta must be a number of at least 0"),
    "delta a list": ({"delta": [0.1, 0.2]}, "delta must be a number of at least 0"),
    "delta text": ({"delta": "0.1"}, "delta must be a number of at least 0"),
    "q zero": ({"q": 0.0}, "q must be a number above 0 and at most 1, got 0.0"),
    "q above one": ({"q": 1.5}, "q must be a number above 0 and at most 1"),
    "q NaN": ({"q": np.nan}, "q must be a number above 0 and at most 1"),
    "q None": ({"q": None}, "q must be a number above 0 and at most 1"),
    "tau negative": ({"tau": -1.0}, "tau must be a number of at least 0"),
    "tau NaN": ({"tau": np.nan}, "tau must be a number of at least 0"),
    "tau zero with more features than rows": (
        {"A": A0[:2], "B": B0[:3], "tau": 0.0},
        "tau = 0 leaves the quotient 0/0.*use tau > 0",
    ),
    "tau zero with collinear features": (
        {"A": A0[:, [0, 1, 1]], "B": B0[:, [0, 1, 1]], "tau": 0.0},
        "tau = 0 leaves the quotient 0/0.*use tau > 0",
    ),
    "pool negative": (
        {"pool": -0.1},
        "pool must be a number of at least 0 and at most 1, got -0.1",
    ),
    "pool above one": ({"pool": 1.1}, "pool must be a number of at least 0 and at most 1"),
    "pool NaN": ({"pool": np.nan}, "pool must be a number of at least 0 and at most 1"),
    "pool text": ({"pool": "half"}, "pool must be a number of at least 0 and at most 1"),
    "eps zero": ({"eps": 0.0, "q": 0.5}, "eps must be a number above 0"),
    "tol negative": ({"tol": -1.0}, "tol must be a number of at least 0"),
    "max_iter zero": ({"max_iter": 0}, "max_iter must be an integer of at least 1"),
    "max_iter a fraction": ({"max_iter": 2.5}, "max_iter must be an integer of at least 1"),
    "method unknown": ({"method": "magic"}, "method must be 'auto', 'moments' or 'working_set'"),
    "inner unknown": ({"inner": "magic"}, "inner must be 'newton' or 'bb'"),
    "factors of another length": (
        {"penalty_factor": np.ones(4)},
        r"one number for each of the 5 features, got shape \(4,\)",
    ),
    "factors infinite": ({"penalty_factor": np.full(5, np.inf)}, "infinite for every feature"),
    "a factor NaN": ({"penalty_factor": [1, np.nan, 1, 1, 1]}, "got nan for feature 1"),
    "a factor negative": ({"penalty_factor": [1, 1, -2, 1, 1]}, "got -2 for feature 2"),
    "factors of names": ({"penalty_factor": {"a": 0.0}}, "the data has no names: fit on a data"),
    "factors in words": ({"penalty_factor": "high"}, "one number per feature, or a mapping"),
    "two names for factors": (
        {"penalty_factor": np.ones(5), "weights": np.ones(5)},
        "weights is the old name of penalty_factor: give one",
    ),
    "w0 of another length": ({"w0": np.ones(4)}, "w0 must be 5 finite numbers"),
    "w0 NaN": ({"w0": np.full(5, np.nan)}, "w0 must be 5 finite numbers"),
    "w0 zero": ({"w0": np.zeros(5)}, "w0 must not be zero"),
    "sample_weight one array": ({"sample_weight": np.ones(24)}, "sample_weight must be a pair"),
    "sample_weight a number": ({"sample_weight": 1.0}, "sample_weight must be a pair"),
    "sample_weight too short": (
        {"sample_weight": (np.ones(11), np.ones(12))},
        "sample_weight has 11 weights for the 12 rows of A",
    ),
    "sample_weight negative": (
        {"sample_weight": (np.ones(12), -np.ones(12))},
        "sample_weight must be non-negative and finite",
    ),
    "sample_weight leaves one row": (
        {"sample_weight": (np.ones(12), np.eye(12)[0])},
        "sample_weight leaves fewer than two rows of B",
    ),
    "moments and rows": ({"A": ClassMoments.from_data(A0)}, "both be ClassMoments or both"),
    "moments of two classes": (
        {"A": ClassMoments.from_data(A0, np.arange(12) % 2), "B": ClassMoments.from_data(B0)},
        r"A holds the moments of 2 classes.*select",
    ),
    "moments of one row": (
        {"A": ClassMoments.from_data(A0), "B": ClassMoments.from_data(B0[:1])},
        "B has 1 rows: a class needs at least two",
    ),
    "moments of other features": (
        {"A": ClassMoments.from_data(A0[:, :4]), "B": ClassMoments.from_data(B0)},
        "A has 4 features and B has 5",
    ),
    "moments with weights": (
        {
            "A": ClassMoments.from_data(A0),
            "B": ClassMoments.from_data(B0),
            "sample_weight": (np.ones(12), np.ones(12)),
        },
        "sample_weight is already in the moments",
    ),
    "moments by working sets": (
        {
            "A": ClassMoments.from_data(A0),
            "B": ClassMoments.from_data(B0),
            "method": "working_set",
        },
        "moments hold no rows",
    ),
    "moments zero": (
        {"A": ClassMoments.from_data(0 * A0), "B": ClassMoments.from_data(B0)},
        "A contains only zeros",
    ),
}


@pytest.mark.parametrize("case", list(BAD))
def test_bad_input_names_the_argument(case):
    change, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        sparse_gsvp(**{"A": A0, "B": B0, "delta": 0.1, **change})
    if not {"delta", "w0"} & set(change):
        with pytest.raises(ValueError, match=message):
            sparse_gsvp_path(**{"A": A0, "B": B0, **change})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"deltas": []}, "deltas must be positive numbers"),
        ({"deltas": [0.1, 0.0]}, "deltas must be positive numbers.*sparse_gsvp for delta = 0"),
        ({"deltas": [0.1, -1.0]}, "deltas must be positive numbers"),
        ({"deltas": [np.nan]}, "deltas must be positive numbers"),
        ({"n_deltas": 0}, "n_deltas must be an integer of at least 1"),
        ({"n_deltas": 2.5}, "n_deltas must be an integer of at least 1"),
        ({"ratio": 0.0}, "ratio must be a number above 0 and below 1"),
        ({"ratio": 1.0}, "ratio must be a number above 0 and below 1"),
    ],
)
def test_bad_input_of_the_path(change, message):
    with pytest.raises(ValueError, match=message):
        sparse_gsvp_path(A0, B0, **change)


def test_bad_w0_is_refused_at_delta_zero_too():
    with pytest.raises(ValueError, match="w0 must be 5 finite numbers"):
        sparse_gsvp(A0, B0, 0.0, w0=np.ones(3))
