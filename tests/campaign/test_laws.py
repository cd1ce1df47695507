"""What must not matter does not: laws that hold for every estimator of the package.

Rows or columns in another order, other units, other names of the classes, a constant column, noise
beside a strong signal, rows one by one, other kinds of array: panels stay the same exactly, numbers
to a millionth of their size. `EXCEPT` has what is not promised, and why; the campaign fails where
an exception never shows.
"""

from __future__ import annotations

import importlib.util
import sys
import warnings
from collections.abc import Callable
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import StratifiedKFold

_spec = importlib.util.spec_from_file_location("cases", Path(__file__).parent / "cases.py")
cases = sys.modules["cases"] = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(cases)

# rows, columns, classes: solved from moments, on working sets, and with three planes
SHAPES = ((30, 8, 2), (24, 30, 2), (33, 12, 3))
TO = 1e-6
TO_SINGLE = 1e-3  # numbers fitted in float32 to those in float64
# Numbers of what stops at a tolerance, which where depends on the order of columns.
STOPS_AT = {"L1Logistic": 1e-2, "ElasticNetSelector": 1e-3}


class Trial:
    """A case on made-up data: the fit that others are held against, and how."""

    def __init__(self, case: cases.Case, seed: int, number: int) -> None:
        self.case = case
        rng = np.random.default_rng([seed, number])
        n, m, n_classes = SHAPES[number % len(SHAPES)]
        if case.is_binary:
            n_classes = 2
        # a weak signal: some of what is selected is noise, which a change may change
        self.X, self.y = cases.planted(rng, n, m, n_classes, effect=1.0)
        self.X = self.X * rng.uniform(0.5, 2.0, m) + rng.normal(size=m)
        self.rows = rng.normal(size=(10, m)) * 2.0
        if case.treats_values and case.tags().input_tags.allow_nan:
            self.X[rng.random(self.X.shape) < 0.1] = np.nan
        self.folds = list(StratifiedKFold(3).split(self.X, self.y))
        self.batch = rng.permutation(n) % 2

    @property
    def n_classes(self) -> int:
        return len(np.unique(self.y))

    def fit(self, X: Any, y: Any, **more: Any) -> Any:
        """Fit quietly, with the trial's folds and batches unless others are given."""
        more = {"cv": self.folds, "batch": self.batch, **more}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.case.fit(X, y, **more)

    @cached_property
    def base(self) -> Any:
        return self.fit(self.X, self.y)

    def agrees(
        self, model: Any, rows: Any = None, *, than: Any = None, to: float = TO,
        columns: Any = None, classes: Any = None, scale: Any = 1.0, shift: Any = 0.0,
        answers: Any = cases.ANSWERS,
    ) -> None:  # fmt: skip
        """Assert that a model says of rows what the base says of the trial's.

        ``columns`` are the numbers in the base of the model's columns (-1 for one that the base
        has not), ``classes`` the number in the base of each of the model's classes; ``scale`` and
        ``shift`` are what treated values of the base become.
        """
        base = self.base if than is None else than
        if cases.panel(base) is not None:
            found = cases.panel(model)
            if columns is not None:
                found = sorted(int(columns[j]) for j in found)
            assert found == cases.panel(base)
        expected = dict(cases.answers(base, self.rows, methods=answers))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rows = self.rows if rows is None else rows
            said = dict(cases.answers(model, rows, methods=answers))
        assert said.keys() == expected.keys()
        for method, found in said.items():
            wanted = expected[method]
            if method == "predict":
                if classes is not None:  # by the number of the class, in the base's order
                    names = model.classes_[np.argsort(classes)]
                    wanted = names[np.searchsorted(base.classes_, wanted)]
                assert_array_equal(found, wanted)
                continue
            if method == "transform":
                wanted = wanted * scale + shift
                if columns is not None:
                    found, wanted = found[:, columns >= 0], wanted[:, columns[columns >= 0]]
            elif classes is not None and wanted.ndim == 2:
                wanted = wanted[:, classes]
            elif classes is not None and classes[0]:
                wanted = -wanted
            close = max(to, STOPS_AT.get(self.case.name, 0.0))
            size = np.abs(wanted).max()
            assert_allclose(found, wanted, rtol=close, atol=close * size, err_msg=method)


