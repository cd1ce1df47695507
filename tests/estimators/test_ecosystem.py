"""The estimators among the tools their users live with: frames, pipelines, searches, routing."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sparsegsvp import GSVPSVM, GSVPSVMCV

NAMES = [f"gene {i}" for i in range(12)]


@pytest.fixture
def data(breast) -> tuple[np.ndarray, np.ndarray]:
    """200 rows of 12 columns, labels in words."""
    X, y = breast
    return np.ascontiguousarray(X[:200, :12]), np.where(y[:200] == 1, "ill", "healthy")


@pytest.fixture
def frame(data) -> pd.DataFrame:
    return pd.DataFrame(data[0], columns=NAMES)


@pytest.fixture(params=[GSVPSVM(n_features=4), GSVPSVMCV(max_features=6)], ids=["fixed", "search"])
def model(request):
    return clone(request.param)


def test_frames_in_and_names_out(model, data, same_model) -> None:
    X, y = data
    plain = clone(model).fit(X, y)
    for frame, labels in (
        (pd.DataFrame(X, columns=NAMES), pd.Series(y)),
        (pl.DataFrame(X, schema=NAMES), pl.Series(y)),
        (pd.DataFrame(X, columns=NAMES), pd.Categorical(y)),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            fitted = clone(model).fit(frame, labels)
            predicted = fitted.predict(frame)
        assert_array_equal(fitted.classes_, ["healthy", "ill"])
        assert_array_equal(fitted.feature_names_in_, NAMES)
        assert_array_equal(predicted, plain.predict(X))
        assert_allclose(fitted.decision_function(frame), plain.decision_function(X), rtol=1e-8)
        assert_array_equal(fitted.get_feature_names_out(), np.array(NAMES)[plain.support_])


@pytest.mark.parametrize("output", ["pandas", "polars", "default"])
def test_transform_gives_what_set_output_asks_for(model, data, output) -> None:
    X, y = data
    frame = pl.DataFrame(X, schema=NAMES) if output == "polars" else pd.DataFrame(X, columns=NAMES)
    model.set_output(transform=output).fit(frame, y)
    names = model.get_feature_names_out().tolist()
    kind = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "default": np.ndarray}[output]
    for rows in (frame, frame[names]):  # all columns, and the panel alone
        panel = model.transform(rows)
        assert isinstance(panel, kind)
        assert_array_equal(np.asarray(panel), X[:, model.support_])
        if output != "default":
            assert list(panel.columns) == names
    back = model.inverse_transform(X[:, model.support_])
    assert_array_equal(back, np.where(model.support_, X, 0.0))


def test_a_frame_of_the_panel_in_its_order_is_enough(model, data, frame) -> None:
    model.fit(frame, data[1])
    panel = model.get_feature_names_out().tolist()
    assert 1 < len(panel) < len(NAMES)
    others = {name: f"other {name}" for name in NAMES if name not in panel}
    for rows in (
        frame[panel],
        frame[panel].assign(site="north"),
        pl.from_pandas(frame[panel].assign(site="north")),
        frame.assign(site="north"),
        frame.rename(columns=others),
    ):
        assert_allclose(model.distances(rows), model.distances(frame), atol=1e-12)
        assert_allclose(model.predict_proba(rows), model.predict_proba(frame), atol=1e-12)
        assert_array_equal(model.predict(rows), model.predict(frame))
    # the model's columns in another order are refused, all of them or some
    for rows in (frame[NAMES[::-1]], frame[panel[::-1]], frame[panel[::-1]].assign(site=1.0)):
        with pytest.raises(ValueError, match="feature names should match") as caught:
            model.predict(rows)
        assert caught.value.__notes__ == [
            f"put the panel's columns into this order: {', '.join(panel)}"
        ]
    for method in (model.predict, model.transform):
        with pytest.raises(ValueError, match="feature names should match") as caught:
            method(frame[panel[1:]])
        assert caught.value.__notes__ == [f"columns of the panel are missing: {panel[0]}"]
    with pytest.raises(ValueError, match=r"names|duplicate"):
        model.predict(frame[[*panel, panel[0]]])
    with pytest.raises(ValueError, match="NaN"):
        model.predict(frame[panel].assign(**{panel[0]: np.nan}))


def test_pipelines_as_classifier_and_as_selector(model, data, frame) -> None:
    X, y = data
    # it standardises by itself, so a scaler before it changes nothing but where zero is
    piped = make_pipeline(StandardScaler(), clone(model)).fit(frame, y)
    alone = clone(model).fit(X, y)
    assert_array_equal(piped[-1].feature_order_, alone.feature_order_)
    assert_allclose(piped.predict_proba(frame), alone.predict_proba(X), atol=1e-3)
    selector = make_pipeline(clone(model), StandardScaler(), LogisticRegression())
    selector.set_output(transform="pandas").fit(frame, y)
    assert_array_equal(selector[-1].feature_names_in_, selector[0].get_feature_names_out())
    assert selector.score(frame, y) > 0.8


def test_grid_search_calibration_and_selection(data) -> None:
    X, y = data
    grid = {"n_features": [2, 5], "decision": ["scaled", "logistic"], "clip": [None, 3.0]}
    search = GridSearchCV(GSVPSVM(), grid, cv=3, scoring="balanced_accuracy").fit(X, y)
    assert search.best_score_ > 0.85
    again = cross_val_score(search.best_estimator_, X, y, cv=3, scoring="balanced_accuracy")
    assert again.mean() == search.best_score_
    for scoring in ("roc_auc", "neg_log_loss", "accuracy"):
        assert np.isfinite(cross_val_score(GSVPSVMCV(), X, y, cv=2, scoring=scoring)).all()
    # "scaled" has no probabilities of its own, and gets some
    wrapped = CalibratedClassifierCV(GSVPSVM(n_features=3, decision="scaled"), cv=3).fit(X, y)
    probabilities = wrapped.predict_proba(X)
    assert (wrapped.classes_[probabilities.argmax(axis=1)] == y).mean() > 0.85
    for model in (GSVPSVM(n_features=4), GSVPSVMCV(max_features=6, clip=None)):
        selected = SelectFromModel(model, threshold=1e-12).fit(X, y)
        assert_array_equal(selected.get_support(), selected.estimator_.support_)


# --- metadata routing ----------------------------------------------------------------------


def test_weights_are_routed(data, same_model) -> None:
    X, y = data
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    expected = GSVPSVM(n_features=3).fit(X, y, sample_weight=weight)
    with config_context(enable_metadata_routing=True):
        model = GSVPSVM(n_features=3).set_fit_request(sample_weight=True)
        model.set_score_request(sample_weight=True)
        searched = GridSearchCV(model, {"n_features": [3]}, cv=3).fit(X, y, sample_weight=weight)
        same_model(searched.best_estimator_, expected, X, tol=1e-12)
        piped = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), model)
        piped.fit(X, y, sample_weight=weight)
        assert_array_equal(piped[-1].feature_order_, expected.feature_order_)


def test_groups_are_requested_by_default(data) -> None:
    X, y = data
    groups = np.arange(len(y)) // 5
    model = GSVPSVMCV(max_features=5, cv=3)
    expected = clone(model).fit(X, y, groups=groups).path_["loss"]
    assert (clone(model).fit(X, y).path_["loss"] != expected).any()
    with config_context(enable_metadata_routing=True):
        for asking in (clone(model), clone(model).set_fit_request(groups=True)):
            assert_array_equal(
                make_pipeline(asking).fit(X, y, groups=groups)[-1].path_["loss"], expected
            )
        outer = cross_validate(
            clone(model), X, y, cv=GroupKFold(2), params={"groups": groups}, error_score="raise"
        )
        assert np.isfinite(outer["test_score"]).all()
        with pytest.raises(TypeError, match="groups"):
            make_pipeline(clone(model).set_fit_request(groups=False)).fit(X, y, groups=groups)
    with pytest.raises(TypeError, match="group"):
        model.fit(X, y, group=groups)
