"""The penalty: the function p, and factors for features that are in every solution, or in none."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsegsvp import ClassMoments, sparse_gsvp, sparse_gsvp_path
from sparsegsvp.solvers.penalties import Penalty, penalty_factors

few = settings(max_examples=12, deadline=None, derandomize=True)
problems = {
    "seed": st.integers(0, 1000),
    "tau": st.sampled_from([0.3, 1.0, 10.0]),
    "pool": st.sampled_from([0.0, 0.5, 1.0]),
    "q": st.sampled_from([1.0, 0.5]),
    "m": st.sampled_from([14, 210]),  # moments and rows
}


@pytest.mark.parametrize(("q", "eps"), [(1.0, 1e-3), (0.5, 1e-3), (0.1, 1e-2), (0.9, 1e-6)])
def test_p_is_concave_and_below_its_tangents(q, eps):
    p, t, step = Penalty(q, eps), np.linspace(0.01, 1.0, 50), 1e-6
    assert p.value(np.zeros(1)) == 0.0
    np.testing.assert_allclose(p.slope(np.zeros(1)), p.slope(0.0))
    difference = (p.value(t + step) - p.value(t - step)) / (2 * step)
    np.testing.assert_allclose(p.slope(t), difference, rtol=1e-7)
    difference = (p.slope(t + step) - p.slope(t - step)) / (2 * step)
    np.testing.assert_allclose(p.curvature(t), difference, rtol=1e-6, atol=1e-12)
    tangents = p.value(t) + p.slope(t) * (t[:, None] - t)
    assert (p.value(t)[:, None] <= tangents + 1e-12).all()
    if q == 1.0:
        np.testing.assert_array_equal(p.value(t), t)
    else:
        np.testing.assert_allclose(p.value(t), (t + eps) ** q - eps**q)


def _factors(m, seed, n_must=2, n_banned=3):
    """Costs between 1/2 and 2, and who must be in and who may not."""
    rng = np.random.default_rng(seed)
    factors = rng.uniform(0.5, 2.0, m)
    special = rng.permutation(m)[: n_must + n_banned]
    factors[special[:n_must]], factors[special[n_must:]] = 0.0, np.inf
    return factors


@few
@given(**problems)
def test_every_solution_has_its_certificate(reference, classes, seed, tau, pool, q, m):
    A, B = classes(25, m, seed=seed)
    factors = _factors(m, seed)
    must, there = factors == 0.0, np.isfinite(factors)
    options = {"q": q, "tau": tau, "pool": pool, "n_deltas": 4, "ratio": 0.05}
    path = sparse_gsvp_path(A, B, penalty_factor=factors, **options)
    ref = reference(A[:, there], B[:, there], tau=tau, pool=pool)
    exact = sparse_gsvp(A[:, must], B[:, must], 0.0, tau=tau, pool=pool)
    if exact.clipped:
        return
    # the start is the best plane on what must be in, and costs nothing
    np.testing.assert_array_equal(path[0].support, np.flatnonzero(must))
    np.testing.assert_allclose(path[0].w[must], exact.w, atol=1e-7)
    assert path[0].objective == path[0].quotient == pytest.approx(exact.quotient, rel=1e-10)
    for result in path:
        assert result.converged
        assert not result.w[~there].any()
        if result.clipped:
            continue
        w = result.w[there]
        worst = ref.certificate(w, result.b, result.delta, factors[there], q=q)
        assert worst <= 1e-6 * result.delta_max + 1e-9
        assert result.kkt_residual == pytest.approx(worst, abs=1e-8)
        expected = ref.objective(w, result.delta, factors[there], q=q)
        assert result.objective == pytest.approx(expected, rel=1e-9)
    # a banned feature is as good as absent
    absent = sparse_gsvp_path(A[:, there], B[:, there], penalty_factor=factors[there], **options)
    for one, two in zip(path, absent, strict=True):
        assert one.objective == pytest.approx(two.objective, rel=1e-6)


def test_equal_factors_are_another_delta(classes):
    for m in (20, 300):
        for q in (1.0, 0.5):
            A, B = classes(25, m, seed=m)
            options = {"q": q, "pool": 0.5, "n_deltas": 5, "ratio": 0.1}
            plain = sparse_gsvp_path(A, B, **options)
            fours = sparse_gsvp_path(A, B, penalty_factor=np.full(m, 4.0), **options)
            for one, four in zip(plain, fours, strict=True):
                assert four.delta == pytest.approx(one.delta / 4.0, rel=1e-12)
                np.testing.assert_allclose(four.w, one.w, atol=1e-6)


@pytest.mark.parametrize("m", [150, 400])
def test_more_features_that_must_be_in_than_rows(classes, reference, m):
    A, B = classes(12, m, seed=2)
    factors = np.where(np.arange(m) < 90, 0.0, 1.0)
    for delta in (1e9, 0.02):
        result = sparse_gsvp(A, B, delta, penalty_factor=factors, pool=0.5)
        assert result.converged and set(range(90)) <= set(result.support)
        ref = reference(A, B, pool=0.5)
        assert ref.certificate(result.w, result.b, delta, factors) <= 1e-6


def test_without_a_floor_what_must_be_in_may_not_settle_everything(classes):
    """A covariate that is constant within the class has a quotient of 0 by itself."""
    A, B = classes(30, 6)
    A[:, 2], B[:, 2] = 1.0, 2.0
    factors = np.where(np.arange(6) == 2, 0.0, 1.0)
    with pytest.raises(ValueError, match=r"features of penalty 0 leave no distance .*Use tau > 0"):
        sparse_gsvp(A, B, 0.1, tau=0.0, penalty_factor=factors)
    # and only what may be used has to be definite
    A, B = classes(30, 5, seed=1)
    A[:, 4], B[:, 4] = A[:, 3], B[:, 3]
    with pytest.raises(ValueError, match="tau = 0 leaves the quotient 0/0"):
        sparse_gsvp(A, B, 0.1, tau=0.0)
    assert sparse_gsvp(A, B, 0.01, tau=0.0, penalty_factor=[0, 1, 1, 1, np.inf]).converged


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
@pytest.mark.parametrize("q", [1.0, 0.5])
def test_a_covariate_that_tells_nothing_does_not_hide_the_others(classes, q, pool, spread):
    """The classes were matched by it: means, and with them the gradient there, coincide."""
    A, B = (X[:40] for X in classes(40, 20, shift=1.5, seed=1))
    covariate = np.random.default_rng(0).normal(size=40)
    A[:, 0] = covariate - covariate.mean()
    B[:, 0] = spread * A[:, 0]
    factors = np.where(np.arange(20) == 0, 0.0, 1.0)
    options = {"pool": pool, "q": q, "n_deltas": 8, "ratio": 0.05}
    plain = sparse_gsvp_path(A, B, **options)
    path = sparse_gsvp_path(A, B, penalty_factor=factors, **options)
    assert path[0].delta_max > 0.3 * plain[0].delta_max
    assert path[0].support.tolist() == [0] and len(path[1].support) < 10
    for result in path[1:]:
        assert result.converged and result.objective < path[0].objective


def test_a_sign_may_change_where_there_is_no_penalty(classes):
    """Without a kink at zero the weight goes through it: no zero is left behind."""
    changed = 0
    for seed in range(12):
        A, B = classes(25, 12, seed=seed)
        factors = np.where(np.arange(12) < 4, 0.0, 1.0)
        options = {"penalty_factor": factors, "pool": 0.5}
        top, low = (sparse_gsvp(A, B, delta, **options) for delta in (1e9, 1e-3))
        again = sparse_gsvp(A, B, 1e-3, w0=-top.w, **options)
        assert low.converged and again.converged
        assert again.objective == pytest.approx(low.objective, rel=1e-6)
        changed += bool((top.w[:4] * low.w[:4] < 0.0).any())
    assert changed > 2


def test_factors_by_name(classes):
    pd = pytest.importorskip("pandas")
    names = ["a", "b", "c"]
    np.testing.assert_array_equal(penalty_factors({"b": 0}, 3, names), [1.0, 0.0, 1.0])
    series = pd.Series([2.0, np.inf], index=["c", "a"])
    np.testing.assert_array_equal(penalty_factors(series, 3, names), [np.inf, 1.0, 2.0])
    np.testing.assert_array_equal(penalty_factors(pd.Series([1, 2, 3]), 3, names), [1, 2, 3])
    np.testing.assert_array_equal(penalty_factors(None, 3), np.ones(3))
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
    A, B = (pd.DataFrame(X, columns=list("abcdefgh")) for X in classes(25, 8))
    expected = sparse_gsvp(A, B, 0.05, penalty_factor=[1, 1, 0, 1, 1, 1, 1, np.inf])
    for pair in ((A, B), [ClassMoments.from_data(X) for X in (A, B)]):
        result = sparse_gsvp(*pair, 0.05, penalty_factor={"c": 0.0, "h": np.inf})
        np.testing.assert_allclose(result.w, expected.w, atol=1e-8)


def test_constant_features_that_must_be_in_are_left_out_with_a_warning(classes):
    A, B = classes(25, 8)
    A[:, 2] = B[:, 2] = 1.0
    factors = np.ones(8)
    factors[[2, 5]] = 0.0
    with pytest.warns(UserWarning, match=r"1 constant feature\(s\) are left out: 2"):
        result = sparse_gsvp(A, B, 0.05, penalty_factor=factors)
    assert 5 in result.support and 2 not in result.support
    factors[:] = np.inf
    factors[2] = 1.0
    with pytest.raises(ValueError, match="all features that may be selected are constant"):
        sparse_gsvp(A, B, 0.05, penalty_factor=factors)
