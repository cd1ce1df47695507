"""The paper's estimator: its published rows, its decision rule and scikit-learn's manners."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from sparsegsvp.datasets import load_breast_cancer, make_planted
from sparsegsvp.estimators.pgd import PGDGSVPSVM, fit_together

# Capped runs are the rule with this method; where a test is about the warning it says so.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def _fit(model: PGDGSVPSVM, X: np.ndarray, y: np.ndarray) -> PGDGSVPSVM:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


# A few hundred iterations are enough for the checks, which are about manners.
@parametrize_with_checks(
    [
        PGDGSVPSVM(max_iter=200, step_size=0.01),
        PGDGSVPSVM(q=0.5, max_iter=200, step_size=0.01, conventions="code"),
        PGDGSVPSVM(q=0.5, max_iter=100, step_size=0.01, prox="exact", backtracking=True),
    ]
)
def test_scikit_learn_checks(estimator, check) -> None:
    check(estimator)


# --- the two rows of the paper that reproduce ----------------------------------------------


@pytest.fixture(scope="module")
def breast() -> dict[str, list[np.ndarray]]:
    """Training, validation and test rows of each class, split as the authors did."""
    X, y = load_breast_cancer(return_X_y=True)
    parts: dict[str, list[np.ndarray]] = {"train": [], "validation": [], "test": []}
    for k in (0, 1):
        train, rest = train_test_split(X[y == k], test_size=0.3, random_state=42)
        validation, test = train_test_split(rest, test_size=0.4, random_state=42)
        for name, rows in zip(parts, (train, validation, test)):
            parts[name].append(rows)
    return parts


def _batch_confusion(
    model: PGDGSVPSVM, rows: list[np.ndarray], weights: np.ndarray
) -> tuple[int, ...]:
    """TN, FP, FN, TP by the authors' rule: distances divided by their norm over the batch."""
    X = (np.vstack(rows) - model.mean_) / model.scale_
    distances = np.abs(X @ weights.T + model.biases_)
    distances /= np.linalg.norm(distances, axis=0)
    predicted = distances[:, 0] > distances[:, 1]
    negative, positive = predicted[: len(rows[0])], predicted[len(rows[0]) :]
    return tuple(int(n) for n in (sum(~negative), sum(negative), sum(~positive), sum(positive)))


@pytest.mark.parametrize(
    ("settings", "elbows", "features", "validation", "test"),
    [
        ({"q": None, "delta": (0.8684252631578948, 0.8685052631578948), "step_size": 1e-3},
         [4, 4], (3, 3, 1), (64, 0, 1, 37), (44, 0, 2, 24)),
        ({"q": 0.1, "delta": (0.02, 0.02), "step_size": 0.025},
         [5, 3], (5, 3, 0), (63, 1, 2, 36), (43, 1, 2, 24)),
    ],
    ids=["l1", "q=0.1"],
)  # fmt: skip
def test_published_breast_rows(breast, settings, elbows, features, validation, test) -> None:
    X = np.vstack(breast["train"])
    y = np.repeat([0, 1], [len(rows) for rows in breast["train"]])
    model = _fit(PGDGSVPSVM(**settings, conventions="code"), X, y)
    assert model.elbows_.tolist() == elbows
    first, second = map(set, model.features_)
    common = first & second
    assert (len(first - common), len(second - common), len(common)) == features
    truncated = np.zeros_like(model.weights_)
    for k, kept in enumerate(model.features_):
        truncated[k, kept] = model.weights_[k, kept]
    assert _batch_confusion(model, breast["validation"], truncated) == validation
    # the published test scores are those of the untruncated weights
    assert _batch_confusion(model, breast["test"], model.weights_) == test


# --- what is fitted ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def planted() -> tuple[np.ndarray, np.ndarray]:
    return make_planted(80, 12, n_informative=3, effect=3.0, return_X_y=True)


@pytest.fixture(scope="module", params=[None, 0.3])
def model(request, planted) -> PGDGSVPSVM:
    return _fit(PGDGSVPSVM(request.param, step_size=0.01, max_iter=500), *planted)


def test_attributes_agree_with_each_other(model: PGDGSVPSVM, planted) -> None:
    X, _ = planted
    for k in (0, 1):
        order = np.argsort(-np.abs(model.weights_[k]), kind="stable")
        assert_array_equal(model.features_[k], order[: model.elbows_[k]])
        assert set(np.flatnonzero(model.planes_[k])) == set(model.features_[k])
        history = model.history_[k]
        assert_allclose(history["objective"], history["fidelity"] + history["penalty"])
    union = sorted(set(model.features_[0]) | set(model.features_[1]))
    assert_array_equal(model.get_support(indices=True), union)
    assert_array_equal(model.transform(X), X[:, union])
    assert model.n_iter_ == max(len(h["relative_error"]) for h in model.history_)


