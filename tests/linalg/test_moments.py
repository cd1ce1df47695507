"""Moments of batches, folds and sites add up to those of all rows."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsegsvp import ClassMoments

pd = pytest.importorskip("pandas")


def _data(n=90, m=5, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % n_classes)
    return rng.normal(size=(n, m)) * np.arange(1, m + 1) + y[:, None], y


def _assert_same(left, right, rtol=1e-11, unit=0.0):
    """``unit`` is the spacing of floating-point numbers around the means."""
    np.testing.assert_array_equal(left.classes, right.classes)
    np.testing.assert_array_equal(left.counts, right.counts)
    np.testing.assert_allclose(left.weights, right.weights, rtol=1e-13)
    np.testing.assert_allclose(left.means, right.means, rtol=rtol, atol=1e-12)
    scale = np.abs(right.scatters).max()
    # a mean that is off by one unit shifts a scatter by that times the sum of deviations
    atol = 1e-12 * scale + unit * np.sqrt(right.weights.max() * scale)
    np.testing.assert_allclose(left.scatters, right.scatters, rtol=rtol, atol=atol)


def test_from_data_is_the_definition():
    X, y = _data()
    moments = ClassMoments.from_data(X, y)
    for k in range(3):
        rows = X[y == k]
        np.testing.assert_allclose(moments.means[k], rows.mean(axis=0), rtol=1e-13)
        np.testing.assert_allclose(
            moments.scatters[k] / len(rows), np.cov(rows.T, ddof=0), rtol=1e-11, atol=1e-12
        )
    np.testing.assert_array_equal(moments.counts, np.bincount(y))
    np.testing.assert_array_equal(moments.weights, np.bincount(y))
    np.testing.assert_array_equal(moments.scatters, moments.scatters.transpose(0, 2, 1))


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    n=st.integers(4, 60),
    n_classes=st.integers(1, 4),
    cuts=st.lists(st.integers(1, 59), min_size=1, max_size=5),
    offset=st.sampled_from([0.0, 1e3, -1e6]),
    seed=st.integers(0, 100),
)
def test_batches_are_the_whole(n, n_classes, cuts, offset, seed):
    """Whatever the cuts; classes that are missing from a batch included."""
    X, y = _data(n, 3, n_classes, seed)
    X = X + offset
    bounds = [0, *sorted({c for c in cuts if c < n}), n]
    batches = [ClassMoments.from_data(X[a:b], y[a:b]) for a, b in pairwise(bounds)]
    _assert_same(sum(batches), ClassMoments.from_data(X, y), unit=np.spacing(abs(offset)))


def test_blocks_of_rows_are_the_whole():
    """Enough rows for several blocks, drifting, so that a pilot of the first is far off."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40_000, 8)) + np.linspace(0, 500, 40_000)[:, None]
    y = rng.integers(0, 2, 40_000)
    moments = ClassMoments.from_data(X, y)
    for k in range(2):
        rows = X[y == k]
        np.testing.assert_allclose(
            moments.scatters[k], np.cov(rows.T, ddof=0) * len(rows), rtol=1e-10
        )


@pytest.mark.parametrize("kind", [np.asarray, np.asfortranarray, sp.csr_array, sp.csc_matrix])
def test_a_mean_of_a_million_leaves_a_variance_of_one(kind):
    rng = np.random.default_rng(2)
    Z = np.round(rng.normal(size=(3000, 2)) * 1024) / 1024  # Z + 1e6 is exact
    batches = [ClassMoments.from_data(kind(part + 1e6)) for part in np.split(Z, 6)]
    pooled = sum(batches)
    np.testing.assert_allclose(pooled.scatters[0] / 3000, np.cov(Z.T, ddof=0), rtol=1e-9)
    np.testing.assert_allclose(pooled.means[0] - 1e6, Z.mean(axis=0), atol=1e-9)


def test_constant_columns_have_a_scatter_of_exactly_zero():
    X = np.full((30_000, 2), 0.1)
    X[:, 0] = np.arange(30_000) % 7
    moments = ClassMoments.from_data(X[:11_000]) + ClassMoments.from_data(X[11_000:])
    np.testing.assert_array_equal(moments.scatters[0, 1], 0.0)
    assert moments.means[0, 1] == 0.1


def test_addition_commutes_and_associates():
    X, y = _data(60)
    a, b, c = (ClassMoments.from_data(X[i::3], y[i::3]) for i in range(3))
    _assert_same(a + b, b + a)
    _assert_same((a + b) + c, a + (b + c))


