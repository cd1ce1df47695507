"""Probabilities: priors, calibration, predictive values, thresholds and net benefit."""

from itertools import product

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import binom
from sklearn.linear_model import LogisticRegression

from sparsegsvp.metrics import (
    Interval,
    calibration_line,
    decision_curve,
    exact_interval,
    move_prior,
    net_benefit,
    predictive_values,
    threshold_table,
)
from sparsegsvp.metrics.clinical import threshold_counts


@pytest.fixture
def cohort():
    """2,000 samples at a prevalence of about 0.2 with probabilities that are right."""
    rng = np.random.default_rng(0)
    p = expit(rng.normal(-2, 1.5, 2000))
    return rng.random(2000) < p, p


# ---------------------------------------------------------------------------------- priors


def test_moving_a_prior_is_bayes_rule_and_can_be_undone():
    rng = np.random.default_rng(1)
    P = rng.dirichlet([1, 1, 1], size=20)
    old, new = np.array([0.2, 0.3, 0.5]), np.array([0.6, 0.3, 0.1])
    moved = move_prior(P, old, new)
    expected = P * new / old
    assert np.allclose(moved, expected / expected.sum(axis=1, keepdims=True))
    assert np.allclose(move_prior(moved, new, old), P)
    assert np.allclose(move_prior(P, "equal", [1 / 3] * 3), P)
    p = np.array([0.0, 0.2, 1.0])
    odds = logit(move_prior(p[1:2], 0.5, 0.1)) - logit(p[1:2])
    assert odds == pytest.approx(logit(0.1))
    assert move_prior(p, 0.5, 0.1)[[0, 2]].tolist() == [0.0, 1.0]


@pytest.mark.parametrize("prior", ["training", [0.5, 0.4], [0.0, 1.0], 1.5, [0.2, 0.3, 0.5]])
def test_priors_that_are_none_are_refused(prior):
    with pytest.raises(ValueError, match="prior must"):
        move_prior([0.2, 0.4], prior, 0.5)


# ----------------------------------------------------------------------------- calibration


def test_calibration_line_is_the_logistic_regression(cohort):
    y, p = cohort
    line = calibration_line(y, p)
    assert line.intercept.low < 0 < line.intercept.high
    assert line.slope.low < 1 < line.slope.high
    model = LogisticRegression(C=1e9, tol=1e-10).fit(logit(p)[:, None], y)
    assert line.slope.value == pytest.approx(model.coef_[0, 0], rel=1e-4)
    # at the intercept that is found, as many positives are expected as there are
    assert expit(logit(p) + line.intercept.value).sum() == pytest.approx(y.sum())


def test_calibration_sees_a_wrong_prior_and_too_extreme_probabilities(cohort):
    y, p = cohort
    wrong = calibration_line(y, move_prior(p, float(y.mean()), "equal"))
    assert wrong.intercept.high < -1 and wrong.slope.value == pytest.approx(1, abs=0.15)
    steep = calibration_line(y, expit(2 * logit(p)))
    assert steep.slope.value == pytest.approx(0.5 * calibration_line(y, p).slope.value, rel=1e-3)


def test_repeats_do_not_narrow_the_line(cohort):
    y, p = cohort
    once, thrice = (
        calibration_line(y, p),
        calibration_line(np.tile(y, 3), np.tile(p, 3), weight=1 / 3),
    )
    for name in ("intercept", "slope"):
        a, b = getattr(once, name), getattr(thrice, name)
        assert (a.low, a.high) == pytest.approx((b.low, b.high), rel=1e-3)


def test_no_slope_where_any_would_do():
    assert calibration_line([0, 0, 1, 1], [0.1, 0.2, 0.8, 1.0]).slope is None
    assert calibration_line([0, 1, 0, 1], [0.5] * 4).slope is None


# ---------------------------------------------------------------------- predictive values


def test_predictive_values_are_the_shares_of_a_table():
    found = predictive_values(exact_interval(40, 50), exact_interval(120, 150), 50 / 200)
    assert found["ppv"].value == pytest.approx(40 / 70)
    assert found["npv"].value == pytest.approx(120 / 130)
    assert found["ppv"].level == 0.95


