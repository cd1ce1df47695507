"""Calibration, predictive values, net benefit and areas, against other implementations."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import binom, binomtest, norm
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, roc_auc_score

from sparsegsvp.metrics import (
    at_prevalence,
    balanced_brier_score,
    brier_score,
    calibration_line,
    clopper_pearson,
    decision_curve,
    delong_interval,
    delong_test,
    delong_variance,
    mcnemar_test,
    net_benefit,
    predictive_values,
    threshold_counts,
    threshold_table,
)


def drawn(n_pos, n_neg, seed, *, ties=False, shift=1.0):
    rng = np.random.default_rng(seed)
    y = np.arange(n_pos + n_neg) < n_pos
    score = rng.normal(size=y.size) + shift * y
    order = rng.permutation(y.size)
    return y[order], (np.round(score, 0) if ties else score)[order]


def brute_components(y, score):
    """DeLong's structural components by their definition: every pair, ties counting a half."""
    pairs = score[y][:, None] - score[~y][None, :]
    kernel = (pairs > 0) + 0.5 * (pairs == 0)
    return kernel.mean(axis=1), kernel.mean(axis=0)


# ------------------------------------------------------------------------------ areas


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("sizes", [(2, 2), (7, 30), (40, 25)])
def test_delong_is_its_definition(sizes, ties):
    for seed in range(5):
        y, a = drawn(*sizes, seed, ties=ties)
        b = np.round(a + np.random.default_rng(seed + 99).normal(size=y.size), 0 if ties else 8)
        va, vb = brute_components(y, a), brute_components(y, b)
        expected = sum(np.var(v, ddof=1) / v.size for v in va)
        assert delong_variance(y, a) == pytest.approx(expected, abs=1e-14)
        found = delong_test(y, a, b)
        assert found.first == pytest.approx(roc_auc_score(y, a))
        assert found.second == pytest.approx(roc_auc_score(y, b))
        # variance of a difference from the two by two covariance, as the paper writes it
        S = sum(np.cov(p, q) / p.size for p, q in zip(va, vb))
        variance = S[0, 0] + S[1, 1] - 2 * S[0, 1]
        if variance > 1e-12:
            z = (found.first - found.second) / np.sqrt(variance)
            assert found.p_value == pytest.approx(2 * norm.sf(abs(z)))
            width = found.difference.high - found.difference.low
            assert width <= 2 * norm.ppf(0.975) * np.sqrt(variance) + 1e-12


def test_delong_test_is_antisymmetric_and_knows_its_limits():
    y, a = drawn(30, 30, 0)
    _, b = drawn(30, 30, 1)
    ahead, behind = delong_test(y, a, b), delong_test(y, b, a)
    assert ahead.p_value == behind.p_value
    assert ahead.difference.low == -behind.difference.high
    assert delong_test(y, a, 3 * a + 1).p_value == 1.0  # the same ranking
    # a perfect ranking against none: nothing spreads, so nothing is tested
    assert delong_test(y, y.astype(float), np.zeros(60)).p_value is None
    with pytest.raises(ValueError, match="two samples of each class"):
        delong_test([True, False, False], [1, 2, 3], [1, 2, 3])
    with pytest.raises(ValueError, match="one class"):
        delong_interval([True, True], [1, 2])
    with pytest.raises(ValueError, match="finite"):
        delong_interval([True, False], [1, np.nan])
    with pytest.raises(ValueError, match="2 labels and 3 scores"):
        delong_interval([True, False], [1, 2, 3])


def test_delong_interval_near_the_ends():
    y = np.arange(40) < 20
    perfect = delong_interval(y, y.astype(float))
    assert (perfect.value, perfect.high) == (1.0, 1.0) and 0.9 < perfect.low < 0.93
    nearly = y.astype(float)
    nearly[[0, 20]] = 0.5, 0.6  # one pair in the wrong order
    found = delong_interval(y, nearly)
    assert found.value == 399 / 400
    assert found.low < perfect.low and found.high < 1  # no gain in certainty by an error
    one = delong_interval([True, False, False, False], [3.0, 1.0, 2.0, 4.0])
    assert one.low < 0.1 and one.high > 0.95  # one positive says next to nothing
    constant = delong_interval(y, np.zeros(40))
    assert constant.value == 0.5 and constant.low < 0.4


