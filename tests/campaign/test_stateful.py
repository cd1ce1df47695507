"""Fit, save, load, clone, change, predict in any order: an estimator knows what it was fitted on.

What is expected of it is a fresh estimator of the same parameters, fitted once on the same data.
A fit that is refused leaves the one before, or none; a batch that is refused, all as it was.
"""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import tempfile
import warnings
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from sparsegsvp import load_model, save_model

_spec = importlib.util.spec_from_file_location("cases", Path(__file__).parent / "cases.py")
cases = sys.modules["cases"] = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(cases)

# What may be set, besides n_features; a value that is refused is refused by the fresh one, too.
CHANGES: dict[str, dict[str, tuple[Any, ...]]] = {
    "GSVPSVM": {
        "n_features": (None, 2, 99),
        "decision": ("calibrated", "scaled", "nearest"),
        "delta": (0.1, 0.4, -1.0),
        "selection": ("nonzero", "elbow"),
        "standardize": (True, False),
        "penalty_factor": (None, [0.0] + [1.0] * 5),
    },
    "GSVPSVMCV": {
        "n_features": (None, 2, 99),
        "tau": (1.0, (0.5, 3.0)),
        "rule": ("paired", "best", "worst"),
        "cv": (2, 3),
        "max_features": (None, 3),
    },
    "PGDGSVPSVM": {
        "q": (None, 0.5, 7.0), "delta": (0.1, (0.05, 0.2)), "random_state": (42, 1),
    },
    "PanelPipeline": {
        "model__n_features": (2, 3, 99), "model__decision": ("calibrated", "scaled"),
    },
}  # fmt: skip
SHORT = ("GSVPSVM", "GSVPSVMCV", "PGDGSVPSVM", "PanelPipeline", "TruncatedRayleighFlow")


@dataclass(frozen=True)
class Rows:
    """A table to be fitted on, good or bad, and rows to ask about."""

    X: Any
    y: Any
    ask: Any
    weight: np.ndarray
    groups: np.ndarray


