"""The permutation test and the verdict: of the procedure that is reported, and of no other."""

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from sparsegsvp import GSVPSVM, GSVPSVMCV, Panel, nested_evaluate
from sparsegsvp.evaluation import Verdict, permutation_test
from sparsegsvp.evaluation.permutation import draws_wanted, exchangeable_units, shuffled_codes
from sparsegsvp.evaluation.splits import read_samples
from sparsegsvp.metrics import Interval


def marked(seed, n=60, m=30, shift=2.0, column=0):
    """Return a table of noise with one marker."""
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], n // 2)
    X = rng.normal(size=(n, m))
    X[y == 1, column] += shift
    return X, y


def decide(p_value, n_draws, interval, n_classes, **more):
    tested = {"p_value": p_value, "n_draws": n_draws, **more}
    return Verdict("procedure", (), "free", 1 / n_classes, **tested).judged(interval).answer


def test_the_four_answers():
    """Defect 3: p of 0.01 with an interval of 0.46 to 0.82 was a signal."""
    above, around = Interval(0.7, 0.55, 0.8), Interval(0.6, 0.46, 0.82)
    below = Interval(0.3, 0.2, 0.4)
    assert decide(0.01, 99, above, 2) == "signal"
    assert decide(0.01, 99, around, 2) == "weak"
    assert decide(0.01, 99, below, 2) == "none"
    assert decide(0.06, 99, above, 2) == "inconclusive"
    assert decide(0.06, 99, around, 2) == "none"
    assert decide(0.06, 18, around, 2) == decide(0.05, 18, above, 2) == "inconclusive"
    assert decide(1.0, 10, around, 2, stopped_early=True) == "none"
    assert decide(None, 0, above, 2) == "not tested"
    assert decide(0.01, 99, around, 4) == "signal"  # chance is one over the classes


def test_the_floor_of_the_p_value_is_known():
    """Defect 3: p of 99 draws at its floor read as if it were exact."""
    X, y = marked(0, shift=4.0)
    found = permutation_test(GaussianNB(), X[:, :3], y)
    assert (found.p_value, found.n_draws, found.at_most) == (0.01, 99, True)
    assert not permutation_test(DummyClassifier(), X, y).at_most


@pytest.mark.parametrize(
    "estimator",
    [
        DummyClassifier(strategy="stratified", random_state=0),
        make_pipeline(Panel([10, 11, 12]), LogisticRegression()),
        GSVPSVMCV(penalty_factor=np.r_[np.inf, np.ones(29)]),
        make_pipeline(Panel(list(range(1, 30))), GSVPSVMCV()),
    ],
    ids=["coin", "noise panel", "banned", "without the marker"],
)
def test_the_test_is_of_the_procedure_that_is_reported(estimator):
    """Defects 1 and 28: a coin toss was "signal" for 2 of 8 seeds, noise columns for 4 of 8."""
    answers = []
    for seed in range(6):
        X, y = marked(seed)
        found = nested_evaluate(
            estimator,
            X,
            y,
            n_repeats=1,
            n_permutations=19,
            n_pairs=0,
            sizes=(3,),
            random_state=seed,
        )
        answers.append(found.verdict.answer)
    assert answers.count("signal") <= 1
    assert answers.count("signal") + answers.count("weak") <= 2


def test_one_marker_of_many_is_found():
    """Defect 27: with the ten best features as the statistic it was found in a third of runs."""
    hits = []
    for seed in range(10):
        X, y = marked(seed, n=40, m=500)
        hits.append(permutation_test(GSVPSVMCV(), X, y, n_permutations=19).p_value <= 0.05)
    assert np.mean(hits) >= 0.7


def test_noise_is_not_called_signal_and_p_values_are_uniform_enough():
    values = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(30, 50)), np.repeat([0, 1], 15)
        values.append(permutation_test(GSVPSVM(3), X, y, n_permutations=19).p_value)
    assert np.mean(np.array(values) <= 0.05) <= 0.15
    assert 0.3 < np.mean(values) < 0.75


def test_a_fast_run_has_a_verdict():
    """Defect 30: `fast=True` never gave one."""
    X, y = marked(1, shift=3.0)
    found = nested_evaluate(GSVPSVMCV(), X, y, n_repeats=1, n_permutations=19, n_pairs=0)
    assert found.verdict.answer in ("signal", "weak") and found.verdict.n_draws == 19


def test_steps_before_the_path_take_part():
    X, y = marked(2)
    X[np.random.default_rng(0).random(X.shape) < 0.05] = np.nan
    pipe = make_pipeline(SimpleImputer(strategy="median"), GSVPSVMCV())
    found = permutation_test(pipe, X, y, n_permutations=19)
    assert found.statistic_sizes == (1, 3, 10) and found.p_value == 0.05
    sized = permutation_test(GSVPSVM(4), np.nan_to_num(X), y, n_permutations=19)
    assert sized.statistic_sizes == (4,)


# ------------------------------------------------------------------------ permuted labels