@pytest.mark.parametrize("counts", [(0, 5), (5, 0), (3, 9), (12, 11), (0, 0)])
def test_mcnemar_counts_by_hand(counts):
    only_a, only_b = counts
    y = np.ones(40, dtype=int)
    a, b = y.copy(), y.copy()
    a[:only_b] = 0
    b[20 : 20 + only_a] = 0
    found = mcnemar_test(y, a, b)
    assert (found.only_first, found.only_second, found.n_samples) == (only_a, only_b, 40)
    n = only_a + only_b
    tail = binom.cdf(min(counts), n, 0.5)
    assert found.p_value == pytest.approx(min(1.0, 2 * tail))


# ------------------------------------------------------------------------ calibration


def test_slope_and_intercept_solve_the_likelihood_equations():
    y, score = drawn(60, 90, 3)
    p = expit(0.4 + 1.7 * score)
    line = calibration_line(y, p)
    # without a penalty, scikit-learn's regression of the class on the log odds
    model = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000)
    model.fit(np.log(p / (1 - p))[:, None], y)
    assert line.slope.value == pytest.approx(model.coef_[0, 0], rel=1e-5)
    assert line.slope_intercept == pytest.approx(model.intercept_[0] - np.log(60 / 90), abs=1e-5)
    # slope 1: as many positives as predicted, at the share that the samples have
    root = brentq(lambda a: expit(np.log(p / (1 - p)) + a + np.log(60 / 90)).sum() - 60, -9, 9)
    assert line.intercept.value == pytest.approx(root)
    # what another share means is in the probabilities and in prior alike
    moved = calibration_line(y, at_prevalence(p, 0.2), prior=0.2)
    assert moved.intercept.value == pytest.approx(line.intercept.value)
    assert moved.slope.value == pytest.approx(line.slope.value)
    # the variance of the slope: the inverse of the likelihood's second derivative, by differences
    x, o = np.log(p / (1 - p)), np.log(60 / 90)

    def profile(b):
        def score_of(a):
            return expit(a + b * x + o).sum() - 60

        eta = brentq(score_of, -30, 30) + b * x + o
        return np.sum(np.logaddexp(0, np.where(y, -eta, eta)))

    b, h = line.slope.value, 1e-3
    second = (profile(b + h) - 2 * profile(b) + profile(b - h)) / h**2
    assert line.slope.high - b == pytest.approx(norm.ppf(0.975) / np.sqrt(second), rel=1e-3)


def test_intervals_of_slope_and_intercept_cover_at_unequal_shares():
    # scores N(0, 1) and N(1.5, 1): the log odds at equal shares are 1.5 x - 1.125 exactly
    rng, covered = np.random.default_rng(4), np.zeros(2)
    y = np.arange(160) < 40
    for _ in range(400):
        x = rng.normal(size=160) + 1.5 * y
        line = calibration_line(y, expit(1.5 * x - 1.125))
        truth = [(line.intercept, 0.0), (line.slope, 1.0)]
        covered += [part.low <= value <= part.high for part, value in truth]
    error = 3 * np.sqrt(0.95 * 0.05 / 400)
    assert np.all(np.abs(covered / 400 - 0.95) < error)  # neither too short nor too long


def test_calibration_without_a_slope():
    y = np.arange(20) < 10
    apart = calibration_line(y, np.where(y, 0.8, 0.3))
    assert apart.slope is None and np.isfinite(apart.intercept.value)
    equal = calibration_line(y, np.full(20, 0.5))
    assert equal.slope is None and equal.intercept.value == pytest.approx(0.0)
    sure = calibration_line(y, np.where(np.arange(20) % 10 < 9, y, ~y).astype(float))
    assert 0 < sure.slope.value < 0.2  # probabilities of 0 and 1 that are sometimes wrong
    with pytest.raises(ValueError, match="one class"):
        calibration_line([1, 1], [0.5, 0.6])
    with pytest.raises(ValueError, match="between 0 and 1"):
        calibration_line([0, 1], [0.5, 1.6])


def test_brier_score_is_scikit_learns_and_the_balanced_one():
    y, score = drawn(20, 70, 6)
    p = expit(score)
    assert brier_score(y, p).value == pytest.approx(brier_score_loss(y, p))
    assert brier_score(y, p, prevalence=0.5).value == pytest.approx(balanced_brier_score(y, p))
    found = brier_score(y, p, prevalence=0.5)
    rng = np.random.default_rng(0)
    again = [
        balanced_brier_score(y[rows], p[rows])
        for rows in (
            np.r_[rng.choice(np.flatnonzero(y), 20), rng.choice(np.flatnonzero(~y), 70)]
            for _ in range(400)
        )
    ]
    assert found.high - found.value == pytest.approx(1.96 * np.std(again), rel=0.15)
    assert brier_score([True, False], [0.7, 0.2]).high == 1.0


