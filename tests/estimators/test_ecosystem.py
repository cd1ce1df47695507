"""The estimators among the tools their users live with."""

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
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    StratifiedKFold,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from sparsegsvp import GSVPSVM, GSVPSVMCV

# breast columns that are enough for manners
COLUMNS = 12


@pytest.fixture
def data(breast) -> tuple[np.ndarray, np.ndarray]:
    """200 rows, labels in words."""
    X, y = breast
    return X[:200, :COLUMNS], np.where(y[:200] == 1, "ill", "healthy")


@pytest.fixture
def names() -> list[str]:
    return [f"gene {i}" for i in range(COLUMNS)]


@pytest.fixture(params=["GSVPSVM", "GSVPSVMCV"])
def model(request):
    if request.param == "GSVPSVM":
        return GSVPSVM(n_features=4)
    return GSVPSVMCV(tau=1.0, n_deltas=5, cv=3, n_features=4)


def test_frames_in_and_names_out(model, data, names) -> None:
    X, y = data
    plain = clone(model).fit(X, y)
    for frame, labels in (
        (pd.DataFrame(X, columns=names), pd.Series(y)),
        (pl.DataFrame(X, schema=names), pl.Series(y)),
        (pd.DataFrame(X, columns=names), pd.Categorical(y)),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            fitted = clone(model).fit(frame, labels)
            predicted = fitted.predict(frame)
        assert_array_equal(fitted.classes_, ["healthy", "ill"])
        assert_array_equal(fitted.feature_names_in_, names)
        # a frame keeps its columns one after the other: to the last bit it equals an array of
        # that layout, whose products are summed in another order than those of X
        assert_array_equal(fitted.coef_, clone(model).fit(frame.to_numpy(), y).coef_)
        assert_allclose(fitted.coef_, plain.coef_, rtol=1e-9, atol=1e-12)
        assert_array_equal(predicted, plain.predict(X))
        assert_array_equal(fitted.get_feature_names_out(), np.array(names)[plain.support_])
        assert_array_equal(fitted.get_feature_names_out(names), np.array(names)[plain.support_])


@pytest.mark.parametrize("output", ["pandas", "polars", "default"])
def test_transform_gives_what_set_output_asks_for(model, data, names, output) -> None:
    X, y = data
    frame = pl.DataFrame(X, schema=names) if output == "polars" else pd.DataFrame(X, columns=names)
    model.set_output(transform=output).fit(frame, y)
    panel = model.transform(frame)
    kind = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "default": np.ndarray}[output]
    assert isinstance(panel, kind)
    assert_array_equal(np.asarray(panel), X[:, model.support_])
    if output != "default":
        assert_array_equal(list(panel.columns), model.get_feature_names_out())
    back = model.inverse_transform(X[:, model.support_])
    assert_array_equal(back, np.where(model.support_, X, 0.0))


def test_labels_of_any_kind(model, data) -> None:
    X, y = data
    reference = clone(model).fit(X, y)
    for labels in (
        y == "ill",
        np.where(y == "ill", 7, -3),
        (y == "ill").astype(float),
        y.astype(object),
    ):
        fitted = clone(model).fit(X, labels)
        assert fitted.predict(X).dtype == np.unique(labels).dtype
        assert_array_equal(fitted.predict(X) == fitted.classes_[1], reference.predict(X) == "ill")


def test_pipeline_as_classifier_and_as_selector(model, data, names) -> None:
    X, y = data
    frame = pd.DataFrame(X, columns=names)
    # it standardises by itself, so a scaler before it changes nothing
    piped = make_pipeline(StandardScaler(), clone(model)).fit(frame, y)
    alone = clone(model).fit(X, y)
    assert_allclose(piped.predict_proba(frame), alone.predict_proba(X), atol=1e-6)
    steps = [
        ("select", clone(model)),
        ("scale", StandardScaler()),
        ("classify", LogisticRegression()),
    ]
    selector = Pipeline(steps)
    selector.set_output(transform="pandas").fit(frame, y)
    assert selector["classify"].n_features_in_ == selector["select"].support_.sum() <= 4
    assert_array_equal(
        selector["classify"].feature_names_in_, selector["select"].get_feature_names_out()
    )
    assert selector.score(frame, y) > 0.8


