"""Every bad input is refused, or named in a warning, with a message that says what to do."""

from __future__ import annotations

import warnings

import numpy as np
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


def test_bad_labels(model, rows) -> None:
    X, _ = rows
    with pytest.raises(ValueError, match=r"one class only \(0.0\): .* at least two"):
        model.fit(X, np.zeros(40))
    labels = np.where(np.arange(40) == 0, "rare", "usual")
    with pytest.raises(ValueError, match=r"class 'rare' has one sample .*Add samples or drop"):
        model.fit(X, labels)


@pytest.mark.parametrize(("value", "dtype"), [(-1e300, np.float64), (1e30, np.float32)])
def test_values_whose_squares_overflow(model, rows, value, dtype) -> None:
    bad = rows[0].astype(dtype)
    bad[3, 2] = value
    with pytest.raises(ValueError, match="squares overflow: rescale the columns"):
        model.fit(bad, rows[1])


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