# ----------------------------------------------------------- predictive values, benefit


@pytest.mark.parametrize("right,total", [(0, 7), (7, 7), (3, 11), (90, 100)])
def test_exact_intervals_are_scipys(right, total):
    expected = binomtest(right, total).proportion_ci(method="exact")
    found = clopper_pearson(right, total)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_predictive_values_are_shares_of_those_called_so():
    # of 20 positives 18 are called so, of 40 negatives 38; in the samples themselves
    positive, negative = predictive_values((18, 20), (38, 40), 20 / 60)
    assert positive.value == pytest.approx(18 / 20) and negative.value == pytest.approx(38 / 40)
    assert positive.low < positive.value < positive.high
    rare, sure = predictive_values((18, 20), (38, 40), 0.001)
    assert rare.value < 0.02 and sure.value > 0.999
    perfect, _ = predictive_values((20, 20), (40, 40), 0.1)
    assert perfect.value == perfect.high == 1.0 and perfect.low < 0.7
    nobody, everybody = predictive_values((0, 20), (40, 40), 0.5)  # nobody is called positive
    assert nobody is None and everybody.value == 0.5


def test_intervals_of_predictive_values_cover():
    rng, hits = np.random.default_rng(0), 0
    s, c, share = 0.85, 0.9, 0.1
    truth = share * s / (share * s + (1 - share) * (1 - c))
    for _ in range(300):
        pair = (int(rng.binomial(30, s)), 30), (int(rng.binomial(50, c)), 50)
        found, _ = predictive_values(*pair, share)
        hits += found.low <= truth <= found.high
    assert hits / 300 >= 0.95


def test_net_benefit_counts_true_and_false_positives():
    y, score = drawn(25, 75, 5)
    p = np.round(expit(score - 1), 2)  # so that some lie on a threshold
    curve = decision_curve(y, p)
    for t, value, everyone in zip(curve.thresholds, curve.net_benefit, curve.treat_all):
        called = p >= t
        odds = t / (1 - t)
        counted = np.sum(called & y) / 100 - np.sum(called & ~y) / 100 * odds
        assert value == pytest.approx(counted, abs=1e-12)
        assert everyone == pytest.approx(0.25 - 0.75 * odds)
    assert np.all(curve.low <= curve.net_benefit) and curve.prevalence == 0.25
    # another share: negatives weigh as if there were so many more of them
    rare = decision_curve(y, p, prevalence=0.1, thresholds=[0.3])
    weight = np.where(y, 0.1 / 25, 0.9 / 75)
    called = p >= 0.3
    counted = weight[called & y].sum() - weight[called & ~y].sum() * 0.3 / 0.7
    assert rare.net_benefit[0] == pytest.approx(counted)
    assert float(net_benefit(1.0, 1.0, 0.1, 0.5)) == pytest.approx(0.1)  # perfect
    with pytest.raises(ValueError, match="thresholds"):
        decision_curve(y, p, thresholds=[0.5, 1.0])


def test_counts_at_every_threshold_give_rates_at_any_prevalence():
    y, score = drawn(25, 75, 5)
    p = np.round(expit(score - 1), 2)  # with ties
    found = threshold_counts(y, p)
    assert found.threshold.tolist() == sorted(set(p.tolist()))
    for t, tp, fp, tn, fn in zip(*vars(found).values()):
        assert (tp, fp) == (np.sum((p >= t) & y), np.sum((p >= t) & ~y))
        assert (tn, fn) == (np.sum((p < t) & ~y), np.sum((p < t) & y))
    # a table at a prevalence, from the counts alone: thresholds move with the odds
    for row in threshold_table(y, at_prevalence(p, 0.1), prevalence=0.1, own=0.1):
        t = at_prevalence(row.threshold, 0.5, prior=0.1)
        i = np.searchsorted(found.threshold, t - 1e-12)
        s, c = (found.sensitivity[i], found.specificity[i]) if i < found.threshold.size else (0, 1)
        assert row.sensitivity.value == pytest.approx(s)
        assert row.specificity.value == pytest.approx(c)
        assert row.net_benefit == pytest.approx(float(net_benefit(s, c, 0.1, row.threshold)))
        if row.ppv is not None:
            assert row.ppv.value == pytest.approx(0.1 * s / (0.1 * s + 0.9 * (1 - c)))
        assert row.own == (row.threshold == 0.1)


