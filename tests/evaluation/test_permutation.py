"""The permutation test: schemes, p-values, early stopping, validity."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import recall_score

from sparsegsvp.evaluation import make_folds, permutation, permutation_test
from sparsegsvp.evaluation.folds import derive_seed
from sparsegsvp.evaluation.permutation import (
    draws_wanted,
    fixed_statistic,
    permutation_scheme,
    permute_labels,
    sequential_p_value,
)


def test_schemes_keep_what_they_must():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 12)
    constant = np.arange(24) // 3
    assert permutation_scheme(y, constant) == "between groups"
    drawn = permute_labels(y, constant, rng)
    assert all(np.ptp(drawn[constant == g]) == 0 for g in range(8))
    mixed = np.arange(24) % 6
    assert permutation_scheme(y, mixed) == "within groups"
    drawn = permute_labels(y, mixed, rng)
    assert all(drawn[mixed == g].sum() == y[mixed == g].sum() for g in range(6))
    assert not np.array_equal(drawn, y)


def test_unequal_groups_move_with_their_label():
    # a group of one and a group of five may exchange labels: class sizes change
    y = np.array([0, 1, 1, 1, 1, 1, 0, 1])
    groups = np.array([0, 1, 1, 1, 1, 1, 2, 3])
    sums = {int(permute_labels(y, groups, np.random.default_rng(s)).sum()) for s in range(20)}
    assert sums == {2, 6}


def test_the_fixed_statistic_names_all_that_matters():
    model = fixed_statistic(np.zeros((10, 4)))
    assert (model.tau, model.pool, model.n_features, model.decision) == (1.0, 0.5, 4, "scaled")
    assert fixed_statistic(np.zeros((10, 40))).n_features == 10
    assert fixed_statistic(sparse.csr_matrix((10, 40))).n_features == 10
    gaps = np.zeros((10, 4))
    gaps[1, 2] = np.nan
    imputer, model = fixed_statistic(gaps)
    assert (imputer.strategy, imputer.keep_empty_features) == ("median", True)
    assert model.n_features == 4


class Coin(ClassifierMixin, BaseEstimator):
    """A classifier that depends on its seed alone."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.random.default_rng(self.random_state).choice(self.classes_, len(X))