def test_one_mixed_group_does_not_destroy_the_test():
    """Defect 2: flipping one label of 80 took p from 0.01 to 0.91."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(40), 2)
    y = np.repeat(np.arange(40) % 2, 2)
    X = rng.normal(size=(80, 10))
    X[:, 0] += 2.5 * y
    y[0] = 1
    found = permutation_test(GaussianNB(), X, y, groups=groups)
    assert found.p_value == 0.01 and found.scheme == "groups"


def test_labels_are_exchanged_between_pure_and_within_mixed_groups():
    rng = np.random.default_rng(1)
    groups = np.repeat(np.arange(20), 3)
    y = np.repeat(np.arange(20) % 2, 3)
    y[:3], y[3:6] = [0, 1, 1], [0, 0, 1]
    samples = read_samples(rng.normal(size=(60, 4)), y, groups)
    changed = np.zeros(60, dtype=int)
    for seed in range(50):
        drawn = shuffled_codes(samples, seed)
        for g in range(20):
            inside = drawn[groups == g]
            if g < 2:
                assert sorted(inside) == sorted(y[groups == g])
            else:
                assert np.ptp(inside) == 0
        assert np.bincount(drawn).tolist() == np.bincount(y).tolist()
        changed += drawn != y
    assert changed.min() > 5  # every label moves now and then


def test_labels_stay_within_batches():
    rng = np.random.default_rng(2)
    plate, y = np.repeat(list("abc"), 20), np.r_[[0] * 15 + [1] * 5, [1] * 20, [0] * 10 + [1] * 10]
    samples = read_samples(rng.normal(size=(60, 4)), y, None, plate)
    for seed in range(10):
        drawn = shuffled_codes(samples, seed)
        for p in "abc":
            assert np.bincount(drawn[plate == p], minlength=2).tolist() == [
                np.sum(y[plate == p] == k) for k in (0, 1)
            ]


def test_permuting_does_not_depend_on_the_order_of_the_rows():
    rng = np.random.default_rng(3)
    X, y, groups = rng.normal(size=(30, 4)), np.repeat([0, 1], 15), np.arange(30) // 2
    rows = rng.permutation(30)
    a = shuffled_codes(read_samples(X, y, groups), 0)
    b = shuffled_codes(read_samples(X[rows], y[rows], groups[rows]), 0)
    assert np.array_equal(a[rows], b)


def test_a_strong_batch_effect_is_no_signal():
    """Class and batch go together somewhat, and only the batch shows in the values."""
    answers = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        plate = np.repeat(["a", "b"], 30)
        y = (rng.random(60) < np.where(plate == "a", 0.25, 0.75)).astype(int)
        X = rng.normal(size=(60, 20)) + 2.0 * (plate == "b")[:, None]
        answers.append(permutation_test(GaussianNB(), X, y, batch=plate).p_value)
        assert permutation_test(GaussianNB(), X, y, n_permutations=19).p_value <= 0.1
    assert np.median(answers) > 0.1


def test_batches_that_fix_the_labels_leave_nothing_to_test():
    X, y = marked(0)
    found = nested_evaluate(GaussianNB(), X, y, batch=np.where(y, "a", "b"), n_repeats=1)
    assert (found.verdict.answer, found.verdict.reason) == ("not tested", "labels fixed")
    # both samples of a patient, one of each class, on two plates: neither can be exchanged
    patient = np.arange(60) % 30
    plate = (y + patient) % 2
    fixed = permutation_test(GaussianNB(), X, y, groups=patient, batch=plate, n_permutations=19)
    assert (fixed.reason, fixed.scheme) == ("labels fixed", "groups and batches")


def test_every_arrangement_is_drawn_alike():
    three = read_samples(np.arange(6.0).reshape(3, 2), [0, 0, 1], None)
    drawn = [tuple(shuffled_codes(three, seed)) for seed in range(3000)]
    counts = [drawn.count(one) for one in set(drawn)]
    assert len(counts) == 3 and min(counts) > 900
    samples = read_samples(np.arange(12.0).reshape(6, 2), [0, 1] * 3, None)
    assert exchangeable_units(samples)[1].tolist() == [0] * 6


# ----------------------------------------------------------------------- how many draws


def test_draws_end_go_on_or_stop():
    assert draws_wanted([True] * 10, 99) == 10
    assert draws_wanted([False] * 20, 99) == 99
    assert draws_wanted([False] * 99, 99) == 99  # p = 0.01
    assert draws_wanted([True] * 2 + [False] * 97, 99) == 999  # p = 0.03
    assert draws_wanted([True] * 2 + [False] * 17, 19) == 19  # who asks for few wants it fast


def test_the_test_does_not_depend_on_the_workers():
    X, y = marked(3, shift=0.5)
    calls = []
    stopped = permutation_test(DummyClassifier(), X, y, progress=lambda *p: calls.append(p))
    assert [done == total for _, done, total in calls].count(True) == 1
    assert calls[-1] == ("permutations", stopped.n_draws, stopped.n_draws)
    a = permutation_test(GaussianNB(), X, y, n_permutations=19)
    b = permutation_test(GaussianNB(), X, y, n_permutations=19, n_jobs=2)
    assert a == b
