"""Stability selection: resampling laws, recovery, noise, substitutes, any selector."""

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from scipy.stats import fisher_exact
from sklearn.base import clone
from sklearn.feature_selection import RFE, SelectFromModel, SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from sparsegsvp.evaluation import (
    StabilitySelection,
    error_bound,
    error_control,
    find_substitutes,
)
from sparsegsvp.evaluation.baselines import l1_logistic
from sparsegsvp.evaluation.folds import complementary_pair, subsample


@pytest.fixture(scope="module")
def planted():
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b"], [25, 35])
    X = rng.normal(size=(60, 300))
    X[y == "b", :3] += 1.6
    return X, y


@parametrize_with_checks([StabilitySelection(SelectKBest(k=1), n_resamples=4)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("counts", [(10, 10), (11, 10), (11, 13), (7, 9, 5)])
def test_pairs_are_disjoint_halves_with_even_classes(counts):
    y = np.repeat(np.arange(len(counts)), counts)
    for seed in range(5):
        a, b = complementary_pair(y, None, np.random.default_rng(seed))
        assert a.size == b.size == y.size // 2
        assert not np.intersect1d(a, b).size
        for k in range(len(counts)):
            assert abs(np.sum(y[a] == k) - np.sum(y[b] == k)) <= 1


def test_resampling_keeps_groups_whole():
    groups = np.repeat(np.arange(20), 3)
    y = (groups % 2 == 0).astype(int)
    rng = np.random.default_rng(0)
    a, b = complementary_pair(y, groups, rng)
    assert not np.intersect1d(groups[a], groups[b]).size
    assert np.unique(groups[a]).size == np.unique(groups[b]).size == 10
    part = subsample(y, groups, 0.7, rng)
    assert all(np.sum(groups[part] == g) == 3 for g in np.unique(groups[part]))
    drawn = subsample(y, groups, 1.0, rng, replace=True)
    assert drawn.size == 60 and np.all(np.bincount(groups[drawn]) % 3 == 0)
    # mixed labels within groups: the groups are halved all the same
    a, b = complementary_pair(np.arange(60) % 2, groups, rng)
    assert not np.intersect1d(groups[a], groups[b]).size


def test_planted_features_are_found_and_the_bound_is_the_formula(planted):
    X, y = planted
    model = StabilitySelection(SelectKBest(k=4), n_resamples=30).fit(X, y)
    np.testing.assert_array_equal(model.get_support(indices=True), [0, 1, 2])
    assert model.error_bound_ == pytest.approx(16 / (0.2 * 300))
    assert model.stability_.value > 0.5 and model.stability_.low is None
    np.testing.assert_array_equal(model.transform(X), X[:, :3])


def test_the_bound_exists_for_complementary_pairs_only(planted):
    X, y = planted
    for change in ({"resampling": "bootstrap"}, {"resampling": "subsample"}, {"threshold": 0.5}):
        model = StabilitySelection(SelectKBest(k=4), n_resamples=4).set_params(**change)
        assert model.fit(X, y).error_bound_ is None


def test_noise_is_unstable_and_nothing_is_kept():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(60, 2000)), rng.permutation(np.repeat([0, 1], 30))
    model = StabilitySelection(SelectKBest(k=10), n_resamples=40, threshold=0.9).fit(X, y)
    assert model.stability_.value < 0.3
    assert not model.get_support().any()


def test_the_error_bound_holds_on_noise():
    # all features are exchangeable noise: the mean number kept stays below the bound
    kept, bound = [], None
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(40, 60)), np.repeat([0, 1], 20)
        model = StabilitySelection(SelectKBest(k=4), n_resamples=12, threshold=0.75).fit(X, y)
        kept.append(model.get_support().sum())
        bound = error_bound(model.mean_panel_size_, 60, 0.75)
        assert model.error_bound_ is None or model.error_bound_ < kept[-1]
    assert np.mean(kept) <= bound