def test_select_from_model_reads_the_coefficients(data) -> None:
    X, y = data
    fitted = SelectFromModel(GSVPSVM(n_features=4), threshold=1e-12).fit(X, y)
    assert_array_equal(fitted.get_support(), fitted.estimator_.support_)


def test_grid_search_and_cross_val_score(data) -> None:
    X, y = data
    grid = {"delta": [0.05, (0.1, 0.2)], "decision": ["scaled", "calibrated"]}
    search = GridSearchCV(GSVPSVM(), grid, cv=3, scoring="balanced_accuracy").fit(X, y)
    assert search.best_score_ > 0.8
    assert search.best_estimator_.get_params()["delta"] == search.best_params_["delta"]
    assert_array_equal(
        cross_val_score(search.best_estimator_, X, y, cv=3, scoring="balanced_accuracy").mean(),
        search.best_score_,
    )
    inner = GSVPSVMCV(tau=1.0, n_deltas=5, cv=3)
    for scoring in ("roc_auc", "neg_log_loss", "accuracy"):
        assert np.isfinite(cross_val_score(inner, X, y, cv=2, scoring=scoring)).all()


@pytest.mark.parametrize("decision", ["scaled", "calibrated"])
def test_calibrated_classifier(data, decision) -> None:
    """ "scaled" has no probabilities of its own, and gets some."""
    X, y = data
    wrapped = CalibratedClassifierCV(GSVPSVM(decision=decision), cv=3).fit(X, y)
    probabilities = wrapped.predict_proba(X)
    assert_allclose(probabilities.sum(axis=1), 1.0)
    assert (wrapped.classes_[probabilities.argmax(axis=1)] == y).mean() > 0.8


def test_clone_keeps_every_parameter_and_nothing_fitted(model, data) -> None:
    fitted = model.fit(*data)
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    assert not [name for name in vars(copy) if name.endswith("_")]


def test_parameters_are_where_the_names_say(model) -> None:
    for name, value in model.get_params().items():
        assert getattr(model, name) is value


@pytest.mark.parametrize(
    "model",
    [GSVPSVM(), GSVPSVM(q=0.5), GSVPSVMCV(tau=1.0, n_deltas=5, cv=3, rule="1se")],
    ids=["GSVPSVM", "q=0.5", "GSVPSVMCV"],
)
def test_select_from_model_keeps_the_support(breast, model) -> None:
    X, y = breast
    found = SelectFromModel(model).fit(X, y)
    assert 1 < found.get_support().sum() < X.shape[1]
    assert_array_equal(found.get_support(), found.estimator_.support_)
    ready = SelectFromModel(clone(model).fit(X, y), prefit=True)
    assert_array_equal(ready.transform(X), X[:, found.estimator_.support_])


def test_a_frame_of_the_panel_alone_is_enough(model, data, names) -> None:
    X, y = data
    frame = pd.DataFrame(X, columns=names)
    model.fit(frame, y)
    panel = model.get_feature_names_out().tolist()
    assert len(panel) < len(names)
    assay = frame[panel[::-1]].assign(site="north")
    others = {name: f"other {name}" for name in names if name not in panel}
    as_wide = frame.rename(columns=others)
    whole = frame.assign(site="north")
    for rows in (frame[panel], assay, pl.from_pandas(assay), whole, as_wide.iloc[:, ::-1]):
        assert_allclose(model.distances(rows), model.distances(frame), atol=1e-12)
        assert_allclose(model.predict_proba(rows), model.predict_proba(frame), atol=1e-12)
        assert_array_equal(model.predict(rows), model.predict(frame))
    with pytest.raises(ValueError, match="yet now missing") as caught:
        model.predict(assay.drop(columns=panel[0]))
    assert caught.value.__notes__ == [f"columns of the panel are missing: '{panel[0]}'"]
    # what scikit-learn refuses is refused: the same columns in another order, names given twice
    with pytest.raises(ValueError, match="same order"):
        model.predict(frame[names[::-1]])
    with pytest.raises(ValueError, match=r"(column|feature) names"):  # its words have changed
        model.predict(frame[[*panel, panel[0]]])
    with pytest.raises(ValueError, match="NaN"):
        model.predict(assay.assign(**{panel[0]: np.nan}))