# --- the laws --------------------------------------------------------------------------------

Law = Callable[[Trial, np.random.Generator], None]
LAWS: dict[str, Law] = {}
FOR: dict[str, Callable[[cases.Case], bool]] = {}


def law(which: Callable[[cases.Case], bool] = lambda case: True) -> Callable[[Law], Law]:
    """Add a law of the cases of some kind."""

    def add(function: Law) -> Law:
        name = function.__name__.replace("_", " ")
        LAWS[name], FOR[name] = function, which
        return function

    return add


@law()
def order_of_rows(trial: Trial, rng: np.random.Generator) -> None:
    order = rng.permutation(len(trial.y))
    place = np.argsort(order)
    folds = [(place[train], place[test]) for train, test in trial.folds]
    trial.agrees(trial.fit(trial.X[order], trial.y[order], cv=folds, batch=trial.batch[order]))


@law()
def order_of_columns(trial: Trial, rng: np.random.Generator) -> None:
    order = rng.permutation(trial.X.shape[1])
    trial.agrees(trial.fit(trial.X[:, order], trial.y), trial.rows[:, order], columns=order)


@law()
def unit_of_a_column(trial: Trial, rng: np.random.Generator) -> None:
    m, column = trial.X.shape[1], rng.integers(trial.X.shape[1])
    scale, shift = np.ones(m), np.zeros(m)
    scale[column], shift[column] = 10.0 ** rng.uniform(-4, 4), 5.0
    model = trial.fit(trial.X * scale + shift, trial.y)
    trial.agrees(model, trial.rows * scale + shift, scale=scale, shift=shift)


@law()
def unit_of_all(trial: Trial, rng: np.random.Generator) -> None:
    scale = float(rng.choice([1e-6, 1e-2, 3e5]))
    trial.agrees(trial.fit(trial.X * scale, trial.y), trial.rows * scale, scale=scale)


@law()
def every_row_twice(trial: Trial, rng: np.random.Generator) -> None:
    n = len(trial.y)
    folds = [(np.r_[a, a + n], np.r_[b, b + n]) for a, b in trial.folds]
    X, y, batch = (np.concatenate([part, part]) for part in (trial.X, trial.y, trial.batch))
    # the ridge of the calibrator, which stands for a fixed number of rows, weighs less
    calibrated = hasattr(trial.base, "predict_proba")
    answers = ("distances",) if calibrated else cases.ANSWERS
    trial.agrees(trial.fit(X, y, cv=folds, batch=batch), answers=answers)


