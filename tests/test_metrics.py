"""Exact small cases, then coverage by simulation."""

from itertools import combinations

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss, log_loss, recall_score

from sparsegsvp.metrics import (
    average_jaccard,
    balanced_accuracy_interval,
    balanced_brier_score,
    balanced_calibration_curve,
    balanced_log_loss,
    clopper_pearson,
    nogueira_stability,
    specificity_score,
)


def test_jaccard_known_pairs():
    # pairs: {0,1}-{1,2} = 1/3, {0,1}-{0,1} = 1, {1,2}-{0,1} = 1/3
    assert average_jaccard([[0, 1], [1, 2], [1, 0]]) == pytest.approx(5 / 9)
    Z = np.array([[1, 1, 0], [0, 1, 1], [1, 1, 0]])
    assert average_jaccard(Z) == pytest.approx(5 / 9)


def test_jaccard_of_empty_panels():
    assert average_jaccard([[], []]) == 1.0
    assert average_jaccard([[], ["a"]]) == 0.0
    with pytest.raises(ValueError, match="at least two"):
        average_jaccard([[1]])


def test_nogueira_is_one_for_equal_panels_and_minus_one_for_opposite_halves():
    same = nogueira_stability([[3, 4]] * 5, n_features=9)
    assert (same.value, same.variance) == (1.0, pytest.approx(0.0, abs=1e-30))
    # p_f = 1/2 everywhere and M = 2: 1 - (1/4 * 2) / (1/4) = -1, the minimum for M = 2
    assert nogueira_stability([[0, 1], [2, 3]], n_features=4).value == pytest.approx(-1)


def test_nogueira_of_panels_of_one_size_is_kunchevas_index():
    # for equal sizes k the index is the mean over pairs of (|A & B| - k^2/d) / (k - k^2/d)
    rng = np.random.default_rng(0)
    d, k = 15, 4
    panels = [set(rng.choice(d, k, replace=False).tolist()) for _ in range(6)]
    pairs = [(len(a & b) - k * k / d) / (k - k * k / d) for a, b in combinations(panels, 2)]
    assert nogueira_stability(panels, n_features=d).value == pytest.approx(np.mean(pairs))


def test_nogueira_interval_is_the_formula():
    # definition 4 and corollary 9 written out, panels of different sizes
    panels, d = [[0, 1, 2], [0, 1], [0, 3, 4, 5], [1, 6]], 9
    M = len(panels)
    p = [sum(f in panel for panel in panels) / M for f in range(d)]
    k = sum(map(len, panels)) / M
    chance = k / d * (1 - k / d)
    phi = 1 - sum(M / (M - 1) * q * (1 - q) for q in p) / d / chance
    terms = [
        (
            sum(p[f] for f in panel) / d
            - len(panel) * k / d**2
            + phi / 2 * (2 * len(panel) * k / d**2 - len(panel) / d - k / d + 1)
        )
        / chance
        for panel in panels
    ]
    variance = 4 / M**2 * sum((t - sum(terms) / M) ** 2 for t in terms)
    found = nogueira_stability(panels, n_features=d, level=0.9)
    assert (found.value, found.variance) == pytest.approx((phi, variance))
    half = 1.6448536269514722 * variance**0.5
    assert (found.low, found.high) == pytest.approx((phi - half, phi + half))
    assert found.level == 0.9 and found.to_dict()["variance"] == found.variance
    matrix = np.array([[f in panel for f in range(d)] for panel in panels])
    for given in (matrix, matrix.astype(int)):
        assert nogueira_stability(given, level=0.9) == nogueira_stability(given, d, level=0.9)
        assert nogueira_stability(given, level=0.9) == found


