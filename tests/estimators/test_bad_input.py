"""Every bad input is refused, or named in a warning, with a message that says what to do."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from sparsegsvp import GSVPSVM, GSVPSVMCV
from sparsegsvp.datasets import make_planted

MODELS = [
    GSVPSVM(),
    GSVPSVM(decision="scaled", n_features=3),
    GSVPSVMCV(tau=1.0, n_deltas=4, cv=3),
]


@pytest.fixture(params=MODELS, ids=["GSVPSVM", "scaled", "GSVPSVMCV"])
def model(request):
    return clone(request.param)


@pytest.fixture(params=[8, 300], ids=["moments", "working set"])
def table(request) -> tuple[np.ndarray, np.ndarray]:
    return make_planted(40, request.param, 4, effect=2.0, return_X_y=True)


def test_one_class(model, table) -> None:
    X, y = table
    with pytest.raises(ValueError, match="one class only"):
        model.fit(X, np.zeros_like(y))


def test_one_sample_in_a_class(model, table) -> None:
    X, y = table
    labels = np.where(np.arange(len(y)) == 0, "rare", "usual")
    with pytest.raises(ValueError, match=r"class 'rare' has one sample: .* at least two"):
        model.fit(X, labels)


def test_weights_that_empty_a_class(model, table) -> None:
    X, y = table
    with pytest.raises(ValueError, match="all samples of class 1 have weight zero"):
        model.fit(X, y, sample_weight=(y == 0).astype(float))


@pytest.mark.parametrize(("value", "message"), [(np.nan, "NaN"), (np.inf, "infinity")])
def test_missing_and_infinite_values(model, table, value, message) -> None:
    X, y = table
    bad = X.copy()
    bad[3, 2] = value
    with pytest.raises(ValueError, match=message):
        model.fit(bad, y)
    model.fit(X, y)
    with pytest.raises(ValueError, match=message):
        model.predict(bad)


@pytest.mark.parametrize(
    ("value", "dtype"), [(1e300, np.float64), (-1e300, np.float64), (1e30, np.float32)]
)
def test_values_whose_powers_overflow(model, table, value, dtype) -> None:
    X, y = table
    bad = X.astype(dtype)
    bad[3, 2] = value
    with pytest.raises(ValueError, match=r"squares overflow: rescale the columns"):
        model.fit(bad, y)


def test_large_values_short_of_that_are_fine(table) -> None:
    X, y = table
    plain, large = GSVPSVM().fit(X, y), GSVPSVM().fit(X * 1e60, y)
    assert_allclose(large.decision_function(X * 1e60), plain.decision_function(X), atol=1e-6)


def test_constant_columns_are_left_out_and_said(model, table) -> None:
    X, y = table
    names = [f"gene {i}" for i in range(X.shape[1] + 2)]
    frame = pd.DataFrame(
        np.column_stack([np.full(len(y), 7.3), X, np.zeros(len(y))]), columns=names
    )
    message = rf"2 constant feature\(s\) are left out: gene 0, gene {X.shape[1] + 1}"
    with pytest.warns(UserWarning, match=message) as caught:
        model.fit(frame, y)
    assert caught[0].filename == __file__
    assert not model.support_[[0, -1]].any() and not model.coef_[:, [0, -1]].any()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain = type(model)(**model.get_params()).fit(X, y)
    assert_array_equal(model.support_[1:-1], plain.support_)
    assert_allclose(model.decision_function(frame), plain.decision_function(X), atol=1e-6)


def test_all_columns_constant(model, table) -> None:
    X, y = table
    with pytest.raises(ValueError, match="constant"):
        model.fit(np.ones_like(X) * np.arange(X.shape[1]), y)


def test_continuous_labels(model, table) -> None:
    X, _ = table
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        model.fit(X, np.linspace(0.0, 1.0, len(X)))


def test_labels_of_another_length(model, table) -> None:
    X, y = table
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[40, 39\]"):
        model.fit(X, y[:-1])


def test_other_columns_at_predict(model, table) -> None:
    X, y = table
    model.fit(X, y)
    for method in (model.predict, model.decision_function, model.transform):
        with pytest.raises(ValueError, match=f"expecting {X.shape[1]} features"):
            method(X[:, :-1])
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])])
    model.fit(frame, y)
    needed = model.get_feature_names_out()[0]
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame.rename(columns={needed: "g0"}))
    with pytest.raises(ValueError, match="same order"):
        model.predict(frame.iloc[:, ::-1])


def test_bad_weights(model, table) -> None:
    X, y = table
    with pytest.raises(ValueError, match="Negative values"):
        model.fit(X, y, sample_weight=np.where(np.arange(len(y)) == 5, -1.0, 1.0))
    with pytest.raises(ValueError, match=r"sample_weight"):
        model.fit(X, y, sample_weight=np.ones(len(y) - 1))
    with pytest.raises(ValueError, match="NaN"):
        model.fit(X, y, sample_weight=np.where(np.arange(len(y)) == 5, np.nan, 1.0))


def test_more_features_than_there_are(model, table) -> None:
    X, y = table
    m = X.shape[1]
    with pytest.raises(ValueError, match=f"n_features={m + 1} asks for more features than the {m}"):
        model.set_params(n_features=m + 1).fit(X, y)
    for wrong in (0, -3, 2.5):
        with pytest.raises(ValueError, match="n_features must be an integer of at least 1"):
            model.set_params(n_features=wrong).fit(X, y)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"q": 0.0}, "q must be a number above 0 and at most 1"),
        ({"q": 1.5}, "q must"),
        ({"tau": -1.0}, "tau must be a number of at least 0, got -1"),
        ({"tau": np.nan}, "tau must"),
        ({"pool": 1.1}, "pool must be a number of at least 0 and at most 1"),
        ({"eps": 0.0}, "eps must be a number above 0"),
        ({"tol": -1e-3}, "tol must"),
        ({"max_iter": 0}, "max_iter must be an integer of at least 1"),
        ({"max_iter": 10.5}, "max_iter must"),
        ({"selection": "some"}, "selection must be 'nonzero' or 'elbow'"),
        ({"decision": "nearest"}, "decision must be"),
    ],
)
def test_bad_parameters(model, table, change, message) -> None:
    with pytest.raises(ValueError, match=message):
        model.set_params(**change).fit(*table)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"delta": 0.0}, "delta must be positive"),
        ({"delta": -1.0}, "delta must be positive"),
        ({"delta": (0.1, 0.2, 0.3)}, r"one number or one per class \(2\)"),
        ({"delta": np.inf}, "delta must be one number"),
        ({"q": "one"}, "q must be a number"),
        ({"tau": "one"}, "tau must be a number"),
    ],
)
def test_bad_parameters_of_one_fit(table, change, message) -> None:
    with pytest.raises(ValueError, match=message):
        GSVPSVM(**change).fit(*table)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rule": "2se"}, "rule must be 'paired', 'best' or '1se'"),
        ({"n_deltas": 0}, "n_deltas must be an integer of at least 1"),
        ({"ratio": 1.0}, "ratio must be a number above 0 and below 1"),
        ({"tau": ()}, "tau must hold at least one value"),
        ({"decision": ()}, "decision must hold at least one value"),
        ({"decision": ("scaled",)}, 'needs probabilities.*scoring="balanced_accuracy"'),
        ({"scoring": "no such score"}, "scoring"),
        ({"scoring": "roc_auc_ovr", "decision": "scaled"}, "gives no probabilities"),
        ({"combine": True, "n_deltas": 400}, "160000 points to score: use a smaller n_deltas"),
    ],
)
def test_bad_parameters_of_a_search(table, change, message) -> None:
    with pytest.raises((ValueError, AttributeError), match=message):
        GSVPSVMCV(**{"tau": 1.0, "n_deltas": 3, "cv": 3, **change}).fit(*table)


def test_more_folds_than_a_class_has_samples(table) -> None:
    X, y = table
    search = GSVPSVMCV(tau=1.0, n_deltas=3)
    few = np.flatnonzero((y == 0) | (np.cumsum(y == 1) <= 4))
    message = "class 1 has 4 samples: cross-validation uses 4 folds instead of cv=30"
    with pytest.warns(UserWarning, match=message) as caught:
        found = clone(search).set_params(cv=30).fit(X[few], y[few])
    assert caught[0].filename == __file__
    assert found.n_splits_ == 4 and found.cv == 30
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        four = clone(search).set_params(cv=4).fit(X[few], y[few])
    assert_array_equal(found.cv_results_["mean_test_score"], four.cv_results_["mean_test_score"])
    assert_array_equal(found.coef_, four.coef_)
    # groups are what is dealt out to the folds
    groups = np.arange(len(y)) // 2 % 3
    with pytest.warns(UserWarning, match="there are 3 groups: cross-validation uses 3 folds"):
        assert clone(search).fit(X, y, groups=groups).n_splits_ == 3
    with pytest.raises(ValueError, match="all rows are in one group"):
        clone(search).fit(X, y, groups=np.zeros(len(y)))
    with pytest.raises(ValueError, match="n_splits=1"):
        clone(search).set_params(cv=1).fit(X, y)


def test_a_training_fold_without_a_class(table) -> None:
    X, y = table
    folds = [(np.flatnonzero(y == 0), np.flatnonzero(y == 1))]
    with pytest.raises(ValueError, match="a training fold has 0 samples of class 1"):
        GSVPSVMCV(tau=1.0, n_deltas=3, cv=folds).fit(X, y)
    with pytest.raises(ValueError, match="of total weight 0"):
        folds = [(np.arange(30), np.arange(30, 40))]
        weight = np.where((np.arange(40) < 30) & (y == 1), 0.0, 1.0)
        GSVPSVMCV(tau=1.0, n_deltas=3, cv=folds).fit(X, y, sample_weight=weight)


def test_a_floor_of_zero_with_more_features_than_rows() -> None:
    X, y = make_planted(40, 300, 4, return_X_y=True)
    with pytest.raises(ValueError, match="use tau > 0"):
        GSVPSVM(tau=0.0).fit(X, y)


def test_unknown_arguments_of_fit(table) -> None:
    with pytest.raises(TypeError, match=r"unexpected arguments \['group'\]"):
        GSVPSVMCV(tau=1.0, n_deltas=3, cv=3).fit(*table, group=np.arange(40))


@pytest.mark.parametrize("exponent", [-170, -160, -155, -150, -100])
@pytest.mark.parametrize("columns", [slice(3, 4), slice(None)], ids=["one", "all"])
def test_tiny_units_are_used_or_named_without_a_warning_of_arithmetic(exponent, columns) -> None:
    X, y = make_planted(40, 8, 2, effect=3.0, return_X_y=True)
    X[:, columns] *= 10.0**exponent
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.filterwarnings("ignore", "1 constant feature")
        for model in (GSVPSVM(), GSVPSVMCV(tau=1.0, n_deltas=4, cv=3)):
            if exponent < -150 and columns == slice(None):
                with pytest.raises(ValueError, match="constant"):
                    model.fit(X, y)
            else:
                assert (model.fit(X, y).predict(X) == y).mean() > 0.8
