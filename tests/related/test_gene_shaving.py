"""Gene shaving against a plain loop over dense GSVDs, its laws, and scikit-learn's checks."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from sparsegsvp.linalg.gsvd import gsvd
from sparsegsvp.related._gene_shaving import (
    GeneShaving,
    explained_by_class,
    extreme_direction,
    shave,
)


@parametrize_with_checks([GeneShaving()])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def planted(n=40, m=60, informative=6, shift=2.0, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, m))
    X[:, :informative] += shift * y[:, None]
    return X, y


def standardized(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


def dense_extreme(X, second, floor):
    """Ratio and loadings by the full GSVD of the blocks, with the floor as extra rows."""
    ridge = np.sqrt(floor) * np.eye(X.shape[1], X.shape[1] + 1)
    blocks = []
    for members in (~second, second):
        ones = np.column_stack([X[members], np.ones(members.sum())])
        blocks.append(np.vstack([ones / np.sqrt(members.sum()), ridge]))
    _, _, alpha, beta, loadings = gsvd(*blocks)
    ratio = (alpha / beta) ** 2
    if ratio[0] * ratio[-1] >= 1:
        return ratio[0], loadings[:-1, 0]
    return 1 / ratio[-1], loadings[:-1, -1]


def plain_shaving(X, second, tau, fraction):
    """The method as it is described, without any shortcut."""
    left, dropped, sizes, ratios, explained = np.arange(X.shape[1]), [], [], [], []
    while len(left):
        Y = X[:, left]
        traces = [np.sum(Y[m] ** 2) / m.sum() for m in (~second, second)]
        ratio, loading = dense_extreme(Y, second, tau * np.mean(traces) / min(Y.shape))
        mean = Y @ np.sign(loading) / len(left)
        between = sum(m.mean() * (mean[m].mean() - mean.mean()) ** 2 for m in (~second, second))
        sizes.append(len(left))
        ratios.append(ratio)
        explained.append(between / mean.var())
        order = np.argsort(-np.abs(loading), kind="stable")
        keep = len(left) - max(1, int(fraction * len(left)))
        dropped.append(left[order[keep:]])
        left = np.sort(left[order[:keep]])
    return np.concatenate(dropped[::-1]), sizes, ratios, explained


@pytest.mark.parametrize(("n", "m"), [(30, 12), (14, 60)])
def test_agrees_with_the_method_as_described(n, m):
    X, y = planted(n=n, m=m, informative=4, shift=1.5, seed=1)
    X, second = standardized(X), y == 1
    found = shave(X, second, tau=1.0, fraction=0.2)
    order, sizes, ratios, explained = plain_shaving(X, second, 1.0, 0.2)
    np.testing.assert_array_equal(found.order, order)
    np.testing.assert_array_equal(found.sizes, sizes)
    np.testing.assert_allclose(found.ratio, ratios, rtol=1e-8)
    np.testing.assert_allclose(found.explained, explained, rtol=1e-8, atol=1e-12)


def test_no_plane_is_more_extreme_and_dropping_features_never_makes_it_more_so():
    X, y = planted(n=16, m=40, seed=2)
    X, second, floor = standardized(X), y == 1, 2.0
    ratio, _ = extreme_direction(X, second, floor)
    rng = np.random.default_rng(3)
    W, b = rng.normal(size=(40, 3000)), 3 * rng.normal(size=3000)
    distance = (X @ W + b) ** 2
    ridge = floor * np.sum(W**2, axis=0)
    quotient = (distance[~second].mean(axis=0) + ridge) / (distance[second].mean(axis=0) + ridge)
    assert ratio >= max(quotient.max(), 1 / quotient.min())
    ratios = [extreme_direction(X[:, :k], second, floor)[0] for k in range(40, 0, -1)]
    assert np.all(np.diff(ratios) <= 1e-12 * ratio)


def test_direction_does_not_depend_on_the_coordinates_of_the_samples():
    X, y = planted(n=12, m=30, seed=4)
    second = y == 1
    rows = np.linalg.cholesky(X @ X.T)
    ratio, direction = extreme_direction(X, second, 1.0)
    again, turned = extreme_direction(rows, second, 1.0)
    assert again == pytest.approx(ratio, rel=1e-10)
    length = np.linalg.norm(direction) * np.linalg.norm(turned)
    assert abs(direction @ turned) == pytest.approx(length, rel=1e-10)


def test_explained_variance():
    second = np.array([False, False, True, True])
    assert explained_by_class(np.array([1.0, 1.0, 3.0, 3.0]), second) == pytest.approx(1.0)
    assert explained_by_class(np.array([1.0, 3.0, 1.0, 3.0]), second) == 0.0
    assert explained_by_class(np.full(4, 0.1), second) == 0.0


def test_sets_are_nested_and_the_panel_has_the_largest_gap():
    X, y = planted(m=120, informative=10)
    model = GeneShaving(n_permutations=4).fit(X, y)
    assert model.sizes_[0] == 120 and model.sizes_[-1] == 1
    assert np.all(np.diff(model.sizes_) == -np.maximum(1, model.sizes_[:-1] // 10))
    assert sorted(model.feature_order_) == list(range(120))
    best = model.sizes_[model.gaps_.argmax()]
    assert set(np.flatnonzero(model.support_)) == set(model.feature_order_[:best])
    # The gap is against permuted labels: it finds the planted set, and nothing but it.
    assert set(np.flatnonzero(model.support_)) <= set(range(10))
    assert model.support_.sum() >= 5
    # A fixed size takes the same sequence.
    fixed = GeneShaving(n_features=37).fit(X, y)
    assert fixed.gaps_ is None and fixed.support_.sum() == 37
    assert set(np.flatnonzero(fixed.support_)) == set(model.feature_order_[:37])


def test_gap_is_the_difference_to_permuted_labels():
    X, y = planted(n=20, m=15, seed=6)
    model = GeneShaving(n_permutations=3, random_state=5).fit(X, y)
    # The estimator sorts the samples by class; permuting the labels has to follow that.
    Z = standardized(X)[np.argsort(y, kind="stable")]
    labels, rng = np.sort(y) == 1, np.random.RandomState(5)
    chance = [plain_shaving(Z, rng.permutation(labels), 1.0, 0.1)[3] for _ in range(3)]
    np.testing.assert_allclose(model.gaps_, model.explained_ - np.mean(chance, axis=0), atol=1e-8)


def test_constant_features_come_last_and_equal_ones_by_index():
    X, y = planted(m=50)
    X[:, 9] = 4.0
    X[:, 30] = X[:, 3]
    model = GeneShaving(n_features=5).fit(X, y)
    assert model.feature_order_[-1] == 9 and not model.support_[9]
    place = {f: i for i, f in enumerate(model.feature_order_)}
    assert place[3] < place[30]


def test_a_shift_changes_nothing_scaled_or_not():
    X, y = planted(m=80)
    for standardize in (True, False):
        one = GeneShaving(n_features=3, standardize=standardize).fit(X, y)
        two = GeneShaving(n_features=3, standardize=standardize).fit(X + 1e3, y)
        np.testing.assert_array_equal(two.feature_order_, one.feature_order_)
        np.testing.assert_allclose(two.ratios_, one.ratios_, rtol=1e-8)


def test_equivariance():
    X, y = planted(m=50)
    one = GeneShaving(n_features=5).fit(X, y)
    order = np.random.default_rng(7).permutation(50)
    two = GeneShaving(n_features=5).fit(-2.0 * X[:, order] + 1.0, y)
    np.testing.assert_array_equal(order[two.feature_order_], one.feature_order_)
    swapped = GeneShaving(n_features=5).fit(X, 1 - y)
    np.testing.assert_array_equal(swapped.feature_order_, one.feature_order_)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fraction": 0.0}, "fraction must be"),
        ({"fraction": 1.0}, "fraction must be"),
        ({"tau": 0.0}, "tau must be"),
        ({"n_permutations": 0}, "n_permutations must be"),
        ({"n_features": 2.5}, "n_features must be"),
    ],
)
def test_bad_parameters_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        GeneShaving(**options).fit(*planted(m=5))


def test_works_for_thousands_of_features_and_repeated_samples():
    X, y = planted(n=120, m=6000, informative=20, shift=2.0)
    X, y = np.vstack([X, X[:4]]), np.concatenate([y, y[:4]])
    model = GeneShaving(n_features=20).fit(X.astype(np.float32), y)
    assert np.flatnonzero(model.support_).tolist() == list(range(20))
