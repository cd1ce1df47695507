"""The GSVD selector against dense eigenproblems, and its laws."""

import math

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsegsvp.related.gsvd_selector import GSVDSelector, class_components


def second_moments(A, B, floor):
    """Of [A e] and [B e], as matrices, with the floor under the features only."""
    result = []
    for block in (A, B):
        ones = np.column_stack([block, np.ones(len(block))])
        ridge = floor * np.eye(ones.shape[1])
        ridge[-1, -1] = 0.0
        result.append(ones.T @ ones / len(block) + ridge)
    return result


@pytest.mark.parametrize(
    ("shape", "tau"), [((14, 9, 5), 0.0), ((14, 9, 5), 0.7), ((6, 5, 30), 1.0)]
)
def test_agrees_with_a_dense_eigenproblem(shape, tau):
    n_A, n_B, m = shape
    rng = np.random.default_rng(1)
    A, B = rng.normal(size=(n_A, m)), rng.normal(size=(n_B, m)) + 0.5
    found = class_components(A, B, tau)
    rank = min(m, n_A + n_B)
    floor = tau * 0.5 * (np.sum(A**2) / n_A + np.sum(B**2) / n_B) / rank
    G, H = second_moments(A, B, floor)
    values, vectors = scipy.linalg.eigh(G, H)
    angle = np.arctan(np.sqrt(values[::-1])) - math.pi / 4
    # Outside the row space both moments are the floor alone: these directions are left out.
    inside = np.abs(angle) > 1e-9
    np.testing.assert_allclose(found.angle[np.abs(found.angle) > 1e-9], angle[inside], atol=1e-9)
    # The loadings are H z, and G z, up to scale.
    for k, position in ((0, -1), (len(found.angle) - 1, 0)):
        pattern = H @ vectors[:, position]
        pattern /= np.linalg.norm(pattern)
        assert abs(pattern[:-1] @ found.loadings[:, k]) == pytest.approx(
            np.sum(pattern[:-1] ** 2), abs=1e-8
        )


def test_significance_is_each_components_share_of_the_data():
    rng = np.random.default_rng(2)
    A, B = rng.normal(size=(14, 5)), rng.normal(size=(9, 5)) + 0.5
    for tau in (0.0, 2.0):
        found = class_components(A, B, tau)
        floor = tau * 0.5 * (np.sum(A**2) / 14 + np.sum(B**2) / 9) / 5
        G, H = second_moments(A, B, floor)
        vectors = scipy.linalg.eigh(G, H)[1][:, ::-1]
        X = np.linalg.inv(vectors).T
        data = second_moments(A, B, 0.0)
        # The data's moment along z_k times the squared length of the dual x_k.
        energy = np.array([np.einsum("ik,ij,jk->k", vectors, D, vectors) for D in data])
        energy *= np.sum(X**2, axis=0)
        np.testing.assert_allclose(
            found.significance, energy / energy.sum(axis=1, keepdims=True), atol=1e-10
        )
        p = found.significance
        np.testing.assert_allclose(found.entropy, -(p * np.log(p)).sum(axis=1) / math.log(6))


def test_the_first_and_last_component_are_the_extremes_of_the_quotient():
    rng = np.random.default_rng(3)
    A, B = rng.normal(size=(8, 40)), rng.normal(size=(9, 40))
    found = class_components(A, B, 1.0)
    G, H = second_moments(A, B, 0.5 * (np.sum(A**2) / 8 + np.sum(B**2) / 9) / 17)
    Z = rng.normal(size=(41, 2000))
    angle = np.arctan(np.sqrt(np.sum(Z * (G @ Z), axis=0) / np.sum(Z * (H @ Z), axis=0)))
    assert found.angle[-1] <= angle.min() - math.pi / 4
    assert found.angle[0] >= angle.max() - math.pi / 4


@settings(max_examples=30, deadline=None)
@given(
    st.integers(2, 8), st.integers(2, 8), st.integers(1, 20), st.floats(0, 3), st.integers(0, 99)
)
def test_laws_of_the_components(n_A, n_B, m, tau, seed):
    rng = np.random.default_rng(seed)
    A, B = rng.normal(size=(n_A, m)), rng.normal(size=(n_B, m))
    found, swapped = class_components(A, B, tau), class_components(B, A, tau)
    assert np.all(np.abs(found.angle) <= math.pi / 4 + 1e-15)
    np.testing.assert_allclose(found.angle, -swapped.angle[::-1], atol=1e-7)
    np.testing.assert_allclose(found.significance.sum(axis=1), 1.0)
    assert np.all((found.entropy >= -1e-12) & (found.entropy <= 1 + 1e-12))
    # Samples twice over are the same data.
    twice = class_components(np.vstack([A, A]), B, tau)
    if m <= n_A + n_B:
        np.testing.assert_allclose(twice.angle, found.angle, atol=1e-7)