def test_weights_are_repetitions():
    X, y = _data(40)
    weight = np.random.default_rng(3).integers(0, 4, 40)
    weighted = ClassMoments.from_data(X, y, sample_weight=weight)
    repeated = ClassMoments.from_data(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_array_equal(weighted.counts, np.bincount(y[weight > 0]))
    np.testing.assert_allclose(weighted.weights, repeated.weights)
    np.testing.assert_allclose(weighted.means, repeated.means, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(weighted.scatters, repeated.scatters, rtol=1e-11, atol=1e-11)


def test_a_row_without_weight_is_not_looked_at():
    X, y = _data(40)
    weight = np.ones(40)
    weight[0] = 0.0
    before = ClassMoments.from_data(X, y, sample_weight=weight)
    X[0] = 1e12
    _assert_same(ClassMoments.from_data(X, y, sample_weight=weight), before, rtol=1e-14)


def test_every_storage_has_the_same_moments():
    X, y = _data(300, 12)
    X = np.round(X * 8) / 8 * (np.abs(X) > 1)  # exact in float32
    whole = ClassMoments.from_data(X, y)
    for kind in (
        sp.csr_array,
        sp.csc_matrix,
        np.asfortranarray,
        np.float32,
        lambda X: X[::-1][::-1],
    ):
        _assert_same(ClassMoments.from_data(kind(X), y), whole)


def test_classes_absent_from_a_batch():
    X, y = _data(40, n_classes=2)
    labels = np.array(["no", "yes"])[y]
    batch = ClassMoments.from_data(X[y == 1], labels[y == 1], classes=["yes", "no", "maybe"])
    assert batch.classes.tolist() == ["maybe", "no", "yes"]
    assert batch.counts.tolist() == [0, 0, 20]
    pooled = batch + ClassMoments.from_data(X[y == 0], labels[y == 0])
    whole = ClassMoments.from_data(X, labels)
    assert pooled.counts.tolist() == [0, *whole.counts]
    np.testing.assert_allclose(pooled.means[1:], whole.means)
    np.testing.assert_allclose(pooled.scatters[1:], whole.scatters)


def test_labels_outside_the_classes_are_refused():
    X, y = _data(40)
    with pytest.raises(ValueError, match=r"y has labels that are not in classes: \[2\]"):
        ClassMoments.from_data(X, y, classes=[0, 1])


def test_other_features_are_refused():
    X, y = _data(40)
    with pytest.raises(ValueError, match="5 and 4 features"):
        ClassMoments.from_data(X, y) + ClassMoments.from_data(X[:, :4], y)


def test_names_are_kept_and_checked():
    X, y = _data(40)
    names = list("abcde")
    named = ClassMoments.from_data(pd.DataFrame(X, columns=names), y)
    assert named.feature_names.tolist() == names
    assert (named + ClassMoments.from_data(X, y)).feature_names.tolist() == names
    assert (ClassMoments.from_data(X, y) + named).feature_names.tolist() == names
    shuffled = ClassMoments.from_data(pd.DataFrame(X, columns=names[::-1]), y)
    with pytest.raises(ValueError, match=r"different feature names.*same order"):
        named + shuffled


@pytest.mark.parametrize("labels", [[0, 1, 2], ["a", "bb", "c"], [True, False, True]])
@pytest.mark.parametrize("as_object", [False, True])
def test_a_file_without_pickle_brings_everything_back(tmp_path, labels, as_object):
    X, y = _data(40)
    frame = pd.DataFrame(X, columns=list("abcde"))
    y = np.array(labels, dtype=object if as_object else None)[y]
    moments = ClassMoments.from_data(frame, y)
    np.savez(tmp_path / "moments.npz", allow_pickle=False, **moments.to_dict())
    with np.load(tmp_path / "moments.npz", allow_pickle=False) as arrays:
        back = ClassMoments.from_dict(arrays)
    assert back.classes.tolist() == moments.classes.tolist()
    assert back.feature_names.tolist() == list("abcde")
    for name in ("counts", "weights", "means", "scatters"):
        np.testing.assert_array_equal(getattr(back, name), getattr(moments, name))
    _assert_same(back + moments, moments + moments, rtol=0)


def test_damaged_arrays_are_refused():
    X, y = _data(40)
    arrays = ClassMoments.from_data(X, y).to_dict()
    with pytest.raises(ValueError, match=r"lacks \['scatters'\]"):
        ClassMoments.from_dict({k: v for k, v in arrays.items() if k != "scatters"})
    with pytest.raises(ValueError, match="do not fit together"):
        ClassMoments.from_dict({**arrays, "means": arrays["means"][:, :4]})
    with pytest.raises(ValueError, match="do not fit together"):
        ClassMoments.from_dict({**arrays, "counts": arrays["counts"][:2]})
    with pytest.raises(ValueError, match="NaN or infinity"):
        ClassMoments.from_dict({**arrays, "means": arrays["means"] * np.nan})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": np.zeros(39)}, "39 labels"),
        ({"sample_weight": np.full(40, -1.0)}, "[Nn]egative"),
        ({"X": np.full((40, 5), np.nan)}, "NaN"),
        ({"X": np.full((40, 5), 1e200)}, r"X contains values up to .*overflow"),
    ],
)
def test_bad_rows_are_refused(change, message):
    X, y = _data(40)
    with pytest.raises(ValueError, match=message):
        ClassMoments.from_data(**{"X": X, "y": y, **change})


def test_adding_anything_else_is_a_type_error():
    moments = ClassMoments.from_data(*_data(40))
    for other in (1, "moments", None):
        with pytest.raises(TypeError):
            moments + other
        with pytest.raises(TypeError):
            other + moments


def test_the_data_is_left_alone():
    X, y = _data(40)
    kept = X.copy()
    ClassMoments.from_data(X, y, sample_weight=np.arange(40))
    ClassMoments.from_data(X, y)
    np.testing.assert_array_equal(X, kept)


def test_moments_of_lazy_rows_are_those_of_the_rows():
    da = pytest.importorskip("dask.array")
    X, y = _data(500)
    X[:, 2] += 1e6
    lazy = ClassMoments.from_data(da.from_array(X, chunks=(70, 3)), y)
    _assert_same(lazy, ClassMoments.from_data(X, y), rtol=1e-9, unit=np.spacing(1e6))
