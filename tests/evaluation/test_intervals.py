"""Intervals of the procedure, exact ones at perfect scores, and Holm's procedure."""

import numpy as np
import pytest
from scipy.stats import beta, norm
from scipy.stats import t as student

from sparsegsvp.evaluation import (
    auc_interval,
    corrected_interval,
    delong_variance,
    holm,
    make_folds,
    paired_differences,
    rate_interval,
    score_interval,
)
from sparsegsvp.evaluation.intervals import counting_deviation
from sparsegsvp.metrics import clopper_pearson


def test_corrected_interval_is_the_formula():
    scores = np.array([0.7, 0.8, 0.75, 0.9])
    half = student.ppf(0.975, 3) * np.sqrt((1 / 4 + 0.25) * scores.var(ddof=1))
    found = corrected_interval(scores, 0.25)
    assert (found.low, found.high) == pytest.approx((scores.mean() - half, scores.mean() + half))
    assert corrected_interval([0.9, 1.0, 1.0, 0.95], 0.25).high == 1.0
    assert corrected_interval([*scores, np.nan], 0.25) == found


def test_levels_bounds_and_scores_that_are_too_few():
    scores = np.array([0.2, -0.3, 0.25, 0.1])
    half = student.ppf(0.95, 3) * np.sqrt((1 / 4 + 0.5) * scores.var(ddof=1))
    found = corrected_interval(scores, 0.5, level=0.9, bounds=(-1.0, 1.0))
    assert (found.low, found.high) == pytest.approx((0.0625 - half, 0.0625 + half))
    assert (found.value, found.level) == (pytest.approx(0.0625), 0.9)
    assert corrected_interval(scores, 0.5).low == 0.0
    for given, value in (([0.4], 0.4), ([0.4, np.nan], 0.4), ([], np.nan), ([np.nan], np.nan)):
        one = corrected_interval(given, 0.5, level=0.8, bounds=(-1.0, 2.0))
        assert (one.low, one.high, one.level) == (-1.0, 2.0, 0.8)
        np.testing.assert_equal(one.value, value)
        one = score_interval(given, 0.5, 0.01, 30, level=0.8)
        assert (one.low, one.high, one.level) == (0.0, 1.0, 0.8)
        np.testing.assert_equal(one.value, value)
    assert score_interval([0.4], 0.5, 0.01, 30, value=0.7).value == 0.7
    # two folds have a spread
    half = student.ppf(0.975, 1) * np.sqrt((1 / 2 + 0.5) * 0.005)
    two = corrected_interval([0.4, 0.5], 0.5, bounds=(-9.0, 9.0))
    assert (two.low, two.high) == pytest.approx((0.45 - half, 0.45 + half))
    assert 0.0 < score_interval([0.4, 0.5], 0.5, 0.01, 30).low < 0.4


def test_a_perfect_score_takes_the_exact_interval_of_the_samples_counted():
    # with errors allowed in any class, no smaller balanced accuracy makes 30 + 20 hits likelier
    # than 2.5%: a^30 b^20 >= 0.025 has (a + b) / 2 >= 0.9158 (here by brute force)
    perfect = rate_interval([1.0] * 25, 0.25, [(30, 30), (20, 20)])
    a = np.linspace(0.5, 1, 100001)
    b = (0.025 / a**30) ** (1 / 20)
    least = np.min(((a + b) / 2)[b <= 1])
    assert perfect.value == perfect.high == 1
    assert perfect.low == pytest.approx(0.025 ** (1 / 40)) and perfect.low <= least < 0.92
    (one,) = [rate_interval([1.0] * 5, 0.25, [(20, 20)])]
    assert one.low == pytest.approx(clopper_pearson(20, 20).low)
    none = rate_interval([0.0] * 5, 0.25, [(0, 20)])
    assert (none.low, none.high) == pytest.approx((0, 1 - one.low))
    area = auc_interval([1.0] * 25, 0.25, [0.0] * 25, 5, 20)
    assert (area.low, area.high) == pytest.approx((0.025 ** (1 / 40), 1))


