"""PanelPipeline: a Pipeline to which the panel's columns are enough."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from sparsegsvp import GSVPSVM, load_model, save_model
from sparsegsvp.estimators import MedianImputer, PanelPipeline, pipeline
from sparsegsvp.estimators.log2 import Log2

METHODS = ("predict", "predict_proba", "decision_function")


@pytest.fixture
def frame(breast):
    X = pd.DataFrame(breast[0].copy(), columns=[f"gene {j}" for j in range(30)])
    X.iloc[::7, ::3] = np.nan
    return X


@pytest.fixture
def fitted(frame, breast):
    steps = [("log2", Log2(floor=0.01)), ("impute", MedianImputer()), ("scale", StandardScaler())]
    return PanelPipeline([*steps, ("model", GSVPSVM(n_features=4))]).fit(frame, breast[1])


def test_it_is_a_pipeline_that_selects(fitted, frame, breast):
    plain = clone(Pipeline(fitted.steps)).fit(frame, breast[1])
    for method in METHODS:
        assert_array_equal(getattr(fitted, method)(frame), getattr(plain, method)(frame))
    assert_array_equal(fitted.get_support(), plain[-1].support_)
    assert_array_equal(fitted.get_support(indices=True), np.flatnonzero(plain[-1].support_))
    assert list(fitted.get_feature_names_out()) == list(frame.columns[fitted.get_support()])
    assert isinstance(clone(fitted), PanelPipeline)
    assert clone(fitted).get_params().keys() == plain.get_params().keys()
    assert not hasattr(fitted[:-1], "predict") and not hasattr(fitted[:-1], "get_support")
    assert not hasattr(PanelPipeline([("model", GSVPSVM(decision="scaled"))]), "predict_proba")


@pytest.mark.parametrize("block", [4_000_000, 300])
def test_the_panel_is_enough(fitted, frame, block, monkeypatch):
    monkeypatch.setattr(pipeline, "_BLOCK", block)  # 10 rows of 30 columns at a time
    panel = list(fitted.get_feature_names_out())
    assay = frame[panel[::-1]].assign(site="north")
    as_wide = frame.rename(columns={f: f"other {f}" for f in frame if f not in panel})
    whole, reordered = frame.assign(site="north"), frame.iloc[:, ::-1]
    for rows in (frame[panel], assay, pl.from_pandas(assay), whole, as_wide, reordered):
        for method in METHODS:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                found = getattr(fitted, method)(rows)
            expected = getattr(fitted, method)(frame)
            if method == "predict":
                assert_array_equal(found, expected)
            else:
                assert_allclose(found, expected, atol=1e-12)
    for rows in (assay, as_wide):  # whatever else is not there, the panel's columns are named
        with pytest.raises(ValueError) as caught:
            fitted.predict(rows.rename(columns={panel[0]: "another"}))
        assert str(caught.value) == f"columns of the panel are missing: '{panel[0]}'"


def test_a_loaded_model_predicts_from_the_panel(fitted, frame, tmp_path):
    again = load_model(save_model(fitted, tmp_path / "model.skops"))
    assert type(again) is PanelPipeline
    panel = frame.columns[again.get_support()]
    assert_array_equal(again.predict_proba(frame[panel]), fitted.predict_proba(frame[panel]))
    assert_array_equal(again.predict_proba(frame), fitted.predict_proba(frame))


def test_steps_that_change_the_columns_are_refused(frame, breast):
    columns = pipeline.PanelPipeline(
        [("drop", DropFirst()), ("impute", MedianImputer()), ("model", GSVPSVM())]
    )
    with pytest.raises(ValueError, match="must keep the columns, but they turn 30 into 29"):
        columns.fit(frame, breast[1]).get_support()


class DropFirst(StandardScaler):
    def transform(self, X, copy=None):
        return np.asarray(X)[:, 1:]


def test_a_step_that_passes_everything_through_is_no_step(frame, breast):
    model = GSVPSVM(n_features=4)
    steps = [("impute", MedianImputer()), ("model", model)]
    plain = PanelPipeline(steps).fit(frame, breast[1]).predict_proba(frame)
    more = PanelPipeline([("none", "passthrough"), *steps]).fit(frame, breast[1])
    assert_array_equal(more.predict_proba(frame), plain)
