"""The corrected interval, its widening, and Holm's procedure."""

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student

from sparsegsvp.evaluation import (
    auc_interval,
    corrected_interval,
    holm,
    make_folds,
    paired_differences,
    rate_interval,
)
from sparsegsvp.metrics import clopper_pearson


def test_corrected_interval_is_the_formula():
    scores = np.array([0.7, 0.8, 0.75, 0.9])
    half = student.ppf(0.975, 3) * np.sqrt((1 / 4 + 0.25) * scores.var(ddof=1))
    found = corrected_interval(scores, 0.25)
    assert (found.low, found.high) == pytest.approx((scores.mean() - half, scores.mean() + half))
    assert corrected_interval([0.9, 1.0, 1.0, 0.95], 0.25).high == 1.0
    assert corrected_interval([*scores, np.nan], 0.25) == found


def test_perfect_folds_take_the_interval_of_the_counts():
    perfect = rate_interval([1.0] * 25, 0.25, [(30, 30), (20, 20)], 5)
    level = np.sqrt(0.95)
    low = np.mean([clopper_pearson(n, n, level=level).low for n in (30, 20)])
    assert (perfect.value, perfect.low, perfect.high) == pytest.approx((1, low, 1))
    area = auc_interval([1.0] * 25, 0.25, [(30, 30, 20, 20)], 5)
    product = np.prod([clopper_pearson(n, n, level=level).low for n in (30, 20)])
    assert (area.low, area.high) == pytest.approx((product, 1))


def test_varied_folds_keep_the_corrected_interval():
    scores = np.random.default_rng(0).normal(0.8, 0.12, 25)
    assert rate_interval(scores, 0.25, [(24, 30), (16, 20)], 5) == corrected_interval(scores, 0.25)


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
        found, corrected = (
            rate_interval(scores, 0.25, counts, 5),
            corrected_interval(scores, 0.25),
        )
        hits += found.low <= accuracy <= found.high
        plain += corrected.low <= accuracy <= corrected.high
    assert hits / 150 >= 0.9
    assert accuracy < 0.99 or plain / 150 < 0.6


@pytest.mark.parametrize("area", [0.9999, 0.97, 0.8])
def test_coverage_of_an_area(area):
    rng = np.random.default_rng(3)
    y = np.repeat([0, 1], [30, 20])
    folds = make_folds(y, n_splits=5, n_repeats=2)
    shift = np.sqrt(2) * norm.ppf(area)  # two normal classes with this area
    hits, plain = 0, 0
    for _ in range(100):
        s = rng.normal(size=y.size) + shift * y
        values = [
            np.mean(s[f.test][y[f.test] == 1][:, None] > s[f.test][y[f.test] == 0]) for f in folds
        ]
        right = (s > shift / 2) == y
        counts = [(int(right[y == 1].sum()), 20, int(right[y == 0].sum()), 30)]
        found, corrected = auc_interval(values, 0.25, counts, 5), corrected_interval(values, 0.25)
        hits += found.low <= area <= found.high
        plain += corrected.low <= area <= corrected.high
    assert hits >= 88
    assert area < 0.99 or plain < 30


def test_holm_known_answer():
    np.testing.assert_allclose(holm([0.01, 0.02, 0.03, 0.5]), [0.04, 0.06, 0.06, 0.5])
    np.testing.assert_allclose(holm([0.9, 0.9]), [1, 1])


def test_paired_intervals_leave_out_zero_exactly_when_holm_rejects():
    rng = np.random.default_rng(2)
    shifts = np.linspace(0, 0.12, 12)
    found = paired_differences([rng.normal(s, 0.05, 10) for s in shifts], 0.25)
    rejected = [d.p_adjusted <= 0.05 for d in found]
    assert rejected == [d.low > 0 or d.high < 0 for d in found]
    assert 0 < sum(rejected) < len(rejected)
    assert all(d.p_adjusted >= d.p_value for d in found)


def test_paired_difference_of_equal_scores_is_no_difference():
    (same,) = paired_differences([np.zeros(5)], 0.25)
    assert (same.value, same.low, same.high, same.p_value) == (0, 0, 0, 1)


def test_equal_differences_in_two_folds_prove_nothing():
    (claimed,) = paired_differences([[0.1, 0.1]], 1.0)
    (floored,) = paired_differences([[0.1, 0.1]], 1.0, floors=[0.05])
    assert claimed.p_value == 0 and floored.p_value > 0.05
    assert floored.low < 0 < floored.high
    (zero,) = paired_differences([[0.0, 0.0]], 1.0, floors=[0.05])
    assert zero.p_value == 1
