"""The rules that turn distances into scores, classes and probabilities, from their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from sparsegsvp.estimators import decision
from sparsegsvp.estimators.decision import (
    Calibrator,
    FoldModel,
    _fit_binary,
    balanced_sample,
    fit_calibrators,
    log_distances,
    margin,
    predicted_codes,
    probabilities,
    scores,
)

TWO = Calibrator(np.array([2.0, -1.0]), np.array(0.5))
THREE = Calibrator(np.array([[1.0, 0, 0], [0, 2, 0], [0, 0, 3]]), np.array([0.1, 0.0, -0.1]))
# rows on the first plane, on the second, nearer in units of the scale, and far from both
DISTANCES = np.array([[0.0, -3.0], [2.0, 0.0], [1.0, -1.5], [40.0, 10.0]])
SCALE = np.array([1.0, 3.0])


def test_scaled_distances_have_a_smooth_floor_of_a_twentieth():
    found = log_distances(DISTANCES, SCALE)
    assert_allclose(np.exp(2 * found), (DISTANCES / SCALE) ** 2 + 0.05**2)
    assert found[0, 0] == pytest.approx(np.log(0.05))


def test_the_nearest_plane_wins_by_distance_or_in_units_of_the_scale():
    near = scores(DISTANCES, SCALE, "distance", None)
    assert_allclose(near, [[0, -3], [-2, 0], [-1, -1.5], [-40, -10]])
    assert_array_equal(predicted_codes(margin(near)), [0, 1, 0, 1])
    scaled = scores(DISTANCES, SCALE, "scaled", None)
    assert_allclose(scaled, [[0, -1], [-2, 0], [-1, -0.5], [-40, -10 / 3]])
    assert_array_equal(predicted_codes(margin(scaled)), [0, 1, 1, 1])


def test_log_odds_of_two_classes_and_of_more():
    features = np.array([[1.0, 2.0], [0.0, -1.0]])
    assert_allclose(TWO.log_odds(features), [0.5, 1.5])
    p = TWO.probabilities(features)
    assert_allclose(p[:, 1], 1 / (1 + np.exp([-0.5, -1.5])))
    assert_allclose(p.sum(axis=1), 1.0)
    many = np.array([[1.0, 1.0, 1.0], [2.0, 0.0, -1.0]])
    assert_allclose(THREE.log_odds(many), [[1.1, 2.0, 2.9], [2.1, 0.0, -3.1]])
    expected = np.exp(THREE.log_odds(many))
    assert_allclose(THREE.probabilities(many), expected / expected.sum(axis=1, keepdims=True))


def test_calibrated_scores_are_log_odds_whose_lead_is_that_of_the_second_class():
    found = scores(DISTANCES, SCALE, "calibrated", TWO)
    odds = TWO.log_odds(log_distances(DISTANCES, SCALE))
    assert_allclose(margin(found), odds)
    assert_allclose(found.sum(axis=1), 0.0, atol=1e-15)
    assert_allclose(probabilities(DISTANCES, SCALE, TWO)[:, 1], 1 / (1 + np.exp(-odds)))
    three = np.column_stack([DISTANCES, DISTANCES[:, :1] - 1.0])
    scale = np.array([1.0, 3.0, 2.0])
    found = scores(three, scale, "calibrated", THREE)
    assert_allclose(found, THREE.log_odds(log_distances(three, scale)))
    assert margin(found) is found
    assert_array_equal(predicted_codes(margin(found)), found.argmax(axis=1))


def test_in_a_tie_the_first_class_wins():
    assert_array_equal(predicted_codes(np.array([0.0, 1e-300, -1e-300])), [0, 1, 0])
    assert_array_equal(predicted_codes(np.array([[1.0, 1.0, 0.0], [0.0, 2.0, 2.0]])), [0, 1])


def test_a_fold_is_a_classifier_of_its_rows():
    model = FoldModel(DISTANCES, SCALE, "scaled", None, np.array(["a", "b"]))
    assert_allclose(model.decision_function(None), [-1, 2, 0.5, 40 - 10 / 3])
    assert_array_equal(model.predicted_codes(), [0, 1, 1, 1])
    assert model.predict(None).tolist() == ["a", "b", "b", "b"]
    with pytest.raises(AttributeError, match='decision="scaled" gives no probabilities'):
        model.predict_proba(None)
    model = FoldModel(DISTANCES, SCALE, "calibrated", TWO, np.array(["a", "b"]))
    assert_allclose(model.predict_proba(None), probabilities(DISTANCES, SCALE, TWO))


@pytest.mark.parametrize(
    ("counts", "size", "expected"),
    [
        ([3, 5], 8, [3, 5]),  # all of them
        ([3, 5], 7, [3, 4]),
        ([50, 50], 9, [4, 5]),
        ([2, 50, 50], 20, [2, 9, 9]),
        ([50, 2, 6], 20, [12, 2, 6]),
        ([9, 9, 9], 3, [1, 1, 1]),
    ],
)
def test_a_sample_takes_an_even_share_of_each_class(counts, size, expected):
    codes = np.random.default_rng(0).permutation(np.repeat(np.arange(len(counts)), counts))
    found = balanced_sample(codes, size, 1)
    assert np.bincount(codes[found]).tolist() == expected
    assert (np.diff(found) > 0).all()
    assert_array_equal(found, balanced_sample(codes, size, 1))
    if size == len(codes):
        assert_array_equal(found, np.arange(size))


def _loss(theta, features, codes, weight):
    """The objective that calibrators minimise, as scikit-learn writes it, with C = 1."""
    z = features @ theta[:-1] + theta[-1]
    return weight @ np.logaddexp(0.0, -(2.0 * codes - 1.0) * z) + 0.5 * theta[:-1] @ theta[:-1]


@pytest.mark.parametrize("apart", [0.0, 1.0, 30.0, 3000.0])
def test_calibrators_of_two_classes_are_at_the_minimum(apart):
    """No step in any direction descends, whether the classes overlap or are far apart."""
    rng = np.random.default_rng(3)
    codes = np.repeat([0, 1], [30, 11])
    weight = rng.uniform(0.5, 2.0, 41)
    features = rng.normal(size=(41, 3, 2)) + apart * codes[:, None, None]
    coef, intercept = fit_calibrators(features, codes, 2, weight)
    balanced = weight * weight.sum() / (2 * np.bincount(codes, weight)[codes])
    for j in range(3):
        theta = np.append(coef[j], intercept[j])
        best = _loss(theta, features[:, j], codes, balanced)
        for step in np.concatenate([np.eye(3), -np.eye(3), rng.normal(size=(20, 3))]):
            for length in (1e-1, 1e-3, 1e-5):
                other = _loss(theta + length * step, features[:, j], codes, balanced)
                assert best <= other * (1 + 1e-12)


@pytest.mark.parametrize("seed", [1, 13, 21, 26, 30])
def test_calibrators_of_rows_of_very_different_size_and_weight(seed):
    """Newton's full step overshoots here; models of a batch that are done wait for no other."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 30))
    codes = np.arange(n) % 2
    spread = 10 ** rng.uniform(-2, 3, size=(n, 1, 1))
    features = rng.normal(size=(n, 6, 2)) * spread
    features += 3 * rng.normal(size=(1, 6, 2)) * rng.integers(0, 2)
    features = np.abs(features) if seed % 3 == 0 else features
    features[:, 5] *= 1e-3  # converges at once
    weight = 10 ** rng.uniform(-3, 3, size=n)
    found = _fit_binary(features, codes, weight)
    for j in range(6):
        rows = np.column_stack([features[:, j], np.ones(n)])
        p = 1 / (1 + np.exp(-np.clip(rows @ found[j], -700, 700)))
        gradient = rows.T @ (weight * (p - codes)) + np.append(found[j, :2], 0.0)
        size = np.abs(rows).T @ weight + np.append(np.abs(found[j, :2]), 0.0)
        assert np.abs(gradient / size).max() < 1e-6
        assert_allclose(_fit_binary(features[:, [j]], codes, weight)[0], found[j], rtol=1e-9)


