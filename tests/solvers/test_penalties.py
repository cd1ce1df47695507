"""Every penalty is concave, rising, zero at zero, and majorised by its tangent.

A new penalty joins by one entry in PENALTIES of conftest.py.
"""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from sparsegsvp import GSVPSVM, GSVPSVMCV, load_model, save_model, sparse_gsvp, sparse_gsvp_path
from sparsegsvp.datasets import make_planted
from sparsegsvp.solvers.penalties import L1, Lq, make_penalty

T = np.linspace(0.0, 1.0, 101)


def test_value_is_zero_at_zero_and_increases(any_penalty):
    """Everywhere, or up to where its slope is zero for good."""
    value, slope = any_penalty.value(T), any_penalty.slope(T)
    assert value[0] == 0.0
    assert slope[0] > 0.0
    assert ((np.diff(value) > 0.0) == (slope[:-1] > 0.0)).all()
    assert (np.diff(value) >= 0.0).all()


def test_slope_and_curvature_by_finite_differences(any_penalty):
    t, step = np.linspace(0.01, 1.0, 50), 1e-6
    slope = (any_penalty.value(t + step) - any_penalty.value(t - step)) / (2 * step)
    np.testing.assert_allclose(any_penalty.slope(t), slope, rtol=1e-7)
    bend = (any_penalty.slope(t + step) - any_penalty.slope(t - step)) / (2 * step)
    np.testing.assert_allclose(any_penalty.curvature(t), bend, rtol=1e-6, atol=1e-12)


def test_every_tangent_lies_above(any_penalty):
    assert (any_penalty.curvature(T) <= 0.0).all()
    for t in T:
        at = np.array([t])
        tangent = any_penalty.value(at) + any_penalty.slope(at) * (T - t)
        assert (any_penalty.value(T) <= tangent + 1e-12).all()


def test_the_slope_at_zero_is_finite(any_penalty):
    assert np.isfinite(any_penalty.slope(np.zeros(1))).all()


def test_linear_means_that_one_tangent_serves_everywhere(any_penalty):
    assert any_penalty.linear == bool(np.ptp(any_penalty.slope(T)) == 0.0)
    assert any_penalty.linear == bool((any_penalty.slope(T) == 1.0).all())


def test_the_formula_of_lq():
    np.testing.assert_allclose(Lq(0.5, 0.01).value(np.array([0.15])), [0.4 - 0.1])
    np.testing.assert_allclose(Lq(0.5, 0.01).slope(np.array([0.15])), [0.5 / 0.4])
    for q, eps in ((0.5, 1e-3), (0.3, 0.02)):
        np.testing.assert_allclose(Lq(q, eps).value(T), (T + eps) ** q - eps**q)
        np.testing.assert_allclose(Lq(q, eps).slope(T), q * (T + eps) ** (q - 1))
    np.testing.assert_array_equal(L1().value(T), T)
    np.testing.assert_array_equal(L1().slope(T), np.ones_like(T))


@pytest.mark.parametrize("gap", [1e-2, 1e-4, 1e-6])
def test_lq_goes_to_l1_as_q_goes_to_1(gap):
    near = Lq(1.0 - gap, 1e-3)
    np.testing.assert_allclose(near.value(T), T, atol=8 * gap)
    np.testing.assert_allclose(near.slope(T), 1.0, atol=8 * gap)


def test_make_penalty_picks_by_q():
    assert make_penalty(1.0, 1e-3) == L1()
    assert make_penalty(1, 1e-3) == L1()
    assert make_penalty(0.5, 1e-3) == Lq(0.5, 1e-3)


@pytest.mark.parametrize("q", [0.0, -0.5, 1.0001, np.nan, np.inf])
def test_q_outside_its_range_is_refused(q):
    with pytest.raises(ValueError, match="q must be a number above 0 and at most 1"):
        make_penalty(q, 1e-3)


@pytest.mark.parametrize("eps", [0.0, -1.0, np.nan, np.inf])
def test_eps_outside_its_range_is_refused(eps):
    with pytest.raises(ValueError, match="eps must be a number above 0"):
        make_penalty(0.5, eps)


# --- objects and their shorthand


@pytest.fixture(scope="module")
def table():
    return make_planted(50, 30, 4, effect=1.5, random_state=2, return_X_y=True)