def test_without_a_floor_what_is_exclusive_is_taken_in_principal_directions():
    rng = np.random.default_rng(4)
    A, B = rng.normal(size=(5, 50)), rng.normal(size=(4, 50))
    found = class_components(A, B, 0.0)
    np.testing.assert_allclose(found.angle, [math.pi / 4] * 5 + [-math.pi / 4] * 4)
    values = np.linalg.svd(np.column_stack([A, np.ones(5)]))[1]
    np.testing.assert_allclose(found.significance[0, :5], values**2 / np.sum(values**2))
    assert np.all(found.significance[0, 5:] == 0)


def test_recovers_a_planted_panel_and_its_order_is_equivariant(planted):
    X, y = planted(m=300, shift=2.5)
    model = GSVDSelector(n_features=6).fit(X, y)
    assert np.array_equal(np.flatnonzero(model.support_), np.arange(6))
    order = np.random.default_rng(5).permutation(300)
    permuted = GSVDSelector(n_features=6).fit(X[:, order] * 3.0 - 1.0, y)
    np.testing.assert_array_equal(order[permuted.feature_order_[:20]], model.feature_order_[:20])
    np.testing.assert_allclose(permuted.scores_, model.scores_[order], atol=1e-9)
    # Swapping the labels swaps the classes, and changes nothing for the features.
    np.testing.assert_allclose(GSVDSelector().fit(X, 1 - y).scores_, model.scores_, atol=1e-9)


def test_a_shift_changes_nothing_scaled_or_not(planted):
    X, y = planted(m=30, shift=2.5)
    for standardize in (True, False):
        one = GSVDSelector(standardize=standardize).fit(X, y)
        two = GSVDSelector(standardize=standardize).fit(X + 1e3, y)
        np.testing.assert_allclose(two.scores_, one.scores_, rtol=1e-8)


def test_the_floor_goes_by_the_number_of_samples_where_some_repeat_others():
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(24, 60)), np.repeat([0, 1], 12)
    X[:, :4] += 2.0 * y[:, None]
    once = GSVDSelector(tau=0.5).fit(X, y)
    twice = GSVDSelector(tau=1.0).fit(np.vstack([X, X]), np.append(y, y))
    assert (len(once.angular_distance_), len(twice.angular_distance_)) == (25, 49)
    np.testing.assert_allclose(twice.scores_, once.scores_, atol=1e-12)


def test_panel_names_and_columns(planted):
    X, y = planted(m=10, shift=2.5)
    model = GSVDSelector(n_features=3).fit(X, y)
    panel = np.sort(model.feature_order_[:3])
    np.testing.assert_array_equal(model.transform(X), X[:, panel])
    assert model.get_feature_names_out().tolist() == [f"x{f}" for f in panel]
    assert model.get_support(indices=True).tolist() == panel.tolist()


def test_panel_rules(planted):
    X, y = planted(m=30, shift=2.5)
    X[:, 7] = 1.5
    X[:, 20] = X[:, 2]
    model = GSVDSelector().fit(X, y)
    assert sorted(model.feature_order_) == list(range(30))
    assert model.feature_order_[-1] == 7 and not model.support_[7] and model.scores_[7] == 0
    # The lower index of two equal columns comes directly before the other.
    place = {f: i for i, f in enumerate(model.feature_order_)}
    assert place[20] == place[2] + 1
    varying = model.scores_[np.arange(30) != 7]
    np.testing.assert_array_equal(model.support_, model.scores_**2 >= np.mean(varying**2))
    assert GSVDSelector(n_features=4).fit(X, y).get_support().sum() == 4
    # Nothing is exclusive enough: the most exclusive component stands in.
    strict = GSVDSelector(threshold=math.pi / 4, n_features=3).fit(X, y)
    assert strict.kept_.sum() == 1
    assert np.abs(strict.angular_distance_)[strict.kept_] == np.abs(strict.angular_distance_).max()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": 1.0}, "threshold must be"),
        ({"tau": -1.0}, "tau must be"),
        ({"n_features": 0}, "n_features must be"),
    ],
)
def test_bad_parameters_are_named(planted, options, message):
    with pytest.raises(ValueError, match=message):
        GSVDSelector(**options).fit(*planted(m=5, shift=2.5))


def test_works_for_thousands_of_features(planted):
    X, y = planted(n=200, m=15000, informative=20, shift=1.5)
    model = GSVDSelector(n_features=20).fit(X.astype(np.float32), y)
    assert np.flatnonzero(model.support_).tolist() == list(range(20))