@cache
def tables() -> dict[str, Rows]:
    """Return tables of several shapes and kinds, read only where that can be said."""
    found = {}

    def add(name: str, X: Any, y: Any, ask: Any) -> None:
        n = len(y)
        for part in (X, y, ask):
            if isinstance(part, np.ndarray):
                part.flags.writeable = False
        found[name] = Rows(X, y, ask, 1.0 + np.arange(n) % 3, np.arange(n) // 2)

    for number, (n, m) in enumerate(((24, 6), (20, 9), (18, 6))):
        rng = np.random.default_rng(number)
        X, y = cases.planted(rng, n, m, effect=1.5)
        ask = rng.normal(size=(5, m))
        add(f"array {number}", X, y, ask)
        if number < 2:
            names = [f"{'ab'[number]}{j}" for j in range(m)]
            labels = np.array(["healthy", "ill"])[y]
            add(f"frame {number}", *(pd.DataFrame(X, columns=names), labels),
                pd.DataFrame(ask, columns=names))  # fmt: skip
    X, y, ask = (getattr(found["array 1"], part) for part in ("X", "y", "ask"))
    gap = X.copy()
    gap[3, -1] = np.nan
    add("a missing value", gap, y, ask)
    add("a missing value in a frame", pd.DataFrame(gap, columns=[f"c{j}" for j in range(9)]),
        y, ask)  # fmt: skip
    add("infinity", np.where(np.isnan(gap), np.inf, gap), y, ask)
    add("one class", X, np.zeros_like(y), ask)
    add("a class of one", X, (np.arange(len(y)) == 3).astype(int), ask)
    add("constant columns", np.ones_like(X), y + 5, ask)
    add("too few labels", X, y[:-1], ask)
    add("too large", X * 1e160, y + 5, ask)
    add("other labels", X, y + 7, ask)
    return found


BAD = [
    "a missing value in a frame", "infinity", "one class", "a class of one", "constant columns",
    "too few labels", "too large",
]  # fmt: skip


@cache
def case_of(name: str) -> Any:
    return next(case for case in cases.cases() if case.name == name).bare()


ROW = np.zeros((1, 6))
# What a fresh estimator says: answers, or the message with which it refuses.
Outcome = dict[str, np.ndarray] | str
_known: dict[Any, Outcome] = {}


def says(model: Any, rows: Any) -> dict[str, np.ndarray]:
    """Return all that a fitted model says, its panel included."""
    found = {"panel": np.array(cases.panel(model)), **dict(cases.answers(model, rows))}
    found["chosen"] = np.asarray(model.transform(rows))
    found["classes"] = np.array(getattr(model, "classes_", []))
    found["features"] = np.array(cases.last(model).n_features_in_)
    found["names"] = np.array(getattr(model, "feature_names_in_", []), dtype=object)
    return found


def same(found: dict[str, np.ndarray], expected: Outcome) -> None:
    assert isinstance(expected, dict)
    assert found.keys() == expected.keys()
    for name, value in found.items():
        assert_array_equal(value, expected[name], err_msg=name)


class Life(RuleBasedStateMachine):
    """One estimator, through everything that may befall it."""

    case: Any

    def __init__(self) -> None:
        super().__init__()
        self.model = self.case.make()
        self.params = describe(self.model)
        self.fitted: tuple[Any, ...] | None = None  # what a fresh one is to be fitted on
        self.batches: tuple[str, ...] = ()
        self.folder = Path(tempfile.mkdtemp(prefix="life-"))
        self.n_files = 0

    def teardown(self) -> None:
        for file in self.folder.iterdir():
            file.unlink()
        self.folder.rmdir()

    # --- what is expected

    def fresh(self, key: tuple[Any, ...]) -> Outcome:
        """What an estimator of these parameters says that was made for these data alone."""
        params, how, names = key
        known = (self.case.name, params, how, names)
        if known not in _known:
            model = self.case.make()
            for name in names[:-1]:  # whatever the parameters were, they do not stay
                call(model, how, tables()[name])
            model.set_params(**dict(self.given))
            assert describe(model) == params
            try:
                call(model, how, tables()[names[-1]])
                _known[known] = says(model, tables()[names[-1]].ask)
            except (ValueError, NotFittedError) as error:
                _known[known] = str(error)
        return _known[known]

    given: tuple[tuple[str, Any], ...] = ()

    def attempt(self, how: str, names: tuple[str, ...]) -> bool:
        """Fit as told; whether it was not refused, which is as a fresh one would have it."""
        key = (self.params, how, names)
        expected = self.fresh(key)
        try:
            call(self.model, how, tables()[names[-1]])
        except ValueError as error:
            assert expected == str(error)
            self.refused(how)
            return False
        assert not isinstance(expected, str) or "not fitted yet" in expected
        self.fitted = None if isinstance(expected, str) else key
        return True

    def refused(self, how: str) -> None:
        """After a fit that was refused it is as before, or not fitted; never half."""
        if how != "batches":
            try:
                says(self.model, tables()[self.fitted[2][-1]].ask if self.fitted else ROW)
            except NotFittedError:
                self.fitted, self.batches = None, ()
        self.answers()

    # --- what may befall it

    @rule(
        name=st.sampled_from(sorted(tables())), how=st.sampled_from(("rows", "weights", "groups"))
    )
    def fit(self, name: str, how: str) -> None:
        if how == "weights" and not self.case.takes_weights:
            how = "rows"
        if how == "groups" and self.case.name != "GSVPSVMCV":
            how = "rows"
        if self.attempt(how, (name,)):
            self.batches = ()

    @precondition(lambda self: hasattr(self.model, "partial_fit"))
    @rule(name=st.sampled_from(sorted(tables())))
    def partial_fit(self, name: str) -> None:
        if self.attempt("batches", (*self.batches, name)):
            self.batches = (*self.batches, name)

    @rule(data=st.data())
    def set_params(self, data: st.DataObject) -> None:
        changes = CHANGES.get(self.case.name, {})
        # what is compared with reads panels of any size off one fit
        if not changes and type(self.model).__module__.startswith("sparsegsvp.related"):
            changes = {"n_features": (2, 3)}
        if not changes:
            return
        name = data.draw(st.sampled_from(sorted(changes)))
        value = data.draw(st.sampled_from(changes[name]))
        self.model.set_params(**{name: value})
        self.given = (*((k, v) for k, v in self.given if k != name), (name, value))
        self.params = describe(self.model)
        assert self.model.get_params()[name] is value
        self.answers()  # those of the last fit

    @rule()
    def save_and_load(self) -> None:
        self.n_files += 1
        path = self.folder / f"{self.n_files}.skops"
        save_model(self.model, path)
        self.model = load_model(path)
        self.answers()

    @rule(go_on=st.booleans())
    def clone(self, go_on: bool) -> None:
        copy = clone(self.model)
        assert describe(copy) == self.params
        with pytest.raises(NotFittedError):
            says(copy, tables()["array 0"].ask)
        if go_on:
            self.model, self.fitted, self.batches = copy, None, ()

    @rule(name=st.sampled_from(("array 0", "array 1", "frame 1")))
    def ask_of_other_rows(self, name: str) -> None:
        """Rows of other columns are refused, and change nothing."""
        ask = tables()[name].ask
        if self.fitted is None:
            with pytest.raises(NotFittedError):
                says(self.model, ask)
        elif ask.shape[1] != cases.last(self.model).n_features_in_:
            with pytest.raises(ValueError, match=r"features|columns|names"):
                says(self.model, ask)
        self.answers()

    @rule()
    def answers(self) -> None:
        """What it says is what a fresh one says that was fitted as this one was last."""
        if self.fitted is None:
            with pytest.raises(NotFittedError):
                says(self.model, tables()["array 0"].ask)
        else:
            _, _, names = self.fitted
            same(says(self.model, tables()[names[-1]].ask), _known[self.case.name, *self.fitted])

    @invariant()
    def parameters_are_as_set(self) -> None:
        assert describe(self.model) == self.params


def describe(model: Any) -> str:
    """Return the parameters in words, which are equal for equal ones."""
    return repr(sorted((k, repr(v)) for k, v in model.get_params().items()))


def call(model: Any, how: str, rows: Rows) -> None:
    """Fit quietly."""
    more: dict[str, Any] = {}
    n = len(rows.y)
    if how == "weights":
        name = (
            f"{model.steps[-1][0]}__sample_weight" if hasattr(model, "steps") else "sample_weight"
        )
        more[name] = rows.weight[:n]
    if how == "groups":
        more["groups"] = rows.groups[:n]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if how == "batches":
            model.partial_fit(rows.X, rows.y, **more)
        else:
            model.fit(rows.X, rows.y, **more)


def run(campaign: Any, name: str, examples: int, steps: int) -> None:
    machine = type(f"LifeOf{name}", (Life,), {"case": case_of(name)})
    before = {key: repr((rows.X, rows.y, rows.ask)) for key, rows in tables().items()}
    run_state_machine_as_test(
        seed(campaign.seed)(machine),
        settings=settings(
            max_examples=examples, stateful_step_count=steps, deadline=None, database=None,
            suppress_health_check=list(HealthCheck), report_multiple_bugs=False,
            phases=(Phase.generate, Phase.shrink) if campaign.long else (Phase.generate,),
        ),
    )  # fmt: skip
    assert before == {key: repr((rows.X, rows.y, rows.ask)) for key, rows in tables().items()}
    campaign.record("sequences of calls tried", examples)


@pytest.mark.parametrize("name", SHORT)
def test_any_order_of_calls(campaign: Any, name: str) -> None:
    run(campaign, name, campaign.count(10, 60), campaign.count(15, 30))


@pytest.mark.parametrize("name", [case.name for case in cases.cases() if case.selects])
def test_a_saved_model_says_the_same(name: str, tmp_path: Path) -> None:
    rows, model = tables()["frame 0"], case_of(name).make()
    call(model, "rows", rows)
    save_model(model, tmp_path / "model.skops")
    same(says(load_model(tmp_path / "model.skops"), rows.ask), says(model, rows.ask))


def test_a_model_that_waits_for_rows_is_saved_with_them(tmp_path: Path) -> None:
    rows = tables()["array 0"]
    model = case_of("GSVPSVM").make().set_params(decision="scaled")
    model.partial_fit(rows.X[:5], rows.y[:5], classes=[0, 1])
    save_model(model, tmp_path / "model.skops")
    model = load_model(tmp_path / "model.skops").partial_fit(rows.X[5:], rows.y[5:])
    again = clone(model).partial_fit(rows.X[:5], rows.y[:5], classes=[0, 1])
    same(says(model, rows.ask), says(again.partial_fit(rows.X[5:], rows.y[5:]), rows.ask))


@pytest.mark.parametrize("name", [case.name for case in cases.cases() if case.selects])
def test_a_fit_that_is_refused_leaves_the_one_before_or_none(name: str) -> None:
    good, fitted = tables()["array 0"], case_of(name).make()
    call(fitted, "rows", good)
    before = says(fitted, good.ask)
    for bad in BAD:
        model = deepcopy(fitted)
        try:
            call(model, "rows", tables()[bad])
        except ValueError:
            with contextlib.suppress(NotFittedError):
                same(says(model, good.ask), before)


OTHERS = [c.name for c in cases.cases() if c.selects and c.name not in SHORT]


@pytest.mark.campaign
@pytest.mark.parametrize("name", OTHERS)
def test_any_order_of_calls_of_the_others(campaign: Any, name: str) -> None:
    run(campaign, name, 10, 20)
