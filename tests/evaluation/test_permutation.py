"""The permutation test: schemes, p-values, early stopping, validity."""

import numpy as np
import pytest

from sparsegsvp.evaluation import permutation_test
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
        report=lambda d, v: seen.append(d),
    )
    assert again == whole and seen == list(range(3, len(whole.distribution) + 1))


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


def test_at_least_one_draw(nearest_mean):
    with pytest.raises(ValueError, match="n_permutations"):
        permutation_test(np.eye(8), [0, 1] * 4, estimator=nearest_mean, n_permutations=0)