def test_the_unimodal_bound_is_theorem_3_and_holds_on_noise():
    # the constants of Shah and Samworth, also in the R package stabs: um_const(0.6, 50, .) = 0.38,
    # um_const(0.9, 50, .) = 1.02 / 0.44
    q, m = 10, 1000
    assert error_bound(q, m, 0.6, n_pairs=50) == pytest.approx(0.1 / 0.38)
    assert error_bound(q, m, 0.9, n_pairs=50) == pytest.approx(0.1 * 0.44 / 1.02)
    assert error_bound(q, m, 0.6) == pytest.approx(0.1 / 0.2)
    assert error_bound(q, m, 0.5, n_pairs=50) is None
    assert error_bound(6, 10, 0.9, n_pairs=50) is None  # more than 1 / sqrt(3) of them
    # the threshold counts as the next multiple of 1 / (2 B)
    assert error_bound(q, m, 0.895, n_pairs=50) == error_bound(q, m, 0.9, n_pairs=50)
    kept = {0.6: [], 0.8: []}
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(40, 60)), np.repeat([0, 1], 20)
        model = StabilitySelection(SelectKBest(k=6), n_resamples=20).fit(X, y)
        for threshold, counts in kept.items():
            counts.append(np.sum(model.selection_frequencies_ >= threshold))
    for threshold, counts in kept.items():
        assert np.mean(counts) <= error_bound(6, 60, threshold, n_pairs=10)


def test_a_bound_is_given_where_it_is_below_the_number_found():
    def control(high, n_high, low, m=200, threshold=0.6):
        frequencies = np.full(m, low)
        frequencies[:n_high] = high
        return error_control(frequencies, threshold, 50)

    found, words = control(0.9, 5, 0.01)  # q = 6.45: 0.21 / 0.2 = 1.04 of 5
    assert found.threshold == 0.6 and found.assumption == "none" and not found.is_raised
    assert found.n_found == 5 and found.bound == pytest.approx(6.45**2 / 200 / 0.2)
    assert words == (
        "5 features are chosen in at least 60% of the halves; at most 1.05 rarely chosen ones are "
        "expected among them."
    )
    found, words = control(1.0, 2, 0.045)  # 3.0 of 2 at 0.6: raised to 0.80, where it is 1
    assert found.is_raised and found.threshold == pytest.approx((1 + 10.91**2 / 200) / 2)
    assert (found.n_found, found.bound) == (2, 1.0) and "at least 80%" in words
    found, words = control(0.75, 2, 0.045)  # too rare for that threshold
    assert found.assumption == "unimodal" and found.threshold == 0.6 and "unimodal" in words
    assert found.bound == pytest.approx(error_bound(10.41, 200, 0.6, n_pairs=50))
    found, words = control(0.75, 2, 0.2, m=60)
    assert found is None and "out of only 60" in words
    assert control(0.55, 3, 0.01)[1] == "No feature is chosen in at least 60% of the halves."
    assert control(0.55, 3, 0.2, threshold=0.5)[0] is None


def test_raised_thresholds_and_their_words_reach_the_fitted_object(planted):
    X, y = planted
    model = StabilitySelection(SelectKBest(k=4), n_resamples=30).fit(X, y)
    assert model.error_control_.bound == model.error_bound_ and "60%" in model.error_words_
    model = StabilitySelection(SelectKBest(k=60), n_resamples=30).fit(X, y)
    assert model.error_bound_ is None and model.error_words_
    model = StabilitySelection(SelectKBest(k=4), n_resamples=4, resampling="bootstrap").fit(X, y)
    assert model.error_control_ is None and "complementary pairs only" in model.error_words_


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_progress_counts_every_subset(planted, n_jobs):
    X, y = planted
    seen = []
    StabilitySelection(SelectKBest(k=3), n_resamples=6, n_jobs=n_jobs).fit(
        X, y, progress=lambda *said: seen.append(said)
    )
    assert seen == [("stability in half samples", i, 6) for i in range(7)]


def test_jobs_and_repetition_change_nothing(planted):
    X, y = planted
    one = StabilitySelection(SelectKBest(k=4), n_resamples=6, random_state=5)
    two = clone(one).set_params(n_jobs=2)
    with parallel_config(backend="threading"):
        two.fit(X, y)
    np.testing.assert_array_equal(one.fit(X, y).selections_, two.selections_)
    other = clone(one).set_params(random_state=6).fit(X, y)
    assert (other.selections_ != one.selections_).any()