@pytest.mark.parametrize("groups", [None, np.arange(24) // 2])
def test_the_statistic_is_the_balanced_accuracy_of_its_own_folds_and_seeds(groups):
    """Written out: labels, folds and fits of draw d have seeds of their own."""
    y = np.repeat([0, 1], [10, 14])
    X = np.zeros((24, 1))
    found = permutation_test(
        X, y, groups=groups, estimator=Coin(), n_permutations=3, n_splits=3, random_state=5
    )
    for draw, value in enumerate([found.observed, *found.distribution]):
        labels = y
        if draw:
            labels = permute_labels(y, groups, np.random.default_rng(derive_seed(5, 7, draw)))
        folds = make_folds(
            labels, groups=groups, n_splits=3, random_state=derive_seed(5, 7, draw, 1)
        )
        accuracies = [
            recall_score(
                labels[fold.test],
                Coin(derive_seed(5, 7, draw, 2 + fold.index)).fit(X, y).predict(X[fold.test]),
                average="macro",
            )
            for fold in folds
        ]
        assert value == pytest.approx(np.mean(accuracies))
    assert found.scheme == ("free" if groups is None else "between groups")


def test_labels_that_fall_so_that_no_fold_is_possible_count_against_the_signal(
    monkeypatch, nearest_mean
):
    X, y = np.arange(24.0)[:, None], np.repeat([0, 1], 12)

    def folds(labels, **settings):
        if refused(labels):
            raise ValueError("no such folds")
        return make_folds(labels, **settings)

    monkeypatch.setattr(permutation, "make_folds", folds)
    refused = lambda labels: not np.array_equal(labels, y)
    found = permutation_test(X, y, estimator=nearest_mean, n_permutations=19)
    assert found.distribution == (1.0,) * 10 and found.p_value == 1.0
    refused = lambda labels: True
    with pytest.raises(ValueError, match="no such folds"):
        permutation_test(X, y, estimator=nearest_mean, n_permutations=19)


def test_the_default_is_the_fixed_statistic_on_any_table(planted_small):
    X, y = planted_small
    gaps = X.copy()
    gaps[0, 0] = np.nan
    values = []
    for table in (X, X.tolist(), sparse.csr_matrix(X), gaps):
        found = permutation_test(table, y, n_permutations=1, max_permutations=0, n_splits=2)
        assert found.statistic == "fixed" and len(found.distribution) == 1
        values.append(found.observed)
    assert values[0] == values[1] == pytest.approx(values[2])
    assert values[3] > 0.6
    with pytest.raises(ValueError, match="max_permutations"):
        permutation_test(X, y, n_permutations=1, max_permutations=-1)


def test_batches_reach_a_step_that_centres_them(nearest_mean):
    """Two batches far apart, the class a small shift within each: centred, it is found."""
    from sklearn.pipeline import make_pipeline

    from sparsegsvp.estimators import BatchCenterer

    rng = np.random.default_rng(6)
    y, batch = np.arange(40) % 2, np.repeat(["a", "b"], 20)
    X = 0.3 * rng.normal(size=(40, 2)) + y[:, None] + 50.0 * (batch == "b")[:, None]
    procedure = make_pipeline(BatchCenterer(), nearest_mean)
    found = permutation_test(X, y, estimator=procedure, batch=batch, n_permutations=1)
    plain = permutation_test(X, y, estimator=nearest_mean, batch=batch, n_permutations=1)
    assert found.observed > 0.9 > plain.observed


def test_signal_reaches_the_smallest_p_value(nearest_mean):
    rng = np.random.default_rng(1)
    y = np.repeat(["a", "b"], 12)
    X = rng.normal(size=(24, 3)) + 3 * (y == "b")[:, None]
    found = permutation_test(X, y, estimator=nearest_mean, n_permutations=19)
    assert found.p_value == 1 / 20 and len(found.distribution) == 19
    assert found.statistic == "full" and not found.stopped_early


def test_noise_stops_early_with_besag_cliffords_p_value(nearest_mean):
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(24, 3)), np.repeat([0, 1], 12)
    found = permutation_test(X, y, estimator=nearest_mean, n_permutations=99)
    assert found.stopped_early
    assert found.p_value == 10 / len(found.distribution)
    exceed = np.array(found.distribution) >= found.observed - 1e-12
    assert exceed.sum() == 10 and exceed[-1]


def test_known_draws_are_not_repeated_and_do_not_depend_on_the_batch(nearest_mean):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(24, 3)), np.repeat([0, 1], 12)
    whole = permutation_test(X, y, estimator=nearest_mean, n_permutations=15)
    seen = []
    known = {0: whole.observed, 1: whole.distribution[0], 2: whole.distribution[1]}
    again = permutation_test(
        X,
        y,
        estimator=nearest_mean,
        n_permutations=15,
        known=known,
        report=lambda d, v: seen.append((d, v)),
    )
    assert again == whole and len(known) == 3
    assert seen == list(enumerate(whole.distribution, start=1))[2:]


def test_p_values_of_noise_are_not_too_small(nearest_mean):
    # valid: P(p <= alpha) <= alpha; 40 sets of noise at alpha = 0.2, so a mean of at most 8
    small = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(20, 2)), np.repeat([0, 1], 10)
        found = permutation_test(
            X, y, estimator=nearest_mean, n_permutations=9, n_splits=2, random_state=seed
        )
        small += found.p_value <= 0.2
    assert small <= 14  # P(Binomial(40, 0.2) > 14) = 0.008