@pytest.mark.parametrize("seed", [707, 1400])
def test_where_rounding_hides_every_descent_a_calibrator_stays_at_its_minimum(seed):
    """Newton's last step promises more than the objective can show, however short it is made."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 12))
    codes = np.arange(n) % 2
    features = rng.normal(size=(n, 1, 2)) * 10 ** rng.uniform(-2, 5, size=(n, 1, 1))
    weight = 10 ** rng.uniform(-8, 8, size=n)
    [found] = _fit_binary(features, codes, weight)
    given = (features[:, 0], codes, weight)
    precise = {"xatol": 1e-12, "fatol": 1e-16}
    lower = minimize(_loss, found, args=given, method="Nelder-Mead", options=precise).fun
    assert lower > (1 - 1e-6) * _loss(found, *given)


def test_a_single_step_is_newtons(monkeypatch):
    rng = np.random.default_rng(6)
    features, codes = rng.normal(size=(20, 3, 2)), np.arange(20) % 2
    weight = rng.uniform(0.5, 1.5, 20)
    monkeypatch.setattr(decision, "_MOST_STEPS", 1)
    found = _fit_binary(features, codes, weight)
    for j in range(3):
        rows = np.column_stack([features[:, j], np.ones(20)])
        # at zero every probability is one half
        curvature = rows.T @ (rows * weight[:, None] / 4) + np.diag([1.0, 1.0, 0.0])
        expected = np.linalg.solve(curvature, rows.T @ (weight * (codes - 0.5)))
        assert_allclose(found[j], expected, rtol=1e-9)


@pytest.mark.parametrize(("most", "batches"), [(5, [1] * 20), (42, [7, 7, 6]), (10**6, [20])])
def test_no_more_models_are_fitted_at_a_time_than_there_is_room_for(most, batches, monkeypatch):
    """Of more models than rows; one at a time where the rows alone are too many."""
    features = np.random.default_rng(5).normal(size=(6, 20, 2))
    codes = np.arange(6) % 2
    expected = fit_calibrators(features, codes, 2, None)
    seen = []

    def watched(part, *rest):
        seen.append(part.shape[1])
        return _fit_binary(part, *rest)

    monkeypatch.setattr(decision, "_fit_binary", watched)
    monkeypatch.setattr(decision, "_MOST_VALUES", most)
    for found, whole in zip(fit_calibrators(features, codes, 2, None), expected):
        assert_allclose(found, whole, rtol=1e-12)
    assert seen == batches


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_weigh_the_same_however_little_their_rows_do(n_classes):
    rng = np.random.default_rng(7)
    codes = np.arange(30) % n_classes
    features = rng.normal(size=(30, 2, n_classes)) + codes[:, None, None]
    weight = rng.uniform(1.0, 2.0, 30) * np.array([1e-3, 1.0, 1e-2])[codes]
    found = fit_calibrators(features, codes, n_classes, weight)
    even = weight / np.bincount(codes, weight)[codes] * weight.sum() / n_classes
    for coef, intercept, j in zip(*found, range(2)):
        peer = LogisticRegression(tol=1e-10, solver="newton-cholesky")
        peer.fit(features[:, j], codes, sample_weight=even)
        assert_allclose(coef, np.squeeze(peer.coef_), atol=1e-6)
        assert_allclose(intercept, np.squeeze(peer.intercept_), atol=1e-6)


@pytest.mark.parametrize(("few", "solver"), [(3, "newton-cholesky"), (2, "newton-cg")])
def test_second_derivatives_are_formed_for_few_classes_alone(few, solver, monkeypatch):
    used = []

    class Watched(LogisticRegression):
        def fit(self, *args, **kwargs):
            used.append(self.solver)
            return super().fit(*args, **kwargs)

    features, codes = np.random.default_rng(8).normal(size=(30, 2, 3)), np.arange(30) % 3
    expected = fit_calibrators(features, codes, 3, None)
    monkeypatch.setattr(decision, "LogisticRegression", Watched)
    monkeypatch.setattr(decision, "_FEW_CLASSES", few)
    for found, whole in zip(fit_calibrators(features, codes, 3, None), expected):
        assert_allclose(found, whole, atol=1e-5)
    assert used == [solver, solver]


def test_a_class_that_is_absent_or_weighs_nothing_leaves_calibrators_finite():
    features = np.random.default_rng(4).normal(size=(12, 2, 2))
    codes = np.repeat([0, 1], 6)
    for weight in (np.repeat([1.0, 0.0], 6), np.repeat([1e-9, 1e9], 6)):
        coef, intercept = fit_calibrators(features, codes, 2, weight)
        assert np.isfinite(coef).all() and np.isfinite(intercept).all()
    alone = fit_calibrators(features, np.zeros(12, dtype=int), 2, None)
    assert (alone[1] < 0.0).all()