def test_an_area_of_almost_one_has_a_narrow_interval_that_is_not_a_point():
    areas = [1.0] * 24 + [0.975]
    found = auc_interval(areas, 0.25, [0.0] * 24 + [0.0006], 5, 30)
    assert found.value == pytest.approx(0.999) and found.high == pytest.approx(1, abs=1e-3)
    assert 0.05 < found.high - found.low < 0.07
    # as the score becomes perfect the interval goes over into the exact one
    lows = [score_interval([1 - e] + [1.0] * 24, 0.25, 0.0, 60).low for e in (1e-3, 1e-5, 1e-7)]
    np.testing.assert_allclose(np.diff(lows), 0, atol=1e-3)
    assert lows[-1] == pytest.approx(0.025 ** (1 / 60), abs=1e-5)


def test_the_interval_is_jeffreys_at_as_many_trials_as_the_variance_is_worth():
    scores = np.random.default_rng(0).normal(0.8, 0.12, 25)
    p = 0.8
    variance = (1 / 25 + 0.25) * scores.var(ddof=1) + p * (1 - p) * (1 / 30 + 1 / 20) / 4
    trials = p * (1 - p) / variance * (norm.ppf(0.975) / student.ppf(0.975, 24)) ** 2
    expected = beta(p * trials + 0.5, (1 - p) * trials + 0.5).ppf([0.025, 0.975])
    found = rate_interval(scores, 0.25, [(24, 30), (16, 20)], value=p)
    assert trials < 40 and (found.low, found.high) == pytest.approx(tuple(expected))
    # wider on the side of one half, and wider than without the sampling term
    assert p - found.low > found.high - p
    alone = score_interval(scores, 0.25, 0.0, 40, value=p)
    assert found.low < alone.low and alone.high < found.high


def test_counts_and_areas_without_a_spread_are_worth_the_samples_they_have():
    # (1 / K^2) sum p (1 - p) / n: without a spread between folds, the trials that gives
    p = np.array([0.8, 0.6])
    variance = np.sum(p * (1 - p) / [30, 20]) / 4
    shrink = (norm.ppf(0.95) / student.ppf(0.95, 9)) ** 2
    for scores in ([0.7] * 10, [0.7] * 10 + [np.nan]):
        found = rate_interval(scores, 0.25, [(24, 30), (12, 20)], level=0.9)
        trials = 0.7 * 0.3 / variance * shrink
        expected = beta(0.7 * trials + 0.5, 0.3 * trials + 0.5).ppf([0.05, 0.95])
        assert (found.low, found.high) == pytest.approx(tuple(expected))
    three = rate_interval([0.7] * 10, 0.25, [(14, 20)] * 3)
    assert three == score_interval([0.7] * 10, 0.25, 0.7 * 0.3 / 60, 60)
    # more trials than were counted there are not
    capped = score_interval([0.7] * 10, 0.25, 1e-9, 12, level=0.9)
    expected = beta(0.7 * 12 + 0.5, 0.3 * 12 + 0.5).ppf([0.05, 0.95])
    assert (capped.low, capped.high) == pytest.approx(tuple(expected))
    # areas: DeLong's mean variance over the folds of a repeat, or the largest possible
    known = auc_interval([0.7] * 10, 0.25, [0.02, 0.04, np.nan], 5, 15, level=0.9)
    same = score_interval([0.7] * 10, 0.25, 0.03 / 5, 30, level=0.9)
    assert known.to_dict() == pytest.approx(same.to_dict())
    unknown = auc_interval([0.7] * 9 + [np.nan], 0.25, [np.nan], 5, 15, level=0.9)
    same = score_interval([0.7] * 9, 0.25, 0.7 * 0.3 / 15, 30, level=0.9)
    assert unknown.to_dict() == pytest.approx(same.to_dict())
    perfect = auc_interval([1.0] * 10, 0.25, [0.0], 5, 15, level=0.9)
    assert perfect.low == pytest.approx(0.05 ** (1 / 30))


