"""Extreme values, on every estimator: finite numbers, or an error that says what is wrong.

Never a number that is none, an error from deep inside, or a warning about floating-point numbers
that tells a user nothing.
"""

from __future__ import annotations

import importlib.util
import re
import sys
import traceback
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

_spec = importlib.util.spec_from_file_location("cases", Path(__file__).parent / "cases.py")
cases = sys.modules["cases"] = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(cases)

Table = tuple[np.ndarray, np.ndarray]
Shape = tuple[int, int]
SHAPES: tuple[Shape, ...] = ((20, 5), (14, 17), (60, 12), (30, 90))
# Warnings of this category that the package gives itself, with advice.
OWN = ("on the selected features the best unpenalised plane", "the best bias of the plane")

EXTREMES: dict[str, Callable[[np.random.Generator, Shape], Table]] = {}


def extreme(function: Callable[[np.random.Generator, Shape], Table]) -> Any:
    EXTREMES[function.__name__.replace("_", " ")] = function
    return function


def times(factor: float, shift: float = 0.0) -> Callable[[np.random.Generator, Shape], Table]:
    """Return what makes tables of other magnitude."""

    def make(rng: np.random.Generator, shape: Shape) -> Table:
        X, y = cases.planted(rng, *shape)
        return X * factor + shift, y

    return make


for _factor in (5e-323, 1e-310, 1e-300, 1e-200, 1e-155, 1e-80, 1e80, 1e149, 1e155, 1e300):
    EXTREMES[f"times {_factor:g}"] = times(_factor)
for _factor, _shift in ((1.0, 1e12), (1e-3, 1e12), (1e-9, 1.0), (1.0, -1e100), (1e-300, 1.0)):
    EXTREMES[f"times {_factor:g} plus {_shift:g}"] = times(_factor, _shift)


@extreme
def columns_of_all_magnitudes(rng: np.random.Generator, shape: Shape) -> Table:
    X, y = cases.planted(rng, *shape)
    return X * 10.0 ** rng.integers(-140, 140, shape[1]), y


@extreme
def one_huge_value(rng: np.random.Generator, shape: Shape) -> Table:
    X, y = cases.planted(rng, *shape)
    X[rng.integers(len(X)), rng.integers(X.shape[1])] = 1e140
    return X, y


@extreme
def all_zeros_but_one(rng: np.random.Generator, shape: Shape) -> Table:
    _, y = cases.planted(rng, *shape)
    X = np.zeros(shape)
    X[-1, 0] = 1.0
    return X, y


@extreme
def constant(rng: np.random.Generator, shape: Shape) -> Table:
    return np.full(shape, 7.3), cases.planted(rng, *shape)[1]


@extreme
def constant_columns(rng: np.random.Generator, shape: Shape) -> Table:
    X, y = cases.planted(rng, *shape)
    X[:, 1:] = rng.normal(size=shape[1] - 1)
    return X, y


@extreme
def constant_rows(rng: np.random.Generator, shape: Shape) -> Table:
    X, y = cases.planted(rng, *shape)
    return np.tile(X[:, :1], shape[1]), y


@extreme
def constant_within_a_class(rng: np.random.Generator, shape: Shape) -> Table:
    X, y = cases.planted(rng, *shape)
    X[y == 0] = 0.5
    return X, y


@extreme
def the_labels_themselves(rng: np.random.Generator, shape: Shape) -> Table:
    _, y = cases.planted(rng, *shape)
    return np.tile(y[:, None].astype(float), shape[1]), y


@extreme
def repeated_columns(rng: np.random.Generator, shape: Shape) -> Table:
    X, y = cases.planted(rng, *shape)
    return np.hstack([X, X, X]), y


