"""The paper's estimator: its published rows, its decision rule and scikit-learn's manners."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
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
        (
            {"q": None, "delta": (0.8684252631578948, 0.8685052631578948), "step_size": 1e-3},
            [4, 4],
            (3, 3, 1),
            (64, 0, 1, 37),
            (44, 0, 2, 24),
        ),
        (
            {"q": 0.1, "delta": (0.02, 0.02), "step_size": 0.025},
            [5, 3],
            (5, 3, 0),
            (63, 1, 2, 36),
            (43, 1, 2, 24),
        ),
    ],
    ids=["l1", "q=0.1"],
)
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
    assert model.score(X, y) > 0.8


def test_decision_function_changes_sign_with_predict(model: PGDGSVPSVM, planted) -> None:
    X, _ = planted
    decision = model.decision_function(X)
    assert_array_equal(model.predict(X) == model.classes_[1], decision > 0)
    assert (decision > 0).any() and (decision <= 0).any()


def test_one_by_one_equals_batch(model: PGDGSVPSVM, planted) -> None:
    """Not so for the batch-normalised rule of the published scores, which is not offered."""
    X, _ = planted
    assert_array_equal(np.concatenate([model.predict(row[None]) for row in X]), model.predict(X))


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


def test_fit_is_deterministic_and_leaves_its_input_alone(planted) -> None:
    X, y = planted
    X_before, y_before = X.copy(), y.copy()
    X.flags.writeable = y.flags.writeable = False
    first = PGDGSVPSVM(step_size=0.01, max_iter=100)
    parameters = clone(first).get_params()
    _fit(first, X, y)
    second = _fit(clone(first), X, y)
    assert first.weights_.tobytes() == second.weights_.tobytes()
    assert first.get_params() == parameters
    assert_array_equal(X, X_before)
    assert_array_equal(y, y_before)
    other = _fit(PGDGSVPSVM(step_size=0.01, max_iter=100, random_state=1), X, y)
    assert not np.array_equal(other.weights_, first.weights_)


def test_conventions_differ_only_with_q(planted) -> None:
    X, y = planted
    for q, same in ((None, True), (0.3, False)):
        paper, code = (
            _fit(PGDGSVPSVM(q, step_size=0.01, max_iter=50, conventions=c), X, y).weights_
            for c in ("paper", "code")
        )
        assert np.array_equal(paper, code) is same


def test_constant_features_are_never_selected(planted) -> None:
    X, y = planted
    wide = np.column_stack([np.full(len(X), 7.3), X, np.zeros(len(X))])
    for q in (None, 0.3):
        fitted = _fit(PGDGSVPSVM(q, step_size=0.01, max_iter=100), wide, y)
        assert_array_equal(fitted.weights_[:, [0, -1]], 0.0)
        assert not fitted.support_[[0, -1]].any()


def test_float32_is_solved_in_double_precision(planted) -> None:
    X, y = planted
    single = X.astype(np.float32)
    fitted = _fit(PGDGSVPSVM(step_size=0.01, max_iter=100), single, y)
    reference = _fit(PGDGSVPSVM(step_size=0.01, max_iter=100), single.astype(np.float64), y)
    assert_allclose(fitted.weights_, reference.weights_, rtol=1e-9)


def test_frames_strings_and_scikit_learn_tools(planted) -> None:
    X, y = planted
    frame = pd.DataFrame(X, columns=[f"gene {i}" for i in range(X.shape[1])])
    labels = np.where(y == 1, "ill", "healthy")
    model = PGDGSVPSVM(step_size=0.01, max_iter=100)
    fitted = _fit(clone(model).set_output(transform="pandas"), frame, labels)
    names = fitted.get_feature_names_out()
    assert_array_equal(names, frame.columns[fitted.support_])
    assert_array_equal(fitted.transform(frame).columns, names)
    assert set(fitted.predict(frame)) <= {"ill", "healthy"}
    # it standardises by itself, so a scaler before it changes nothing
    piped = cross_val_score(make_pipeline(StandardScaler(), model), X, y, cv=3)
    assert_array_equal(piped, cross_val_score(model, X, y, cv=3))
    search = GridSearchCV(model, {"delta": [0.05, (0.1, 0.2)]}, cv=2).fit(X, y)
    assert search.best_params_["delta"] in (0.05, (0.1, 0.2))


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
    ("change", "message"),
    [
        ({"delta": (0.1, 0.1, 0.1)}, "delta"),
        ({"delta": -0.1}, "delta"),
        ({"q": 2.0}, "q must"),
        ({"eps": -1.0, "q": 0.5}, "eps"),
        ({"step_size": 0}, "step_size"),
        ({"max_iter": 0}, "max_iter"),
        ({"max_iter": 2.5}, "max_iter"),
        ({"tol": -1}, "tol"),
        ({"conventions": "notes"}, "conventions"),
        ({"prox": "both"}, "prox"),
        ({"delta": 1e9}, "smaller delta"),
    ],
)
def test_bad_parameters(planted, change: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PGDGSVPSVM(**change).fit(*planted)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.eye(4), [0, 0, 0, 0], "one class"),
        (np.eye(4), [0, 0, 0, 1], "has one sample"),
        (np.eye(6), [0, 0, 1, 1, 2, 2], "Only binary classification"),
        (np.eye(4), [0.1, 0.2, 0.3, 0.4], "Unknown label type"),
        (np.ones((4, 2)), [0, 0, 1, 1], "constant"),
        (np.array([[1e300], [2e300], [0], [1]]), [0, 0, 1, 1], "overflow"),
        (np.array([[np.nan], [2], [0], [1]]), [0, 0, 1, 1], "NaN"),
        (np.eye(4), [0, 0, 1], "inconsistent"),
    ],
)
def test_bad_data(X, y, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PGDGSVPSVM(max_iter=20).fit(X, y)


def test_other_columns_at_predict(model: PGDGSVPSVM, planted) -> None:
    with pytest.raises(ValueError, match="features"):
        model.predict(planted[0][:, 1:])