# --- metadata routing ----------------------------------------------------------------------


def test_weights_are_routed(data) -> None:
    X, y = data
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    expected = GSVPSVM().fit(X, y, sample_weight=weight)
    with config_context(enable_metadata_routing=True):
        model = GSVPSVM().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        piped = make_pipeline(scaler, model).fit(X, y, sample_weight=weight)
        assert_allclose(piped.predict_proba(X), expected.predict_proba(X), atol=1e-6)
        searched = GridSearchCV(model, {"delta": [0.1]}, cv=3).fit(X, y, sample_weight=weight)
        assert_array_equal(searched.best_estimator_.coef_, expected.coef_)


@pytest.mark.parametrize("cv", [3, GroupKFold(3)], ids=["int", "GroupKFold"])
def test_groups_are_routed_and_never_split(data, cv, monkeypatch) -> None:
    from sparsegsvp.estimators import folds

    X, y = data
    groups = np.arange(len(y)) // 5
    weight = np.ones(len(y))
    seen = []
    plain = folds.run_fold

    def spy(rows, search, split):
        seen.append(split)
        return plain(rows, search, split)

    monkeypatch.setattr(folds, "run_fold", spy)
    model = GSVPSVMCV(tau=1.0, n_deltas=3, cv=cv)
    with config_context(enable_metadata_routing=True):
        direct = clone(model).fit(X, y, groups=groups)
        asking = clone(model).set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        piped = make_pipeline(scaler, asking)
        piped.fit(X, y, groups=groups, sample_weight=weight)
        outer = cross_validate(
            clone(model), X, y, cv=GroupKFold(2), params={"groups": groups}, error_score="raise"
        )
    without_routing = clone(model).fit(X, y, groups=groups)
    assert len(seen) == 3 * (1 + 1 + 2 + 1)
    for train, test in (fold for i, fold in enumerate(seen) if not 6 <= i < 12):
        assert not set(groups[train]) & set(groups[test])
        assert len(train) + len(test) == len(y)
    assert_array_equal(direct.coef_, without_routing.coef_)
    assert_allclose(piped[-1].cv_results_["mean_test_score"], direct.cv_results_["mean_test_score"])
    assert np.isfinite(outer["test_score"]).all()


def test_groups_can_be_requested_like_any_metadata(data) -> None:
    X, y = data
    groups = np.arange(len(y)) // 5
    model = GSVPSVMCV(tau=1.0, n_deltas=3, cv=3)
    expected = clone(model).fit(X, y, groups=groups).cv_results_["mean_test_score"]
    with config_context(enable_metadata_routing=True):
        for asking in (model, model.set_fit_request(groups=True)):
            piped = make_pipeline(StandardScaler(), clone(asking)).fit(X, y, groups=groups)
            assert_allclose(piped[-1].cv_results_["mean_test_score"], expected)
        # who does not want them says so
        alone = make_pipeline(model.set_fit_request(groups=False))
        with pytest.raises(TypeError, match="groups"):
            alone.fit(X, y, groups=groups)
        with pytest.raises(TypeError, match=r"groups, which cv=StratifiedKFold.* does not request"):
            GSVPSVMCV(tau=1.0, cv=StratifiedKFold(3)).fit(X, y, groups=groups)


def test_groups_that_nobody_asked_for_are_an_error(data) -> None:
    X, y = data
    with config_context(enable_metadata_routing=True), pytest.raises(TypeError, match="shape"):
        GSVPSVMCV(tau=1.0, n_deltas=3, cv=3).fit(X, y, shape=np.arange(len(y)))