def test_nogueira_takes_two_panels_and_features_from_none_to_the_last():
    assert nogueira_stability([[0], [4]], n_features=5).value == pytest.approx(-0.25)
    assert nogueira_stability([[], [0]], n_features=2).value == pytest.approx(-1 / 3)
    for one in ([[0, 1]], np.ones((1, 4), bool)):
        with pytest.raises(ValueError, match="at least two panels"):
            nogueira_stability(one, n_features=4)
    for bad in (-1, 5):
        with pytest.raises(ValueError, match=r"0\.\.4"):
            nogueira_stability([[0], [1, bad]], n_features=5)
    with pytest.raises(ValueError, match="n_features=3 contradicts the 4 columns"):
        nogueira_stability(np.ones((2, 4), bool), n_features=3)
    for level in (0.0, 1.0):
        with pytest.raises(ValueError, match="level"):
            nogueira_stability([[0], [1]], n_features=3, level=level)


def test_nogueira_undefined_is_nan_and_bad_input_is_refused():
    empty = nogueira_stability([[], []], n_features=5)
    assert np.isnan([empty.value, empty.variance, empty.low, empty.high]).all()
    assert np.isnan(nogueira_stability(np.ones((3, 4), bool)).low)
    with pytest.raises(ValueError, match="n_features is needed"):
        nogueira_stability([[0], [1]])
    with pytest.raises(ValueError, match=r"0\.\.2"):
        nogueira_stability([[0], [3]], n_features=3)
    with pytest.raises(ValueError, match="booleans or 0/1"):
        nogueira_stability(np.array([[0, 2], [1, 1]]))


def test_nogueira_interval_covers_the_population_value():
    # features chosen independently with known probabilities: the index of the population is
    # 1 - mean(pi (1 - pi)) / (k/d (1 - k/d))
    rng = np.random.default_rng(1)
    pi = np.r_[np.full(5, 0.9), np.full(45, 0.05)]
    kd = pi.mean()
    truth = 1 - np.mean(pi * (1 - pi)) / (kd * (1 - kd))
    hits = 0
    for _ in range(400):
        index = nogueira_stability(rng.random((60, pi.size)) < pi)
        hits += index.low <= truth <= index.high
    assert 0.91 <= hits / 400 <= 0.98


def test_clopper_pearson_ends():
    assert clopper_pearson(0, 5).low == 0.0
    assert clopper_pearson(5, 5).high == 1.0
    # with no success the upper end solves (1 - p)^n = alpha / 2
    assert clopper_pearson(0, 5).high == pytest.approx(1 - 0.025 ** (1 / 5))
    with pytest.raises(ValueError, match="trials=0"):
        clopper_pearson(0, 0)


def test_balanced_accuracy_interval_is_the_mean_of_the_class_intervals():
    y = np.repeat(["a", "b"], [8, 4])
    predicted = y.copy()
    predicted[0] = "b"
    level = np.sqrt(0.95)
    a, b = clopper_pearson(7, 8, level=level), clopper_pearson(4, 4, level=level)
    found = balanced_accuracy_interval(y, predicted)
    assert found.value == pytest.approx((7 / 8 + 1) / 2)
    assert (found.low, found.high) == pytest.approx(((a.low + b.low) / 2, (a.high + b.high) / 2))
    with pytest.raises(ValueError, match="one class"):
        balanced_accuracy_interval([1, 1], [1, 1])


@pytest.mark.parametrize("rates", [(0.99, 0.99), (0.9, 0.6), (0.5, 0.5)])
def test_balanced_accuracy_interval_covers(rates):
    rng = np.random.default_rng(2)
    y = np.repeat([0, 1], [30, 12])
    p_correct = np.asarray(rates)[y]
    hits = 0
    for _ in range(300):
        found = balanced_accuracy_interval(y, np.where(rng.random(42) < p_correct, y, 1 - y))
        hits += found.low <= np.mean(rates) <= found.high
    assert hits / 300 >= 0.95


def test_specificity_is_the_recall_of_the_negatives():
    y = np.array([0, 0, 0, 1, 1])
    predicted = np.array([0, 1, 1, 1, 0])
    assert specificity_score(y, predicted) == recall_score(y, predicted, pos_label=0)
    assert specificity_score(y, predicted, pos_label=0) == recall_score(y, predicted)
    # three classes: the mean of 4/4, 3/4 and 3/4
    assert specificity_score([0, 0, 1, 1, 2, 2], [0, 2, 1, 1, 2, 1]) == pytest.approx(2.5 / 3)
    assert np.isnan(specificity_score([1, 1], [1, 1]))
    with pytest.raises(ValueError, match="pos_label"):
        specificity_score(y, predicted, pos_label=7)


