"""What a run is asked to do: refused early, in one wording, and fitted to small classes."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import StratifiedKFold

from sparsegsvp import select_panel
from sparsegsvp.io import InputError
from sparsegsvp.workflow.procedure import make_procedure
from sparsegsvp.workflow.settings import Settings, can_be_halved, outer_folds, settings_from


class Counted:
    """A table of which only the sizes of the classes matter."""

    source, groups = "t", None

    def __init__(self, *counts: int) -> None:
        self.counts = counts

    def class_counts(self) -> dict[str, int]:
        return dict(zip("ab", self.counts))


@pytest.mark.parametrize(
    ("counts", "outer", "halves"),
    [((50, 40), 5, True), ((50, 8), 5, True), ((50, 6), 5, True), ((50, 4), 4, False)],
)
def test_folds_follow_the_smallest_class(counts, outer, halves):
    table = Counted(*counts)
    assert outer_folds(table, Settings()) == outer
    assert can_be_halved(table) == halves
    # every training part keeps enough samples to tune on: three of the smallest class
    y = np.repeat(["a", "b"], counts)
    for train, _ in StratifiedKFold(outer).split(y, y):
        assert np.sum(y[train] == "b") >= 3
    procedure = make_procedure(Settings(tau=(1.0,), n_deltas=3))
    X = np.random.default_rng(0).normal(size=(len(train), 4))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        procedure.fit(X, y[train])


def test_a_class_or_groups_too_small():
    with pytest.raises(InputError, match="class 'b' has only 3 samples"):
        outer_folds(Counted(9, 3), Settings())
    table = Counted(9, 9)
    table.groups = ["x", "y", "z"]
    with pytest.raises(InputError, match="only 3 groups"):
        outer_folds(table, Settings())


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("q", 2.0, "q must be a number above 0 and at most 1, got 2.0"),
        ("tau", (1.0, 0.0), "tau must be a number above 0, got 0.0"),
        ("tau", float("inf"), "tau must be a number above 0, got inf"),
        ("pool", -0.5, "pool must be a number of at least 0 and at most 1, got -0.5"),
        ("n_deltas", 1, "n_deltas must be an integer of at least 2, got 1"),
        ("rule", "last", "rule must be 'paired', 'best' or '1se', got 'last'"),
        ("impute", "mean", "impute must be 'median' or 'none', got 'mean'"),
        ("floor", 0.0, "floor must be a number above 0, got 0.0"),
        ("n_features", 0, "n_features must be an integer of at least 1, got 0"),
        ("random_state", -1, "random_state must be an integer of at least 0, got -1"),
        ("max_permutations", -1, "max_permutations must be an integer of at least 0, got -1"),
        ("folds", 1, "folds must be an integer of at least 2, got 1"),
    ],
)
def test_every_parameter_is_refused_in_one_wording(name, value, message):
    with pytest.raises(InputError) as caught:
        select_panel([[1.0], [2.0]], ["a", "b"], **{name: value})
    assert str(caught.value) == message


def test_the_procedure_predicts_from_its_panel_alone():
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b"], 20)
    X = pd.DataFrame(rng.normal(size=(40, 9)), columns=[f"g{j}" for j in range(9)])
    X["g4"] += 3 * (y == "a")
    X.iloc[3, 4] = np.nan
    for settings in (Settings(tau=(1.0,), n_deltas=4), Settings(impute="none", n_features=2)):
        frame = X if settings.impute == "median" else X.fillna(0.0)
        model = make_procedure(settings).fit(frame, y)
        panel = frame.columns[model.get_support()]
        np.testing.assert_allclose(
            model.predict_proba(frame[panel]), model.predict_proba(frame), atol=1e-12
        )


def test_one_value_stands_for_a_sequence_of_one():
    assert settings_from(tau=3, q=0.5).tau == (3.0,)
    assert settings_from(tau=[1, 3]).to_dict()["tau"] == [1.0, 3.0]
