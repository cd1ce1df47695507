"""Intervals, areas and stability: exact small cases, laws, then coverage by simulation."""

import functools
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import beta, norm
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import RepeatedStratifiedKFold

from sparsegsvp.metrics.intervals import (
    Interval,
    area_and_variance,
    auc_interval,
    delong_interval,
    exact_interval,
    holm,
    influences,
    paired_differences,
    proportion_interval,
    rate_covariance,
    recall_mean_interval,
    sequential_p_value,
    training_luck,
    two_ends,
)
from sparsegsvp.metrics.stability import average_jaccard, error_bound, nogueira_stability

# ------------------------------------------------------------------------------ intervals


def test_exact_interval_is_clopper_and_pearsons():
    found = exact_interval(7, 20, level=0.9)
    assert (found.low, found.high) == pytest.approx(
        (beta.ppf(0.05, 7, 14), beta.ppf(0.95, 8, 13)), rel=1e-6
    )
    assert exact_interval(0, 5).low == 0.0 and exact_interval(5, 5).high == 1.0


@pytest.mark.parametrize("trials", [12.0, 33.4])
def test_proportion_interval_is_exact_at_the_ends_and_mirrors(trials):
    for value in (0.0, 0.03, 0.4, 1.0):
        a, b = proportion_interval(value, trials), proportion_interval(1 - value, trials)
        assert (a.low, a.high) == pytest.approx((1 - b.high, 1 - b.low))
        assert 0 <= a.low <= value <= a.high <= 1
    assert proportion_interval(1.0, trials).low == pytest.approx(0.025 ** (1 / trials))


def test_balanced_accuracy_of_a_cohort_covers_whatever_the_classes():
    rng = np.random.default_rng(0)
    for n, p in (((12, 40), (0.9, 0.6)), ((30, 8), (0.99, 0.95))):
        drawn = rng.binomial(n, p, size=(150, 2))
        held = [recall_mean_interval(row.tolist(), n) for row in drawn]
        assert np.mean([i.low <= np.mean(p) <= i.high for i in held]) >= 0.95


def mean_variance(values, units):
    return np.sum(influences(values, units) ** 2)


def rate_variance(rates, totals, variances=None, luck=1.0):
    _, sampling, spread = rate_covariance(rates, totals, variances)
    return (sampling + luck * spread).sum() / len(rates) ** 2


def rate_interval(rates, totals):
    """The interval of the mean of rates, of five folds."""
    value, mean = float(np.mean(rates)), rate_covariance(rates, totals)[0].mean()

    def interval_if(truth, above):
        luck = training_luck(truth, len(rates), 5, above=above)
        return proportion_interval(
            value, mean * (1 - mean) / rate_variance(rates, totals, luck=luck)
        )

    return two_ends(value, interval_if)


def test_rates_count_the_sampling_of_the_test_samples_once():
    """Defect 9: the spread of folds, which holds the sampling, was added to the sampling."""
    plain = (0.8 * 0.2 / 40 + 0.7 * 0.3 / 60) / 4
    # folds that differ by counting alone: a fifth of the samples, in 25 folds that overlap
    folds = (1 / 25 + 1 / 4) * 5 * plain
    luck = training_luck(0.75, 2, 5)
    assert plain < rate_variance([0.8, 0.7], [40, 60], luck=luck) < plain + folds
    # with nothing to learn from the training samples, sampling alone; near certainty, too
    nearly = rate_variance([0.999, 0.999], [10**6, 10**6], luck=training_luck(0.999, 2, 5))
    assert nearly == pytest.approx(0.999 * 0.001 / 2e6, rel=0.02)