def test_the_deviation_of_a_fold_by_counting_alone():
    # Laplace's rates 10/12 and 5/12, of which a fold of five has 2 samples each
    expected = np.sqrt(10 / 12 * 2 / 12 / 2 + 5 / 12 * 7 / 12 / 2) / 2
    assert counting_deviation([(9, 10), (4, 10)], 5) == pytest.approx(expected)
    assert counting_deviation([(20, 20)], 4) == pytest.approx(np.sqrt(21 / 22 / 22 / 5))
    assert counting_deviation([(9, 10, 3), (4, 10, 7)], 5) == pytest.approx(expected)


def test_scores_that_do_not_vary_and_a_single_fold():
    constant = rate_interval([0.5] * 10, 0.25, [(10, 10), (0, 10)])
    assert constant.low < 0.4 and constant.high > 0.6
    one = rate_interval([0.7], 0.25, [(7, 10)])
    assert (one.value, one.low, one.high) == (0.7, 0, 1)
    undefined = auc_interval([0.9, np.nan, 0.8], 0.25, [np.nan] * 3, 3, 10)
    assert undefined.value == pytest.approx(0.85) and undefined.low < 0.7


def test_delong_variance_known_answer():
    rng = np.random.default_rng(0)
    y, s = rng.random(40) < 0.4, rng.integers(0, 6, 40).astype(float)  # with ties
    p, q = s[y], s[~y]
    above = (p[:, None] > q) + 0.5 * (p[:, None] == q)
    expected = sum(above.mean(axis=k).var(ddof=1) / above.shape[1 - k] for k in (0, 1))
    assert delong_variance(y, s) == pytest.approx(expected)
    assert np.isnan(delong_variance(np.array([True, False, False]), np.arange(3.0)))


@pytest.mark.parametrize("accuracy", [0.99, 0.9, 0.7])
def test_coverage_of_a_fixed_rule(accuracy):
    # A rule that is right with a known probability, cross-validated: near perfection the
    # corrected interval alone covers less than half of the time.
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1], [30, 20])
    folds = make_folds(y, n_splits=5, n_repeats=3)
    hits, plain = 0, 0
    for _ in range(150):
        right = rng.random(y.size) < accuracy
        scores = [np.mean([right[f.test][y[f.test] == k].mean() for k in (0, 1)]) for f in folds]
        counts = [(int(right[y == k].sum()), int((y == k).sum())) for k in (0, 1)]
        found, corrected = rate_interval(scores, 0.25, counts), corrected_interval(scores, 0.25)
        hits += found.low <= accuracy <= found.high
        plain += corrected.low <= accuracy <= corrected.high
    assert hits / 150 >= 0.93
    assert accuracy < 0.99 or plain / 150 < 0.6


@pytest.mark.parametrize("area", [0.9999, 0.97, 0.8])
@pytest.mark.parametrize("kind", ["normal", "mislabelled"])
def test_coverage_of_an_area(area, kind):
    # two normal classes, or two separated ones with some cases among the controls: the curve of
    # the latter is the lowest that is concave and has its sensitivity without a false alarm
    rng = np.random.default_rng(3)
    y = np.repeat([0, 1], [30, 20])
    folds = make_folds(y, n_splits=5, n_repeats=2)
    shift = np.sqrt(2) * norm.ppf(area)
    hits, plain, widths = 0, 0, []
    for _ in range(100):
        if kind == "normal":
            s = rng.normal(size=y.size) + shift * y
        else:
            s = rng.normal(size=y.size) + 9 * (y & (rng.random(y.size) > 2 * (1 - area)))
        tests = [(y[f.test] == 1, s[f.test]) for f in folds]
        values = [np.mean(t[own][:, None] > t[~own]) for own, t in tests]
        variances = [delong_variance(own, t) for own, t in tests]
        found = auc_interval(values, 0.25, variances, 5, 20)
        corrected = corrected_interval(values, 0.25)
        hits += found.low <= area <= found.high
        plain += corrected.low <= area <= corrected.high
        widths.append(found.high - found.low)
    assert hits >= 93
    assert area < 0.99 or (plain < 30 and np.median(widths) < 0.1)


