"""What a model, a cohort or a table on disk cannot do is refused in one line."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sparsegsvp import GSVPSVMCV
from sparsegsvp.io import InputError, make_table
from sparsegsvp.workflow import (
    Predictions,
    compare_models,
    compare_table,
    needed_features,
    plan_comparison,
    predict_table,
    select_lazily,
)


def fitted(frame, labels=None):
    features = frame.drop(columns="class")
    return GSVPSVMCV(tau=(1.0,), n_deltas=4).fit(
        features, frame["class"] if labels is None else labels
    )


@pytest.fixture(scope="module")
def model(frame):
    return fitted(frame)


@pytest.fixture(scope="module")
def three(frame):
    """A model of three classes on the same features."""
    return fitted(frame, np.where(frame["g0"] > 0.5, "dead", frame["class"]))


def test_a_model_without_names_says_how_to_get_them(table) -> None:
    nameless = GSVPSVMCV(tau=(1.0,), n_deltas=4).fit(table.X, table.labels)
    with pytest.raises(InputError, match="does not know the names of its features; fit it on"):
        needed_features(nameless)


def test_missing_columns_and_values_are_named(model, frame) -> None:
    first, *others = needed_features(model)
    short = make_table(frame.drop(columns=first), target="class")
    with pytest.raises(InputError, match=f"1 of the {len(others) + 1} features.*'{first}'"):
        predict_table(model, short)
    gaps = frame.assign(**{first: frame[first].where(frame.index != 2)})
    with pytest.raises(InputError, match=f"a value of '{first}' is missing in row 3; fill it"):
        predict_table(model, make_table(gaps, target="class"))


def test_only_models_of_the_same_two_classes_are_compared(model, three, table) -> None:
    found, other = predict_table(model, table), predict_table(three, table)
    assert found.imputed_text() == ""
    with pytest.raises(InputError, match=r"same two classes.*ill and well, and dead and ill and"):
        compare_models(found, other, table)
    with pytest.raises(InputError, match="prevalence is for two classes"):
        other.set_prevalence("ill", 0.1)


def test_areas_need_two_samples_of_each_class(model, frame) -> None:
    ill, well = (frame[frame["class"] == label] for label in ("ill", "well"))
    samples = pd.concat([ill[:1], well[:5]])
    few = make_table(samples, target="class", features=needed_features(model))
    found = predict_table(model, few)
    paired = compare_models(found, found, few)
    assert paired["areas"] is None
    assert paired["remarks"] == [
        "The areas are not compared: that takes two samples of each class."
    ]


def test_probabilities_cannot_be_moved_where_there_are_none(model, table) -> None:
    found = predict_table(model, table)
    found.proba = None
    with pytest.raises(InputError, match="the model gives no probabilities; leave prevalence out"):
        found.set_prevalence("ill", 0.1)
    with pytest.raises(InputError, match=r"there is no class 'dead'.*knows ill and well"):
        Predictions(model, table.X[:, model.get_support()]).set_prevalence("dead", 0.1)


def test_a_comparison_takes_logarithms_first(frame) -> None:
    raw = frame.assign(**{name: 2.0 ** frame[name] for name in frame if name != "class"})
    asked = {"methods": ["F test"], "sizes": [2], "folds": 3, "repeats": 1}
    one = compare_table(make_table(raw, target="class"), log2=True, floor=1e-9, **asked)
    two = compare_table(make_table(frame, target="class"), **asked)
    rows, others = (found.document["comparison"]["rows"] for found in (one, two))
    assert [row["method"] for row in rows] == [row["method"] for row in others]
    assert rows[0]["score"]["value"] == pytest.approx(others[0]["score"]["value"])
    # a limit that the first fit passes ends the timing of a method, not the count of its fits
    plan = plan_comparison(make_table(frame, target="class"), time_limit=0.0, n_jobs=1,
                           **{**asked, "methods": ["GEPSVM"], "sizes": [2, 4]})  # fmt: skip
    assert plan.fits == {"GEPSVM": 6}


def test_a_table_on_disk_stores_its_logarithms(table) -> None:
    with pytest.raises(InputError, match="log2 does not go with dask; store the table with"):
        select_lazily(table, log2=True)
