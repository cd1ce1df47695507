"""Another cohort, and its values against training."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from sparsegsvp import GSVPSVM
from sparsegsvp.datasets import make_planted
from sparsegsvp.evaluation import check_shift, validate_external
from sparsegsvp.metrics import exact_interval


def logistic_world(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, (rng.random(n) < expit(1.6 * X[:, 0] - 2.7)).astype(int)


def test_scores_are_those_of_the_confusion_matrix():
    X, y = make_planted(160, 20, 3, effect=1.5, random_state=0, return_X_y=True)
    model = GSVPSVM(3).fit(X[:80], y[:80])
    found = validate_external(model, X[80:], y[80:], prevalence=0.1)
    said, truth = model.predict(X[80:]), y[80:]
    tp, ones = int(np.sum(said & truth)), int(truth.sum())
    assert found.scores["sensitivity"] == exact_interval(tp, ones)
    assert found.scores["accuracy"].value == pytest.approx(np.mean(said == truth))
    area = roc_auc_score(truth, model.decision_function(X[80:]))
    assert found.scores["roc_auc"].value == pytest.approx(area)
    s, c = found.scores["sensitivity"].value, found.scores["specificity"].value
    assert found.scores["ppv"].value == pytest.approx(0.1 * s / (0.1 * s + 0.9 * (1 - c)))
    assert found.scores["balanced_accuracy"].value == pytest.approx((s + c) / 2)
    assert (found.prevalence, found.observed_prevalence) == (0.1, False)
    assert found.thresholds()["threshold"].iloc[1] == pytest.approx(0.1)
    own = found.thresholds().query("own").iloc[0]
    assert (own["threshold"], own["sensitivity"]) == pytest.approx((0.1, s))
    assert found.to_frame()["score"].tolist() == list(found.scores)


def test_a_calibrated_model_is_called_calibrated():
    """Defect 4: LogisticRegression at 12% had an intercept of +2, net benefit .028 for .072."""
    X, y = logistic_world(3000, 0)
    model = LogisticRegression().fit(X[:1500], y[:1500])
    found = validate_external(model, X[1500:], y[1500:])
    assert found.calibration.intercept.low < 0 < found.calibration.intercept.high
    assert found.calibration.slope.low < 1 < found.calibration.slope.high
    truth, p = y[1500:], model.predict_proba(X[1500:])[:, 1]
    assert found.scores["brier"].value == pytest.approx(np.mean((p - truth) ** 2))
    bins = found.calibration_curve()
    assert len(bins) == 5 and bins["count"].sum() == truth.size
    assert bins["count"] @ bins["observed"] == pytest.approx(truth.sum())
    assert bins["count"] @ bins["predicted"] == pytest.approx(p.sum())
    assert np.abs(bins["observed"] - bins["predicted"]).max() < 0.08
    curve = found.decision_curve()
    at = curve[np.isclose(curve["threshold"], 0.1)].iloc[0]
    called = p >= 0.1
    direct = (np.sum(called & (truth == 1)) - np.sum(called & (truth == 0)) / 9) / truth.size
    assert at["net_benefit"] == pytest.approx(direct)
    balanced = LogisticRegression(class_weight="balanced").fit(X[:1500], y[:1500])
    moved = validate_external(balanced, X[1500:], y[1500:])
    assert abs(moved.calibration.intercept.value) < 0.3
    told = validate_external(model, X[1500:], y[1500:], prior="equal")
    assert told.calibration.intercept.value > 1.5


def test_what_the_cohort_cannot_show_is_flagged():
    X, y = make_planted(60, 5, 2, effect=3.0, random_state=0, return_X_y=True)
    model = GSVPSVM(2).fit(X, y)
    one = validate_external(model, X[y == 1], y[y == 1])
    assert [f.code for f in one.flags] == ["absent"] and "balanced_accuracy" not in one.scores
    assert one.prevalence is None and one.roc_curve() is None and one.thresholds() is None
    svm = validate_external(LinearSVC().fit(X, y), X, y)
    assert "no probabilities" in [f.code for f in svm.flags] and "roc_auc" in svm.scores
    few = validate_external(model, np.r_[X[y == 0], X[y == 1][:3]], np.r_[y[y == 0], [1] * 3])
    assert next(f for f in few.flags if f.code == "few").numbers == {"class": 1, "count": 3}
    flat = validate_external(DummyClassifier().fit(X, y), X, y)
    assert {"one call", "equal ranks"} <= {f.code for f in flat.flags}
    apart = validate_external(GaussianNB().fit(100 * y[:, None], y), 100 * y[:, None], y)
    assert next(f for f in apart.flags if f.code == "no slope").numbers == {"separated": True}


def test_three_classes_and_unknown_labels():
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], 30)
    X = rng.normal(size=(90, 3)) + 2.0 * np.eye(3)[np.repeat([0, 1, 2], 30)]
    model = GaussianNB().fit(X, y)
    found = validate_external(model, X, y)
    assert {"recall a", "roc_auc", "brier", "balanced_accuracy"} <= set(found.scores)
    assert found.calibration is None and found.predictive_values() == {}
    with pytest.raises(ValueError, match="y holds d, which the model does not know"):
        validate_external(model, X[:2], ["a", "d"])
    with pytest.raises(ValueError, match="no samples"):
        validate_external(model, X, [])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        validate_external(model, X, y[1:])
    with pytest.raises(ValueError, match="pos_label='e' is not among"):
        validate_external(model, X, y, pos_label="e")


# ------------------------------------------------------------------ values against training


@pytest.fixture(scope="module")
def shifted():
    X, y = make_planted(200, 10, 3, effect=2.5, random_state=0, return_X_y=True)
    model = GSVPSVM(3).fit(X[:100], y[:100])
    return model, X[100:, model.get_support()], y[100:]


def test_shifts_and_scales_are_named_and_nothing_else(shifted):
    model, values, y = shifted
    for labels in (y, None):
        assert not any(f.shifted or f.scaled for f in check_shift(model, values, labels))
        moved = check_shift(model, values + [0, 6, 0], labels)
        assert [f.shifted for f in moved] == [False, True, False] and moved[1].shift > 2
        scaled = check_shift(model, (values - values.mean(axis=0)) * [1, 1, 6], labels)
        assert scaled[2].scaled and scaled[2].factor > 2
    # with labels, a smaller shift shows than without
    assert check_shift(model, values + [0, 1.5, 0], y)[1].shifted
    assert check_shift(GaussianNB().fit(values, y), values) is None
    assert not any(f.scaled for f in check_shift(model, values[:4], None))


def test_false_alarms_are_rare():
    alarms = 0
    for seed in range(40):
        X, y = make_planted(120, 8, 3, effect=1.5, random_state=seed, return_X_y=True)
        model = GSVPSVM(3).fit(X[:80], y[:80])
        other = check_shift(model, X[80:, model.get_support()], y[80:] if seed % 2 else None)
        alarms += any(f.shifted or f.scaled for f in other)
    assert alarms <= 2