@extreme
def repeated_rows(rng: np.random.Generator, shape: Shape) -> Table:
    X, y = cases.planted(rng, *shape)
    return X[[0, -1]].repeat(len(X) // 2, axis=0), y


@extreme
def equal_classes(rng: np.random.Generator, shape: Shape) -> Table:
    X, y = cases.planted(rng, *shape)
    X[y == 1] = X[y == 0]
    return X, y


@extreme
def classes_of_equal_means(rng: np.random.Generator, shape: Shape) -> Table:
    X, y = cases.planted(rng, *shape)
    for k in (0, 1):
        X[y == k] -= X[y == k].mean(axis=0)
    return X, y


@extreme
def mirrored_classes(rng: np.random.Generator, shape: Shape) -> Table:
    X, y = cases.planted(rng, *shape)
    X[y == 1] = -X[y == 0]
    return X, y


@extreme
def small_integers_of_equal_means(rng: np.random.Generator, shape: Shape) -> Table:
    X, y = cases.planted(rng, *shape)
    X = np.round(2.0 * X)
    for k in (0, 1):
        X[np.flatnonzero(y == k)[-1]] -= X[y == k].sum(axis=0)
    return X, y


@extreme
def a_class_of_two(rng: np.random.Generator, shape: Shape) -> Table:
    X, _ = cases.planted(rng, *shape)
    return X, (np.arange(len(X)) < 2).astype(int)


@extreme
def a_class_of_one(rng: np.random.Generator, shape: Shape) -> Table:
    X, _ = cases.planted(rng, *shape)
    return X, (np.arange(len(X)) < 1).astype(int)


@extreme
def one_class(rng: np.random.Generator, shape: Shape) -> Table:
    X, y = cases.planted(rng, *shape)
    return X, np.zeros_like(y)


@extreme
def many_classes(rng: np.random.Generator, shape: Shape) -> Table:
    return cases.planted(rng, 5 * 12, shape[1], 12)


@extreme
def one_feature(rng: np.random.Generator, shape: Shape) -> Table:
    X, y = cases.planted(rng, *shape)
    return X[:, :1], y


@extreme
def two_rows(rng: np.random.Generator, shape: Shape) -> Table:
    X, y = cases.planted(rng, *shape)
    return X[[0, -1]], y[[0, -1]]


@extreme
def four_rows(rng: np.random.Generator, shape: Shape) -> Table:
    X, y = cases.planted(rng, *shape)
    return X[[0, 1, -2, -1]], y[[0, 1, -2, -1]]


@extreme
def a_missing_value(rng: np.random.Generator, shape: Shape) -> Table:
    X, y = cases.planted(rng, *shape)
    X[2, 1] = np.nan
    return X, y


@extreme
def an_infinite_value(rng: np.random.Generator, shape: Shape) -> Table:
    X, y = cases.planted(rng, *shape)
    X[2, 1] = -np.inf
    return X, y


def _of_type(dtype: str) -> Callable[[np.random.Generator, Shape], Table]:
    def make(rng: np.random.Generator, shape: Shape) -> Table:
        X, y = cases.planted(rng, *shape)
        X = X > 0 if dtype == "bool" else np.clip(40.0 * X + 100.0, 0, 250)
        return X.astype(dtype), y

    return make


for _dtype in ("bool", "uint8", "int16", "int64", "float16", "float32", "longdouble"):
    EXTREMES[f"type {_dtype}"] = _of_type(_dtype)


@cache
def _cases() -> dict[str, cases.Case]:
    return {case.name: case.bare() for case in cases.cases()}


REFUSED = {"a missing value": "refused.*NaN", "an infinite value": "refused.*infinity"}


def outcome(case: cases.Case, X: np.ndarray, y: np.ndarray) -> str:
    """Fit, and ask what the model says; return "refused: why" or "finite", else raise."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        for text in OWN:
            warnings.filterwarnings("ignore", text, RuntimeWarning)
        try:
            model = case.fit(X, y)
        except ValueError as error:
            check_refusal(error)
            return f"refused: {error}"
        if not case.treats_values:
            check_numbers(model)
        for method, numbers in cases.answers(model, X):
            if numbers.dtype.kind == "f" and (method != "transform" or np.isfinite(X).all()):
                assert np.isfinite(numbers).all(), method
    return "finite"


def check_refusal(error: ValueError) -> None:
    """Assert that an error was raised by a check of the package or of scikit-learn's input."""
    assert type(error) is ValueError and not isinstance(error, NotFittedError), repr(error)
    where = Path(traceback.extract_tb(error.__traceback__)[-1].filename)
    own = "sparsegsvp" in where.parts or where.name in ("validation.py", "multiclass.py")
    assert own, f"raised in {where}: {error}"
    assert len(str(error)) > 25 and "np." not in str(error), error


def check_numbers(model: Any) -> None:
    """Assert that a panel has a column, and every fitted array holds numbers."""
    if "evaluation" not in type(cases.last(model)).__module__:  # whose panels may be empty
        assert cases.panel(model) != []
    for name, value in vars(cases.last(model)).items():
        if name.endswith("_") and isinstance(value, np.ndarray) and value.dtype.kind == "f":
            assert np.isfinite(value).all(), name


@pytest.mark.parametrize("name", EXTREMES)
def test_extreme_values(campaign: Any, name: str) -> None:
    wrong, tried = [], 0
    for number in range(campaign.count(1, 4)):
        shape = SHAPES[(number + list(EXTREMES).index(name)) % len(SHAPES[: campaign.count(2, 4)])]
        rng = np.random.default_rng([campaign.seed, number])
        X, y = EXTREMES[name](rng, shape)
        for case in _cases().values():
            tried += 1
            try:
                said = outcome(case, X, y)
            except Exception as error:  # all of them, to see which cases are alike
                wrong.append(f"{case.name} on {shape}, number {number}: {error!r}"[:300])
                continue
            filled = case.takes_gaps and name == "a missing value"
            if name in REFUSED and not filled and not re.search(REFUSED[name], said):
                wrong.append(f"{case.name}: {said}")
    campaign.record("extreme tables tried", tried)
    assert not wrong, "\n".join(wrong)