def test_weights_count_samples_as_often_as_they_say():
    y, predicted, p = np.array([0, 0, 1, 1]), np.array([0, 1, 1, 0]), np.array([0.2, 0.6, 0.9, 0.3])
    weight, rows = [3, 1, 2, 0], [0, 0, 0, 1, 2, 2]
    assert specificity_score(y, predicted, sample_weight=weight) == 3 / 4
    for score in (balanced_log_loss, balanced_brier_score):
        assert score(y, p, sample_weight=weight) == pytest.approx(score(y[rows], p[rows]))
    with pytest.raises(ValueError, match="leaves no sample to score"):
        balanced_brier_score(y, p, sample_weight=np.zeros(4))
    with pytest.raises(ValueError, match="a label that is not in labels"):
        balanced_brier_score(y, p, labels=[1, 2])


def test_balanced_log_loss_is_the_weighted_one_and_ignores_prevalence():
    rng = np.random.default_rng(3)
    y = np.repeat([0, 1, 2], [20, 5, 9])
    P = rng.dirichlet([1, 1, 1], y.size)
    weight = 1 / np.bincount(y)[y]
    assert balanced_log_loss(y, P) == pytest.approx(log_loss(y, P, sample_weight=weight))
    twice = np.r_[np.flatnonzero(y == 0), np.arange(y.size)]  # class 0 twice as frequent
    assert balanced_log_loss(y[twice], P[twice]) == pytest.approx(balanced_log_loss(y, P))
    assert balanced_log_loss(y, np.full((y.size, 3), 1 / 3)) == pytest.approx(np.log(3))


def test_log_loss_of_certain_errors_is_finite_and_absent_classes_are_left_out():
    assert np.isfinite(balanced_log_loss([0, 1], [1.0, 0.0]))
    assert balanced_log_loss([0, 0], [0.5, 0.5], labels=[0, 1]) == pytest.approx(np.log(2))
    with pytest.raises(ValueError, match="labels"):
        balanced_log_loss([0, 0], [0.5, 0.5])
    with pytest.raises(ValueError, match="between 0 and 1"):
        balanced_log_loss([0, 1], [0.5, 1.5])


def test_balanced_brier_is_the_weighted_one():
    rng = np.random.default_rng(4)
    y = np.repeat([0, 1], [30, 7])
    p = rng.random(y.size)
    weight = 1 / np.bincount(y)[y]
    expected = brier_score_loss(y, p, sample_weight=weight)
    assert balanced_brier_score(y, p) == pytest.approx(expected)
    assert balanced_brier_score(y, np.column_stack([1 - p, p])) == pytest.approx(expected)
    assert balanced_brier_score(y, 1.0 - y) == pytest.approx(1)


def test_calibration_curve_of_balanced_probabilities_is_the_diagonal_despite_imbalance():
    # x | y ~ N(+-1, 1): for equal priors P(1 | x) = 1 / (1 + exp(-2x)); classes 9 to 1
    rng = np.random.default_rng(5)
    y = np.repeat([0, 1], [90_000, 10_000])
    p = 1 / (1 + np.exp(-2 * (rng.normal(size=y.size) + 2 * y - 1)))
    curve = balanced_calibration_curve(y, p, n_bins=8)
    np.testing.assert_allclose(curve.observed, curve.predicted, atol=0.02)
    assert curve.weight.sum() == pytest.approx(1) and curve.count.sum() == y.size
    uniform = balanced_calibration_curve(y, p, n_bins=4, strategy="uniform")
    np.testing.assert_allclose(uniform.observed, uniform.predicted, atol=0.02)
    with pytest.raises(ValueError, match="strategy"):
        balanced_calibration_curve(y, p, strategy="even")
