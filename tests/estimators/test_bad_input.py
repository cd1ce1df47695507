"""Every bad input is refused, or named in a warning, with a message that says what to do."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

from sparsegsvp import GSVPSVM, GSVPSVMCV
from sparsegsvp.datasets import make_planted


@pytest.fixture(
    params=[GSVPSVM(n_features=3), GSVPSVM(n_features=3, decision="scaled"), GSVPSVMCV(cv=3)],
    ids=["logistic", "scaled", "search"],
)
def model(request):
    return clone(request.param)


@pytest.fixture(params=[8, 300], ids=["tall", "wide"])
def rows(request) -> tuple[np.ndarray, np.ndarray]:
    return make_planted(40, request.param, 4, effect=2.0, return_X_y=True)


def labels_of(n: int, kind: str) -> np.ndarray:
    return {
        "one class": np.zeros(n),
        "rare": np.where(np.arange(n) == 0, "rare", "usual"),
        "continuous": np.linspace(0.0, 1.0, n),
        "short": np.arange(n - 1) % 2,
        "missing": np.where(np.arange(n) == 3, np.nan, np.arange(n) % 2),
    }[kind]


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("one class", r"one class only \(0.0\): a classifier needs at least two"),
        ("rare", r"class 'rare' has one sample .*at least two\. Add samples or drop the class"),
        ("continuous", "Unknown label type: continuous"),
        ("short", r"inconsistent numbers of samples: \[40, 39\]"),
        ("missing", "NaN"),
    ],
)
def test_bad_labels(model, rows, kind, message) -> None:
    with pytest.raises(ValueError, match=message):
        model.fit(rows[0], labels_of(40, kind))


def test_no_labels(model, rows) -> None:
    with pytest.raises(ValueError, match="requires y to be passed"):
        model.fit(rows[0], None)


@pytest.mark.parametrize(
    ("value", "dtype", "message"),
    [
        (np.nan, float, "NaN"),
        (np.inf, float, "infinity"),
        (-1e300, float, "squares overflow: rescale the columns"),
        (1e30, np.float32, "squares overflow: rescale the columns"),
    ],
)
def test_bad_values(model, rows, value, dtype, message) -> None:
    X, y = rows
    bad = X.astype(dtype)
    bad[3, 2] = value
    with pytest.raises(ValueError, match=message):
        model.fit(bad, y)
    if not np.isfinite(value):
        model.fit(X, y)
        with pytest.raises(ValueError, match=message):
            model.predict(bad)


def test_large_and_tiny_units_are_used_or_named_without_a_warning_of_arithmetic(rows) -> None:
    X, y = rows
    plain = GSVPSVM(n_features=3).fit(X, y).decision_function(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.filterwarnings("ignore", ".*constant feature")
        for exponent in (60, -60, -100, -140):
            scaled = X * 10.0**exponent
            model = GSVPSVM(n_features=3).fit(scaled, y)
            assert_allclose(model.decision_function(scaled), plain, atol=1e-6)
        for exponent in (-150, -155, -160, -170):  # squares fall below the normal numbers
            scaled = X.copy()
            scaled[:, 3] *= 10.0**exponent
            assert GSVPSVMCV(cv=3).fit(scaled, y).score(scaled, y) > 0.8
        with pytest.raises(ValueError, match="constant"):
            GSVPSVM().fit(X * 1e-170, y)


def test_bad_weights(model, rows) -> None:
    X, y = rows
    first = np.arange(40) == 5
    for weight, message in (
        (np.where(first, -1.0, 1.0), "Negative values"),
        (np.ones(39), "sample_weight"),
        (np.where(first, np.nan, 1.0), "NaN"),
        ((y == 0).astype(float), "class 1 has no samples of positive weight"),
        (
            np.zeros(40),
            r"class 0 has no samples|at least one non-zero",
        ),  # by version of scikit-learn
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(X, y, sample_weight=weight)


def test_other_columns_at_predict(model, rows) -> None:
    X, y = rows
    model.fit(X, y)
    for method in (model.predict, model.decision_function, model.distances, model.transform):
        with pytest.raises(ValueError, match=f"expecting {X.shape[1]} features"):
            method(X[:, :-1])
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])])
    model.fit(frame, y)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame.rename(columns={model.get_feature_names_out()[0]: "other"}))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tau": -1.0}, "tau must be a number of at least 0, got -1.0"),
        ({"tau": np.nan}, "tau must"),
        ({"tau": "one"}, "tau must be a number"),
        ({"clip": -3.0}, "clip must be a number of at least 0"),
        ({"max_correlation": 0.0}, "max_correlation must be a number above 0 and at most 1"),
        ({"max_correlation": 1.1}, "max_correlation must"),
        ({"decision": "nearest"}, "decision must be 'logistic', .* or 'distance', got 'nearest'"),
        ({"decision": ("logistic",)}, "decision must be"),
    ],
)
def test_bad_parameters(model, rows, change, message) -> None:
    with pytest.raises(ValueError, match=message):
        model.set_params(**change).fit(*rows)


@pytest.mark.parametrize("wrong", [0, -3, 2.5, "3", True, None])
def test_bad_sizes(rows, wrong) -> None:
    with pytest.raises(ValueError, match="n_features must be an integer of at least 1"):
        GSVPSVM(n_features=wrong).fit(*rows)
    with pytest.raises(ValueError, match="n_features must be an integer of at least 1"):
        GSVPSVM().fit_path(*rows, [2, wrong])


def test_probabilities_that_there_are_none_of_are_not_offered(rows) -> None:
    model = GSVPSVM(n_features=2, decision="scaled").fit(*rows)
    with pytest.raises(AttributeError) as caught:
        model.predict_proba(rows[0])
    assert "needs decision=\"logistic\", not 'scaled'" in str(caught.value.__cause__)