@law(lambda case: case.takes_weights)
def some_rows_twice_are_weights_of_two(trial: Trial, rng: np.random.Generator) -> None:
    n = len(trial.y)
    some = rng.choice(n, n // 3, replace=False)
    rows = np.r_[np.arange(n), some]
    folds = [[np.flatnonzero(np.isin(rows, part)) for part in split] for split in trial.folds]
    weighted = trial.fit(trial.X, trial.y, weight=1.0 + np.isin(np.arange(n), some))
    trial.agrees(trial.fit(trial.X[rows], trial.y[rows], cv=folds), than=weighted)


@law(lambda case: case.takes_weights)
def weights_of_one_are_none(trial: Trial, rng: np.random.Generator) -> None:
    trial.agrees(trial.fit(trial.X, trial.y, weight=np.ones(len(trial.y))))


@law()
def names_of_classes(trial: Trial, rng: np.random.Generator) -> None:
    k = trial.n_classes
    kinds = [["a", "b", "c"], np.array(["10", "9", "\xc4"], dtype=object), [-7, 0, 300]]
    kinds += [[0.0, 1.0, 4.0]] if k > 2 else [[False, True]]
    names = np.asarray(kinds[rng.integers(len(kinds))])[:k]
    trial.agrees(trial.fit(trial.X, names[trial.y]), classes=np.arange(k))


@law()
def names_of_classes_in_another_order(trial: Trial, rng: np.random.Generator) -> None:
    k = trial.n_classes
    names = np.array(["z", "a", "k"]) if rng.random() < 0.5 else np.array([2, 1, 0])
    trial.agrees(trial.fit(trial.X, names[:k][trial.y]), classes=np.argsort(names[:k]))


@law()
def a_constant_column(trial: Trial, rng: np.random.Generator) -> None:
    m = trial.X.shape[1]
    value, place = float(rng.choice([0.0, 7.3, -1e6])), int(rng.integers(m + 1))
    X, rows = (np.insert(part, place, value, axis=1) for part in (trial.X, trial.rows))
    # -1 is in no panel of the base
    trial.agrees(trial.fit(X, trial.y), rows, columns=np.insert(np.arange(m), place, -1))


@law(lambda case: case.selects)
def noise_beside_a_strong_signal(trial: Trial, rng: np.random.Generator) -> None:
    X, y = rng.normal(size=(60, 6)), np.arange(60) % trial.n_classes
    # every class differs from the others in the mean of a column of its own
    X[:, : cases.SIZE] += 6.0 * (np.arange(cases.SIZE) % trial.n_classes == y[:, None])
    more = {"cv": list(StratifiedKFold(3).split(X, y)), "batch": y}
    alone = cases.panel(trial.fit(X, y, **more))
    beside = cases.panel(trial.fit(np.hstack([X, rng.normal(size=(60, 60))]), y, **more))
    assert set(alone) <= set(range(cases.SIZE))
    if trial.case.has_size:
        assert beside == alone
    assert set(beside) & set(alone)  # at a given penalty some noise may come in


@law()
def rows_one_by_one(trial: Trial, rng: np.random.Generator) -> None:
    single = [dict(cases.answers(trial.base, row[None])) for row in trial.rows]
    for method, wanted in cases.answers(trial.base, trial.rows):
        found = np.concatenate([each[method] for each in single])
        if method == "predict":
            assert_array_equal(found, wanted)
        else:
            assert_allclose(found, wanted, rtol=1e-12, atol=1e-12 * np.abs(wanted).max())


@law()
def single_precision(trial: Trial, rng: np.random.Generator) -> None:
    X, rows = trial.X.astype(np.float32), trial.rows.astype(np.float32)
    double = trial.fit(X.astype(np.float64), trial.y)
    trial.agrees(trial.fit(X, trial.y), rows, than=double, to=TO_SINGLE)


@law()
def layout_in_memory(trial: Trial, rng: np.random.Generator) -> None:
    n, m = trial.X.shape
    spaced = np.full((2 * n, 3 * m), np.nan)
    spaced[::2, ::3] = trial.X
    backwards = np.ascontiguousarray(trial.X[::-1, ::-1])[::-1, ::-1]
    kinds = (np.asfortranarray(trial.X), spaced[::2, ::3], backwards)
    trial.agrees(trial.fit(kinds[rng.integers(3)], trial.y), np.asfortranarray(trial.rows))


@law()
def read_only_and_untouched(trial: Trial, rng: np.random.Generator) -> None:
    given = trial.X, trial.y, trial.rows
    X, y, rows = (part.copy() for part in given)
    if rng.random() < 0.5:  # else what is written to is not refused, but seen
        X.flags.writeable = y.flags.writeable = rows.flags.writeable = False
    trial.agrees(trial.fit(X, y), rows)
    for part, kept in zip((X, y, rows), given):
        assert_array_equal(part, kept)


@law()
def frames_and_lists(trial: Trial, rng: np.random.Generator) -> None:
    if rng.random() < 0.3:
        model, rows = trial.fit(trial.X.tolist(), trial.y.tolist()), trial.rows.tolist()
    else:
        names = [f"gene {j}" for j in range(trial.X.shape[1])]
        frame, rows = (pd.DataFrame(part, columns=names) for part in (trial.X, trial.rows))
        model = trial.fit(frame, pd.Series(trial.y))
    trial.agrees(model, rows)


@law(lambda case: case.takes_sparse)
def sparse_matrices(trial: Trial, rng: np.random.Generator) -> None:
    X = np.where(np.abs(trial.X) < 1.0, 0.0, trial.X)
    kind = (sp.csr_matrix, sp.csc_array, sp.coo_matrix)[rng.integers(3)]
    model = trial.fit(kind(X), trial.y)
    trial.agrees(model, sp.csr_matrix(trial.rows), than=trial.fit(X, trial.y))


# --- what is not promised --------------------------------------------------------------------

# why, which cases, which laws
NOT_PROMISED = (
    ("its columns are given by their numbers", ["Panel"],
     ["order of columns", "a constant column"]),
    ("its start is drawn column by column, and there is no minimum to forget it at",
     ["PGDGSVPSVM", "PGDGSVPSVM lq"],
     ["order of columns", "a constant column", "noise beside a strong signal"]),
    ("it is random", ["RandomPanel"],
     ["order of columns", "a constant column", "noise beside a strong signal"]),
    ("it draws numbers for rows and columns in their order",
     ["TreeImportance", "TreeImportance boosted"],
     ["order of rows", "order of columns", "every row twice", "a constant column"]),
    ("it draws rows for each class in turn", ["TreeImportance boosted"],
     ["names of classes in another order"]),
    ("it draws rows by their places, class by class", ["StabilitySelection"],
     ["order of rows", "every row twice", "names of classes in another order"]),
    ("a logarithm", ["Log2"], ["unit of a column", "unit of all"]),
    ("the unit of its floor counts rows, not directions, where there are fewer than features",
     ["GSVDSelector"], ["every row twice"]),
    ("its penalty is held against a sum over rows", ["RecursiveElimination"], ["every row twice"]),
    ("it chooses by standard errors, which fall", ["GSVPSVMCV"], ["every row twice"]),
    ("planes on all features rest on noise, too", ["GEPSVM", "IGEPSVM", "ReGEC", "SparsePSVM"],
     ["noise beside a strong signal"]),
    ("ten trees do not look at all features", ["TreeImportance"], ["noise beside a strong signal"]),
)  # fmt: skip
EXCEPT = {(case, name): why for why, which, laws in NOT_PROMISED for case in which for name in laws}


@cache
def _cases() -> dict[str, cases.Case]:
    return {case.name: case for case in cases.cases()}


@lru_cache(200)
def _trial(case: str, seed: int, number: int) -> Trial:
    return Trial(_cases()[case], seed, number)


def _check(case: str, name: str, seed: int, number: int) -> None:
    LAWS[name](_trial(case, seed, number), np.random.default_rng([seed, number, 1]))


def _numbers(name: str, campaign: Any, long: int) -> range:
    """Return which trials to make: of a shape in turn, so that the laws share their fits."""
    first = list(LAWS).index(name) % len(SHAPES)
    return range(first, first + campaign.count(1, long))


PAIRS = [
    (case, name)
    for case in _cases() for name in LAWS
    if FOR[name](_cases()[case]) and (case, name) not in EXCEPT
]  # fmt: skip


@pytest.mark.parametrize(("case", "name"), PAIRS)
def test_law(campaign: Any, case: str, name: str) -> None:
    numbers = _numbers(name, campaign, 12)
    for number in numbers:
        _check(case, name, campaign.seed, number)
    campaign.record("laws checked", len(numbers))


def test_exceptions_are_of_cases_and_laws() -> None:
    assert {case for case, _ in EXCEPT} | STOPS_AT.keys() <= _cases().keys()
    assert {name for _, name in EXCEPT} <= LAWS.keys()


@pytest.mark.campaign
@pytest.mark.parametrize(("case", "name"), EXCEPT)
def test_exceptions_are_needed(campaign: Any, case: str, name: str) -> None:
    for number in _numbers(name, campaign, 60):
        try:
            _check(case, name, campaign.seed, number)
        except AssertionError:
            return
    pytest.fail(f"{case} obeys it: take it out of EXCEPT")