def test_samples_that_repeats_judge_differently_count_with_their_mean():
    # of ten samples each is right in half of the repeats: their rate of 0.5 is known well
    samples, right = np.tile(np.arange(10), 4), np.repeat([1.0, 0.0], 20)
    assert mean_variance(right, samples) == 0.0
    # the same five right in all repeats: the variance of a count
    steady = (samples < 5).astype(float)
    assert mean_variance(steady, samples) == pytest.approx(0.5 * 0.5 / 10)
    sure, unsure = (
        rate_variance([0.5, 0.5], [10, 10], np.diag([mean_variance(r, samples)] * 2))
        for r in (right, steady)
    )
    assert unsure == rate_variance([0.5, 0.5], [10, 10]) > sure
    # patients of five samples that agree are two patients
    assert mean_variance(steady, samples // 5) == pytest.approx(0.5 * 0.5 / 2)


def test_the_luck_with_training_samples_goes_by_the_truth_and_the_folds():
    guessing = training_luck(0.5, 2, 5)
    assert training_luck(0.3, 3, 5) == guessing == pytest.approx(0.4)  # worse than guessing, too
    assert training_luck(0.5, 2, 5, above=True) == guessing
    assert training_luck(2 / 3, 3, 5) == pytest.approx(training_luck(0.75, 2, 5))  # half way
    assert training_luck(1.0, 2, 5) == training_luck(1.0, 2, 5, above=True) == 0.0
    # folds that share more of their samples share more luck; a weak signal may be missed
    assert training_luck(0.5, 2, 3) < guessing < training_luck(0.5, 2, 10)
    low, high = (training_luck(0.65, 2, 5, above=above) for above in (False, True))
    assert high > 4 * low
    # all of it is common to two classes, and about half of it to two samples of one
    *_, spread = rate_covariance([0.75, 0.75], [10**6, 10**6])
    assert spread == pytest.approx(0.75 * 0.25 / 1e6 * np.array([[0.58, 1], [1, 0.58]]))
    # so that it weighs in a mean of many recalls as it does in one of two
    means = [rate_variance([0.75] * k, [10**6 / k] * k) for k in (2, 5)]
    assert means[0] == pytest.approx(means[1], rel=1e-4)


def test_an_end_of_an_interval_is_what_it_would_be_if_it_were_the_truth():
    """So an interval that reaches chance is as wide there as chance says, whatever was found."""
    interval = functools.partial(proportion_interval, 0.7)
    fixed = two_ends(0.7, lambda truth, above: interval(50))
    assert (fixed.low, fixed.high) == pytest.approx((interval(50).low, interval(50).high))
    found = two_ends(0.7, lambda truth, above: interval(100 * truth))
    assert found.low == pytest.approx(interval(100 * found.low).low)
    assert found.high == pytest.approx(interval(100 * found.high).high)
    for value in (0.0, 1.0):
        assert two_ends(value, lambda t, above, v=value: proportion_interval(v, 20)) == (
            proportion_interval(value, 20)
        )


@pytest.mark.parametrize("marker", [0.0, 1.5, 2.0])
def test_balanced_accuracies_cover_the_mean_over_tables(marker):
    """Tables of 40 samples: of noise, and of one feature of 200 that some of the tables miss."""
    rng, y, found, truths = np.random.default_rng(0), np.tile([0, 1], 20), [], []
    folds = list(RepeatedStratifiedKFold(n_repeats=2, random_state=0).split(y, y))
    for _ in range(300):
        X = rng.normal(size=(40, 200))
        X[y == 1, 0] += marker
        right = []
        for train, test in folds:
            low, high = (X[train][y[train] == k].mean(axis=0) for k in (0, 1))
            f = int(np.abs(high - low).argmax())
            sign, middle = np.sign(high[f] - low[f]), (low[f] + high[f]) / 2
            called = sign * (X[test, f] - middle) > 0
            right.append([np.mean(called[y[test] == k] == k) for k in (0, 1)])
            shift = 0.0 if f else marker
            truths.append(0.5 + sign * (norm.cdf(shift - middle) - norm.cdf(-middle)) / 2)
        found.append(rate_interval(np.mean(right, axis=0), [20, 20]))
    truth = np.mean(truths)
    assert 0.92 <= np.mean([i.low <= truth <= i.high for i in found]) <= 0.99


def test_perfect_scores_are_exact_and_count_groups_not_samples():
    """Defect 8: ten patients with forty samples each gave .991 to 1."""
    for n in (5, 30):
        low = rate_interval([1, 1], [n, n]).low
        assert low == pytest.approx(0.025 ** (1 / (2 * n)))
    assert auc_interval(1.0, 0.0, [5, 5]).low == pytest.approx(0.025 ** (1 / 10))


def test_more_samples_narrow_every_interval_and_ends_stay_within_bounds():
    for value in (0.5, 0.8, 0.98, 1.0):
        widths = []
        for n in (10, 40, 160):
            a = rate_interval([value, value], [n, n])
            b = auc_interval(value, value * (1 - value) / n / 5, [n, n])
            assert all(0 <= i.low <= i.value <= i.high <= 1 for i in (a, b))
            widths.append([i.high - i.low for i in (a, b)])
        assert np.all(np.diff(widths, axis=0) < 0)


# ---------------------------------------------------------------------------- comparisons


def test_holm_by_hand_and_monotone():
    assert holm([0.01, 0.04, 0.03, 0.005]).tolist() == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]).size == 0


def test_joint_intervals_hold_together():
    """Defect 7: Holm's intervals covered .895 with 15 real effects, jointly."""
    rng = np.random.default_rng(2)
    truth = np.linspace(-0.3, 0.3, 15)
    joint = 0
    for _ in range(400):
        values = truth + rng.normal(size=15) * 0.05
        found = paired_differences(values, [0.0025] * 15, [10_000] * 15)
        joint += all(d.low <= t <= d.high for d, t in zip(found, truth))
    assert joint >= 0.935 * 400
    assert [d.p_adjusted for d in found] == pytest.approx(holm([d.p_value for d in found]))


