"""The selectors by decompositions against dense eigenproblems and plain loops, and their laws."""

import math

import numpy as np
import pytest
import scipy.linalg
from sklearn.base import clone

from sparsegsvp import gsvd
from sparsegsvp.related import GeneShaving, GSVDSelector, HOGSVDSelector

SELECTORS = [GSVDSelector(), HOGSVDSelector(), GeneShaving(n_permutations=2)]
each = pytest.mark.parametrize("estimator", SELECTORS, ids=lambda e: type(e).__name__)


def standardized(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


def second_moments(Z, y, tau):
    """Of [C e] for each class, with the floor of tau under the features only."""
    blocks = [np.column_stack([Z[y == k], np.ones((y == k).sum())]) for k in np.unique(y)]
    data = [block.T @ block / len(block) for block in blocks]
    floor = tau * np.mean([np.trace(D) - 1.0 for D in data]) / min(Z.shape)
    ridge = floor * np.diag(np.append(np.ones(Z.shape[1]), 0.0))
    return data, [D + ridge for D in data]


# ---- all of them -----------------------------------------------------------------------------


@each
def test_a_planted_panel_is_found_and_its_order_is_equivariant(planted, estimator):
    X, y = planted(m=300, shift=3.0)
    model = clone(estimator).set_params(n_features=6).fit(X, y)
    assert np.array_equal(np.flatnonzero(model.support_), np.arange(6))
    order = np.random.default_rng(5).permutation(300)
    moved = clone(model).fit(-3.0 * X[:, order] - 1.0, y)
    np.testing.assert_array_equal(order[moved.feature_order_[:20]], model.feature_order_[:20])
    swapped = clone(model).fit(X, 1 - y)
    np.testing.assert_array_equal(swapped.feature_order_[:20], model.feature_order_[:20])


@each
def test_shifts_change_nothing_and_equal_columns_go_by_index(planted, estimator):
    X, y = planted(m=30, shift=2.5)
    X[:, 20] = X[:, 2]
    for standardize in (True, False):
        model = clone(estimator).set_params(standardize=standardize, n_features=3)
        order = model.fit(X, y).feature_order_
        np.testing.assert_array_equal(model.fit(X + 1e3, y).feature_order_, order)
        place = {f: i for i, f in enumerate(order)}
        assert place[2] < place[20]


# ---- GSVDSelector ----------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "m", "tau"), [(24, 5, 0.0), (24, 5, 0.7), (12, 30, 1.0)])
def test_components_are_those_of_a_dense_eigenproblem(planted, n, m, tau):
    X, y = planted(n=n, m=m, informative=2, seed=1)
    model = GSVDSelector(tau=tau).fit(X, y)
    data, (G, H) = second_moments(standardized(X), y, tau)
    values, vectors = scipy.linalg.eigh(G, H)
    values, vectors = values[::-1], vectors[:, ::-1]
    angle = np.arctan(np.sqrt(values)) - math.pi / 4
    # Outside the row space both moments are the floor alone: these directions are left out.
    inside = np.abs(angle) > 1e-9
    own = np.abs(model.angular_distance_) > 1e-9
    np.testing.assert_allclose(model.angular_distance_[own], angle[inside], atol=1e-9)
    # The data's moment along z_k times the squared length of the dual x_k is its significance.
    dual = np.linalg.inv(vectors).T
    length = np.linalg.norm(dual, axis=0)
    energy = np.array([np.einsum("ik,ij,jk->k", vectors, D, vectors) for D in data]) * length**2
    share = (energy / energy.sum(axis=1, keepdims=True))[:, inside]
    np.testing.assert_allclose(model.significance_[:, own], share, atol=1e-8)
    p = model.significance_
    logs = np.log(p, where=p > 0, out=np.zeros(p.shape))
    np.testing.assert_allclose(model.entropy_, -(p * logs).sum(axis=1) / math.log(p.shape[1]))
    kept = np.abs(angle) >= math.pi / 8
    scores = (dual / length)[:-1, kept] ** 2 @ (share.max(axis=0)[kept[inside]])
    np.testing.assert_allclose(model.scores_**2, scores, atol=1e-8)
    np.testing.assert_array_equal(model.support_, scores >= scores.mean() * (1 - 1e-10))


def test_without_a_floor_what_is_exclusive_is_taken_in_principal_directions():
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(9, 50)), np.repeat([0, 1], [5, 4])
    model = GSVDSelector(tau=0.0).fit(X, y)
    # Centring takes away one of the nine directions, which the column of ones gives back.
    np.testing.assert_allclose(model.angular_distance_, [math.pi / 4] * 5 + [-math.pi / 4] * 4)
    values = np.linalg.svd(np.column_stack([standardized(X)[:5], np.ones(5)]))[1]
    np.testing.assert_allclose(model.significance_[0, :5], values**2 / np.sum(values**2))
    assert np.all(model.significance_[0, 5:] == 0)
    # Nothing is exclusive enough: the most exclusive component stands in.
    strict = GSVDSelector(threshold=math.pi / 4).fit(X, y)
    assert strict.kept_.sum() == 1 and strict.kept_[np.abs(strict.angular_distance_).argmax()]


