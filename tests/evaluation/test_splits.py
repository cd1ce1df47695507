"""Samples and their splits: order, groups, halves, duplicates and twins."""

import numpy as np
import pytest
from scipy import sparse

from sparsegsvp.evaluation.splits import (
    as_texts,
    check_batches,
    complementary_pair,
    count_duplicates,
    count_twins,
    make_folds,
    read_samples,
    row_keys,
)


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    return rng.integers(0, 3, size=(40, 12)).astype(float), np.repeat([0, 1], [16, 24])


def test_the_order_depends_on_the_data_alone(table):
    """Rows and columns in any order, dense or sparse: the same rows in the same places."""
    X, y = table
    X += 10 * np.arange(40)[:, None] % 7  # no two rows equal, many cells are
    rng = np.random.default_rng(1)
    order = read_samples(X, y, None).order
    for _ in range(5):
        rows, columns = rng.permutation(40), rng.permutation(12)
        again = read_samples(X[np.ix_(rows, columns)], y[rows], None).order
        assert np.array_equal(rows[again], order)
    assert np.array_equal(read_samples(X.astype(np.float32), y, None).order, order)
    keys = row_keys(sparse.csr_array(X))
    assert np.array_equal(row_keys(X), keys)
    shuffled = sparse.csr_array(X[::-1, ::-1])
    assert np.array_equal(row_keys(shuffled), keys[::-1])


def test_equal_rows_have_equal_keys_and_others_have_not(table):
    X, _ = table
    X[7], X[9] = X[3], X[3]
    keys = row_keys(X)
    assert keys[7] == keys[3] == keys[9]
    for i, row in enumerate(X):
        assert np.array_equal(keys == keys[i], np.all(row == X, axis=1))
    negative_zero = X.copy()
    negative_zero[X == 0] = -0.0
    assert np.array_equal(row_keys(negative_zero), keys)


def test_frames_with_text_have_keys_too():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [1.0, 2.0, 1.0], "b": ["x", "y", "x"]})
    keys = row_keys(frame)
    assert keys[0] == keys[2] != keys[1]
    assert np.array_equal(row_keys(frame[["b", "a"]]), keys)


def test_folds_are_stratified_whole_and_repeatable(table):
    X, y = table
    groups = np.arange(40) // 2
    samples = read_samples(X, y, groups)
    folds = make_folds(samples, 4, 2, seed=3)
    assert [(f.repeat, f.index) for f in folds] == [(r, i) for r in (0, 1) for i in range(4)]
    for fold in folds:
        assert not set(groups[fold.train]) & set(groups[fold.test])
        assert sorted([*fold.train, *fold.test]) == list(range(40))
        assert np.bincount(y[fold.test]).min() >= 2
    again = make_folds(read_samples(X, y, groups), 4, 2, seed=3)
    assert all(np.array_equal(a.test, b.test) for a, b in zip(folds, again))
    # what groups are called does not matter
    renamed = make_folds(read_samples(X, y, [f"g{97 * g % 20}" for g in groups]), 4, 2, seed=3)
    assert all(np.array_equal(a.test, b.test) for a, b in zip(folds, renamed))


def test_too_few_samples_or_groups_are_refused(table):
    X, y = table
    with pytest.raises(ValueError, match="exceeds the 16 samples of class 0"):
        make_folds(read_samples(X, y, None), 17, 1, 0)
    with pytest.raises(ValueError, match=r"fewer than two samples|exceeds"):
        make_folds(read_samples(X, y, np.where(y == 0, "one", np.arange(40).astype(str))), 5, 1, 0)
    with pytest.raises(ValueError, match="single class"):
        read_samples(X, np.zeros(40), None)


def test_halves_are_disjoint_even_and_keep_groups_whole(table):
    X, y = table
    samples = read_samples(X, y, None)
    left, right = complementary_pair(samples, 5)
    assert not set(left) & set(right) and left.size == right.size == 20
    assert np.bincount(y[left]).tolist() == np.bincount(y[right]).tolist() == [8, 12]
    groups = np.arange(40) // 3  # 14 groups, some of them mixed
    left, right = complementary_pair(read_samples(X, y, groups), 5)
    assert not set(groups[left]) & set(groups[right])
    assert len(set(groups[left])) == len(set(groups[right])) == 7
    odd, other = complementary_pair(read_samples(X[:39], y[:39], None), 1)
    assert odd.size == other.size == 19


def test_numbers_are_the_same_groups_whether_whole_or_not():
    """Defect 24: batches were matched as text, so that 1 and 1.0 differed."""
    assert as_texts(np.array([1, 2])).tolist() == as_texts(np.array([1.0, 2.0])).tolist()
    assert as_texts([1.5, "b", True]).tolist() == ["1.5", "b", "True"]
    with pytest.raises(ValueError, match="missing"):
        as_texts(["a", None])


def test_batches_come_in_many_forms():
    pd = pytest.importorskip("pandas")
    plate, day = ["a", "a", "b", "b"], [1, 2, 1, 2]
    by_name = check_batches(pd.DataFrame({"plate": plate, "day": day}), 4)
    assert {k: v.tolist() for k, v in by_name.items()} == {"plate": plate, "day": ["1", "2"] * 2}
    assert list(check_batches({"plate": plate}, 4)) == ["plate"]
    assert list(check_batches(np.array([plate, plate]).T, 4)) == ["batch 1", "batch 2"]
    assert list(check_batches(pd.Series(plate, name="plate"), 4)) == ["plate"]
    for bad in (["a"] * 4, list("abcd")):
        with pytest.raises(ValueError, match="several samples share"):
            check_batches(bad, 4)


def test_duplicates_count_across_groups_alone(table):
    X, y = table
    X[1], X[2] = X[0], X[0]
    assert np.unique(row_keys(X)).size == 38
    assert count_duplicates(read_samples(X, y, None)) == 3
    groups = np.arange(40)
    groups[:3] = 0
    assert count_duplicates(read_samples(X, y, groups)) == 0
    groups[2] = 2
    assert count_duplicates(read_samples(X, y, groups)) == 3


def pairs(n, m, alike, seed):
    """Return pairs of rows that share a part of their values, and which pair each is of."""
    rng = np.random.default_rng(seed)
    patient = np.repeat(rng.normal(size=(n // 2, m)), 2, axis=0)
    return alike * patient + np.sqrt(1 - alike**2) * rng.normal(size=(n, m)), np.arange(n) // 2


def test_twins_are_noticed_unless_groups_are_given():
    """Defect 29: two samples of every patient went unnoticed."""
    for seed in range(5):
        X, patient = pairs(60, 200, 0.9, seed)
        assert count_twins(X, None) >= 50
        assert count_twins(X, patient) == 0


def test_tables_without_twins_show_none():
    shown = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n, m = int(rng.integers(20, 150)), int(rng.choice([3, 10, 300]))
        X = rng.normal(size=(n, m)) @ (rng.normal(size=(m, m)) if seed % 2 else np.eye(m))
        X[rng.random(n) < 0.4] += 3.0  # two clusters
        shown += count_twins(X, None) > 0
    assert shown <= 3


def test_a_lazy_table_is_refused_not_gathered():
    """Defect 36: a Dask table was gathered in silence."""
    da = pytest.importorskip("dask.array")
    with pytest.raises(TypeError, match="compute"):
        read_samples(da.zeros((10, 3)), [0, 1] * 5, None)