@pytest.mark.parametrize(
    "selector",
    [
        make_pipeline(StandardScaler(), SelectKBest(k=5), LogisticRegression()),
        SelectFromModel(l1_logistic(C=0.3)),
        make_pipeline(SelectKBest(k=30), RFE(LinearSVC(), n_features_to_select=4, step=0.5)),
        l1_logistic(C=0.3),
        GridSearchCV(
            make_pipeline(SelectKBest(), LogisticRegression()), {"selectkbest__k": [3, 6]}
        ),
    ],
    ids=["pipeline", "from-model", "chain", "coef", "search"],
)
def test_any_selector_works(planted, selector):
    X, y = planted
    model = StabilitySelection(selector, n_resamples=6).fit(X, y)
    assert model.selection_frequencies_[:3].mean() > 5 * model.selection_frequencies_[3:].mean()
    assert 1 < model.mean_panel_size_ < 40


def test_an_estimator_that_selects_nothing_is_refused(planted):
    from sklearn.neighbors import KNeighborsClassifier

    with pytest.raises(ValueError, match="does not say which features"):
        StabilitySelection(KNeighborsClassifier(), n_resamples=2).fit(*planted)


def test_substitutes_share_a_group_frequency():
    # five noisy copies of one discriminating signal split the vote
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1], 30)
    signal = rng.normal(size=60) + 2 * y
    X = rng.normal(size=(60, 50))
    X[:, :5] = signal[:, None] + 0.3 * rng.normal(size=(60, 5))
    X[:, 5] += 2 * y  # discriminates too, but is not correlated within the classes
    frame = pd.DataFrame(X, columns=[f"g{j}" for j in range(50)])
    model = StabilitySelection(SelectKBest(k=2), n_resamples=40).fit(frame, y)
    linked = {s.feature for s in model.substitutes("g0")}
    assert linked and linked <= {1, 2, 3, 4}
    assert 5 not in linked
    assert model.group_frequencies_[0] > model.selection_frequencies_[0]
    assert list(model.get_feature_names_out()) == [f"g{j}" for j in model.get_support(indices=True)]
    with pytest.raises(ValueError, match="not among the columns"):
        model.substitutes("nothing")


def test_substitutes_use_within_class_correlation_and_ignore_constants():
    y = np.repeat([0, 1], 20)
    rng = np.random.default_rng(2)
    X = np.column_stack([10 * y + rng.normal(size=40), 10 * y + rng.normal(size=40), 3.3 * y])
    Z = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=bool)
    assert abs(np.corrcoef(X[:, 0], X[:, 1])[0, 1]) > 0.9
    assert find_substitutes(X, y, Z) == {}


def test_substitutes_need_a_margin():
    # the same correlation; chosen apart in a few or in many resamples (Fisher at 0.05)
    rng = np.random.default_rng(2)
    y, x = np.repeat([0, 1], 20), rng.normal(size=40)
    X = np.column_stack([x, x + 0.1 * rng.normal(size=40)])
    for repeats, linked in ((1, False), (2, False), (4, True)):
        Z = np.array([[1, 0], [0, 1]] * repeats, dtype=bool)
        table = [[0, repeats], [repeats, 0]]
        assert bool(fisher_exact(table, alternative="less").pvalue <= 0.05) is linked
        assert bool(find_substitutes(X, y, Z)) is linked
    Z = np.array([[1, 1]] * 6 + [[1, 0]] * 5 + [[0, 1]] * 6, dtype=bool)
    table = [[6, 5], [6, 0]]
    assert fisher_exact(table, alternative="less").pvalue > 0.05 and not find_substitutes(X, y, Z)


def test_unrelated_selections_rarely_make_substitutes():
    # two columns chosen independently of one another: at most 5% are linked, in each direction
    rng = np.random.default_rng(4)
    y, x = np.repeat([0, 1], 20), rng.normal(size=40)
    X = np.column_stack([x, x + 0.1 * rng.normal(size=40)])
    linked = [bool(find_substitutes(X, y, rng.random((50, 2)) < 0.5)) for _ in range(300)]
    assert np.mean(linked) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 300)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_resamples": 5}, "even"),
        ({"sample_fraction": 0.7}, "halves"),
        ({"threshold": 0}, "threshold"),
        ({"resampling": "jackknife"}, "resampling"),
        ({"random_state": None}, "random_state"),
    ],
)
def test_bad_parameters(planted, change, message):
    with pytest.raises(ValueError, match=message):
        StabilitySelection(SelectKBest(k=3)).set_params(**change).fit(*planted)


def test_a_class_of_one_cannot_be_halved():
    X = np.random.default_rng(0).normal(size=(12, 4))
    with pytest.raises(ValueError, match="lacks a class"):
        StabilitySelection(SelectKBest(k=1), n_resamples=2).fit(X, [0] * 11 + [1])