def test_many_thresholds_are_thinned_evenly_from_the_first_to_the_last():
    y, score = drawn(600, 900, 0)
    p = expit(score)
    found = threshold_counts(y, p)
    assert found.threshold.size == 200 and np.all(np.diff(found.threshold) > 0)
    assert (found.threshold[0], found.threshold[-1]) == (p.min(), p.max())
    assert found.tp[0] == 600 and found.fp[0] == 900 and found.tp[-1] + found.fp[-1] == 1
    assert np.diff(found.fn + found.tn).max() <= 9  # of 1500 samples, 7.5 to a step


# ------------------------------------------------------------------ numbers of other packages


@pytest.fixture
def made_up():
    """Sixty samples and two predictions, written down without random numbers."""
    i = np.arange(60)
    y = (7 * i) % 10 < 4
    first = 1 / (1 + np.exp(0.5 - 1.4 * (np.sin(1.7 * i) + 1.1 * y)))
    second = 1 / (1 + np.exp(-np.cos(2.3 * i) - 0.8 * y))
    return y, np.round(first, 3), np.round(second, 3)


def test_net_benefit_is_that_of_dcurves(made_up):
    y, p, _ = made_up
    at = [0.1, 0.25, 0.5, 0.75]
    # dcurves 1.1.7: dca(..., thresholds=at), then with prevalence=0.1 too; models m and "all"
    own = [1 / 3, 0.277777777778, 0.05, 0.183333333333], [1 / 3, 0.2, -0.2, -1.4]
    rare = [0.0, -0.083333333333, -0.3, 0.045833333333], [0.0, -0.2, -0.8, -2.6]
    for prevalence, (model, everyone) in ((None, own), (0.1, rare)):
        found = decision_curve(y, p, prevalence=prevalence, thresholds=at)
        np.testing.assert_allclose(found.net_benefit, model, atol=1e-11)
        np.testing.assert_allclose(found.treat_all, everyone, atol=1e-11)


def test_calibration_is_that_of_statsmodels(made_up):
    y, p, _ = made_up
    found, share = calibration_line(y, p), np.log(24 / 36)
    # statsmodels 0.15.0: GLM(y, [1, logit p], Binomial()).fit(), its params and bse, and the
    # same with [1] alone and offset=logit p
    (a, b), error = (-0.843310233586, 1.523518812142), 0.403312612239
    intercept, own_error = -0.649007668917, 0.303181695832
    assert found.slope.value == pytest.approx(b, abs=1e-8)
    assert found.slope_intercept == pytest.approx(a - share, abs=1e-8)
    assert found.slope.high - b == pytest.approx(norm.ppf(0.975) * error, abs=1e-7)
    # there the samples' share is in the intercept, and its sampling in the error
    plain = calibration_line(y, p, prior=0.4).intercept
    assert plain.value == pytest.approx(intercept, abs=1e-8)
    less = np.sqrt(own_error**2 - 1 / 24 - 1 / 36)
    assert plain.high - plain.value == pytest.approx(norm.ppf(0.975) * less, abs=1e-7)


def test_two_models_are_compared_as_by_mlstatkit_and_statsmodels(made_up):
    y, first, second = made_up
    found = delong_test(y, first, second)
    # MLstatkit 0.1.91: Delong_test(y, first, second)
    assert found.first == pytest.approx(0.8414351851851852)
    assert found.second == pytest.approx(0.7511574074074073)
    assert found.p_value == pytest.approx(0.27168168364320155)
    half = norm.ppf(0.975) * np.sqrt(0.006745432673874701)
    assert found.difference.high - found.difference.value == pytest.approx(half)
    labels = mcnemar_test(y, first >= 0.5, second >= 0.5)
    # statsmodels 0.15.0: mcnemar([[21, 18], [14, 7]], exact=True)
    assert (labels.only_first, labels.only_second) == (18, 14)
    assert labels.p_value == pytest.approx(0.5966148958541453)


def test_prevalence_moves_odds():
    p = np.array([0.0, 0.2, 0.5, 1.0])
    moved = at_prevalence(p, 0.1)
    np.testing.assert_allclose(moved[1:3] / (1 - moved[1:3]), p[1:3] / (1 - p[1:3]) / 9)
    assert moved[0] == 0 and moved[-1] == 1
    np.testing.assert_allclose(at_prevalence(moved, 0.5, prior=0.1), p)
    with pytest.raises(ValueError, match="prevalence"):
        at_prevalence(p, 1.0)
