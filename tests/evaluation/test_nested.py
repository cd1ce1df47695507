"""Nested evaluation: no leakage, honest words, resumable, for any estimator and K classes."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_iris
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from sparsegsvp.evaluation import corrected_interval, nested_evaluate, sizes_notice

QUICK = {"n_repeats": 1, "n_permutations": 0, "final_fit": False}


def test_selection_outside_the_folds_scores_high_on_noise_and_this_one_at_chance(noise):
    X, y = noise
    outside = SelectKBest(k=10).fit_transform(X, y)
    leaked = cross_val_score(LogisticRegression(), outside, y, cv=5, scoring="balanced_accuracy")
    assert leaked.mean() > 0.8
    honest = nested_evaluate(
        make_pipeline(SelectKBest(k=10), LogisticRegression()),
        X,
        y,
        n_repeats=2,
        n_permutations=20,
        permutation="full",
    )
    score = honest.scores["balanced_accuracy"]
    assert score.low <= 0.5 <= score.high and score.value < 0.65
    assert honest.permutation.p_value > 0.05 and honest.signal is False
    assert honest.verdict == "none" and "none" in [notice.code for notice in honest.notices]
    assert honest.stability.value < 0.5


def test_the_estimator_never_sees_a_test_sample():
    seen = []

    class Spy(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            self.classes_ = np.unique(y)
            self.rows_ = set(X[:, 0].astype(int))
            return self

        def predict(self, X):
            seen.append(self.rows_ & set(X[:, 0].astype(int)))
            return np.repeat(self.classes_[0], X.shape[0])

    X = np.column_stack([np.arange(20.0), np.random.default_rng(0).normal(size=20)])
    found = nested_evaluate(Spy(), X, np.arange(20) % 2, **QUICK)
    assert seen and not any(seen)
    assert found.selection_frequencies is None and found.control is None
    assert found.scores["balanced_accuracy"].value == 0.5
    assert "auc" not in found.scores


def test_known_scores_of_a_known_rule():
    # the rule predicts the sign of the only column; 2 of 10 cases and 1 of 10 controls are wrong
    class Sign(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            self.classes_ = np.unique(y)
            return self

        def decision_function(self, X):
            return X[:, 0]

        def predict(self, X):
            return self.classes_[(X[:, 0] > 0).astype(int)]

    y = np.repeat([0, 1], 10)
    x = np.r_[-np.arange(1.0, 10), 1.5, np.arange(1.25, 9), -1.25, -1.5]
    found = nested_evaluate(Sign(), x[:, None], y, cv=2, **QUICK)
    assert found.scores["sensitivity"].value == pytest.approx(0.8)
    assert found.scores["specificity"].value == pytest.approx(0.9)
    assert found.scores["balanced_accuracy"].value == pytest.approx(0.85)
    assert found.scores["prevalence"].value == 0.5
    other = nested_evaluate(Sign(), x[:, None], y, cv=2, pos_label=0, **QUICK)
    assert other.scores["sensitivity"].value == pytest.approx(0.9)
    assert other.scores["auc"].value == pytest.approx(found.scores["auc"].value)
    assert found.positive == 1 and other.positive == 0


def test_result_holds_everything_and_is_json(planted_small, procedure):
    X, y = planted_small
    frame = pd.DataFrame(X, columns=[f"g{j}" for j in range(X.shape[1])])
    found = nested_evaluate(
        procedure, frame, y, cv=4, n_repeats=2, n_permutations=19, permutation="full"
    )
    page = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert page["positive"] == "control" and page["class_counts"] == [16, 24]
    assert len(page["folds"]) == 8 and len(page["out_of_fold"]) == 2
    names = {"balanced_accuracy", "auc", "average_precision", "brier", "sensitivity"}
    assert names <= page["scores"].keys()
    assert page["features"][0]["name"] in {"g0", "g1", "g2"}
    assert page["panel_sizes"] == [4] * 8
    assert {"g0", "g1", "g2"} <= set(page["final_panel_names"])
    assert page["permutation"]["p_value"] == pytest.approx(0.05) and page["verdict"] == "signal"
    assert found.signal is True
    assert page["control"]["selected"]["value"] > page["control"]["random"]["value"] + 0.1
    assert "seconds" not in page and len(found.seconds) == 9
    # each sample is predicted once per repeat, by the fold that left it out
    for repeat in range(2):
        oof = found.out_of_fold(repeat)
        assert (oof["predicted"] >= 0).all() and np.isfinite(oof["proba"]).all()
        np.testing.assert_allclose(oof["proba"].sum(axis=1), 1)
    recalls = [np.mean(oof["predicted"][found.y == k] == k) for k in (0, 1)]
    assert np.mean(recalls) > 0.8
    assert sum(page["calibration"]["weight"]) == pytest.approx(1)


def test_rates_sizes_and_confusion_are_of_the_same_predictions(planted_small, procedure):
    X, y = planted_small
    found = nested_evaluate(procedure, X, y, cv=3, n_repeats=3, n_permutations=0)
    first, mean = (np.array(found.confusion[name]) for name in ("first_repeat", "mean"))
    np.testing.assert_array_equal(first.sum(axis=1), found.class_counts)
    np.testing.assert_allclose(mean.sum(axis=1), found.class_counts)
    oof = [found.out_of_fold(repeat)["predicted"] for repeat in range(3)]
    assert first[0, 1] == np.sum(oof[0][found.y == 0] == 1)
    assert mean[0, 1] == pytest.approx(np.mean([np.sum(p[found.y == 0] == 1) for p in oof]))
    rates = mean.diagonal() / mean.sum(axis=1)
    scores = {name: found.scores[name].value for name in ("sensitivity", "specificity")}
    assert (scores["specificity"], scores["sensitivity"]) == pytest.approx(tuple(rates))
    assert found.scores["balanced_accuracy"].value == pytest.approx(rates.mean())
    page = found.to_dict()
    assert page["confusion"] == found.confusion
    assert page["panel_size_summary"] == {"median": 4.0, "low": 4, "high": 4}
    assert found.stability.low is None and page["stability"]["high"] is None


def test_control_is_paired(planted_small, procedure):
    X, y = planted_small
    found = nested_evaluate(procedure, X, y, n_repeats=2, n_permutations=0)
    gaps = np.array([f.control["selected"] - f.control["random"] for f in found.folds])
    paired = corrected_interval(gaps, 0.25, bounds=(-1, 1))
    assert found.control["difference"] == paired and paired.low > 0
    assert "random" not in [notice.code for notice in found.notices]


def test_text_html_and_frame(planted_small, procedure):
    X, y = planted_small
    found = nested_evaluate(procedure, X, y, cv=3, n_repeats=1, n_permutations=0)
    lines = repr(found).splitlines()
    assert lines[0] == "Nested evaluation: 40 samples, 60 features, 3 fits"
    assert "  verdict: not tested" in lines and "  panel sizes: 4 (4 to 4)" in lines
    score = found.scores["balanced_accuracy"]
    assert f"  balanced accuracy: {score.value:.2f} ({score.low:.2f} to {score.high:.2f})" in lines
    assert str(found) == repr(found) and len(lines) < 10
    assert found._repr_html_().startswith("<table>") and "not tested" in found._repr_html_()
    frame = found.to_frame().set_index("score")
    assert frame.loc["auc", "low"] == found.scores["auc"].low


@pytest.mark.parametrize(
    ("final", "sizes", "noticed"),
    [
        (2, [2, 30, 40, 238], True),  # within the range, far from the median
        (10, [8, 10, 12], False),
        (13, [8, 10, 12], True),  # outside the range
        (7, [8, 10, 12], True),
        (20, [8, 10, 12, 25], False),
        (5, [5, 10, 11], False),
        (4, [4, 10, 11], True),
        (3, [], False),
    ],
)
def test_a_panel_of_another_size_than_those_behind_the_score_is_noticed(final, sizes, noticed):
    found = sizes_notice(final, sizes)
    assert (found is not None) is noticed
    if found is not None:
        assert found.code == "sizes" and str(final) in found.text


def test_the_final_panels_size_is_compared_with_the_folds(planted_small):
    class Growing(GaussianNB):
        def fit(self, X, y):
            self.coef_ = np.arange(X.shape[1]) < (2 if X.shape[0] < 40 else 9)
            return super().fit(X, y)

    X, y = planted_small
    found = nested_evaluate(Growing(), X, y, n_repeats=1, n_permutations=0)
    (notice,) = (n for n in found.notices if n.code == "sizes")
    assert "9 features" in notice.text and found.panel_size_summary == (2, 2, 2)


def test_more_than_two_classes():
    X, y = load_iris(return_X_y=True)
    X = np.column_stack([X, np.random.default_rng(0).normal(size=(150, 5))])
    model = make_pipeline(SelectKBest(k=2), LogisticRegression(max_iter=500))
    with pytest.warns(UserWarning, match="share an identifier|exact duplicates") as caught:
        found = nested_evaluate(model, np.vstack([X, X[:1]]), np.r_[y, y[0]], **QUICK)
    assert len(caught) == 1
    assert found.positive is None and found.calibration is None
    assert found.scores["auc"].value > 0.97
    assert found.scores["prevalence"].value == pytest.approx(1 / 3)
    assert 0.9 < found.scores["specificity"].value <= 1
    json.dumps(found.to_dict(), allow_nan=False)


def test_perfect_separation_does_not_claim_certainty():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 20)
    X = rng.normal(size=(40, 3)) + 20 * y[:, None]
    found = nested_evaluate(LinearSVC(), X, y, **QUICK)
    # exact: 40 hits in a row have a chance of 2.5% at 0.912
    for name in ("balanced_accuracy", "auc"):
        assert found.scores[name].value == 1
        assert found.scores[name].low == pytest.approx(0.025 ** (1 / 40))
    assert found.scores["sensitivity"].low == pytest.approx(0.025 ** (1 / 20))
    assert "brier" not in found.scores  # no probabilities, no Brier score


def test_missing_values_are_imputed_within_the_pipeline(planted_small):
    X, y = planted_small
    X[::7, ::5] = np.nan
    model = make_pipeline(SimpleImputer(), SelectKBest(k=3), GaussianNB())
    found = nested_evaluate(model, X, y, n_repeats=1, n_permutations=0)
    assert found.scores["balanced_accuracy"].value > 0.7
    assert set(found.final_panel) <= set(range(60)) and len(found.final_panel) == 3


def test_groups_reach_the_inner_search_and_stay_whole(planted_small):
    X, y = planted_small
    groups = np.r_[np.arange(16) // 2, 100 + np.arange(24) // 2]
    inner = GridSearchCV(
        make_pipeline(SelectKBest(), GaussianNB()), {"selectkbest__k": [2, 4]}, cv=GroupKFold(3)
    )
    found = nested_evaluate(
        inner, X, y, groups=groups, cv=4, n_repeats=1, n_permutations=5, permutation="full"
    )
    assert found.permutation.scheme == "between groups"
    for fold in found.folds:
        assert not np.intersect1d(groups[fold.train], groups[fold.test]).size


def test_duplicates_and_identifiers_warn_and_suggest_groups(planted_small, procedure):
    X, y = planted_small
    X[5] = X[3]
    with pytest.warns(UserWarning, match="2 of 40 rows are exact duplicates.*groups"):
        found = nested_evaluate(procedure, X, y, **QUICK)
    (notice,) = (notice for notice in found.notices if notice.code == "repeats")
    assert "exact duplicates" in notice.text and notice.to_dict() in found.to_dict()["notices"]
    ids = np.arange(40) // 2
    with pytest.warns(UserWarning, match="share an identifier"):
        nested_evaluate(procedure, X + np.arange(40)[:, None] * 1e-6, y, ids=ids, **QUICK)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # somebody else has looked already
        found = nested_evaluate(procedure, X, y, ids=ids, check_repeats=False, **QUICK)
    assert "repeats" not in [notice.code for notice in found.notices]


def test_workers_and_resuming_give_the_same_bytes(planted_small, procedure, tmp_path):
    X, y = planted_small
    settings = {"n_repeats": 1, "cv": 3, "n_permutations": 6, "permutation": "full"}
    whole = nested_evaluate(procedure, X, y, log=tmp_path / "a.jsonl", **settings)
    log = (tmp_path / "a.jsonl").read_bytes()
    assert b"seconds" not in log and (tmp_path / "a.timings.jsonl").exists()
    with parallel_config(backend="threading"):
        jobs = nested_evaluate(procedure, X, y, log=tmp_path / "b.jsonl", n_jobs=2, **settings)
    assert (tmp_path / "b.jsonl").read_bytes() == log
    assert json.dumps(jobs.to_dict()) == json.dumps(whole.to_dict())
    calls = []
    for cut in (100, len(log) // 2, len(log) - 1):
        path = tmp_path / f"cut{cut}.jsonl"
        path.write_bytes(log[:cut])
        calls.clear()
        again = nested_evaluate(
            procedure, X, y, log=path, resume=True, progress=lambda *a: calls.append(a), **settings
        )
        assert path.read_bytes() == log
        assert json.dumps(again.to_dict()) == json.dumps(whole.to_dict())
    # with one byte missing, one piece of work was repeated
    folds, draws = "nested cross-validation", "permutation test"
    assert calls == [(folds, 3, 3), (draws, 5, 6), (draws, 6, 6)]


def test_a_log_is_neither_overwritten_nor_mixed(planted_small, procedure, tmp_path):
    X, y = planted_small
    path = tmp_path / "log.jsonl"
    nested_evaluate(procedure, X, y, log=path, **QUICK)
    with pytest.raises(ValueError, match="exists already"):
        nested_evaluate(procedure, X, y, log=path, **QUICK)
    with pytest.raises(ValueError, match="random_state, splits differ"):
        nested_evaluate(procedure, X, y, log=path, resume=True, random_state=1, **QUICK)
    with pytest.raises(ValueError, match="data differ"):
        nested_evaluate(procedure, X + 1, y, log=path, resume=True, **QUICK)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], b"not json\n", *lines[2:]]))
    with pytest.raises(ValueError, match=r"line 2 .* is damaged"):
        nested_evaluate(procedure, X, y, log=path, resume=True, **QUICK)


def test_nothing_is_changed_and_two_runs_agree(planted_small, procedure):
    X, y = planted_small
    before, parameters = X.copy(), repr(procedure)
    one, two = (nested_evaluate(procedure, X, y, **QUICK).to_dict() for _ in range(2))
    assert json.dumps(one) == json.dumps(two)
    np.testing.assert_array_equal(X, before)
    assert repr(procedure) == parameters and not hasattr(procedure, "classes_")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"estimator": SelectKBest()}, "cannot predict"),
        ({"pos_label": "nobody"}, "pos_label"),
        ({"permutation": "some"}, "permutation"),
        ({"n_permutations": -1}, "n_permutations"),
        ({"max_permutations": -1}, "max_permutations"),
        ({"feature_names": ["a"]}, "feature_names"),
        ({"cv": 30}, "n_splits=30"),
        ({"resume": True}, "needs log"),
        ({"X": [["a"]] * 40}, "table of numbers"),
    ],
)
def test_bad_arguments_say_what_to_do(planted_small, change, message):
    X, y = planted_small
    arguments = {"estimator": KNeighborsClassifier(), "X": X, "y": y, **change}
    with pytest.raises(ValueError, match=message):
        nested_evaluate(**arguments)