def test_drawing_goes_on_where_99_draws_leave_it_open(nearest_mean):
    X, y = np.zeros((24, 1)), np.repeat([0, 1], 12)

    def test(exceeding, **settings):
        known = {0: 0.7, **{d: 0.7 if d in exceeding else 0.5 for d in range(1, 1000)}}
        seen = []
        found = permutation_test(
            X,
            y,
            estimator=nearest_mean,
            known=known,
            progress=lambda *a: seen.append(a),
            **settings,
        )
        return found.p_value, len(found.distribution), found.stopped_early

    assert test({}) == (0.01, 99, False)  # decided
    assert test({5}) == (2 / 1000, 999, False)
    assert test({5, 500}) == (3 / 1000, 999, False)
    assert test(set(range(1, 10))) == (10 / 1000, 999, False)
    assert test({*range(1, 10), 300}) == (10 / 300, 300, True)
    assert test(set(range(1, 11))) == (1.0, 10, True)
    assert test({5}, max_permutations=199) == (2 / 200, 199, False)
    assert test({5}, max_permutations=99) == test({5}, max_permutations=1) == (0.02, 99, False)
    assert test({5}, max_permutations=0) == (0.02, 99, False)
    assert test({5}, n_permutations=19) == (0.1, 19, False)  # few were asked for, few are made
    assert test({5}, n_permutations=150) == (2 / 1000, 999, False)
    assert test({5}, n_permutations=300) == (2 / 301, 300, False)  # below 0.01 by then


def test_the_total_of_the_progress_grows_and_resuming_gives_the_same(planted_small, nearest_mean):
    X, y = planted_small
    y = np.random.default_rng(5).permutation(y)
    seen, done = [], {}
    settings = {"estimator": nearest_mean, "max_permutations": 120, "n_splits": 2}
    for seed in range(60):  # a permutation of the labels that happens to score well, not very well
        settings["random_state"] = seed
        seen.clear()
        done.clear()
        found = permutation_test(
            X, y, report=done.__setitem__, progress=lambda *a: seen.append(a), **settings
        )
        if len(found.distribution) > 99:
            break
    assert len(found.distribution) > 99, "no seed was undecided"
    name = "permutation test"
    assert seen[0] == (name, 0, 99) and seen[99] == (name, 99, 99) and seen[100] == (name, 100, 120)
    kept = {draw: done[draw] for draw in range(70)}
    assert permutation_test(X, y, known=kept, **settings) == found


def test_size_of_the_sequential_test():
    # without signal the chance u of an exceedance is uniform; at 0.05 the test holds its level,
    # and at 0.01 it is 0.0135 (0 exceedances in 99 draws are not gone on with)
    rng = np.random.default_rng(0)
    p_values = []
    for u in 0.2 * rng.random(4000):  # u above 0.2 hardly ever reaches 0.05
        exceeds = (rng.random(999) < u).tolist()
        n = 99 if sum(exceeds[:99]) in (0, *range(10, 100)) else 999
        p_values.append(sequential_p_value(exceeds[:n])[0])
        early = sum(exceeds[:99]) >= 10
        assert early or draws_wanted(exceeds[:99], 99, 999) == n
    rate = 0.2 * np.mean(np.array(p_values) <= 0.05)
    error = 0.2 * np.sqrt(0.25 * 0.75 / 4000)
    assert abs(rate - 0.05) < 3 * error
    rate = 0.2 * np.mean(np.array(p_values) <= 0.01)
    assert abs(rate - 0.0135) < 3 * 0.2 * np.sqrt(0.0675 * 0.93 / 4000)


def test_no_draw_is_no_evidence():
    assert sequential_p_value([]) == (1.0, 0, False)


def test_at_least_one_draw(nearest_mean):
    with pytest.raises(ValueError, match="n_permutations"):
        permutation_test(np.eye(8), [0, 1] * 4, estimator=nearest_mean, n_permutations=0)
