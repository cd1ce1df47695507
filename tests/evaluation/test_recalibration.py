"""Recalibration: odds move as they should, and a saved model remembers it."""

import numpy as np
import pytest
from sklearn.base import clone

from sparsegsvp import GSVPSVM, load_model, save_model
from sparsegsvp.datasets import make_planted
from sparsegsvp.estimators import MedianImputer, PanelPipeline
from sparsegsvp.evaluation import recalibrate, validate_external
from sparsegsvp.evaluation.recalibration import recalibration_text
from sparsegsvp.metrics import calibration_line


@pytest.fixture(scope="module")
def fitted():
    X, y = make_planted(240, 30, 3, effect=1.2, return_X_y=True, random_state=1)
    names = np.where(y == 1, "ill", "well")
    return GSVPSVM(n_features=3).fit(X[:120], names[:120]), X, names


def log_odds(model, X, column):
    p = model.predict_proba(X)
    return np.log(p[:, column] / p[:, 1 - column])


@pytest.mark.parametrize("positive", ["ill", "well"])
def test_a_prevalence_moves_all_log_odds_by_one_number(fitted, positive):
    model, X, _ = fitted
    one = model.classes_.tolist().index(positive)
    before = model.predict_proba(X)
    rare = recalibrate(model, prevalence=0.1, pos_label=positive)
    gap = log_odds(rare, X, one) - log_odds(model, X, one)
    np.testing.assert_allclose(gap, np.log(0.1 / 0.9), atol=1e-9)
    np.testing.assert_array_equal(model.predict_proba(X), before)  # left as it was
    assert np.mean(rare.predict(X) == positive) < np.mean(model.predict(X) == positive)
    # from there to another one, or back, counted from where it is
    back = recalibrate(rare, prevalence=0.5, pos_label=positive)
    np.testing.assert_allclose(log_odds(back, X, one), log_odds(model, X, one), atol=1e-9)


@pytest.mark.parametrize("prevalence", [None, 0.2])
@pytest.mark.parametrize("method", ["intercept", "slope"])
def test_a_cohort_gets_the_intercept_and_slope_it_asks_for(fitted, method, prevalence):
    model, X, y = fitted
    shifted = X[120:] + np.where(model.get_support(), 0.8, 0.0)
    again = recalibrate(
        model, shifted, y[120:], method=method, prevalence=prevalence, pos_label="ill"
    )
    p = again.predict_proba(shifted)[:, 0]
    line = calibration_line(y[120:] == "ill", p, prior=prevalence or 0.5)
    assert line.intercept.value == pytest.approx(0.0, abs=1e-6)
    if method == "slope":
        assert line.slope.value == pytest.approx(1.0, abs=1e-6)
    found = validate_external(again, shifted, y[120:], pos_label="ill", prevalence=0.3)
    assert found.line.intercept.value == pytest.approx(0.0, abs=1e-6)  # knows what it is for
    before = validate_external(model, shifted, y[120:], pos_label="ill", prevalence=0.3)
    assert found.scores["auc"].value == before.scores["auc"].value  # ranks stay
    assert found.scores["brier"].value < before.scores["brier"].value
    own = next(row for row in found.thresholds if row.own)
    assert own.sensitivity.value == found.scores["sensitivity"].value


def test_it_goes_with_a_pipeline_through_a_file_and_ends_with_a_new_fit(fitted, tmp_path):
    _, X, y = fitted
    model = PanelPipeline([("impute", MedianImputer()), ("model", GSVPSVM(n_features=3))])
    model.fit(X[:120], y[:120])
    again = recalibrate(model, X[120:], y[120:], prevalence=0.02, source="site 2")
    loaded = load_model(save_model(again, tmp_path / "model.skops"))
    np.testing.assert_array_equal(loaded.predict_proba(X), again.predict_proba(X))
    assert "2% of 'well', intercept by 120 samples of site 2" in recalibration_text(loaded)
    assert recalibration_text(model) == recalibration_text(clone(again).fit(X, y)) == ""
    assert recalibration_text(again.fit(X, y)) == ""


def test_what_cannot_be_recalibrated_says_so(fitted):
    model, X, y = fitted
    with pytest.raises(ValueError, match="a prevalence, or a cohort"):
        recalibrate(model)
    with pytest.raises(ValueError, match="one class only"):
        recalibrate(model, X[:5], ["ill"] * 5)
    with pytest.raises(ValueError, match="'sick', which the model does not know"):
        recalibrate(model, X[:2], ["sick", "ill"])
    with pytest.raises(ValueError, match="wrong way round"):
        turned = np.where(y == "ill", "well", "ill")
        recalibrate(model, X[120:], turned[120:], method="slope")
    apart = model.decision_function(X)
    ends = np.r_[np.argsort(apart)[:10], np.argsort(apart)[-10:]]
    with pytest.raises(ValueError, match="intercept alone"):
        recalibrate(model, X[ends], ["ill"] * 10 + ["well"] * 10, method="slope")
    with pytest.raises(ValueError, match="two classes that gives probabilities"):
        recalibrate(GSVPSVM(decision="scaled").fit(X, y), prevalence=0.1)
    with pytest.raises(ValueError, match="prevalence must be"):
        recalibrate(model, prevalence=0)
