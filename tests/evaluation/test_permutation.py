"""The permutation test: schemes, p-values, early stopping, validity."""

import numpy as np
import pytest

from sparsegsvp.evaluation import permutation_test
from sparsegsvp.evaluation.permutation import permutation_scheme, permute_labels


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


def test_at_least_one_draw(nearest_mean):
    with pytest.raises(ValueError, match="n_permutations"):
        permutation_test(np.eye(8), [0, 1] * 4, estimator=nearest_mean, n_permutations=0)