def test_predictive_values_of_rates_that_err_together_are_wider():
    rates, share = (exact_interval(40, 50), exact_interval(120, 150)), 0.25
    against, apart, some, together = (
        predictive_values(*rates, share, correlation=r) for r in (-0.5, 0, 0.5, 1)
    )
    for name in ("ppv", "npv"):
        assert apart[name].low < against[name].low < against[name].high < apart[name].high
        assert together[name].low < some[name].low < apart[name].low < apart[name].value
        assert apart[name].value < apart[name].high < some[name].high < together[name].high
    low = [share * rates[0].low, (1 - share) * (1 - rates[1].low)]
    assert together["ppv"].low == pytest.approx(low[0] / sum(low))  # both at their lower ends


@pytest.mark.parametrize("n_zeros", [10, 90])
@pytest.mark.parametrize("s, c", [(0.6, 0.6), (0.9, 0.95), (0.7, 0.99)])
def test_predictive_values_cover_and_vanish_with_the_calls(s, c, n_zeros):
    truth, held = 0.1 * s / (0.1 * s + 0.9 * (1 - c)), 0.0
    ones, zeros = ([exact_interval(k, n) for k in range(n + 1)] for n in (10, n_zeros))
    for i, j in product(range(11), range(n_zeros + 1)):
        ppv = predictive_values(ones[i], zeros[j], 0.1).get("ppv", Interval(0.5, 0.0, 1.0))
        chance = binom.pmf(i, 10, s) * binom.pmf(j, n_zeros, c)
        held += chance * (ppv.low <= truth <= ppv.high)
    assert held >= 0.95
    none = predictive_values(exact_interval(0, 9), exact_interval(9, 9), 0.5)
    assert set(none) == {"npv"}


# ------------------------------------------------------------------ thresholds, net benefit


def test_counts_are_those_of_every_threshold(cohort):
    y, p = cohort
    counts = threshold_counts(y, p)
    assert 200 <= counts["threshold"].size <= 201
    middle = int(np.searchsorted(counts["threshold"], 0.5))  # there, the labels' own rates
    assert counts["tp"][middle] == (y & (p >= 0.5)).sum()
    assert counts["fp"][middle] == (~y & (p >= 0.5)).sum()
    for i in (0, 57, middle, 199):
        called = p >= counts["threshold"][i]
        assert counts["tp"][i] == (called & y).sum() and counts["fp"][i] == (called & ~y).sum()
        assert counts["tn"][i] == (~called & ~y).sum() and counts["fn"][i] == (~called & y).sum()
    with pytest.raises(ValueError, match="between 0 and 1"):
        threshold_counts(y, p, [0.0])


def test_table_curve_and_formula_agree(cohort):
    y, p = cohort
    share = float(y.mean())
    table = threshold_table(y, p, prior=share, prevalence=share, own=share)
    curve = decision_curve(y, p, prior=share, prevalence=share)
    at = table["threshold"].index(0.2)
    s, c = table["sensitivity"][at], table["specificity"][at]
    assert table["net_benefit"][at] == pytest.approx(curve["net_benefit"][19])
    called = p >= 0.2
    # in the samples' own shares, net benefit is (TP - FP t / (1 - t)) / n
    direct = ((called & y).sum() - (called & ~y).sum() * 0.25) / y.size
    assert net_benefit(s, c, share, 0.2) == pytest.approx(direct)
    assert table["ppv"][at] == pytest.approx(y[called].mean())
    assert [t for t, own in zip(table["threshold"], table["own"]) if own] == [share]
    assert np.all(curve["low"] <= curve["net_benefit"]) and curve["treat_all"][0] > 0


def test_another_prevalence_weights_the_classes(cohort):
    y, p = cohort
    share = float(y.mean())
    table = threshold_table(y, p, prior=share, prevalence=0.02)
    weight = np.where(y, 0.02 / share, 0.98 / (1 - share))
    called = move_prior(p, share, 0.02) >= 0.1
    at = table["threshold"].index(0.1)
    assert table["ppv"][at] == pytest.approx((weight * (called & y)).sum() / weight[called].sum())
    few = threshold_table(y, p, prior=share, prevalence=0.02, trials=(20, 80))
    assert few["ppv_low"][at] < table["ppv_low"][at] and few["ppv"][at] == table["ppv"][at]


@pytest.mark.parametrize(("y", "p"), [([1, 1], [0.1, 0.2]), ([0, 1], [0.1, 1.2])])
def test_bad_probabilities_are_refused(y, p):
    with pytest.raises(ValueError, match=r"one class|between 0 and 1"):
        threshold_counts(y, p)