def test_holm_known_answer():
    np.testing.assert_allclose(holm([0.01, 0.02, 0.03, 0.5]), [0.04, 0.06, 0.06, 0.5])
    np.testing.assert_allclose(holm([0.9, 0.9]), [1, 1])
    np.testing.assert_allclose(holm([0.3, 0.001, 0.02]), [0.3, 0.003, 0.04])
    assert holm([]).size == 0


def test_paired_intervals_leave_out_zero_exactly_when_holm_rejects():
    rng = np.random.default_rng(2)
    shifts = np.linspace(0, 0.12, 12)
    found = paired_differences([rng.normal(s, 0.05, 10) for s in shifts], 0.25)
    rejected = [d.p_adjusted <= 0.05 for d in found]
    assert rejected == [d.low > 0 or d.high < 0 for d in found]
    assert 0 < sum(rejected) < len(rejected)
    assert all(d.p_adjusted >= d.p_value for d in found)


def test_paired_differences_are_the_formula_at_the_levels_of_holm():
    differences = [[0.1, 0.12, 0.09, np.nan, 0.11], [0.0, 0.1, -0.1, 0.05], [0.2, 0.1, 0.15, 0.2]]
    found = paired_differences(differences, 0.25, level=0.9)
    p_values = []
    for values, got in zip(differences, found):
        d = np.array(values)[np.isfinite(values)]
        error = np.sqrt((1 / 4 + 0.25) * d.var(ddof=1))
        p = 2 * student.sf(abs(d.mean()) / error, 3)
        p_values.append(p)
        assert (got.value, got.p_value, got.n_comparisons) == pytest.approx((d.mean(), p, 3))
        # the first two are rejected at 0.1 / 3 and 0.1 / 2, the last kept at 0.1
        level = {0: 0.1 / 3, 2: 0.1 / 2, 1: 0.1}[len(p_values) - 1]
        half = student.ppf(1 - level / 2, 3) * error
        assert (got.low, got.high) == pytest.approx((d.mean() - half, d.mean() + half))
    np.testing.assert_allclose([d.p_adjusted for d in found], holm(p_values))
    assert found[0].to_dict()["low"] == found[0].low
    # all that come after one that is kept have its level
    differences = [[0.0, 0.1, -0.1, 0.05], [0.2, 0.1, 0.1, 0.3]]
    for values, got in zip(differences, paired_differences(differences, 0.25)):
        half = student.ppf(1 - 0.05 / 4, 3) * np.sqrt(0.5 * np.var(values, ddof=1))
        assert got.high - got.value == pytest.approx(half)
    for too_few in ([0.1], [0.1, np.nan]):
        with pytest.raises(ValueError, match="at least two folds"):
            paired_differences([too_few], 0.25)


def test_a_floor_is_a_deviation_of_single_folds():
    (found,) = paired_differences([[0.1, 0.1, 0.1]], 0.25, floors=[0.06])
    error = 0.06 * np.sqrt(1 / 3 + 0.25)
    assert found.p_value == pytest.approx(2 * student.sf(0.1 / error, 2))
    spread = [0.4, 0.1, -0.2]
    with_floor = paired_differences([[0.1, 0.1, 0.1], spread], 0.25, floors=[0.06, 0.001])[1]
    assert with_floor.p_value == paired_differences([spread, spread], 0.25)[1].p_value


def test_paired_difference_of_equal_scores_is_no_difference():
    (same,) = paired_differences([np.zeros(5)], 0.25)
    assert (same.value, same.low, same.high, same.p_value) == (0, 0, 0, 1)


def test_equal_differences_in_two_folds_prove_nothing():
    (claimed,) = paired_differences([[0.1, 0.1]], 1.0)
    (floored,) = paired_differences([[0.1, 0.1]], 1.0, floors=[0.05])
    assert claimed.p_value == 0 and floored.p_value > 0.05
    assert floored.low < 0 < floored.high
    (zero,) = paired_differences([[0.0, 0.0]], 1.0, floors=[0.05])
    assert (zero.p_value, zero.low, zero.high) == (1, 0, 0)
