"""An independent cohort: scores, curves, thresholds, shifts, and two models on it."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, recall_score, roc_auc_score

from sparsegsvp import GSVPSVM
from sparsegsvp.datasets import make_planted
from sparsegsvp.evaluation import (
    check_shift,
    compare_external,
    shift_notice,
    validate_external,
    validate_predictions,
)
from sparsegsvp.metrics import at_prevalence, balanced_brier_score, delong_interval


@pytest.fixture(scope="module")
def fitted():
    X, y = make_planted(240, 30, 3, effect=1.2, return_X_y=True, random_state=1)
    names = np.where(y == 1, "ill", "well")
    return GSVPSVM(n_features=3).fit(X[:120], names[:120]), X, names


def test_scores_are_those_of_scikit_learn(fitted):
    model, X, y = fitted
    rows = np.r_[120:240][(y[120:] == "well") | (np.arange(120) % 2 == 0)]  # fewer ill
    X, y = X[rows], y[rows]
    found = validate_external(model, X, y, pos_label="ill", prevalence=0.1)
    said, p = model.predict(X), model.predict_proba(X)[:, 0]
    assert found.scores["accuracy"].value == accuracy_score(y, said)
    assert found.scores["sensitivity"].value == recall_score(y, said, pos_label="ill")
    assert found.scores["specificity"].value == recall_score(y, said, pos_label="well")
    assert found.scores["auc"].value == pytest.approx(roc_auc_score(y == "ill", p))
    assert found.scores["auc"] == delong_interval(y == "ill", -model.decision_function(X))
    assert found.scores["brier"].value == pytest.approx(balanced_brier_score(y == "ill", p))
    s, c = found.scores["sensitivity"].value, found.scores["specificity"].value
    assert found.scores["ppv"].value == pytest.approx(0.1 * s / (0.1 * s + 0.9 * (1 - c)))
    assert found.prevalence == 0.1 and not found.observed_prevalence
    assert np.trapezoid(found.roc["tpr"], found.roc["fpr"]) == pytest.approx(
        found.scores["auc"].value
    )
    json.dumps(found.to_dict(), allow_nan=False)
    assert "area under the ROC curve" in repr(found) and "<table>" in found._repr_html_()
    assert found.to_frame()["score"].tolist() == list(found.scores)


def test_thresholds_count_samples_and_the_own_one_gives_the_models_labels(fitted):
    model, X, y = fitted
    X, y = X[120:], y[120:]
    found = validate_external(model, X, y, pos_label="ill", prevalence=0.1)
    p = at_prevalence(model.predict_proba(X)[:, 0], 0.1)
    for row in found.thresholds:
        called = p >= row.threshold
        assert row.sensitivity.value == np.mean(called[y == "ill"])
        assert row.specificity.value == np.mean(~called[y == "well"])
    own = [row for row in found.thresholds if row.own]
    assert [row.threshold for row in own] == [0.1]
    assert own[0].sensitivity.value == found.scores["sensitivity"].value
    assert own[0].ppv == found.scores["ppv"]
    at = np.searchsorted(found.decision.thresholds, 0.3)
    third = next(row for row in found.thresholds if row.threshold == 0.3)
    assert third.net_benefit == pytest.approx(found.decision.net_benefit[at])
    # the other class of interest: everything is turned round
    other = validate_external(model, X, y, pos_label="well", prevalence=0.9)
    assert other.scores["npv"].value == pytest.approx(found.scores["ppv"].value)
    assert other.line.slope.value == pytest.approx(found.line.slope.value)
    assert other.line.intercept.value == pytest.approx(-found.line.intercept.value)


@pytest.mark.parametrize(
    "truth,said,p,words",
    [
        (["b"] * 6, ["b"] * 5 + ["a"], None, "no sample of a"),
        (["a", "b"], ["a", "b"], [0.2, 0.9], "1 sample here"),
        (["a", "b", "b"], ["b", "b", "b"], [0.5] * 3, "All predictions are equal"),
        (["a", "b", "b"], ["b", "b", "b"], [0.6, 0.7, 0.9], "Every sample was called positive"),
        (["a"] * 12 + ["b"] * 12, ["a"] * 12 + ["b"] * 12, [0.1] * 12 + [0.9] * 12, "separate"),
        (["a"] * 12 + ["b"] * 12, ["a"] * 12 + ["b"] * 12, None, "no probabilities"),
    ],
)
def test_plain_cohorts_get_words_and_no_nan(truth, said, p, words):
    proba = None if p is None else np.column_stack([1 - np.array(p), p])
    found = validate_predictions(truth, said, ["a", "b"], decision=proba, proba=proba)
    assert words in " ".join(found.remarks)
    json.dumps(found.to_dict(), allow_nan=False)
    assert all(np.isfinite([s.value, s.low, s.high]).all() for s in found.scores.values())
    assert [notice.code for notice in found.notices] == ["cohort"] * len(found.remarks)


def test_many_classes():
    X, y = make_planted(180, 20, 3, effect=2.0, return_X_y=True, random_state=0)
    y = np.array(["a", "b", "c"])[np.where(X[:, 0] + X[:, 1] > 1, 2, y)]
    model = GSVPSVM().fit(X[:90], y[:90])
    found = validate_external(model, X[90:], y[90:])
    p = model.predict_proba(X[90:])
    assert found.scores["auc"].value == pytest.approx(
        roc_auc_score(y[90:], p, multi_class="ovr", average="macro")
    )
    assert found.scores["brier"].value == pytest.approx(balanced_brier_score(y[90:], p))
    assert found.positive is None and found.line is None and found.prevalence is None
    assert len(found.recalls) == 3 and "sensitivity" not in found.scores
    with pytest.raises(ValueError, match="'d', which the model does not know"):
        validate_predictions(["d"], ["a"], ["a", "b"])
    with pytest.raises(ValueError, match="no samples"):
        validate_predictions([], [], ["a", "b"])


# ------------------------------------------------------------------------------ shifts


def panel_of(model, X):
    return X[:, model.get_support()]


def test_the_model_remembers_its_training_samples(fitted):
    model, X, y = fitted
    for k, label in enumerate(model.classes_):
        own = panel_of(model, X[:120][y[:120] == label])
        np.testing.assert_allclose(model.panel_means_[k], own.mean(axis=0))
        np.testing.assert_allclose(model.panel_variances_[k], own.var(axis=0))
        assert model.class_counts_[k] == pytest.approx(len(own))


@pytest.mark.parametrize("labelled", [True, False])
def test_shifted_and_scaled_features_are_named(fitted, labelled):
    model, X, y = fitted
    values, labels = panel_of(model, X[120:]).copy(), y[120:] if labelled else None
    assert shift_notice(check_shift(model, values, labels), "it") is None
    sd = np.sqrt(model.panel_variances_.mean(axis=0))
    values[:, 0] += 3 * sd[0]
    values[:, 1] = 4 * (values[:, 1] - values[:, 1].mean()) + values[:, 1].mean()
    values[:3, 2] = np.nan
    found = check_shift(model, values, labels)
    assert [one.shifted for one in found] == [True, False, False]
    assert [one.scaled for one in found] == [False, True, False]
    assert found[1].factor > 2
    if labelled:
        assert found[0].shift == pytest.approx(3.0, abs=0.5)
    text = shift_notice(found, "site 2").text
    assert "2 of 3 features" in text and "standard deviations higher" in text and "spread" in text


@pytest.mark.parametrize("labelled", [True, False])
@pytest.mark.parametrize("n", [6, 40])
def test_false_alarms_are_rare_with_heavy_tails_and_another_mix(n, labelled):
    # features chosen among 300 that carry little, so that training flatters them; a cohort of
    # another mix of classes; tails heavier than the normal's. Nominal: 0.01 a cohort.
    rng = np.random.default_rng(n)
    alarms = 0
    for _ in range(4):
        X, y = rng.standard_t(5, size=(60, 300)), np.arange(60) % 2
        X[:, :3] += 0.8 * y[:, None]
        model = GSVPSVM(n_features=8).fit(X, y)
        for _ in range(20):
            new_y = (rng.random(n) < 0.8).astype(int)
            new = rng.standard_t(5, size=(n, 300))
            new[:, :3] += 0.8 * new_y[:, None]
            labels = new_y if labelled else None
            found = check_shift(model, panel_of(model, new), labels)
            alarms += shift_notice(found, "it") is not None
    assert alarms <= 4  # of 80


def test_classes_are_told_apart_by_name_whatever_their_order_as_text():
    X, y = make_planted(120, 20, 2, effect=3.0, return_X_y=True, random_state=1)
    y = np.where(y == 1, 10, 2)  # "10" comes before "2"
    model = GSVPSVM(n_features=2).fit(X[:80], y[:80])
    values = panel_of(model, X[80:])
    for labels in (y[80:], y[80:].astype(str)):
        found = check_shift(model, values, labels)
        assert not any(one.shifted or one.scaled for one in found)
        assert all(0 < abs(one.shift) < 0.5 for one in found)  # 0 is what a mix would give


def test_one_sample_in_other_units_is_noticed_and_an_old_model_is_not_judged(fitted):
    model, X, _ = fitted
    one = panel_of(model, X[120:121])
    assert shift_notice(check_shift(model, one), "it") is None
    assert shift_notice(check_shift(model, one * 1000), "it") is not None
    old = GSVPSVM()
    old.__dict__ |= {k: v for k, v in model.__dict__.items() if k != "panel_means_"}
    assert check_shift(old, one) is None


@pytest.mark.parametrize("labelled", [True, False])
def test_one_value_throughout_is_odd_unless_training_was_nearly_so(labelled):
    # a floored feature, which one sample of 60 exceeds, and one that varies, both in the panel
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = np.column_stack([np.full(60, 4.0), rng.normal(size=60) + 3.0 * y])
    X[1, 0] = 6.0
    model = GSVPSVM(n_features=2).fit(X, y)
    cohort = np.column_stack([np.full(24, 4.0), np.full(24, X[:, 1].mean())])
    labels = np.arange(24) % 2 if labelled else None
    floored, filled = check_shift(model, cohort, labels)
    assert not floored.scaled and not floored.shifted
    assert filled.scaled and filled.factor == 0.0
    assert "1 of 2 features of the panel has" in shift_notice([floored, filled], "it").text
    assert "one value throughout" in shift_notice([floored, filled], "it").text


# -------------------------------------------------------------------------- two models


def test_two_models_on_one_cohort(fitted):
    model, X, y = fitted
    frame = pd.DataFrame(X)
    other = LogisticRegression().fit(frame.iloc[:120, 5:9], y[:120])
    found = compare_external(model, other, (X[120:], frame.iloc[120:, 5:9]), y[120:])
    assert found.areas.first > found.areas.second
    assert found.labels.only_first > found.labels.only_second
    assert found.areas.p_value < 0.01 and found.labels.p_value < 0.01
    turned = compare_external(
        model, other, (X[120:], frame.iloc[120:, 5:9]), y[120:], pos_label="ill"
    )
    assert turned.areas.difference.value == pytest.approx(found.areas.difference.value)
    same = compare_external(model, model, X[120:], y[120:])
    assert same.areas.p_value == same.labels.p_value == 1.0
    json.dumps(same.to_dict(), allow_nan=False)
    three = GSVPSVM().fit(X[:120], np.arange(120) % 3)
    with pytest.raises(ValueError, match="same two classes"):
        compare_external(model, three, X, y)