def test_an_object_is_what_q_and_eps_stand_for(table):
    X, y = table
    A, B = X[y == 0], X[y == 1]
    for q, eps, penalty in ((1.0, 1e-3, L1()), (0.5, 1e-3, Lq(0.5)), (0.3, 0.01, Lq(0.3, 0.01))):
        short, long = {"q": q, "eps": eps}, {"penalty": penalty}
        np.testing.assert_array_equal(
            sparse_gsvp(A, B, 0.05, **short).w, sparse_gsvp(A, B, 0.05, **long).w
        )
        for one, two in zip(
            sparse_gsvp_path(A, B, n_deltas=3, **short), sparse_gsvp_path(A, B, n_deltas=3, **long)
        ):
            np.testing.assert_array_equal(one.w, two.w)
        for model in (GSVPSVM(delta=0.05), GSVPSVMCV(tau=1.0, n_deltas=4, cv=3)):
            one, two = (clone(model).set_params(**options).fit(X, y) for options in (short, long))
            np.testing.assert_array_equal(one.coef_, two.coef_)
        assert two.q_ == q


def test_an_estimator_takes_any_penalty(penalty, table):
    X, y = table
    found = GSVPSVM(delta=0.3, penalty=penalty).fit(X, y)
    assert 0 < found.support_.sum() < X.shape[1]
    assert (found.kkt_residual_ < 1e-4).all()
    search = GSVPSVMCV(tau=1.0, n_deltas=5, cv=3, penalty=penalty).fit(X, y)
    assert len(search.cv_results_["param_q"]) == 5
    np.testing.assert_equal(search.q_, float(getattr(penalty, "q", np.nan)))
    assert search.score(X, y) > 0.8
    again = clone(search).fit(X, y)
    np.testing.assert_array_equal(again.coef_, search.coef_)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"q": 0.5, "penalty": L1()}, r"q=0.5 contradicts penalty=L1\(\)"),
        ({"q": 0.5, "penalty": Lq(0.4)}, "q=0.5 contradicts penalty=Lq"),
        ({"eps": 0.1, "penalty": Lq(0.4)}, "eps=0.1 contradicts penalty=Lq"),
        ({"penalty": "l2"}, "penalty must be an object with value, slope, curvature, linear"),
        ({"penalty": L1}, "penalty must be an object"),
    ],
)
def test_contradictions_and_what_is_no_penalty_are_refused(table, options, message):
    X, y = table
    with pytest.raises(ValueError, match=message):
        sparse_gsvp(X[y == 0], X[y == 1], 0.1, **options)
    with pytest.raises(ValueError, match=message):
        GSVPSVM(**options).fit(X, y)
    with pytest.raises(ValueError, match=message):
        GSVPSVMCV(**options).fit(X, y)


def test_shorthand_that_says_the_same_is_no_contradiction(table):
    X, y = table
    same = GSVPSVM(q=0.5, eps=0.01, penalty=Lq(0.5, 0.01)).fit(X, y)
    np.testing.assert_array_equal(same.coef_, GSVPSVM(q=0.5, eps=0.01).fit(X, y).coef_)
    with pytest.raises(ValueError, match=r"q=\(1.0, 0.5\) contradicts penalty"):
        GSVPSVMCV(q=(1.0, 0.5), penalty=L1()).fit(X, y)


def test_q_of_an_object_outside_its_range_is_refused():
    for q in (0.0, 1.0, np.nan):
        with pytest.raises(ValueError, match="q must be a number above 0 and below 1"):
            Lq(q)
    with pytest.raises(ValueError, match="eps must be a number above 0"):
        Lq(0.5, 0.0)


def test_a_model_with_a_penalty_is_saved_and_loaded(table, tmp_path):
    pytest.importorskip("skops")
    X, y = table
    for model in (GSVPSVM(penalty=Lq(0.5)), GSVPSVMCV(tau=1.0, n_deltas=3, cv=3, penalty=L1())):
        model.fit(X, y)
        again = load_model(save_model(model, tmp_path / "model.skops"))
        assert again.penalty == model.penalty
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
        np.testing.assert_array_equal(again.fit(X, y).coef_, model.coef_)
    assert pickle.loads(pickle.dumps(Lq(0.5))) == Lq(0.5)


def test_a_model_saved_before_there_were_penalties_is_still_whole(table):
    X, y = table
    model = GSVPSVM().fit(X, y)
    del model.__dict__["penalty"]
    assert model.get_params() == GSVPSVM().get_params()
    np.testing.assert_array_equal(clone(model).fit(X, y).coef_, model.coef_)