# ---- HOGSVDSelector --------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "m"), [(40, 8), (20, 60)])
@pytest.mark.parametrize("threshold", [0.1, math.pi / 8])
def test_two_classes_are_those_of_the_generalized_svd(planted, n, m, threshold):
    X, y = planted(n=n, m=m, informative=3)
    two = GSVDSelector(threshold=threshold).fit(X, y)
    model = HOGSVDSelector(threshold=threshold).fit(X, y)
    np.testing.assert_allclose(model.scores_, two.scores_, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(model.support_, two.support_)
    np.testing.assert_allclose(model.entropy_, two.entropy_, rtol=1e-6)
    x = np.tan(math.pi / 4 + two.angular_distance_) ** 2
    np.testing.assert_allclose(model.eigenvalues_, np.sort((x + 1 / x) / 2), rtol=1e-6)
    assert model.kept_.sum() == two.kept_.sum()


def test_features_of_one_class_of_three_are_exclusive_and_the_others_shared():
    rng = np.random.default_rng(2)
    y = np.repeat([0, 1, 2], 40)
    X = rng.normal(size=(120, 90))
    for k in range(3):  # a factor that only one class has, in five features of its own
        X[y == k, 5 * k : 5 * k + 5] += 4.0 * rng.normal(size=(40, 1))
    exclusive = HOGSVDSelector(n_features=15).fit(X, y)
    assert exclusive.get_support(indices=True).tolist() == list(range(15))
    shared = HOGSVDSelector(kind="shared", n_features=75).fit(X, y)
    assert shared.get_support(indices=True).tolist() == list(range(15, 90))
    assert not (exclusive.kept_ & shared.kept_).any()
    # The eigenvalues are those of the mean of all quotients.
    _, moments = second_moments(standardized(X), y, 1.0)
    pairs = [moments[i] @ np.linalg.inv(moments[j]) for i in range(3) for j in range(3) if i != j]
    values = np.sort(np.linalg.eigvals(np.mean(pairs, axis=0)).real)
    np.testing.assert_allclose(exclusive.eigenvalues_, values, rtol=1e-8)
    relabelled = HOGSVDSelector(n_features=15).fit(X, np.array(["b", "c", "a"])[y])
    np.testing.assert_allclose(relabelled.scores_, exclusive.scores_, rtol=1e-8)


# ---- GeneShaving -----------------------------------------------------------------------------


def plain_shaving(X, second, tau):
    """The method as it is described, by full GSVDs with the floor as extra rows."""
    left, dropped, sizes, ratios, explained = np.arange(X.shape[1]), [], [], [], []
    while len(left):
        Y = X[:, left]
        traces = [np.sum(Y[m] ** 2) / m.sum() for m in (~second, second)]
        floor = tau * np.mean(traces) / min(Y.shape)
        ridge = np.sqrt(floor) * np.eye(len(left), len(left) + 1)
        blocks = [
            np.vstack([np.column_stack([Y[m], np.ones(m.sum())]) / np.sqrt(m.sum()), ridge])
            for m in (~second, second)
        ]
        _, _, alpha, beta, loadings = gsvd(*blocks)
        ratio = (alpha / beta) ** 2
        k = 0 if ratio[0] * ratio[-1] >= 1 else -1
        loading = loadings[:-1, k]
        mean = Y @ np.sign(loading) / len(left)
        between = sum(m.mean() * (mean[m].mean() - mean.mean()) ** 2 for m in (~second, second))
        sizes.append(len(left))
        ratios.append(max(ratio[k], 1 / ratio[k]))
        explained.append(between / mean.var())
        order = np.argsort(-np.abs(loading), kind="stable")
        keep = len(left) - max(1, len(left) // 10)
        dropped.append(left[order[keep:]])
        left = np.sort(left[order[:keep]])
    return np.concatenate(dropped[::-1]), sizes, ratios, explained


@pytest.mark.parametrize(("n", "m"), [(30, 12), (14, 60)])
def test_shaving_agrees_with_the_method_as_described(planted, n, m):
    X, y = planted(n=n, m=m, informative=4, shift=1.5, seed=1)
    model = GeneShaving(n_permutations=3, random_state=5).fit(X, y)
    # The estimator sorts the samples by class; permuting the labels has to follow that.
    Z, second = standardized(X)[np.argsort(y, kind="stable")], np.sort(y) == 1
    order, sizes, ratios, explained = plain_shaving(Z, second, 1.0)
    np.testing.assert_array_equal(model.feature_order_, order)
    np.testing.assert_array_equal(model.sizes_, sizes)
    np.testing.assert_allclose(model.ratios_, ratios, rtol=1e-8)
    np.testing.assert_allclose(model.explained_, explained, rtol=1e-8, atol=1e-12)
    rng = np.random.RandomState(5)
    chance = [plain_shaving(Z, rng.permutation(second), 1.0)[3] for _ in range(3)]
    np.testing.assert_allclose(model.gaps_, explained - np.mean(chance, axis=0), atol=1e-8)


def test_sets_are_nested_and_the_panel_has_the_largest_gap(planted):
    X, y = planted(m=120, informative=10)
    model = GeneShaving(n_permutations=4).fit(X, y)
    assert np.all(np.diff(model.sizes_) == -np.maximum(1, model.sizes_[:-1] // 10))
    best = model.sizes_[model.gaps_.argmax()]
    assert set(np.flatnonzero(model.support_)) == set(model.feature_order_[:best])
    # The gap is against permuted labels: it finds the planted set, and nothing but it.
    assert set(np.flatnonzero(model.support_)) <= set(range(10)) and best >= 5
    # A fixed size takes the same sequence.
    fixed = GeneShaving(n_features=37).fit(X, y)
    assert fixed.gaps_ is None
    assert set(np.flatnonzero(fixed.support_)) == set(model.feature_order_[:37])