def test_one_difference_is_the_t_test_and_no_spread_is_no_doubt():
    found = paired_differences([0.1], [0.0016], [24])[0]
    assert (found.low > 0) == (found.p_value < 0.05)
    same, apart = paired_differences([0.0, 0.2], [0.0, 0.0], [4, 4])
    assert (same.p_value, apart.p_value) == (1.0, 0.0)


def test_sequential_p_values():
    assert sequential_p_value([]) == (1.0, 0, False)
    assert sequential_p_value([False] * 99) == (0.01, 99, False)
    assert sequential_p_value(([True] + [False] * 4) * 20) == (10 / 46, 46, True)


# ----------------------------------------------------------------------------------- areas


def test_delong_variance_is_that_of_structural_components_with_ties():
    rng = np.random.default_rng(0)
    y, score = rng.random(50) < 0.4, rng.integers(0, 8, 50).astype(float)
    above = (score[y][:, None] > score[~y]) + 0.5 * (score[y][:, None] == score[~y])
    parts = above.mean(axis=1), above.mean(axis=0)
    expected = sum(part.var(ddof=1) / part.size for part in parts)
    assert area_and_variance(y, score)[1] == pytest.approx(expected)
    assert np.isnan(area_and_variance(np.arange(3) < 1, np.arange(3.0))[1])


def test_zeros_and_ones_are_labels_as_booleans_are():
    """Defect 23: integers gave nan."""
    y, score = np.array([0, 1, 1, 0, 1]), np.array([0.1, 0.9, 0.4, 0.5, 0.7])
    found = delong_interval(y, score)
    assert found == delong_interval(y.astype(bool), score) and found.low < found.value
    assert found.value == pytest.approx(roc_auc_score(y, score))


@pytest.mark.parametrize(
    ("y", "score", "words"),
    [
        ([0, 0], [1, 2], "one class"),
        ([0, 1], [1], "inconsistent"),
        ([0, 1], [1, np.inf], "finite"),
    ],
)
def test_areas_refuse_what_has_none(y, score, words):
    with pytest.raises(ValueError, match=words):
        delong_interval(y, score)


def test_delong_interval_covers_where_the_usual_one_does_not():
    rng = np.random.default_rng(3)
    y = np.arange(40) < 20
    shift = np.sqrt(2) * norm.ppf(0.95)
    scores = [rng.normal(size=40) + shift * y for _ in range(300)]
    found = [delong_interval(y, score) for score in scores]
    assert np.mean([i.low <= 0.95 <= i.high for i in found]) >= 0.94
    half = [1.96 * np.sqrt(area_and_variance(y, score)[1]) for score in scores]
    wald = np.mean([abs(i.value - 0.95) <= h for i, h in zip(found, half)])
    assert wald < 0.92


# ------------------------------------------------------------------------------- stability


def test_jaccard_known_pairs():
    assert average_jaccard([[0, 1], [1, 2], [1, 0]]) == pytest.approx(5 / 9)
    assert average_jaccard(np.array([[1, 1, 0], [0, 1, 1], [1, 1, 0]])) == pytest.approx(5 / 9)
    assert average_jaccard([[], []]) == 1.0 and average_jaccard([[], ["a"]]) == 0.0
    with pytest.raises(ValueError, match="at least two"):
        average_jaccard([[1]])


def test_nogueira_of_panels_of_one_size_is_kunchevas_index():
    # for equal sizes k the index is the mean over pairs of (|A & B| - k^2/d) / (k - k^2/d)
    rng = np.random.default_rng(0)
    d, k = 15, 4
    panels = [set(rng.choice(d, k, replace=False).tolist()) for _ in range(6)]
    pairs = [(len(a & b) - k * k / d) / (k - k * k / d) for a, b in combinations(panels, 2)]
    found = nogueira_stability(panels, n_features=d)
    assert found == pytest.approx(np.mean(pairs))
    matrix = np.array([[f in panel for f in range(d)] for panel in panels])
    assert nogueira_stability(matrix) == pytest.approx(found)
    assert nogueira_stability([[3, 4]] * 5, n_features=9) == 1.0
    assert np.isnan(nogueira_stability([[], []], n_features=9))


def test_nogueira_refuses_what_it_cannot_read():
    with pytest.raises(ValueError, match="n_features is needed"):
        nogueira_stability([[1], [2]])
    with pytest.raises(ValueError, match="must lie in"):
        nogueira_stability([[1], [9]], n_features=5)
    with pytest.raises(ValueError, match="n_features columns"):
        nogueira_stability(np.zeros((2, 4), bool), n_features=5)


def test_error_bound_is_shah_and_samworths():
    assert error_bound(10, 5000, 0.6, 1) == pytest.approx(100 / 5000 / 0.2)
    assert error_bound(10, 5000, 0.5, 1) is None
    assert error_bound(100, 5000, 0.6, 10) is None  # a bound of 10 on 10 features says nothing
    assert Interval(1, 0, 2).to_dict() == {"value": 1, "low": 0, "high": 2, "level": 0.95}