def test_coefficients_give_the_papers_distances(model: PGDGSVPSVM, planted) -> None:
    """|x'w + b| / ||w|| with the truncated weights, on standardised data."""
    X, y = planted
    Z = StandardScaler().fit_transform(X)
    distances = []
    for k in (0, 1):
        w = np.zeros(X.shape[1])
        w[model.features_[k]] = model.weights_[k][model.features_[k]]
        distances.append(np.abs(Z @ w + model.biases_[k]) / np.linalg.norm(w))
    assert_allclose(np.abs(X @ model.planes_.T + model.plane_intercepts_), np.transpose(distances))
    assert_array_equal(model.predict(X), np.where(distances[0] <= distances[1], 0, 1))
    assert_allclose(model.decision_function(X), distances[0] - distances[1], atol=1e-12)
    assert model.score(X, y) > 0.8


def test_shifting_and_scaling_features_changes_nothing(planted) -> None:
    X, y = planted
    scale = np.logspace(-3, 3, X.shape[1])
    plain = _fit(PGDGSVPSVM(0.3, step_size=0.01, max_iter=100), X, y)
    moved = _fit(PGDGSVPSVM(0.3, step_size=0.01, max_iter=100), X * scale + 5.0, y)
    assert_allclose(moved.weights_, plain.weights_, rtol=1e-6)
    assert_allclose(moved.planes_ * scale, plain.planes_, rtol=1e-6)
    assert_allclose(moved.decision_function(X * scale + 5.0), plain.decision_function(X), atol=1e-8)


def test_models_fitted_together_are_those_fitted_alone(planted) -> None:
    X, y = planted
    models = [
        PGDGSVPSVM(q, step_size=0.01, max_iter=n, random_state=n)
        for q, n in ((None, 50), (0.5, 80), (1.0, 20))
    ]
    fit_together(models, X, y)
    for model in models:
        alone = _fit(clone(model), X, y)
        assert_allclose(model.weights_, alone.weights_, rtol=1e-9)
        assert vars(model).keys() == vars(alone).keys()
        assert_array_equal(model.predict(X), alone.predict(X))


def test_swapping_the_classes_swaps_the_planes(planted) -> None:
    X, y = planted
    settings = {"step_size": 0.01, "max_iter": 200}
    one = _fit(PGDGSVPSVM(delta=(0.1, 0.3), **settings), X, y)
    two = _fit(PGDGSVPSVM(delta=(0.3, 0.1), **settings), X, 1 - y)
    assert_allclose(one.weights_, two.weights_[::-1], rtol=1e-9)


def test_conventions_differ_only_with_q(planted) -> None:
    X, y = planted
    for q, same in ((None, True), (0.3, False)):
        paper, code = (
            _fit(PGDGSVPSVM(q, step_size=0.01, max_iter=50, conventions=c), X, y).weights_
            for c in ("paper", "code")
        )
        assert np.array_equal(paper, code) is same


# --- complaints ----------------------------------------------------------------------------


def test_the_cap_warns_with_advice(planted) -> None:
    with pytest.warns(ConvergenceWarning, match=r"max_iter=3.*GSVPSVM"):
        model = PGDGSVPSVM(max_iter=3, tol=0.0).fit(*planted)
    assert not model.converged_.any()


def test_a_2_cycle_is_named_and_only_a_2_cycle(breast, planted) -> None:
    """Breast cancer at q = 1: two points in turn, whose elbows differ, so the cap decides."""
    X = np.vstack(breast["train"])
    y = np.repeat([0, 1], [len(rows) for rows in breast["train"]])
    settings = {"delta": (0.3, 0.4), "step_size": 3e-3, "conventions": "code"}
    elbows = []
    for cap in (5000, 4999):
        with pytest.warns(ConvergenceWarning, match=r"class 1 is in a 2-cycle since iteration \d+"):
            model = PGDGSVPSVM(1.0, max_iter=cap, **settings).fit(X, y)
        since = model.cycles_[1]
        assert model.cycles_[0] == -1 and 100 < since < 4000
        h = model.history_[1]["objective"]
        assert_allclose(h[since + 2 :], h[since:-2], rtol=1e-9)
        assert abs(h[-1] - h[-2]) > 1e-3 * h[-1]
        elbows.append(model.elbows_[1])
    assert sorted(elbows) == [3, 4]
    with pytest.warns(ConvergenceWarning, match="was cut off"):  # still falling: no cycle
        falling = PGDGSVPSVM(step_size=1e-4, max_iter=50, tol=0.0).fit(*planted)
    assert_array_equal(falling.cycles_, -1)


@pytest.mark.parametrize(
    "change",
    [{"delta": (0.1, 0.1, 0.1)}, {"delta": -0.1}, {"q": 2.0}, {"eps": -1.0, "q": 0.5},
     {"step_size": 0}, {"max_iter": 0}, {"max_iter": 2.5}, {"tol": -1}, {"conventions": "notes"},
     {"prox": "both"}, {"delta": 1e9}],
    ids=str,
)  # fmt: skip
def test_bad_parameters_are_named(planted, change: dict) -> None:
    with pytest.raises(ValueError, match=next(iter(change))):
        PGDGSVPSVM(**change).fit(*planted)
