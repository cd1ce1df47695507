"""Folds: stratified, grouped, deterministic; samples that occur twice are noticed."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import LeaveOneGroupOut, RepeatedStratifiedKFold, StratifiedKFold

from sparsegsvp.evaluation import make_folds, repeated_samples
from sparsegsvp.evaluation.folds import folds_from

Y = np.repeat(["case", "control"], [13, 27])


def test_every_sample_is_tested_once_per_repeat_and_classes_are_even():
    folds = make_folds(Y, n_splits=5, n_repeats=3, random_state=4)
    for repeat in range(3):
        tests = [f.test for f in folds if f.repeat == repeat]
        np.testing.assert_array_equal(np.sort(np.concatenate(tests)), np.arange(Y.size))
        assert {int(np.sum(Y[t] == "case")) for t in tests} <= {2, 3}


def test_same_seed_same_folds_and_repeats_differ():
    a, b = (make_folds(Y, n_splits=3, n_repeats=2, random_state=9) for _ in range(2))
    assert all(np.array_equal(f.test, g.test) for f, g in zip(a, b))
    assert not np.array_equal(a[0].test, a[3].test)
    # the first repeats do not depend on how many follow
    short = make_folds(Y, n_splits=3, n_repeats=1, random_state=9)
    assert all(np.array_equal(f.test, g.test) for f, g in zip(a, short))


def test_groups_stay_whole():
    groups = np.arange(Y.size) // 2
    for fold in make_folds(Y, groups=groups, n_splits=4, n_repeats=2):
        assert not np.intersect1d(groups[fold.train], groups[fold.test]).size


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": [0, 0, 0, 1], "n_splits": 2}, "exceeds the 1 samples"),
        ({"y": [0] * 9, "n_splits": 3}, "single class"),
        ({"y": Y, "groups": np.arange(40) % 3}, "number of groups"),
        ({"y": Y, "random_state": None}, "random_state"),
        ({"y": np.linspace(0, 1, 40)}, "Unknown label type"),
        ({"y": Y, "groups": np.repeat([0, 1], [13, 27]), "n_splits": 2}, "fewer than two"),
    ],
)
def test_impossible_folds_say_why(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_folds(**arguments)


def test_splitters_become_repeats():
    X = np.zeros((Y.size, 1))
    cv = RepeatedStratifiedKFold(n_splits=4, n_repeats=2, random_state=0)
    folds = folds_from(cv, Y, None, X, 1, 0)
    assert [(f.repeat, f.index) for f in folds] == [(r, i) for r in range(2) for i in range(4)]


def test_a_splitter_that_leaks_a_group_is_refused():
    X, groups = np.zeros((Y.size, 1)), np.arange(Y.size) % 10
    assert len(folds_from(LeaveOneGroupOut(), Y, groups, X, 1, 0)) == 10
    with pytest.raises(ValueError, match="same group on both sides"):
        folds_from(StratifiedKFold(3), Y, groups, X, 1, 0)
    with pytest.raises(ValueError, match="overlap"):
        folds_from([(np.arange(40), np.arange(5))], Y, None, X, 1, 0)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_duplicates_are_noticed_unless_they_share_a_group(kind):
    X = np.random.default_rng(0).normal(size=(6, 3))
    X[4] = X[1]
    assert "2 of 6 rows" in repeated_samples(kind(X))[0].text
    assert repeated_samples(kind(X))[0].code == "repeats"
    assert "groups" in repeated_samples(kind(X))[0].text
    assert repeated_samples(kind(X), groups=np.array([0, 1, 2, 3, 1, 5])) == []
    assert len(repeated_samples(kind(X), groups=np.arange(6))) == 1
    assert repeated_samples(kind(X[:4])) == []


def test_repeated_identifiers_are_noticed():
    X = np.arange(8.0).reshape(4, 2)
    assert "share an identifier" in repeated_samples(X, ids=["p1", "p2", "p1", "p3"])[0].text
    assert repeated_samples(X, ids=["p1", "p2", "p4", "p3"]) == []
